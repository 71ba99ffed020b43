//! Means, spreads, quantiles, confidence intervals, definite systems and least squares: each is written once, here.
//!
//! Plain numbers in, plain numbers out; depends on nothing. Units are the business of callers.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod linear;
mod steady;

pub use linear::{Cholesky, Triangular, products, singular_values};
pub use steady::{SeriesMean, warm_up};

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

/// The value below which a share of the values lies; NaN of no values. Sorts the values.
pub fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let Some(Ranks { low, high, rest }) = Ranks::at(values.len(), share) else { return f64::NAN };
    values[low] + (values[high] - values[low]) * rest
}

/// The quantile of values that are sorted already, as a weighted mean of the two values next to it.
///
/// Rounds differently from [`quantile`] in the last digit. Fitted artefacts have been made with this one; to use the other
/// would change them.
pub fn quantile_of_sorted(values: &[f64], share: f64) -> f64 {
    let Some(Ranks { low, high, rest }) = Ranks::at(values.len(), share) else { return f64::NAN };
    values[low] * (1.0 - rest) + values[high] * rest
}

/// The value below which a share of a standard normal distribution lies, for shares from a half to 1; to 5·10⁻⁴ (Abramowitz
/// and Stegun, 26.2.23).
pub fn normal_quantile(share: f64) -> f64 {
    let t = (-2.0 * (1.0 - share).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    (t - above / below).max(0.0)
}

/// The share of a standard normal distribution that lies below a value; to 7.5·10⁻⁸ (Abramowitz and Stegun, 26.2.17).
pub fn normal_share(value: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * value.abs());
    let sum = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let sum = sum.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    let above = (-value * value / 2.0).exp() / std::f64::consts::TAU.sqrt() * sum;
    if value < 0.0 { above } else { 1.0 - above }
}

struct Ranks {
    low: usize,
    high: usize,
    /// Distance of the quantile from the lower rank, as a share of the distance to the higher one.
    rest: f64,
}

impl Ranks {
    fn at(count: usize, share: f64) -> Option<Self> {
        let last = count.checked_sub(1)?;
        let place = share.clamp(0.0, 1.0) * last as f64;
        let low = place.floor() as usize;
        Some(Self { low, high: (low + 1).min(last), rest: place - low as f64 })
    }
}

/// The 95 % quantile of the standard normal distribution: 90 % of values lie between it and its negative.
pub const NORMAL_95: f64 = 1.645;

/// Mean of the largest of `count` values with a standard normal distribution: how far the slowest of equal workers lies
/// above their mean. By Simpson's rule on ∫ 1 - Φⁿ over what is positive less ∫ Φⁿ over what is negative.
pub fn expected_maximum(count: u32) -> f64 {
    const STEPS: i32 = 2_000;
    const REACH: f64 = 8.0;
    let power = |x: f64| normal_below(x).powf(f64::from(count));
    let width = REACH / f64::from(STEPS);
    let simpson = |of: &dyn Fn(f64) -> f64| {
        let weight = |step: i32| match step {
            0 | STEPS => 1.0,
            _ if step % 2 == 1 => 4.0,
            _ => 2.0,
        };
        (0..=STEPS).map(|step| weight(step) * of(width * f64::from(step))).sum::<f64>() * width / 3.0
    };
    if count == 0 { 0.0 } else { simpson(&|x| 1.0 - power(x)) - simpson(&|x| power(-x)) }
}

/// Φ, the share of a standard normal distribution below `x`, from the series of the error function near zero and its
/// continued fraction far from it.
pub fn normal_below(x: f64) -> f64 {
    let z = x.abs();
    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let above = if z < 3.0 {
        let mut term = z;
        let mut sum = z;
        for n in 1..80 {
            term *= z * z / f64::from(2 * n + 1);
            sum += term;
        }
        0.5 - density * sum
    } else {
        let fraction = (1..=60).rev().fold(0.0, |inner, n| f64::from(n) / (z + inner));
        density / (z + fraction)
    };
    if x > 0.0 { 1.0 - above } else { above }
}

/// The 95 % quantile of Student's t, tabulated up to 30 degrees of freedom, then by its expansion in 1/n: 90 % of
/// values lie between it and its negative.
pub fn student_t_95(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761,
        1.753, 1.746, 1.740, 1.734, 1.729, 1.725, 1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701,
        1.699, 1.697,
    ];
    match TABLE.get(freedom.saturating_sub(1)) {
        Some(quantile) => *quantile,
        None => 1.645 + 1.524 / freedom as f64,
    }
}

/// The 97.5 % quantile of Student's t: 95 % of values lie between it and its negative.
pub fn student_t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    match TABLE.get(freedom.saturating_sub(1)) {
        Some(quantile) => *quantile,
        None => 1.96 + 2.37 / freedom as f64,
    }
}

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
    fn normal_quantiles_are_those_of_tables() {
        for (share, quantile) in [(0.5, 0.0), (0.9, 1.2816), (0.975, 1.96), (0.999, 3.0902)] {
            assert!((normal_quantile(share) - quantile).abs() < 5e-4, "{share}");
        }
    }

    #[test]
    fn spreads_need_two_values() {
        assert_eq!(deviation(&[1.0]), None);
        assert!((deviation(&[1.0, 3.0]).unwrap() - 2.0_f64.sqrt()).abs() < 1e-12);
        assert!((spread_of_logarithms(&[1.0, 1.0_f64.exp()]).unwrap() - 0.5_f64.sqrt()).abs() < 1e-12);
        assert_eq!(spread_of_logarithms(&[0.0, 1.0]), None);
    }

    #[test]
    fn quantiles_lie_between_ranks() {
        assert!((quantile(&mut [3.0, 1.0, 2.0], 0.5) - 2.0).abs() < 1e-12);
        assert!((quantile(&mut [0.0, 10.0], 0.25) - 2.5).abs() < 1e-12);
        assert!((quantile_of_sorted(&[0.0, 10.0], 0.25) - 2.5).abs() < 1e-12);
        assert!(quantile(&mut [], 0.5).is_nan() && quantile_of_sorted(&[], 0.5).is_nan());
    }

    #[test]
    fn the_slowest_of_many() {
        // Order statistics of the normal distribution: 1/√π, 3/(2√π), and tabulated ones.
        let root = std::f64::consts::PI.sqrt();
        for (count, expected) in
            [(1, 0.0), (2, 1.0 / root), (3, 1.5 / root), (10, 1.538_752_7), (100, 2.507_593_6)]
        {
            assert!(
                (expected_maximum(count) - expected).abs() < 1e-6,
                "{count}: {}",
                expected_maximum(count)
            );
        }
    }

    #[test]
    fn student_t_has_closed_forms_for_one_and_two_degrees_of_freedom() {
        // tan(π(p - 1/2)), and (2p - 1) / √(2p(1 - p)).
        assert!((student_t_95(1) - (0.45 * std::f64::consts::PI).tan()).abs() < 1e-3);
        assert!((student_t_95(2) - 0.9 / (2.0_f64 * 0.95 * 0.05).sqrt()).abs() < 1e-3);
        assert!((student_t_95(31) - 1.696).abs() < 2e-3 && (student_t_95(1_000_000) - 1.645).abs() < 1e-5);
    }

    #[test]
    fn three_values_have_two_degrees_of_freedom() {
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0]);
        // t(2) · sd / √n = 4.303 · 1 / √3
        assert!((mean - 2.0).abs() < 1e-12 && (half - 2.484).abs() < 1e-3);
    }
}
