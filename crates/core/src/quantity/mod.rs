//! Physical quantities: one type per dimension, with only the arithmetic that makes sense.
//!
//! A quantity holds an `f64` in its base unit (s, B, bit, FLOP, Hz, W and their rates). Text always carries a unit ("10
//! Gbit/s", "64 MiB"); a bare number is rejected. Printing with `{}` is exact: the text parses back to the same
//! value. [`human`](Seconds::human) rounds for tables.
//!
//! "FLOP" is a number of operations here, never a rate (Zeng 2023 uses FLOPS for both).

mod text;

pub use text::ParseQuantityError;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_with::SerializeAs;
use serde_with::schemars_1::JsonSchemaAs;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use text::Unit;

/// Implements `left operator right = output` on the numbers behind quantities.
macro_rules! operator {
    ($($trait:ident $method:ident: $left:ident, $right:ty => $output:ident;)*) => {$(
        impl std::ops::$trait<$right> for $left {
            type Output = $output;

            // Small, and called from other crates all the time.
            #[inline]
            fn $method(self, right: $right) -> $output {
                $output::from_number(std::ops::$trait::$method(f64::from(self), f64::from(right)))
            }
        }
    )*};
}

/// Result of an operator.
trait FromNumber {
    fn from_number(number: f64) -> Self;
}

impl FromNumber for f64 {
    fn from_number(number: f64) -> Self {
        number
    }
}

/// amount / rate = time, amount / time = rate, rate × time = amount.
macro_rules! rate {
    ($amount:ident, $rate:ident) => {
        operator! {
            Div div: $amount, $rate => Seconds;
            Div div: $amount, Seconds => $rate;
            Mul mul: $rate, Seconds => $amount;
        }
    };
}

/// Defines a quantity: a newtype over `f64` in its base unit.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $example:literal, $units:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, PartialOrd, Default)]
        pub struct $name(f64);

        impl $name {
            /// Zero.
            pub const ZERO: Self = Self(0.0);
            pub(crate) const UNITS: &'static [Unit] = $units;
            pub(crate) const EXAMPLE: &'static str = $example;

            /// The quantity of `value` base units.
            pub const fn new(value: f64) -> Self {
                Self(value)
            }

            /// The value in base units.
            pub const fn get(self) -> f64 {
                self.0
            }

            /// The larger of two.
            #[must_use]
            #[inline]
            pub fn max(self, other: Self) -> Self {
                Self(self.0.max(other.0))
            }

            /// The smaller of two.
            #[must_use]
            #[inline]
            pub fn min(self, other: Self) -> Self {
                Self(self.0.min(other.0))
            }

            /// Neither infinite nor NaN.
            pub fn is_finite(self) -> bool {
                self.0.is_finite()
            }

            /// Rounded to four significant digits, for people: "1.235 GB".
            pub fn human(self) -> String {
                text::human(self.0, Self::UNITS)
            }
        }

        impl From<$name> for f64 {
            fn from(quantity: $name) -> f64 {
                quantity.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(&text::exact(self.0, Self::UNITS))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = ParseQuantityError;

            fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
                text::parse(text, Self::UNITS, Self::EXAMPLE).map(Self)
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": "a number with its unit" })
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                text::deserialize(deserializer, Self::UNITS, Self::EXAMPLE).map(Self)
            }
        }

        impl FromNumber for $name {
            fn from_number(number: f64) -> Self {
                Self(number)
            }
        }

        operator! {
            Add add: $name, $name => $name;
            Sub sub: $name, $name => $name;
            Mul mul: $name, f64 => $name;
            Div div: $name, f64 => $name;
            Div div: $name, $name => f64;
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }

        impl std::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
                items.fold(Self::ZERO, |total, item| total + item)
            }
        }
    };
}

quantity!(
    /// A duration; base unit second.
    Seconds, "0.5 s", text::SECONDS
);
quantity!(
    /// An amount of data in bytes.
    Bytes, "25 MB", text::BYTES
);
quantity!(
    /// An amount of data in bits.
    Bits, "2 Gbit", text::BITS
);
quantity!(
    /// A number of floating-point operations (a multiply-add is two).
    Flops, "7.7 GFLOP", text::FLOPS
);
quantity!(
    /// A frequency; base unit hertz.
    Hertz, "2.2 GHz", text::HERTZ
);
quantity!(
    /// Electrical power; base unit watt.
    Watts, "300 W", text::WATTS
);
quantity!(
    /// A rate of computing.
    FlopsPerSec, "13.45 TFLOP/s", text::FLOPS_PER_SEC
);
quantity!(
    /// A data rate in bits per second, as usual for networks.
    BitsPerSec, "10 Gbit/s", text::BITS_PER_SEC
);
quantity!(
    /// A data rate in bytes per second, as usual for memory.
    BytesPerSec, "416 GB/s", text::BYTES_PER_SEC
);
quantity!(
    /// Training samples per second.
    SamplesPerSec, "512 samples/s", text::SAMPLES_PER_SEC
);

rate!(Bytes, BytesPerSec);
rate!(Bits, BitsPerSec);
rate!(Flops, FlopsPerSec);

impl Bytes {
    pub const fn to_bits(self) -> Bits {
        Bits(self.0 * 8.0)
    }
}

impl Bits {
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 / 8.0)
    }
}

impl BitsPerSec {
    pub const fn to_bytes_per_sec(self) -> BytesPerSec {
        BytesPerSec(self.0 / 8.0)
    }
}

impl BytesPerSec {
    pub const fn to_bits_per_sec(self) -> BitsPerSec {
        BitsPerSec(self.0 * 8.0)
    }
}

impl Hertz {
    /// The computing rate of a unit with `per_cycle` operations per cycle.
    pub fn at(self, per_cycle: f64) -> FlopsPerSec {
        FlopsPerSec(self.0 * per_cycle)
    }
}

impl SamplesPerSec {
    pub fn from_time(samples: f64, time: Seconds) -> Self {
        Self(samples / time.0)
    }

    pub fn time_for(self, samples: f64) -> Seconds {
        Seconds(samples / self.0)
    }
}

/// Serialises a quantity as a number in base units, for results whose keys name the unit: `#[serde(with = "InBaseUnits")]`, and
/// within options and lists `#[serde_as(as = "Option<InBaseUnits>")]`.
pub struct InBaseUnits;

impl InBaseUnits {
    pub fn serialize<S: Serializer>(quantity: &(impl Copy + Into<f64>), to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64((*quantity).into())
    }
}

impl<Q: Copy + Into<f64>> SerializeAs<Q> for InBaseUnits {
    fn serialize_as<S: Serializer>(quantity: &Q, to: S) -> Result<S::Ok, S::Error> {
        Self::serialize(quantity, to)
    }
}

/// Schema of a number, under both names.
macro_rules! number_schema {
    ($($trait:ident $(<$quantity:ident>)?),*) => {$(
        impl $(<$quantity>)? $trait $(<$quantity>)? for InBaseUnits {
            fn schema_name() -> Cow<'static, str> {
                f64::schema_name()
            }

            fn json_schema(schemas: &mut SchemaGenerator) -> Schema {
                f64::json_schema(schemas)
            }

            fn inline_schema() -> bool {
                f64::inline_schema()
            }
        }
    )*};
}

number_schema!(JsonSchema, JsonSchemaAs<Q>);

/// 1,281,167.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

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

    /// The amount as a whole number; none if it has a fraction or is too large.
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
