//! Random choices: one stream per worker, so that a worker's steps do not depend on those of others.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// A generator for every worker.
#[derive(Debug, Clone)]
pub(crate) struct Sampler {
    workers: Vec<Pcg64Mcg>,
}

impl Sampler {
    pub(crate) fn new(seed: u64, workers: usize) -> Self {
        // Two rounds of SplitMix64 spread seed and worker over the 128 bits of state.
        let state = |worker: usize| {
            let first = split_mix(seed ^ split_mix(worker as u64));
            u128::from(first) << 64 | u128::from(split_mix(first ^ seed))
        };
        Self { workers: (0..workers).map(|worker| Pcg64Mcg::new(state(worker))).collect() }
    }

    /// A number below `count`, all equally likely up to one part in 2^32.
    pub(crate) fn below(&mut self, worker: u32, count: u32) -> u32 {
        if count == 1 {
            return 0;
        }
        let random = self.workers[worker as usize].next_u64() >> 32;
        ((random * u64::from(count)) >> 32) as u32
    }

    /// A number between 0 and 1.
    pub(crate) fn uniform(&mut self, worker: u32) -> f64 {
        ((self.workers[worker as usize].next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// The time of the slowest of so many devices relative to the usual one: `jitter` is the standard deviation of each.
    pub(crate) fn slowest(&mut self, worker: u32, jitter: f64, devices: u32) -> f64 {
        let slowest = (0..devices.max(1)).map(|_| self.normal(worker)).fold(f64::NEG_INFINITY, f64::max);
        (log_spread(jitter) * slowest).exp()
    }

    /// A number from the standard normal distribution (Box and Muller).
    pub(crate) fn normal(&mut self, worker: u32) -> f64 {
        let radius = (-2.0 * self.uniform(worker).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform(worker)).cos()
    }
}

/// A number between 0 and 1 that belongs to a whole run: no worker's stream is touched.
pub(crate) fn of_run(seed: u64) -> f64 {
    ((split_mix(split_mix(seed)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
}

/// Standard deviation of the logarithm of times whose standard deviation against the mean is `jitter`.
pub(crate) fn log_spread(jitter: f64) -> f64 {
    (1.0 + jitter.powi(2)).ln().sqrt()
}

fn split_mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
