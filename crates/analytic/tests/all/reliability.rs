//! Closed forms of interrupted runs against a simulation of their events, and against each other.

use proptest::prelude::*;
use stepcast_analytic::reliability::{
    Interrupted, best_spares, daly, enough_spares, held_back, spares_for, young,
};

/// Uniform random numbers (xorshift64*, Vigna 2016).
struct Random(u64);

impl Random {
    fn exponential(&mut self, mean: f64) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        -mean * (1.0 - bits as f64 / (1_u64 << 53) as f64).ln()
    }
}

/// Time until `count` checkpoints are safe, event by event.
fn simulated(it: &Interrupted, interval: f64, count: u64, random: &mut Random) -> f64 {
    let (mut now, mut failure) = (0.0, random.exponential(it.between));
    let (mut safe, mut taken) = (0_u64, 0_u64);
    // When the work since the last checkpoint began, and when the last one taken will be safe.
    let (mut since, mut pending): (f64, Option<f64>) = (0.0, None);
    while safe < count {
        let taking = since + interval + it.stall;
        let next = pending.unwrap_or(f64::INFINITY).min(taking).min(failure);
        now = next;
        if next == failure {
            (pending, taken) = (None, safe);
            let mut until = now + it.restart;
            failure = now + random.exponential(it.between);
            while failure < until {
                until = failure + it.restart;
                failure += random.exponential(it.between);
            }
            since = until;
        } else if Some(next) == pending {
            safe = taken;
            pending = None;
        } else {
            taken += 1;
            since = now;
            pending = Some(now + it.lag);
        }
    }
    now
}

#[test]
fn the_mean_time_is_that_of_simulated_events() {
    let cases = [
        // 16,384 GPUs with Llama 3's rate; a few hundred; a run that hardly gets on; asynchronous checkpoints.
        (Interrupted { between: 11_137.0, restart: 900.0, stall: 60.0, lag: 0.0 }, 1200.0),
        (Interrupted { between: 700_000.0, restart: 900.0, stall: 300.0, lag: 0.0 }, 20_000.0),
        (Interrupted { between: 2_000.0, restart: 600.0, stall: 120.0, lag: 0.0 }, 500.0),
        (Interrupted { between: 11_137.0, restart: 900.0, stall: 2.0, lag: 180.0 }, 300.0),
    ];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (it, interval) in cases {
        let count = 400_000;
        let expected = it.slowdown(interval) * interval * count as f64;
        let found = simulated(&it, interval, count, &mut random);
        assert!((found / expected - 1.0).abs() < 0.01, "{it:?}: {found} instead of {expected}");
    }
}

proptest! {
    /// No interval is better than the best; Daly's is within a hundredth of its time, Young's near it for short stalls.
    #[test]
    fn the_best_interval_is_the_best(between in 1e3..1e7_f64, share in 1e-6..0.5_f64, factor in 0.2..5.0_f64) {
        let it = Interrupted { between, restart: 300.0, stall: share * between, lag: 0.0 };
        let best = it.best_interval().unwrap();
        prop_assert!(it.slowdown(best) <= it.slowdown(best * factor) * (1.0 + 1e-12));
        prop_assert!(it.slowdown(daly(it.stall, between)) <= it.slowdown(best) * 1.01);
        if share < 1e-4 {
            prop_assert!((young(it.stall, between) / best - 1.0).abs() < 0.02);
        }
    }

    #[test]
    fn spares_suffice(mean in 0.01..50.0_f64) {
        let spares = spares_for(mean, 0.99);
        prop_assert!(enough_spares(mean, spares) >= 0.99);
        prop_assert!(spares == 0 || enough_spares(mean, spares - 1) < 0.99);
        // One more or one less takes no less machine time.
        let taken = |spares: u32| (100.0 + f64::from(spares)) / enough_spares(mean, spares);
        let best = best_spares(mean, 100.0);
        prop_assert!(taken(best) <= taken(best + 1) && (best == 0 || taken(best) <= taken(best - 1)));
    }
}

#[test]
fn a_poisson_sum() {
    // P(X ≤ 2) for a mean of 3: 17/2·e^−3.
    assert!((enough_spares(3.0, 2) - 8.5 * (-3.0_f64).exp()).abs() < 1e-15);
    assert!((enough_spares(2000.0, 2000) - 0.506).abs() < 0.001);
}

#[test]
fn without_interruptions_only_checkpoints_cost() {
    let it = Interrupted { between: f64::INFINITY, restart: 1.0, stall: 10.0, lag: 5.0 };
    assert!((it.slowdown(100.0) - 1.1).abs() < 1e-12);
    assert_eq!(it.best_interval(), None);
}

/// The mean over all combinations of slow and usual machines.
#[test]
fn all_wait_for_the_slowest() {
    for (share, factor, machines) in [(0.1_f64, 1.3_f64, 5_i32), (0.5, 2.0, 3), (1.0, 1.5, 2), (0.0, 9.0, 4)]
    {
        let mean: f64 = (0..1 << machines)
            .map(|slow: i32| {
                let count = slow.count_ones().cast_signed();
                let chance = share.powi(count) * (1.0 - share).powi(machines - count);
                chance * if count > 0 { factor } else { 1.0 }
            })
            .sum();
        assert!((held_back(share, factor, f64::from(machines)) - mean).abs() < 1e-12, "{share}");
    }
}
