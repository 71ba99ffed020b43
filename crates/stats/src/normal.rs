//! The standard normal distribution.

/// Its 95 % quantile: 90 % of values lie between it and its negative.
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

/// Φ, from the series of the error function near zero and its continued fraction far from it.
fn normal_below(x: f64) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
