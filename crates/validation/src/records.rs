//! Reads the files of validation sets: rows of CSV, JSON documents and lines of JSON, compressed or not.

use crate::ValidationError;
use flate2::read::GzDecoder;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::io::Read;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_trace::unpacked;
use stepcast_validation_data::file;

fn damaged(path: &str, error: impl std::fmt::Display) -> ValidationError {
    ValidationError::Data(format!("{path}: {error}"))
}

pub(crate) fn text(path: &str) -> Result<String, ValidationError> {
    let bytes = file(path).ok_or_else(|| damaged(path, "not in the binary"))?;
    let mut text = String::new();
    let read = match path.ends_with(".gz") {
        true => GzDecoder::new(bytes).read_to_string(&mut text),
        false => (&mut &*bytes).read_to_string(&mut text),
    };
    read.map_err(|error| damaged(path, error))?;
    Ok(text)
}

/// The rows of an embedded CSV table; lines that begin with # are comments.
pub(crate) fn rows<T: DeserializeOwned>(path: &str) -> Result<Vec<T>, ValidationError> {
    let text = text(path)?;
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let rows: Result<Vec<T>, csv::Error> = reader.deserialize().collect();
    rows.map_err(|error| damaged(path, error))
}

/// The rows of an embedded CSV table as objects. Cells that look like numbers or booleans are such.
pub(crate) fn cases(path: &str) -> Result<Vec<Value>, ValidationError> {
    Ok(rows::<Map<String, Value>>(path)?.into_iter().map(Value::Object).collect())
}

pub(crate) fn document(path: &str) -> Result<Value, ValidationError> {
    serde_json::from_str(&text(path)?).map_err(|error| damaged(path, error))
}

/// The lines of a file of measurements, compressed or not, each a JSON object; `check` says what is wrong with one.
pub(crate) fn lines<T: DeserializeOwned>(
    path: &Path,
    check: impl Fn(&T) -> Result<(), String>,
) -> Result<Vec<T>, Fault> {
    let bytes = unpacked(path)?;
    let mut rows = Vec::new();
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let row = serde_json::from_slice(line).map_err(|error| error.to_string());
        rows.push(row.and_then(|row| check(&row).map(|()| row)).map_err(|reason| {
            let remedy = "docs/validation.md says what is in every line";
            Fault::in_file(format!("{}:{}", path.display(), number + 1), reason, remedy)
        })?);
    }
    Ok(rows)
}

/// Fields of a row or document by name. What is missing is NaN, 0 or empty, which no check accepts.
pub(crate) trait Fields {
    fn field(&self, key: &str) -> &Value;

    /// A number, or an exact fraction such as "29/2".
    fn number(&self, key: &str) -> f64 {
        number(self.field(key))
    }

    fn count(&self, key: &str) -> u64 {
        self.field(key).as_u64().unwrap_or(0)
    }

    /// A whole number of moderate size.
    fn small(&self, key: &str) -> u32 {
        u32::try_from(self.count(key)).unwrap_or(0)
    }

    fn text(&self, key: &str) -> &str {
        self.field(key).as_str().unwrap_or_default()
    }

    fn is(&self, key: &str) -> bool {
        self.field(key).as_bool().unwrap_or(false)
    }

    fn list(&self, key: &str) -> &[Value] {
        self.field(key).as_array().map_or(&[], Vec::as_slice)
    }

    fn numbers(&self, key: &str) -> Vec<f64> {
        self.list(key).iter().map(number).collect()
    }
}

impl Fields for Value {
    fn field(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

/// A number, or an exact fraction such as "29/2"; NaN where there is none.
pub(crate) fn number(value: &Value) -> f64 {
    let fraction = |text: &str| {
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        Some(above.parse::<f64>().ok()? / below.parse::<f64>().ok()?)
    };
    value.as_f64().or_else(|| value.as_str().and_then(fraction)).unwrap_or(f64::NAN)
}
