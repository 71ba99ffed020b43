//! Fitting the coefficients of [`Costs`].
//!
//! Time is linear in the coefficients once every product has its kernel, so two steps alternate: each product takes its
//! cheapest kernel, then non-negative least squares fits the coefficients to relative errors. Outliers are
//! weighted down (iterated reweighting for Σ ln(1 + (e/s)²), which leaves a minority alone: hosts that launch faster for a
//! while, say), and a weak pull towards the start values keeps what
//! no product tells. Every step costs one look at all products; the best state seen is the result.

use super::costs::{
    ALONE, COUNT, Costs, LAUNCH, MERGE, Product, READ, SPLIT, START, STEP, TILE, TILES, WRITE,
};
use super::{Sample, model::Machine};
use crate::quality::quantile;
use crate::{FitError, nnls};

const ROUNDS: usize = 12;
/// Rounds that take the new coefficients as they are; later ones go half of the way, against oscillation.
const BOLD_ROUNDS: usize = 3;
/// Relative errors much above this hardly count.
const USUAL_ERROR: f64 = 0.06;
/// Weight of the start values beside the square root of the number of products.
pub(super) const WEAK_PULL: f64 = 0.003;
/// The same, where the start values were fitted to the same kernels before.
pub(super) const STRONG_PULL: f64 = 0.03;
/// No coefficient falls below this share of its start value: rates stay finite.
const LEAST_SHARE: f64 = 1e-3;
/// Share of the best rate that kernels of each tile reach at the start, by experience: small tiles load more
/// per operation.
const TILE_EFFICIENCY: [f64; TILES] = [0.35, 0.5, 0.5, 0.6, 0.7, 0.7, 0.8, 0.8, 0.8];

/// Coefficients, and how well they do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Learned {
    pub(super) costs: Costs,
    /// Mean robust error.
    pub(super) loss: f64,
}

/// Coefficients to start from: what the fastest products show, and shares of it.
pub(super) fn start(samples: &[Sample], machine: &Machine) -> Costs {
    let best = |amount: &dyn Fn(&Sample) -> f64| {
        let mut rates: Vec<f64> = samples.iter().map(|sample| amount(sample) / sample.time.get()).collect();
        rates.sort_unstable_by(f64::total_cmp);
        quantile(&rates, 0.999)
    };
    let rate = best(&|sample| sample.shape.flops().get());
    let bandwidth = best(&|sample| machine.product(sample).bytes());
    let mut times: Vec<f64> = samples.iter().map(|sample| sample.time.get()).collect();
    times.sort_unstable_by(f64::total_cmp);
    let launch = quantile(&times, 0.25);
    let mut costs = [0.0; COUNT];
    costs[LAUNCH] = launch;
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

/// The mean robust error of coefficients.
pub(super) fn loss(samples: &[Sample], machine: &Machine, costs: &Costs) -> f64 {
    let one = |sample: &Sample| {
        let product = machine.product(sample);
        let predicted = product.time(costs, product.kernel(costs).time);
        stretch(predicted, sample.time.get()).ln()
    };
    samples.iter().map(one).sum::<f64>() / samples.len().max(1) as f64
}

/// 1 + (e/s)² with e the log error and s the usual one.
fn stretch(predicted: f64, measured: f64) -> f64 {
    1.0 + ((predicted / measured).ln() / USUAL_ERROR).powi(2)
}

/// Fits the coefficients, starting from `start` and pulled towards it.
pub(super) fn learn(
    samples: &[Sample],
    machine: &Machine,
    start: &Costs,
    pull: f64,
) -> Result<Learned, FitError> {
    let products: Vec<Product> = samples.iter().map(|sample| machine.product(sample)).collect();
    let mut best = Learned { costs: *start, loss: f64::INFINITY };
    let mut costs = *start;
    for round in 0..=ROUNDS {
        let mut loss = 0.0;
        let mut rows = Vec::with_capacity(samples.len() + COUNT);
        let mut target = Vec::with_capacity(samples.len() + COUNT);
        for (product, sample) in products.iter().zip(samples) {
            let measured = sample.time.get();
            let kernel = product.kernel(&costs);
            let predicted = product.time(&costs, kernel.time);
            let stretch = stretch(predicted, measured);
            loss += stretch.ln() / samples.len() as f64;
            let weight = stretch.sqrt().recip() / predicted;
            // In units of the start values, so that the pull is a one on the diagonal.
            let features = product.features(&costs, &kernel);
            rows.push(features.iter().zip(&start.0).map(|(f, unit)| f * unit * weight).collect());
            target.push(measured * weight);
        }
        if loss < best.loss {
            best = Learned { costs, loss };
        }
        if round == ROUNDS {
            break;
        }
        let pull = pull * (samples.len() as f64).sqrt();
        for place in 0..COUNT {
            let mut row = vec![0.0; COUNT];
            row[place] = pull;
            rows.push(row);
            target.push(pull);
        }
        let shares = nnls(&rows, &target)?.coefficients;
        for (place, share) in shares.iter().enumerate() {
            let new = start.0[place] * share.max(LEAST_SHARE);
            costs.0[place] = if round < BOLD_ROUNDS { new } else { (new * costs.0[place]).sqrt() };
        }
    }
    Ok(best)
}
