//! Ranges that values must lie in.

use crate::fault::Fault;

const MAX_BATCH: u32 = 100_000_000;

/// Positive figures outside this range, in base units, are slips of the keyboard; inside it, no product or
/// quotient of a method can overflow or vanish.
const PLAUSIBLE: std::ops::RangeInclusive<f64> = 1e-15..=1e24;

pub(super) fn batch(batch: u32) -> Result<(), Fault> {
    match batch {
        1..=MAX_BATCH => Ok(()),
        _ => {
            let reason = format!("a batch of {batch} is outside 1 to {MAX_BATCH}");
            Err(Fault::in_key("batch", reason, "use the number of samples per worker and step"))
        }
    }
}

pub(super) fn optional<T>(value: Option<T>, check: impl Fn(T) -> Result<(), Fault>) -> Result<(), Fault> {
    value.map_or(Ok(()), check)
}

pub(in crate::scenario) fn positive(key: &str, value: f64, example: &str) -> Result<(), Fault> {
    bounded(key, value, example, value > 0.0, "positive")?;
    plausible(key, value, example)
}

pub(in crate::scenario) fn not_negative(key: &str, value: f64, example: &str) -> Result<(), Fault> {
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
