//! Means and standard deviations.

/// Mean; 0 of no values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Standard deviation of a sample; none of fewer than two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// Standard deviation of the logarithms; none where a value is not positive.
pub fn spread_of_logarithms(values: &[f64]) -> Option<f64> {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    deviation(&logarithms).filter(|spread| spread.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_need_two_values() {
        assert_eq!(deviation(&[1.0]), None);
        assert!((deviation(&[1.0, 3.0]).unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);
        assert!((spread_of_logarithms(&[1.0, 1.0_f64.exp()]).unwrap() - 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(spread_of_logarithms(&[0.0, 1.0]), None);
    }
}
