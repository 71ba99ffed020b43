//! Confidence intervals of means.

use crate::student_t::student_t_975;

/// Mean of independent values with the half-width of its 95 % confidence interval, by Student's t. The interval of a single
/// value is infinite.
pub fn mean_and_half_width(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return (mean, f64::INFINITY);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, student_t_975(values.len() - 1) * (variance / n).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_values_have_two_degrees_of_freedom() {
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0]);
        // t(2) · sd / √n = 4.303 · 1 / √3
        assert!((mean - 2.0).abs() < 1e-12 && (half - 2.484).abs() < 1e-3);
    }
}
