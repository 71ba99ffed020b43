//! Reading the data files that are embedded in the binary.

use crate::ValidationError;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::io::Read;

/// The rows of a CSV table; lines that begin with # are comments.
pub(crate) fn rows<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, ValidationError> {
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
    let rows: Result<Vec<T>, csv::Error> = reader.deserialize().collect();
    rows.map_err(|error| ValidationError::Data(error.to_string()))
}

/// The rows of a compressed CSV table.
pub(crate) fn packed_rows<T: DeserializeOwned>(packed: &[u8]) -> Result<Vec<T>, ValidationError> {
    let mut text = String::new();
    let read = GzDecoder::new(packed).read_to_string(&mut text);
    read.map_err(|error| ValidationError::Data(error.to_string()))?;
    rows(&text)
}

/// A JSON document.
pub(crate) fn json<T: DeserializeOwned>(text: &str) -> Result<T, ValidationError> {
    serde_json::from_str(text).map_err(|error| ValidationError::Data(error.to_string()))
}

/// An exact number written as a fraction: "29/2", "7"; "None" where there is no value.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Fraction(pub(crate) Option<f64>);

impl TryFrom<String> for Fraction {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "None" {
            return Ok(Self(None));
        }
        let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
        let number =
            |digits: &str| digits.parse::<f64>().map_err(|_| format!("\"{text}\" is not a fraction"));
        Ok(Self(Some(number(numerator)? / number(denominator)?)))
    }
}

impl Fraction {
    /// The value, or NaN where there is none.
    pub(crate) fn get(self) -> f64 {
        self.0.unwrap_or(f64::NAN)
    }
}
