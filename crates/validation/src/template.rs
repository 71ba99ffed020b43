//! Texts with fields of a row: `${path:format}`, where a path such as `testbed.spread.0` leads into objects and lists.

use crate::ValidationError;
use serde_json::Value;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
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

pub(crate) fn list<'a>(figures: &'a Value, path: &str) -> Result<&'a [Value], ValidationError> {
    find(figures, path)?
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| ValidationError::Data(format!("\"{path}\" is no list")))
}

/// `path` or `path:format` of a row; none for null.
///
/// Formats: `.2` and `+.2` decimals (`5.1` with a width), `%1` a share and `p1` a percentage with one decimal, `+p1` with
/// its sign; `error KEY` the error relative to another field; `time`, `bytes`, `rate`; `name`, `count`, `spaces`; `keys` of TOML
/// without quotes; `column`, the name of the field; `deviation`; `if WORD|OTHER`; `several WORD`. A question mark before a format shows null as
/// nothing.
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
        (Value::String(text), "keys") => keys(text),
        (_, "column") => path.to_owned(),
        (Value::Number(figure), "") if figure.is_f64() => number().to_string(),
        (_, "") => value.to_string(),
        (Value::Number(_), "count") => format::count(value.as_u64().unwrap_or_default()),
        (Value::Number(_), several) if several.starts_with("several ") => {
            format::several(value.as_u64().unwrap_or_default(), &several["several ".len()..])
        }
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

/// "tensor=8 recompute=layer" of `tensor = 8, recompute = ["layer"]`.
fn keys(text: &str) -> String {
    text.replace("[\"", "").replace("\"]", "").replace('"', "").replace(" = ", "=").replace(", ", " ")
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_format_shows_its_field() {
        let row = json!({
            "a": 1.25, "b": 2, "c": null, "d": "x_y", "e": [{ "f": true }], "g": 0.5, "h": 12345, "i": 25.0, "j": 1e-15,
            "k": "a = 1, b = [\"c\"], d = [1,2]"
        });
        for (template, expected) in [
            ("${a} ${b} ${i}", "1.25 2 25"),
            ("${a:.1}|${a:5.1}|${a:+.3}", "1.2|  1.2|+1.250"),
            ("${g:%0} ${a:p1} ${a:+p1} ${a:+%1}", "50 % 1.2 % +1.2 % +125.0 %"),
            ("${a:error b}", "-37.5 %"),
            ("${d} ${d:spaces} ${d:name}", "x_y x y x_y"),
            ("${e.0.f:if yes|no} ${e.0.f:if |no}", "yes "),
            ("${b:several server}", "2 servers"),
            ("${h:count} ${a:time} ${j:deviation}", "12,345 1.25 s < 1e-13"),
            ("${c:?.1}", ""),
            ("${k:keys} ${k:column}", "a=1 b=c d=[1,2] k"),
        ] {
            assert_eq!(fill(template, &row).unwrap().as_deref(), Some(expected), "{template}");
        }
        assert_eq!(fill("${c:.1}", &row).unwrap(), None);
        for wrong in ["${z}", "${a", "${a:x}", "${d:.1}", "${e.1}"] {
            assert!(fill(wrong, &row).is_err(), "{wrong}");
        }
    }
}
