//! A value of any key, independent of its type, and the ways to write one in a file: directly, as a range, a name, a path or a
//! section.

use crate::fault::Fault;
use crate::files::Files;
use crate::quantity::{
    Amount, BitsPerSec, Bytes, BytesPerSec, FlopsPerSec, Hertz, SamplesPerSec, Seconds, Watts,
};
use crate::uncertain::{Measure, Uncertain};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub enum Value {
    /// The key is omitted and has no default.
    Absent,
    Count(u64),
    /// A number, in base units.
    Real(f64),
    /// An unordered value.
    Other(Arc<dyn Any + Send + Sync>),
}

impl Value {
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Real(number) => Some(*number),
            Self::Absent | Self::Other(_) => None,
        }
    }
}

/// A type that a key can set.
pub trait Figure: Sized {
    fn value(&self) -> Value;

    /// Converts it from a value; none if the value has another type.
    fn from_value(value: &Value) -> Option<Self>;

    /// Replaces it by the value if the types match.
    fn assign(&mut self, value: &Value) {
        if let Some(value) = Self::from_value(value) {
            *self = value;
        }
    }
}

impl<T: Figure> Figure for Option<T> {
    fn value(&self) -> Value {
        self.as_ref().map_or(Value::Absent, T::value)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Absent => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

macro_rules! count {
    ($($type:ty),*) => {$(
        impl Figure for $type {
            fn value(&self) -> Value {
                Value::Count(u64::from(*self))
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Count(count) => Self::try_from(*count).ok(),
                    _ => None,
                }
            }
        }
    )*};
}

count!(u32, u64);

impl Figure for f64 {
    fn value(&self) -> Value {
        Value::Real(*self)
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Real(number) => Some(*number),
            _ => None,
        }
    }
}

macro_rules! quantity {
    ($($type:ty),*) => {$(
        impl Figure for $type {
            fn value(&self) -> Value {
                Value::Real(self.get())
            }

            fn from_value(value: &Value) -> Option<Self> {
                <f64 as Figure>::from_value(value).map(Self::new)
            }
        }
    )*};
}

quantity!(BitsPerSec, Bytes, BytesPerSec, FlopsPerSec, Hertz, SamplesPerSec, Seconds, Watts);

/// Implements `Figure` for a type whose values have no order.
macro_rules! unordered {
    ($type:ty) => {
        impl $crate::keys::Figure for $type {
            fn value(&self) -> $crate::keys::Value {
                $crate::keys::Value::Other(std::sync::Arc::new(self.clone()))
            }

            fn from_value(value: &$crate::keys::Value) -> Option<Self> {
                match value {
                    $crate::keys::Value::Other(any) => any.downcast_ref::<Self>().cloned(),
                    _ => None,
                }
            }

            fn assign(&mut self, value: &$crate::keys::Value) {
                if let $crate::keys::Value::Other(any) = value
                    && let Some(value) = any.downcast_ref::<Self>()
                {
                    self.clone_from(value);
                }
            }
        }
    };
}

unordered!(bool);
unordered!(String);

/// A type that a file may contain for a `T`.
pub trait Given<T>: Sized {
    /// Its description in the documentation.
    fn written() -> String;

    /// The resolved value; keys of faults are relative to this value.
    fn resolve(self, files: &dyn Files) -> Result<T, Fault>;

    /// Converts a value back to its form in the file.
    fn write(value: &T) -> Self;

    /// Both ends in base units, if it is a range.
    fn range(&self) -> Option<[f64; 2]> {
        None
    }

    /// The range between two values in base units.
    fn between(_ends: [f64; 2]) -> Option<Self> {
        None
    }
}

/// Implements `Given` for types that are written unchanged.
macro_rules! itself {
    ($($type:ty => $written:literal),* $(,)?) => {$(
        impl Given<$type> for $type {
            fn written() -> String {
                $written.to_owned()
            }

            fn resolve(self, _: &dyn Files) -> Result<$type, Fault> {
                Ok(self)
            }

            fn write(value: &$type) -> Self {
                value.clone()
            }
        }
    )*};
}

itself!(
    bool => "boolean",
    u32 => "integer",
    u64 => "integer",
    f64 => "number",
    String => "string",
    BitsPerSec => "network rate",
    Bytes => "size",
    BytesPerSec => "memory rate",
    FlopsPerSec => "computing rate",
    Hertz => "frequency",
    SamplesPerSec => "throughput",
    Seconds => "time",
    Watts => "power",
);

impl Given<f64> for Amount {
    fn written() -> String {
        "number".to_owned()
    }

    fn resolve(self, _: &dyn Files) -> Result<f64, Fault> {
        Ok(self.get())
    }

    fn write(value: &f64) -> Self {
        Self::new(*value)
    }
}

impl Given<u64> for Amount {
    fn written() -> String {
        "integer".to_owned()
    }

    fn resolve(self, _: &dyn Files) -> Result<u64, Fault> {
        let wrong = || {
            Fault::new(
                format!("{} is no positive whole number", self.get()),
                "write one such as 1281167 or 1e6",
            )
        };
        self.whole().ok_or_else(wrong)
    }

    fn write(value: &u64) -> Self {
        Self::new(*value as f64)
    }
}

impl<T: Measure + Given<T>> Given<T> for Uncertain<T> {
    fn written() -> String {
        format!("{} or range", T::written())
    }

    fn resolve(self, _: &dyn Files) -> Result<T, Fault> {
        Ok(self.centre())
    }

    fn write(value: &T) -> Self {
        Self::exactly(*value)
    }

    fn range(&self) -> Option<[f64; 2]> {
        self.is_range().then(|| self.ends().map(T::value))
    }

    fn between(ends: [f64; 2]) -> Option<Self> {
        Uncertain::between(T::from_value(ends[0]), T::from_value(ends[1]))
    }
}

/// The name of a catalog entry, or a table that overrides or defines one.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum NameOr<T> {
    /// `device = "tesla-v100"`.
    Name(String),
    /// `device = { base = "tesla-v100", efficiency = 0.5 }`.
    Table(Box<T>),
}

impl<T> From<&str> for NameOr<T> {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for NameOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = NameOr<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a catalog entry, or a table")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(NameOr::Name(name.to_owned()))
            }

            /// Names may be numbers: `device = 4090`.
            fn visit_i64<E: de::Error>(self, name: i64) -> Result<Self::Value, E> {
                Ok(NameOr::Name(name.to_string()))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|table| NameOr::Table(Box::new(table)))
            }
        }

        deserializer.deserialize_any(Visitor(PhantomData))
    }
}

pub(crate) use unordered;
