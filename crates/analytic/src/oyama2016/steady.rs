//! The mutually dependent iteration times of GPU and update threads.
//!
//! Everything except x = T_GPU is a function of the ratio r = T_Update/T_GPU, and x solves a quadratic (errata 2.3),
//! so a steady state is a fixed point of φ(r) = y(r)/x(r). At least one exists, and there can be several; the search
//! finds all of them. It narrows an interval [a, b] of ratios to its image under bounds of φ, bisects it if that does
//! not help, drops it if the image lies outside, and looks for a change of sign once the interval is narrower than
//! [`NARROW`]. The bounds follow from the monotonicity of every term: as r grows, weights are fetched less often and
//! more buffers are summed.

use super::threads::{Threads, Times, most_buffers};
use stepcast_core::prediction::Spread;
use stepcast_core::quantity::Seconds;

/// Width below which an interval is not divided further: half the grid step that the errata recommends.
const NARROW: f64 = 1.0 / 256.0;

/// If narrowing leaves more than this share of an interval, the interval is bisected instead.
const WORTHWHILE: f64 = 0.5;

/// Bounds are widened by this relative amount to allow for rounding.
const ROUNDING: f64 = 1e-13;

/// Critical sections longer than this share of an iteration violate the premise of eq. 7 that they are short.
pub(super) const SHORT: f64 = 0.3;

/// A steady state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steady {
    /// T_GPU.
    pub gpu: Seconds,
    /// T_Update.
    pub update: Seconds,
    pub times: Times,
    /// Longest critical section as a share of the iteration that contains it.
    pub longest_critical: f64,
    /// Number of steady states; this is the one with the shortest critical sections.
    pub states: usize,
    /// Mean number of samples whose gradients enter one update: N_Minibatch_avg, eq. 9.
    pub minibatch: f64,
    /// Mean number of updates between the one whose weights a gradient used and the one that includes the gradient.
    pub staleness: f64,
}

impl Steady {
    /// Eq. 10: the time of an epoch of `samples`.
    pub fn epoch(&self, samples: u64, threads: &Threads) -> Seconds {
        let each = f64::from(threads.nodes) * f64::from(threads.gpus) * f64::from(threads.batch);
        self.gpu * (samples as f64 / each)
    }

    /// The minibatch over updates. Every GPU thread adds one gradient to an update with the probability p, as eq. 8 has it;
    /// where updates take longer than iterations, as many as fit into one, or one more.
    pub fn minibatch_spread(&self, threads: &Threads) -> Spread {
        let ratio = self.update / self.gpu;
        let (whole, share) = (ratio.floor(), ratio.fract());
        let all = f64::from(threads.nodes) * f64::from(threads.gpus);
        let quantile =
            |level| f64::from(threads.batch) * (all * whole + binomial_quantile(all, share, level));
        Spread { low: quantile(0.05), median: quantile(0.5), high: quantile(0.95) }
    }

    /// Whether critical sections are short compared with iterations, as eq. 7 assumes.
    pub fn premise_holds(&self) -> bool {
        self.longest_critical <= SHORT
    }
}

/// The least number that at least a share `level` of B(`all`, `p`) does not exceed.
fn binomial_quantile(all: f64, p: f64, level: f64) -> f64 {
    let (mut logarithm, mut below, mut count) = (all * (-p).ln_1p(), 0.0, 0.0);
    loop {
        below += logarithm.exp();
        if below >= level || count >= all || p <= 0.0 {
            return count;
        }
        logarithm += ((all - count) / (count + 1.0) * p / (1.0 - p)).ln();
        count += 1.0;
    }
}

/// All ratios T_Update/T_GPU of steady states, in ascending order. The list is empty only if a thread takes zero or
/// infinite time.
pub fn steady_states(threads: &Threads) -> Vec<f64> {
    let system = System::of(threads);
    let mut found = Vec::new();
    if let Some(everything) = system.everything() {
        system.search(everything, &mut found);
    }
    found.sort_by(f64::total_cmp);
    found.dedup_by(|a, b| (*a / *b - 1.0).abs() < 1e-9);
    found
}

impl Threads {
    /// The steady state that best meets the premise of short critical sections.
    pub fn steady(&self) -> Option<Steady> {
        let ratios = steady_states(self);
        let states = ratios.len();
        let system = System::of(self);
        ratios
            .into_iter()
            .map(|ratio| self.state(system.gpu(ratio), ratio, states))
            .min_by(|a, b| a.longest_critical.total_cmp(&b.longest_critical))
    }

    fn state(&self, gpu: f64, ratio: f64, states: usize) -> Steady {
        let (gpu, update) = (Seconds::new(gpu), Seconds::new(gpu * ratio));
        let times = self.times(gpu, update);
        let gpus = f64::from(self.gpus);
        let [lock, sum, ..] = times.update;
        let critical = [times.gpu[1] / gpu, self.update_gradient / gpu, self.update_weights / update];
        let longest_critical = critical.into_iter().fold(sum / gpus / update, f64::max);
        // Weights are fetched at a random moment of an update. The gradient is published after the rest of the GPU
        // thread's iteration, the last part of which may block an update thread; if the buffer was collected before
        // it was filled, the rest of that update is added.
        let computing: Seconds = times.gpu[2..7].iter().copied().sum();
        let collected = (lock + sum) * ((gpus - 1.0) / (2.0 * gpus));
        Steady {
            gpu,
            update,
            times,
            longest_critical,
            states,
            minibatch: f64::from(self.nodes) * gpus * f64::from(self.batch) * ratio,
            staleness: (computing + update - collected) / update,
        }
    }
}

/// The threads as plain numbers, in seconds.
#[derive(Debug, Clone, Copy)]
struct System {
    nodes: u32,
    gpus: u32,
    gpu_alone: f64,
    update_alone: f64,
    fetch: f64,
    sum: f64,
    publish: f64,
    store: f64,
}

/// The terms that depend only on the ratio.
#[derive(Debug, Clone, Copy)]
struct Terms {
    /// F.
    fetch: f64,
    /// S + T_Barrier: the buffers of the node with the most new gradients (errata 2.2).
    buffers: f64,
    /// U²/2r.
    publishing: f64,
    /// (S/G)²/2r.
    summing: f64,
}

impl System {
    fn of(threads: &Threads) -> Self {
        Self {
            nodes: threads.nodes,
            gpus: threads.gpus,
            gpu_alone: threads.gpu_alone().get(),
            update_alone: threads.update_alone().get(),
            fetch: threads.fetch_weights.get(),
            sum: threads.sum_buffer.get(),
            publish: threads.update_weights.get(),
            store: threads.update_gradient.get(),
        }
    }

    /// An interval that contains all fixed points: no thread is faster than it would be alone, nor slower than with
    /// the longest waits, which occur when the other threads run as fast as alone.
    fn everything(&self) -> Option<(f64, f64)> {
        let gpus = f64::from(self.gpus);
        let (x, y) = (self.gpu_alone, self.update_alone);
        let locks = (self.publish.powi(2) + self.sum.powi(2)) / (2.0 * y)
            + (gpus - 1.0) * self.fetch.powi(2) / (2.0 * x);
        let slowest_gpu = x + self.fetch + locks;
        let slowest_update =
            y + gpus * self.sum + gpus * (self.store.powi(2) + self.fetch.powi(2)) / (2.0 * x);
        let (low, high) = (y / slowest_gpu * (1.0 - ROUNDING), slowest_update / x * (1.0 + ROUNDING));
        (low > 0.0 && low <= high && high.is_finite()).then_some((low, high))
    }

    fn terms(&self, ratio: f64) -> Terms {
        let part = ratio.min(1.0);
        Terms {
            fetch: self.fetch * (1.0 / ratio).min(1.0),
            buffers: self.sum * most_buffers(self.gpus, part, self.nodes),
            publishing: self.publish.powi(2) / (2.0 * ratio),
            summing: (self.sum * part).powi(2) / (2.0 * ratio),
        }
    }

    /// x = (A + √(A² + 4C))/2.
    fn gpu_of(&self, fetch: f64, publishing: f64, summing: f64) -> f64 {
        let constant = self.gpu_alone + fetch;
        let locks = publishing + summing + (f64::from(self.gpus) - 1.0) * fetch.powi(2) / 2.0;
        0.5 * (constant + (constant * constant + 4.0 * locks).sqrt())
    }

    fn update_of(&self, fetch: f64, buffers: f64, gpu: f64) -> f64 {
        let locks = f64::from(self.gpus) * (self.store.powi(2) + fetch.powi(2)) / (2.0 * gpu);
        self.update_alone + buffers + locks
    }

    /// T_GPU at a ratio.
    fn gpu(&self, ratio: f64) -> f64 {
        let terms = self.terms(ratio);
        self.gpu_of(terms.fetch, terms.publishing, terms.summing)
    }

    /// φ(r)/r − 1, which is zero at a steady state.
    fn excess(&self, ratio: f64) -> f64 {
        let terms = self.terms(ratio);
        let gpu = self.gpu_of(terms.fetch, terms.publishing, terms.summing);
        self.update_of(terms.fetch, terms.buffers, gpu) / (gpu * ratio) - 1.0
    }

    /// Bounds of φ over an interval.
    fn image(&self, low: f64, high: f64) -> (f64, f64) {
        let (a, b) = (self.terms(low), self.terms(high));
        // Largest at r = 1.
        let peak = if low <= 1.0 && high >= 1.0 { self.sum.powi(2) / 2.0 } else { a.summing.max(b.summing) };
        let fastest = self.gpu_of(b.fetch, b.publishing, a.summing.min(b.summing));
        let slowest = self.gpu_of(a.fetch, a.publishing, peak);
        let (least, most) =
            (self.update_of(b.fetch, a.buffers, slowest), self.update_of(a.fetch, b.buffers, fastest));
        (least / slowest * (1.0 - ROUNDING), most / fastest * (1.0 + ROUNDING))
    }

    fn search(&self, (mut low, mut high): (f64, f64), found: &mut Vec<f64>) {
        while high > low * (1.0 + NARROW) {
            let before = (high / low).ln();
            let (least, most) = self.image(low, high);
            (low, high) = (low.max(least), high.min(most));
            if low > high {
                return;
            }
            if (high / low).ln() > WORTHWHILE * before {
                let middle = (low * high).sqrt();
                self.search((low, middle), found);
                return self.search((middle, high), found);
            }
        }
        found.extend(self.root(low, high));
    }

    /// The root between two ratios, if the sign changes, by regula falsi in the Illinois variant (the value at an end
    /// that is kept twice is halved). It takes about half a dozen steps here.
    fn root(&self, mut low: f64, mut high: f64) -> Option<f64> {
        let (mut at_low, mut at_high) = (self.excess(low), self.excess(high));
        if at_low == 0.0 || at_high == 0.0 {
            return Some(if at_low == 0.0 { low } else { high });
        }
        if at_low.is_sign_positive() == at_high.is_sign_positive() {
            return None;
        }
        let mut kept_high = None;
        for _ in 0..200 {
            let next = (high - (high - low) * (at_high / (at_high - at_low))).clamp(low, high);
            let at_next = self.excess(next);
            if at_next.abs() <= f64::EPSILON || high - low <= 4.0 * f64::EPSILON * high {
                return Some(next);
            }
            let keeps_high = at_next.is_sign_positive() == at_low.is_sign_positive();
            let again = kept_high.replace(keeps_high) == Some(keeps_high);
            let weight = if again { 0.5 } else { 1.0 };
            if keeps_high {
                (low, at_low, at_high) = (next, at_next, weight * at_high);
            } else {
                (high, at_high, at_low) = (next, at_next, weight * at_low);
            }
        }
        Some(0.5 * (low + high))
    }
}
