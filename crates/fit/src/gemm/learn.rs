//! Fitting the coefficients of [`Costs`].
//!
//! Time is linear in the coefficients once every product has its kernel, so two steps alternate: each product takes its
//! cheapest kernel, then non-negative least squares fits the coefficients to relative errors. Outliers are weighted
//! down (iterated reweighting for Σ ln(1 + (e/s)²), which leaves a minority alone: hosts that launch faster for a
//! while, say), and a weak pull towards the start values keeps undetermined ones. Every step costs one look at all
//! products; the best state seen is the result.

use super::MeasuredProduct;
use crate::{FitError, nnls_while};
use stepcast_core::fitted::gemm::Machine;
use stepcast_core::fitted::gemm::costs::{
    ALONE, COUNT, Costs, LAUNCH, MERGE, Product, READ, SECOND, SPLIT, START, STEP, TILE, TILES, WRITE,
};
use stepcast_core::method::CancelCheck;
use stepcast_stats::quantile_of_sorted;

/// Products between two checks for cancellation: some milliseconds of work.
const OFTEN: usize = 1024;
const ROUNDS: usize = 12;
/// Rounds that take the new coefficients in full; later ones go half of the way, against oscillation.
const BOLD_ROUNDS: usize = 3;
/// Relative errors much above this hardly count. This and the pulls were chosen on left-out `fit` rows of
/// `validation/gemm/h200.csv.gz` (docs/methods/gemm.md).
const USUAL_ERROR: f64 = 0.06;
/// Weight of the start values beside the square root of the number of products.
pub(super) const WEAK_PULL: f64 = 0.003;
/// This weight where the start values were fitted to the same kernels before.
pub(super) const STRONG_PULL: f64 = 0.03;
/// No coefficient falls below this share of its start value: rates stay finite.
const LEAST_SHARE: f64 = 1e-3;
/// Share of the best rate that kernels of each tile reach before the fit: guesses, as small tiles load more per
/// operation. The fit replaces them where products were measured; the shares of `launch` in [`start`] are guesses of
/// the same kind.
const TILE_EFFICIENCY: [f64; TILES] = [0.35, 0.5, 0.5, 0.6, 0.7, 0.7, 0.8, 0.8, 0.8];
/// The two largest tiles start faster (a guess): the coefficients of a kernel that no product uses would never be
/// fitted.
const LARGEST: usize = 2;
const LARGEST_EFFICIENCY: f64 = 0.9;

/// A product and the time it took.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimedProduct {
    product: Product,
    time: f64,
}

impl TimedProduct {
    /// The product with a host that takes `ratio` times as long as usual.
    pub(super) fn at_host(&self, ratio: f64) -> Self {
        Self { product: self.product.with_host(ratio), ..*self }
    }

    /// ln(measured/predicted).
    pub(super) fn log_error(&self, costs: &Costs) -> f64 {
        (self.time / self.product.time(costs, &self.product.kernel(costs)).get()).ln()
    }

    pub(super) fn kernel_share(&self, costs: &Costs) -> f64 {
        self.product.kernel_share(costs, &self.product.kernel(costs))
    }
}

pub(super) fn timed(samples: &[MeasuredProduct], machine: &Machine) -> Vec<TimedProduct> {
    let one = |sample: &MeasuredProduct| TimedProduct {
        product: machine.product(sample.variant, sample.shape),
        time: sample.time.get(),
    };
    samples.iter().map(one).collect()
}

/// Operations per second of the fastest products, all but the very fastest.
pub(super) fn best_rate(samples: &[MeasuredProduct]) -> f64 {
    best(samples, |sample| sample.shape.flops().get())
}

fn best(samples: &[MeasuredProduct], amount: impl Fn(&MeasuredProduct) -> f64) -> f64 {
    let mut rates: Vec<f64> = samples.iter().map(|sample| amount(sample) / sample.time.get()).collect();
    rates.sort_unstable_by(f64::total_cmp);
    quantile_of_sorted(&rates, 0.999)
}

/// Coefficients and their loss.
#[derive(Debug, Clone, Copy)]
pub(super) struct LearnedCosts {
    pub(super) costs: Costs,
    /// Mean robust error.
    pub(super) loss: f64,
}

/// Coefficients to start from: the rate of the fastest products, and shares of it.
pub(super) fn start(samples: &[MeasuredProduct], machine: &Machine) -> Costs {
    let rate = best_rate(samples);
    let bandwidth = best(samples, |sample| machine.product(sample.variant, sample.shape).bytes().get());
    let mut times: Vec<f64> = samples.iter().map(|sample| sample.time.get()).collect();
    times.sort_unstable_by(f64::total_cmp);
    let launch = quantile_of_sorted(&times, 0.25);
    let mut costs = [0.0; COUNT];
    costs[LAUNCH] = launch;
    costs[SECOND] = 0.1 * launch;
    costs[ALONE] = launch;
    costs[START] = 0.2 * launch;
    costs[STEP] = 5e-4 * launch;
    costs[SPLIT] = 0.2 * launch;
    for place in [READ, WRITE, MERGE] {
        costs[place] = bandwidth.recip();
    }
    for (tile, efficiency) in TILE_EFFICIENCY.iter().enumerate() {
        costs[TILE + tile] = f64::from(machine.multiprocessors) / (1.1 * rate * efficiency);
    }
    Costs(costs)
}

/// The coefficients with the largest tiles as the fastest. Not used while the number of multiprocessors is searched for:
/// half of them with tiles twice as large look the same.
pub(super) fn largest_first(Costs(mut costs): Costs) -> Costs {
    for tile in TILES - LARGEST..TILES {
        costs[TILE + tile] *= TILE_EFFICIENCY[tile] / LARGEST_EFFICIENCY;
    }
    Costs(costs)
}

/// 1 + (e/s)² with e the log error and s the usual one.
fn stretch(predicted: f64, measured: f64) -> f64 {
    1.0 + ((predicted / measured).ln() / USUAL_ERROR).powi(2)
}

/// Fits the coefficients, starting from `start` and pulled towards it.
pub(super) fn learn(
    products: &[TimedProduct],
    start: &Costs,
    pull: f64,
    wanted: &CancelCheck<'_>,
) -> Result<LearnedCosts, FitError> {
    let mut best = LearnedCosts { costs: *start, loss: f64::INFINITY };
    let mut costs = *start;
    for round in 0..=ROUNDS {
        let mut loss = 0.0;
        let mut rows = Vec::with_capacity(products.len() + COUNT);
        let mut target = Vec::with_capacity(products.len() + COUNT);
        for (place, TimedProduct { product, time: measured }) in products.iter().enumerate() {
            if place % OFTEN == 0 && wanted().is_break() {
                return Err(FitError::Cancelled);
            }
            let kernel = product.kernel(&costs);
            let predicted = product.time(&costs, &kernel).get();
            let stretch = stretch(predicted, *measured);
            loss += stretch.ln() / products.len() as f64;
            let weight = stretch.sqrt().recip() / predicted;
            // In units of the start values, so that the pull is a one on the diagonal.
            let features = product.features(&costs, &kernel);
            rows.push(features.iter().zip(&start.0).map(|(f, unit)| f * unit * weight).collect());
            target.push(measured * weight);
        }
        if loss < best.loss {
            best = LearnedCosts { costs, loss };
        }
        if round == ROUNDS {
            break;
        }
        let pull = pull * (products.len() as f64).sqrt();
        for place in 0..COUNT {
            let mut row = vec![0.0; COUNT];
            row[place] = pull;
            rows.push(row);
            target.push(pull);
        }
        let shares = nnls_while(&rows, &target, wanted)?.coefficients;
        for (place, share) in shares.iter().enumerate() {
            let new = start.0[place] * share.max(LEAST_SHARE);
            costs.0[place] = if round < BOLD_ROUNDS { new } else { (new * costs.0[place]).sqrt() };
        }
    }
    Ok(best)
}
