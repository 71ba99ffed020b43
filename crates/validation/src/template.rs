//! Texts with fields of a row: `${path:format}`, where a path such as `testbed.spread.0` leads into objects and lists.

use crate::ValidationError;
use serde::Deserialize;
use serde_json::Value;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::{Document, ScenarioFile};
use stepcast_report::format;

/// Fills in the fields of a text; none if one of them is null.
pub(crate) fn fill(template: &str, row: &Value) -> Result<Option<String>, ValidationError> {
    let mut parts = template.split("${");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let unclosed = || ValidationError::Data(format!("\"{template}\" has a field that does not end"));
        let (field, rest) = part.split_once('}').ok_or_else(unclosed)?;
        let Some(shown) = show(field, row)? else { return Ok(None) };
        text += &shown;
        text += rest;
    }
    Ok(Some(text))
}

pub(crate) fn find<'a>(row: &'a Value, path: &str) -> Result<&'a Value, ValidationError> {
    let step = |value: &'a Value, key: &str| match value {
        Value::Array(list) => key.parse::<usize>().ok().and_then(|index| list.get(index)),
        other => other.get(key),
    };
    path.split('.')
        .try_fold(row, step)
        .ok_or_else(|| ValidationError::Data(format!("there is no field \"{path}\"")))
}

/// `path` or `path:format` of a row; none for null.
///
/// Formats: `.2` and `+.2` decimals (`5.1` with a width), `%1` a share and `p1` a percentage with one decimal, `+p1` with
/// its sign; `error KEY` the error relative to another field; `time`, `bytes`, `rate`; `name`, `count`, `spaces`;
/// `deviation`; `if WORD|OTHER`. A question mark before a format shows null as nothing.
pub(crate) fn show(field: &str, row: &Value) -> Result<Option<String>, ValidationError> {
    let (path, format) = field.split_once(':').unwrap_or((field, ""));
    let (null, format) = match format.strip_prefix('?') {
        Some(format) => (Some(String::new()), format),
        None => (None, format),
    };
    let value = find(row, path)?;
    if value.is_null() {
        return Ok(null);
    }
    let number = || value.as_f64().unwrap_or(f64::NAN);
    let decimals = |text: &str| text.parse::<usize>().ok();
    let shown = match (value, format) {
        (Value::String(text), "") => text.clone(),
        (Value::String(text), "name") => format::name(text),
        (Value::String(text), "spaces") => text.replace('_', " "),
        (Value::Number(figure), "") if figure.is_f64() => number().to_string(),
        (_, "") => value.to_string(),
        (Value::Number(_), "count") => format::count(value.as_u64().unwrap_or_default()),
        (Value::Number(_), "time") => Seconds::new(number()).human(),
        (Value::Number(_), "bytes") => Bytes::new(number()).human(),
        (Value::Number(_), "rate") => BytesPerSec::new(number()).human(),
        (Value::Number(_), "deviation") => deviation(number()),
        (Value::Bool(is), format) => {
            let words = format.strip_prefix("if ").and_then(|words| words.split_once('|'));
            let (yes, no) = words.unwrap_or(("true", "false"));
            if *is { yes } else { no }.to_owned()
        }
        (Value::Number(_), format) => {
            let (signed, format) = match format.strip_prefix('+') {
                Some(format) => (true, format),
                None => (false, format),
            };
            let fixed = |number: f64, digits: usize| match signed {
                true => format!("{number:+.digits$}"),
                false => format!("{number:.digits$}"),
            };
            let key = format.strip_prefix("error ");
            if let Some(digits) = format.strip_prefix('%').and_then(decimals) {
                fixed(100.0 * number(), digits) + " %"
            } else if let Some(digits) = format.strip_prefix('p').and_then(decimals) {
                fixed(number(), digits) + " %"
            } else if let Some(key) = key {
                signed_error(number() / find(row, key)?.as_f64().unwrap_or(f64::NAN))
            } else if let Some((width, digits)) = format.split_once('.')
                && let (Some(digits), width) = (decimals(digits), decimals(width).unwrap_or(0))
            {
                format!("{:>width$}", fixed(number(), digits))
            } else {
                return Err(ValidationError::Data(format!("there is no format \"{format}\"")));
            }
        }
        _ => return Err(ValidationError::Data(format!("\"{field}\" does not fit {value}"))),
    };
    Ok(Some(shown))
}

/// The error of one prediction: "+4.2 %".
pub(crate) fn signed_error(ratio: f64) -> String {
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
}

/// Rounding of the last digit differs between machines: deviations far below any tolerance are not printed in full.
fn deviation(size: f64) -> String {
    const NEGLIGIBLE: f64 = 1e-13;
    if size < NEGLIGIBLE { format!("< {NEGLIGIBLE:.0e}") } else { format!("{size:.0e}") }
}

/// From a case to a scenario: keys from columns, as `[recipe]` of `set.toml` says.
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
    pub(crate) measured: String,
    /// Column of the number of workers: where it is 1, the case gives `${speed}` for the others of its group.
    pub(crate) alone: Option<String>,
}

impl Recipe {
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
        Ok(Document::new("made from a row", text).file(&[])?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_format_shows_its_field() {
        let row = json!({
            "a": 1.25, "b": 2, "c": null, "d": "x_y", "e": [{ "f": true }], "g": 0.5, "h": 12345, "i": 25.0, "j": 1e-15
        });
        for (template, expected) in [
            ("${a} ${b} ${i}", "1.25 2 25"),
            ("${a:.1}|${a:5.1}|${a:+.3}", "1.2|  1.2|+1.250"),
            ("${g:%0} ${a:p1} ${a:+p1} ${a:+%1}", "50 % 1.2 % +1.2 % +125.0 %"),
            ("${a:error b}", "-37.5 %"),
            ("${d} ${d:spaces} ${d:name}", "x_y x y x_y"),
            ("${e.0.f:if yes|no} ${e.0.f:if |no}", "yes "),
            ("${h:count} ${a:time} ${j:deviation}", "12,345 1.25 s < 1e-13"),
            ("${c:?.1}", ""),
        ] {
            assert_eq!(fill(template, &row).unwrap().as_deref(), Some(expected), "{template}");
        }
        assert_eq!(fill("${c:.1}", &row).unwrap(), None);
        for wrong in ["${z}", "${a", "${a:x}", "${d:.1}", "${e.1}"] {
            assert!(fill(wrong, &row).is_err(), "{wrong}");
        }
    }
}
