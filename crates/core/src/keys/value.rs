//! A value of any key, independent of its type.

use crate::quantity::{BitsPerSec, Bytes, BytesPerSec, FlopsPerSec, Hertz, SamplesPerSec, Seconds, Watts};
use std::any::Any;
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
                f64::from_value(value).map(Self::new)
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

pub(crate) use unordered;
