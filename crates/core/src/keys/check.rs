//! Validity checks of the values of keys.

use super::{Value, kebab};
use crate::fault::Fault;

/// Positive values outside this range, in base units, are taken for typing errors; within it, no product or quotient
/// of a method can overflow or underflow.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e-15..=1e24;

/// Condition on a single value; each has an example of a valid one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Check {
    Any,
    Positive(&'static str),
    NotNegative(&'static str),
    /// Above zero, and at most one.
    Share(&'static str),
    /// A whole number within bounds, both included.
    Between(u64, u64, &'static str),
}

impl Check {
    /// The bounds of an integer, in the form used by the documentation.
    pub(crate) fn bounds(self) -> String {
        match self {
            Self::Between(_, u64::MAX, _) => String::new(),
            Self::Between(least, most, _) => format!("; {least} to {most}"),
            _ => String::new(),
        }
    }

    /// Checks the value of `field`; an omitted value is always valid.
    pub(crate) fn apply(self, field: &str, value: &Value) -> Result<(), Fault> {
        let Some(number) = value.number() else { return Ok(()) };
        match self {
            Self::Any => Ok(()),
            Self::Positive(example) => positive(&kebab(field), number, example),
            Self::NotNegative(example) => not_negative(&kebab(field), number, example),
            Self::Share(example) => {
                positive(&kebab(field), number, example)?;
                let at_most_one = number <= 1.0;
                bounded(&kebab(field), number, example, at_most_one, "at most 1")
            }
            Self::Between(least, most, example) => {
                let within = (least as f64..=most as f64).contains(&number);
                let wanted = match most {
                    u64::MAX => format!("at least {least}"),
                    _ => format!("between {least} and {most}"),
                };
                bounded(&kebab(field), number, example, within, &wanted)
            }
        }
    }
}

pub(crate) fn positive(key: &str, value: f64, example: &str) -> Result<(), Fault> {
    bounded(key, value, example, value > 0.0, "positive")?;
    plausible(key, value, example)
}

pub(crate) fn not_negative(key: &str, value: f64, example: &str) -> Result<(), Fault> {
    bounded(key, value, example, value >= 0.0, "zero or more")?;
    if value > 0.0 { plausible(key, value, example) } else { Ok(()) }
}

fn plausible(key: &str, value: f64, example: &str) -> Result<(), Fault> {
    if PLAUSIBLE.contains(&value) {
        return Ok(());
    }
    let size = if value > 1.0 { "large" } else { "small" };
    let reason = format!("{value:e} in base units is too {size} to be meant");
    Err(Fault::in_key(key, reason, format!("use {example}")))
}

fn bounded(key: &str, value: f64, example: &str, holds: bool, wanted: &str) -> Result<(), Fault> {
    if holds && value.is_finite() {
        return Ok(());
    }
    let reason = format!("must be {wanted}, but is {value}");
    Err(Fault::in_key(key, reason, format!("use {example}")))
}
