//! Long runs: interruptions, checkpoints, and machines that wait for others to fail.
//!
//! Interruptions come at random, M apart on average (a Poisson process). Every τ of work, training stands still for δ
//! and takes a checkpoint, which is safe another ℓ later. An interruption costs R, in which others may happen, and all
//! work since the last safe checkpoint. The mean time of work W is then exactly
//!
//! ```text
//! T = M·e^((R+ℓ)/M)·(e^((τ+δ)/M) − 1)·W/τ
//! ```
//!
//! For ℓ = 0 this is Daly 2006, eq. 13. With ℓ: from a safe checkpoint, the next one is safe τ+δ later, after an
//! interruption R and τ+δ+ℓ later; the mean time between two of them follows by renewal.

/// What interrupts a run and what checkpoints cost, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interrupted {
    /// M: mean time between interruptions of the whole run; infinite if there are none.
    pub between: f64,
    /// R: from an interruption until work goes on.
    pub restart: f64,
    /// δ: standstill for one checkpoint.
    pub stall: f64,
    /// ℓ: from the end of the standstill until the checkpoint is safe.
    pub lag: f64,
}

impl Interrupted {
    /// Mean time of a second of work if checkpoints are `interval` of work apart.
    pub fn slowdown(&self, interval: f64) -> f64 {
        let m = self.between;
        if !m.is_finite() {
            return 1.0 + self.stall / interval;
        }
        m * ((self.restart + self.lag) / m).exp() * ((interval + self.stall) / m).exp_m1() / interval
    }

    /// Share of the time that is work which is kept.
    pub fn goodput(&self, interval: f64) -> f64 {
        1.0 / self.slowdown(interval)
    }

    /// The interval with the least time: (1 − τ/M)·e^((τ+δ)/M) = 1, by Newton's method from Young's interval; at least
    /// the lag, since the next checkpoint begins when the last is safe. None if there are no interruptions.
    pub fn best_interval(&self) -> Option<f64> {
        if !self.between.is_finite() || self.between <= 0.0 {
            return None;
        }
        let delta = self.stall / self.between;
        // With x = τ/M: g(x) = ln(1 − x) + x + δ/M falls on (0, 1), from δ/M to −∞.
        let mut x = (2.0 * delta).sqrt().min(0.5);
        for _ in 0..60 {
            let value = (-x).ln_1p() + x + delta;
            let slope = -x / (1.0 - x);
            if slope == 0.0 {
                break;
            }
            let next = x - value / slope;
            let next = if next >= 1.0 { 0.5 * (1.0 + x) } else { next.max(0.5 * x) };
            let done = (next - x).abs() <= 1e-15 * x;
            x = next;
            if done {
                break;
            }
        }
        Some((x * self.between).max(self.lag))
    }
}

/// Young 1974: τ = √(2δM).
pub fn young(stall: f64, between: f64) -> f64 {
    (2.0 * stall * between).sqrt()
}

/// Daly 2006, eq. 37: τ = √(2δM)·(1 + √(δ/2M)/3 + (δ/2M)/9) − δ for δ < 2M, otherwise M.
pub fn daly(stall: f64, between: f64) -> f64 {
    if stall >= 2.0 * between {
        return between;
    }
    let half = stall / (2.0 * between);
    young(stall, between) * (1.0 + half.sqrt() / 3.0 + half / 9.0) - stall
}

/// Probability that at most `spares` machines are under repair at once, `mean` being on average: a Poisson
/// distribution, whatever repairs take (M/G/∞).
pub fn enough_spares(mean: f64, spares: u32) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    // Terms relative to that of zero; the logarithm keeps large means from underflowing.
    let mut scale = -mean;
    for count in 1..=spares {
        term *= mean / f64::from(count);
        sum += term;
        if sum > 1e200 {
            term /= 1e200;
            sum /= 1e200;
            scale += 1e200_f64.ln();
        }
    }
    (sum.ln() + scale).exp().min(1.0)
}

/// The fewest spare machines that suffice with this probability.
pub fn spares_for(mean: f64, probability: f64) -> u32 {
    (0..=100_000).find(|&spares| enough_spares(mean, spares) >= probability).unwrap_or(100_000)
}

/// The number of spare machines with which `machines` that work take the least machine time: the least (N + s)/P(s), P being
/// the share of the time in which s suffice.
pub fn best_spares(mean: f64, machines: f64) -> u32 {
    let taken = |spares: u32| (machines + f64::from(spares)) / enough_spares(mean, spares);
    let all = 0..=spares_for(mean, 0.999_999);
    all.min_by(|one, other| taken(*one).total_cmp(&taken(*other))).unwrap_or(0)
}

/// Mean time of a step against that without slow machines: each of `machines` takes `factor` times as long for a `share`
/// of the time, independently, and all wait for the slowest.
pub fn held_back(share: f64, factor: f64, machines: f64) -> f64 {
    let none = (machines * (-share.min(1.0)).ln_1p()).exp();
    1.0 + (factor.max(1.0) - 1.0) * (1.0 - none)
}
