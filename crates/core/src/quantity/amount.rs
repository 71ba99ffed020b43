//! Large numbers of samples, tokens and money, as people write them.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A positive amount: `300e9`, or text such as "300B", "1.5T tokens" and "50 USD".
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount(f64);

impl Amount {
    pub const fn new(value: f64) -> Self {
        Self(value)
    }

    pub const fn get(self) -> f64 {
        self.0
    }

    /// The same as a whole number; none if it is broken or too large.
    pub fn whole(self) -> Option<u64> {
        let fits = self.0 >= 0.0 && self.0 < u64::MAX as f64 && self.0.fract() == 0.0;
        fits.then_some(self.0 as u64)
    }
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is no amount; write 300e9 or 300B");
        let text = text.trim();
        let end = text.find(|c: char| !(c.is_ascii_digit() || "+-.eE_".contains(c))).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number: f64 = number.replace('_', "").parse().map_err(|_| wrong())?;
        let scale = match unit.split_whitespace().next().unwrap_or_default() {
            "k" | "K" => 1e3,
            "M" => 1e6,
            "B" | "G" => 1e9,
            "T" => 1e12,
            "" | "tokens" | "samples" | "USD" | "EUR" | "$" => 1.0,
            _ => return Err(wrong()),
        };
        let amount = number * scale;
        if amount.is_finite() && amount > 0.0 { Ok(Self(amount)) } else { Err(wrong()) }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.whole().map(i64::try_from) {
            Some(Ok(whole)) => serializer.serialize_i64(whole),
            _ => serializer.serialize_f64(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number such as 50e6 or \"50M\"")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount(number as f64))
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number as f64))
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Amount, E> {
                Ok(Amount(number))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Amount {
    fn schema_name() -> Cow<'static, str> {
        "Amount".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string"], "description": "a number, or text such as \"300B\"" })
    }
}
