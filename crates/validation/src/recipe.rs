//! From cases to scenarios: keys from columns, as `[[recipe]]` of `set.toml` says.

use crate::ValidationError;
use crate::records::{self, Fields};
use crate::template::{fill, find};
use serde::Deserialize;
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{Document, Scenario, ScenarioFile};

/// How cases of a file become scenarios. Texts have fields of the case as `${column}`; their lines with an empty field are left out,
/// unless a question mark stands before the field's format.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Recipe {
    /// The scenario. A file that it names is a column of the case.
    scenario: String,
    /// File of the cases, in the set's folder.
    cases: String,
    /// Method that predicts them; without it, the one that a user gets.
    pub(crate) method: Option<String>,
    /// The case in words.
    pub(crate) name: String,
    /// Family of the case; a family is left out as a whole.
    pub(crate) group: String,
    /// Column of what was measured, or a time with its unit.
    pub(crate) measured: String,
    /// Column of the number of workers: where it is 1, the case gives `${speed}` for the others of its group.
    pub(crate) alone: Option<String>,
    /// Where the profile of a worker is worked out from the cases: gives `${groups}` of workers and `${port}`.
    pub(crate) pulling: Option<PullingSpec>,
    /// Columns that the report shows for programs.
    #[serde(default)]
    pub(crate) shown: Vec<String>,
    /// Runs with this text in common are left out together where constants are refitted; the publisher's by default.
    pub(crate) left_out: Option<String>,
    /// Publisher of the case.
    #[serde(default)]
    pub(crate) publisher: String,
    /// Software of the run; the publisher by default.
    pub(crate) framework: Option<String>,
    /// Model of the run; runs of a model are alternatives.
    #[serde(default)]
    pub(crate) model: String,
    /// Whether constants are fitted to it: true unless it says `false`.
    #[serde(default)]
    pub(crate) fitted: String,
}

/// What asynchronous workers pull in every step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PullingSpec {
    pub(crate) model: String,
    /// Samples of a step.
    pub(crate) batch: u32,
    /// Whether the rate of a server is that of its network, and not of its processor, too.
    pub(crate) is_network: bool,
}

/// Files that a scenario names are columns of its case.
struct Columns<'a>(&'a Value);

impl Files for Columns<'_> {
    fn text(&self, column: &str) -> Result<String, Fault> {
        Ok(self.0.text(column).to_owned())
    }
}

impl Recipe {
    /// The cases of a set, as objects.
    pub(crate) fn cases(&self, set: &str) -> Result<Vec<Value>, ValidationError> {
        records::cases(&format!("{set}/{}", self.cases))
    }

    /// The scenario of a case as a file.
    pub(crate) fn text(&self, case: &Value) -> Result<String, ValidationError> {
        Ok(lines(&self.scenario, case)?.join("\n"))
    }

    pub(crate) fn scenario_file(&self, case: &Value) -> Result<ScenarioFile, ValidationError> {
        Ok(Document::new("made from a row", self.text(case)?).file(&[])?)
    }

    pub(crate) fn scenario(&self, case: &Value) -> Result<Scenario, ValidationError> {
        Ok(self.scenario_file(case)?.resolve_with(&Columns(case))?)
    }

    /// The measured time, if the case has one.
    pub(crate) fn seconds(&self, case: &Value) -> Result<Option<f64>, ValidationError> {
        let Some(text) = lines(&self.measured, case)?.pop() else { return Ok(None) };
        let time: Result<Seconds, _> = text.parse();
        let damaged = |_| ValidationError::Data(format!("{}: \"{text}\" is no time", self.cases));
        Ok(Some(time.map_err(damaged)?.get()))
    }
}

/// A text of a case: the lines that are not left out, one after the other.
pub(crate) fn words(template: &str, case: &Value) -> Result<String, ValidationError> {
    Ok(lines(template, case)?.concat())
}

fn lines(template: &str, case: &Value) -> Result<Vec<String>, ValidationError> {
    let mut kept = Vec::new();
    for line in template.lines() {
        let mut is_kept = true;
        for (field, _) in line.split("${").skip(1).filter_map(|part| part.split_once('}')) {
            let (path, format) = field.split_once(':').unwrap_or((field, ""));
            let value = find(case, path)?;
            is_kept &= format.starts_with('?') || !(value.is_null() || value.as_str() == Some(""));
        }
        kept.extend(fill(line, case)?.filter(|_| is_kept));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn lines_with_an_empty_column_are_left_out() {
        let case = json!({ "a": 1, "empty": "", "null": null, "keys": "x = 1, y = \"z\"" });
        for (template, expected) in [
            ("a = ${a}\nb = ${empty}\nc = 2", "a = 1|c = 2"),
            ("a = ${null}", ""),
            ("a = { ${keys}, ${empty:?} }", "a = { x = 1, y = \"z\",  }"),
            ("a = ${a} ${empty}", ""),
        ] {
            assert_eq!(lines(template, &case).unwrap().join("|"), expected, "{template}");
        }
        assert_eq!(words("of ${a}\n, ${null}\n, too", &case).unwrap(), "of 1, too");
        assert!(lines("${other}", &case).is_err());
    }
}
