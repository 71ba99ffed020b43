//! The least value of a function of one variable.

/// Where `function` is least between `low` and `high`, if it falls and then rises there: golden section, `steps` times.
/// The place is known to 0.618^`steps` of the range.
pub fn golden_section(function: impl Fn(f64) -> f64, low: f64, high: f64, steps: u32) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let (mut low, mut high) = (low, high);
    let (mut left, mut right) = (high - ratio * (high - low), low + ratio * (high - low));
    let (mut at_left, mut at_right) = (function(left), function(right));
    for _ in 0..steps {
        if at_left <= at_right {
            (high, right, at_right) = (right, left, at_left);
            left = high - ratio * (high - low);
            at_left = function(left);
        } else {
            (low, left, at_left) = (left, right, at_right);
            right = low + ratio * (high - low);
            at_right = function(right);
        }
    }
    if at_left <= at_right { left } else { right }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_parabola() {
        for bottom in [-3.0, 0.1, 2.0, 4.9] {
            let found = golden_section(|x| (x - bottom).powi(2), -5.0, 5.0, 60);
            assert!((found - bottom).abs() < 1e-6, "{found}");
        }
    }

    #[test]
    fn ends_at_an_end_where_the_function_only_falls() {
        assert!((golden_section(|x| -x, 0.0, 1.0, 60) - 1.0).abs() < 1e-6);
    }
}
