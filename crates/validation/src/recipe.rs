//! From a case to a scenario: keys from columns, as `[recipe]` of `set.toml` says.

use crate::ValidationError;
use crate::template::{fill, find};
use serde::Deserialize;
use serde_json::Value;
use stepcast_core::scenario::ScenarioFile;

/// `[recipe]`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Recipe {
    /// The scenario, with fields of the case as `${column}`; lines with an empty field are left out.
    scenario: String,
    /// File of the cases, in the set's folder.
    pub(crate) cases: String,
    /// Method that predicts them; without it, the one that a user gets.
    pub(crate) method: Option<String>,
    /// The case in words.
    pub(crate) name: String,
    /// What it has in common with others: those of a group are left out together.
    pub(crate) group: String,
    /// Column of the measured throughput.
    pub(crate) measured: String,
    /// Column of the number of workers: where it is 1, the case gives `${speed}` for the others of its group.
    pub(crate) alone: Option<String>,
}

impl Recipe {
    /// The file of a case's scenario.
    pub(crate) fn scenario_file(&self, case: &Value) -> Result<ScenarioFile, ValidationError> {
        let mut text = String::new();
        for line in self.scenario.lines() {
            let fields = line.split("${").skip(1).filter_map(|part| part.split_once('}'));
            let mut is_kept = true;
            for (field, _) in fields {
                let value = find(case, field.split(':').next().unwrap_or(field))?;
                is_kept &= !value.is_null() && value.as_str() != Some("");
            }
            if let Some(filled) = fill(line, case)?.filter(|_| is_kept) {
                text += &filled;
                text.push('\n');
            }
        }
        toml::from_str(&text).map_err(|error| ValidationError::Data(format!("{error} in\n{text}")))
    }
}
