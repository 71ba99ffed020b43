//! Sizes as written by the user: one number for both directions, or one for each.

use crate::model::op::Padding;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Height and width: `3`, or `[1, 7]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// Vertical size.
    pub height: u64,
    /// Horizontal size.
    pub width: u64,
}

impl From<Pair> for (u64, u64) {
    fn from(pair: Pair) -> Self {
        (pair.height, pair.width)
    }
}

impl Serialize for Pair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.height == self.width {
            serializer.serialize_u64(self.height)
        } else {
            numbers(serializer, &[self.height, self.width])
        }
    }
}

impl<'de> Deserialize<'de> for Pair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer
            .deserialize_any(Sizes { expected: "a number, or a pair [height, width]", words: false })?
        {
            Size::One(size) => Ok(Self { height: size, width: size }),
            Size::Two(height, width) => Ok(Self { height, width }),
            Size::Four(_) | Size::Word(_) => {
                Err(de::Error::invalid_length(4, &"a number, or a pair [height, width]"))
            }
        }
    }
}

impl JsonSchema for Pair {
    fn schema_name() -> Cow<'static, str> {
        "Pair".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let size = || json_schema!({ "type": "integer", "minimum": 0 });
        let two = json_schema!({ "type": "array", "items": size(), "minItems": 2, "maxItems": 2 });
        json_schema!({ "description": "height and width", "anyOf": [size(), two] })
    }
}

const PADDING: &str =
    "a number, a pair [height, width], four numbers [top, bottom, left, right], \"same\" or \"valid\"";

impl Serialize for Padding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Valid => serializer.serialize_str("valid"),
            Self::Same => serializer.serialize_str("same"),
            Self::Explicit { top, bottom, left, right } if top != bottom || left != right => {
                numbers(serializer, &[top, bottom, left, right])
            }
            Self::Explicit { top, left, .. } if top != left => numbers(serializer, &[top, left]),
            Self::Explicit { top, .. } => serializer.serialize_u64(top),
        }
    }
}

impl<'de> Deserialize<'de> for Padding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match deserializer.deserialize_any(Sizes { expected: PADDING, words: true })? {
            Size::One(size) => Self::all(size),
            Size::Two(height, width) => {
                Self::Explicit { top: height, bottom: height, left: width, right: width }
            }
            Size::Four([top, bottom, left, right]) => Self::Explicit { top, bottom, left, right },
            Size::Word(padding) => padding,
        })
    }
}

impl JsonSchema for Padding {
    fn schema_name() -> Cow<'static, str> {
        "Padding".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let size = || json_schema!({ "type": "integer", "minimum": 0 });
        let some = json_schema!({ "type": "array", "items": size(), "minItems": 2, "maxItems": 4 });
        json_schema!({ "description": PADDING, "anyOf": [size(), some, { "enum": ["same", "valid"] }] })
    }
}

fn numbers<S: Serializer>(serializer: S, numbers: &[u64]) -> Result<S::Ok, S::Error> {
    let mut sequence = serializer.serialize_seq(Some(numbers.len()))?;
    for number in numbers {
        sequence.serialize_element(number)?;
    }
    sequence.end()
}

enum Size {
    One(u64),
    Two(u64, u64),
    Four([u64; 4]),
    Word(Padding),
}

/// Parses any of the notations; `words` permits the names of paddings.
struct Sizes {
    expected: &'static str,
    words: bool,
}

impl<'de> Visitor<'de> for Sizes {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Size, E> {
        Ok(Size::One(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Size, E> {
        u64::try_from(value)
            .map(Size::One)
            .map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Size, E> {
        match value {
            "same" if self.words => Ok(Size::Word(Padding::Same)),
            "valid" if self.words => Ok(Size::Word(Padding::Valid)),
            _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Size, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = sequence.next_element::<u64>()? {
            values.push(value);
        }
        match values[..] {
            [height, width] => Ok(Size::Two(height, width)),
            [top, bottom, left, right] if self.words => Ok(Size::Four([top, bottom, left, right])),
            _ => Err(de::Error::invalid_length(values.len(), &self)),
        }
    }
}
