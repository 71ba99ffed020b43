//! Means of series that begin in an untypical state and whose values depend on each other.

use crate::student_t_95;

/// Where a series becomes typical: the number of first values that are better left out, at most half of them, by the
/// rule MSER of White (1997): the standard error of the mean of the rest is least.
pub fn warm_up(series: &[f64]) -> usize {
    let (mut sum, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for since in (0..series.len()).rev() {
        sum += series[since];
        squares += series[since].powi(2);
        let count = (series.len() - since) as f64;
        let error = (squares - sum.powi(2) / count).max(0.0) / count.powi(2);
        if since <= series.len() / 2 && error <= best.0 * (1.0 + 1e-9) {
            best = (error, since);
        }
    }
    best.1
}

/// The mean of several series, how uncertain it is, and whether they change from beginning to end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesMean {
    pub mean: f64,
    /// Half-width of its 90 % confidence interval.
    pub half_width: f64,
    /// Mean of the second halves less that of the first.
    pub drift: f64,
    /// Whether the drift is larger than chance explains (by more than 3 standard errors).
    pub drifts: bool,
}

impl SeriesMean {
    /// Of equally long series of one system. Values that follow each other may be correlated, which makes the interval
    /// wider: by (1 + r) / (1 - r) in the variance, for a correlation r of neighbours. The interval of fewer than two
    /// values is infinite.
    pub fn from_series(series: &[Vec<f64>]) -> Self {
        let count: usize = series.iter().map(Vec::len).sum();
        let mean = series.iter().flatten().sum::<f64>() / count as f64;
        if count < 2 {
            return Self { mean, half_width: f64::INFINITY, drift: 0.0, drifts: false };
        }
        let halves = series.iter().filter(|series| series.len() > 1).map(|series| {
            let half = series.len() / 2;
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            mean(&series[series.len() - half..]) - mean(&series[..half])
        });
        let differences: Vec<f64> = halves.collect();
        let drift = differences.iter().sum::<f64>() / differences.len().max(1) as f64;
        // Without the drift itself, which would look like noise. Each half has half of the values.
        let straight =
            error(series, |place, length| mean + drift * ((place as f64 + 0.5) / length as f64 - 0.5) * 2.0);
        Self {
            mean,
            half_width: student_t_95(count - 1) * error(series, |_, _| mean),
            drift,
            drifts: drift.abs() > 3.0 * 2.0 * straight,
        }
    }
}

/// Standard error of the mean of values that lie around `centre`, by the place of a value and the length of its series.
fn error(series: &[Vec<f64>], centre: impl Fn(usize, usize) -> f64) -> f64 {
    let (mut squares, mut products, mut count) = (0.0, 0.0, 0);
    for series in series {
        let off = |place: usize| series[place] - centre(place, series.len());
        squares += (0..series.len()).map(|place| off(place).powi(2)).sum::<f64>();
        products += (1..series.len()).map(|place| off(place - 1) * off(place)).sum::<f64>();
        count += series.len();
    }
    let correlation = if squares > 0.0 { (products / squares).clamp(0.0, 0.9) } else { 0.0 };
    let variance = squares / (count - 1) as f64 * (1.0 + correlation) / (1.0 - correlation);
    (variance / count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, between -0.5 and 0.5.
    fn noise(seed: u64) -> impl Iterator<Item = f64> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        std::iter::repeat_with(move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        })
    }

    #[test]
    fn a_transient_is_left_out_and_noise_is_not() {
        let transient: Vec<f64> = (0..60)
            .zip(noise(3))
            .map(|(n, noise)| 10.0 - if n < 12 { 5.0 } else { 0.0 } + 0.2 * noise)
            .collect();
        assert_eq!(warm_up(&transient), 12);
        assert_eq!(warm_up(&[1.0; 20]), 0);
        assert_eq!(warm_up(&[]), 0);
    }

    #[test]
    fn intervals_hold_the_mean_as_often_as_they_say() {
        let within = |correlation: f64| {
            let holds = |seed: &u64| {
                let series = (0..4).map(|run| {
                    let mut value = 0.0;
                    let next = |noise: f64| {
                        value = correlation * value + noise;
                        value
                    };
                    noise(seed * 4 + run + 1).map(next).skip(50).take(40).collect()
                });
                let mean = SeriesMean::from_series(&series.collect::<Vec<Vec<f64>>>());
                mean.mean.abs() <= mean.half_width
            };
            (0..1000).filter(holds).count()
        };
        for correlation in [0.0, 0.3, 0.6] {
            assert!((870..=930).contains(&within(correlation)), "{correlation}: {}", within(correlation));
        }
    }

    #[test]
    fn a_drift_is_found() {
        let drifting = |slope: f64| -> Vec<f64> {
            (0..40).zip(noise(9)).map(|(n, noise)| 10.0 + slope * f64::from(n) + 0.2 * noise).collect()
        };
        assert!(SeriesMean::from_series(&[drifting(0.05)]).drifts);
        assert!(!SeriesMean::from_series(&[drifting(0.0)]).drifts);
        assert!(SeriesMean::from_series(&[vec![3.0]]).half_width.is_infinite());
    }
}
