//! Quantiles of samples, linear between ranks.

/// The value below which a share of the values lies; NaN of no values. Sorts the values.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let Some(Place { low, high, rest }) = Place::of(values.len(), share) else { return f64::NAN };
    values[low] + (values[high] - values[low]) * rest
}

/// The same of values that are sorted already, as a weighted mean of the two next to it.
///
/// Rounds differently from [`quantile`] in the last digit. Fitted artefacts have been made with this one; to use the other
/// would change them.
pub fn quantile_of_sorted(values: &[f64], share: f64) -> f64 {
    let Some(Place { low, high, rest }) = Place::of(values.len(), share) else { return f64::NAN };
    values[low] * (1.0 - rest) + values[high] * rest
}

/// Where a quantile lies: between two ranks.
struct Place {
    low: usize,
    high: usize,
    /// How far it is from the lower to the higher rank.
    rest: f64,
}

impl Place {
    fn of(count: usize, share: f64) -> Option<Self> {
        let last = count.checked_sub(1)?;
        let place = share.clamp(0.0, 1.0) * last as f64;
        let low = place.floor() as usize;
        Some(Self { low, high: (low + 1).min(last), rest: place - low as f64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_ranks() {
        assert!((quantile(&mut [3.0, 1.0, 2.0], 0.5) - 2.0).abs() < 1e-12);
        assert!((quantile(&mut [0.0, 10.0], 0.25) - 2.5).abs() < 1e-12);
        assert!((quantile_of_sorted(&[0.0, 10.0], 0.25) - 2.5).abs() < 1e-12);
        assert!(quantile(&mut [], 0.5).is_nan() && quantile_of_sorted(&[], 0.5).is_nan());
    }
}
