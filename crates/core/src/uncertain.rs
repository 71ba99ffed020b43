//! A value that is known exactly or only within a range: `"9.0..9.5 Gbit/s"`, `"0.4..0.5"`, `[0.4, 0.5]`.
//!
//! A range is a 90 % range for the true value. Predictions use its centre, the geometric mean of its ends, because
//! errors of rates and shares are factors. The ends are kept as written, so that a file can be written back.

use crate::quantity::{BitsPerSec, BytesPerSec, SamplesPerSec, Seconds};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, IntoDeserializer};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// A quantity whose uncertainty is a factor.
pub trait Measure: Copy + PartialOrd + Serialize + for<'de> Deserialize<'de> {
    /// The value in base units.
    fn value(self) -> f64;
    /// The quantity with this value in base units.
    fn from_value(value: f64) -> Self;
    fn parse(text: &str) -> Result<Self, String>;
    /// Example of a range in the user's notation.
    const EXAMPLE: &'static str;
}

impl Measure for f64 {
    fn value(self) -> f64 {
        self
    }

    fn from_value(value: f64) -> Self {
        value
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.trim()
            .parse()
            .map_err(|_| format!("\"{}\" is not a number; write {}", text.trim(), Self::EXAMPLE))
    }

    const EXAMPLE: &'static str = "\"0.4..0.5\"";
}

macro_rules! measure {
    ($name:ident, $example:literal) => {
        impl Measure for $name {
            fn value(self) -> f64 {
                self.get()
            }

            fn from_value(value: f64) -> Self {
                Self::new(value)
            }

            fn parse(text: &str) -> Result<Self, String> {
                text.parse().map_err(|error: crate::quantity::ParseQuantityError| error.to_string())
            }

            const EXAMPLE: &'static str = $example;
        }
    };
}

measure!(BitsPerSec, "\"9..10 Gbit/s\"");
measure!(BytesPerSec, "\"8..10 GB/s\"");
measure!(SamplesPerSec, "\"2400..2600 samples/s\"");
measure!(Seconds, "\"20..50 us\"");

/// An exact value or a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uncertain<T> {
    low: T,
    high: T,
}

impl<T: Measure> Uncertain<T> {
    pub fn exactly(value: T) -> Self {
        Self { low: value, high: value }
    }

    /// A range; none unless its ends are positive and ascending.
    pub fn between(low: T, high: T) -> Option<Self> {
        let sound = low.value() > 0.0 && low <= high && high.value().is_finite();
        sound.then_some(Self { low, high })
    }

    /// Both ends, lower first.
    pub fn ends(self) -> [T; 2] {
        [self.low, self.high]
    }

    pub fn is_range(self) -> bool {
        self.low < self.high
    }

    /// The value used in predictions: the exact value, or the geometric mean of the ends.
    pub fn centre(self) -> T {
        match self.is_range() {
            true => T::from_value((self.low.value() * self.high.value()).sqrt()),
            false => self.low,
        }
    }
}

impl<T: Measure> From<T> for Uncertain<T> {
    fn from(value: T) -> Self {
        Self::exactly(value)
    }
}

impl<T: Measure> Serialize for Uncertain<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !self.is_range() {
            return self.low.serialize(serializer);
        }
        let mut ends = serializer.serialize_seq(Some(2))?;
        ends.serialize_element(&self.low)?;
        ends.serialize_element(&self.high)?;
        ends.end()
    }
}

impl<T: JsonSchema> JsonSchema for Uncertain<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Uncertain{}", T::schema_name()).into()
    }

    fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
        let one = schemas.subschema_for::<T>();
        let two = json_schema!({ "type": "array", "items": one.clone(), "minItems": 2, "maxItems": 2 });
        json_schema!({
            "description": "one figure, or a range that holds it with 90 %",
            "anyOf": [one, two, { "type": "string", "pattern": r"\.\." }],
        })
    }
}

/// Both ends of "9.0..9.5 Gbit/s"; the unit may be written only once.
fn split<T: Measure>(low: &str, high: &str) -> Result<(T, T), String> {
    let is_number = |c: char| c.is_ascii_digit() || "+-._eE ".contains(c);
    let unit = high.trim_start_matches(is_number);
    let low = match low.trim_end().ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        true => format!("{} {unit}", low.trim_end()),
        false => low.to_owned(),
    };
    Ok((T::parse(&low)?, T::parse(high)?))
}

impl<'de, T: Measure> Deserialize<'de> for Uncertain<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        fn range<T: Measure, E: de::Error>(low: T, high: T) -> Result<Uncertain<T>, E> {
            let wrong = || {
                let remedy = format!("write the smaller one first, such as {}", T::EXAMPLE);
                E::custom(format!("the ends of a range must be positive and ascending; {remedy}"))
            };
            Uncertain::between(low, high).ok_or_else(wrong)
        }

        fn single<'de, T: Measure, E: de::Error>(
            value: impl IntoDeserializer<'de, E>,
        ) -> Result<Uncertain<T>, E> {
            T::deserialize(value.into_deserializer()).map(Uncertain::exactly)
        }

        impl<'de, T: Measure> de::Visitor<'de> for Visitor<T> {
            type Value = Uncertain<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a figure, or a range such as {}", T::EXAMPLE)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                match text.split_once("..") {
                    Some((low, high)) => {
                        let (low, high) = split(low, high).map_err(E::custom)?;
                        range(low, high)
                    }
                    None => single(text),
                }
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
                single(number)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
                single(number)
            }

            fn visit_f64<E: de::Error>(self, number: f64) -> Result<Self::Value, E> {
                single(number)
            }

            fn visit_bool<E: de::Error>(self, value: bool) -> Result<Self::Value, E> {
                single(value)
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut ends: A) -> Result<Self::Value, A::Error> {
                let (low, high) = (ends.next_element()?, ends.next_element()?);
                match (low, high, ends.next_element::<T>()?) {
                    (Some(low), Some(high), None) => range(low, high),
                    _ => Err(de::Error::custom(format!(
                        "a range has two ends; write two figures, or {}",
                        T::EXAMPLE
                    ))),
                }
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}
