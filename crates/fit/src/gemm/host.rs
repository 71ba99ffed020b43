//! Hosts that are faster or slower for a while.
//!
//! A small product takes the time its launch takes, and hosts change their speed: clocks, neighbours on the same
//! processor, power states. Measurements lie in the order in which they were taken, so the speed is a hidden Markov
//! chain with two states, the usual one and another, and every product is evidence of its state as far as its launch is
//! visible (forward-backward algorithm, Rabiner 1989). Without this, drift would be taken for an effect of
//! sizes.

use super::learn::{TimedProduct, WEAK_PULL, learn};
use crate::FitError;
use stepcast_core::fitted::gemm::costs::Costs;
use stepcast_core::method::CancelCheck;
use stepcast_stats::quantile_of_sorted;

/// The other state's launch time relative to the usual one's, where the search begins: faster or slower. The ratio is
/// taken from the H200 recording (docs/methods/gemm.md, "How fast the host was"). The constants below are assumptions.
const FIRST_GUESSES: [f64; 2] = [0.75, 1.0 / 0.75];
const ROUNDS: usize = 3;
/// Probability that the next product finds the host as this one did.
const STAYS: f64 = 0.9;
/// Spread of ln(time) within one state, and the least likelihood of any time within a state.
const SPREAD: f64 = 0.08;
const DOUBT: f64 = 1e-3;
/// Products whose kernel is less than this share of the time show the speed of the host.
const HOST_BOUND: f64 = 0.2;
/// A second state must hold for at least this share of such products, and must differ by as much.
const LEAST_SHARE: f64 = 0.02;
const LEAST_DIFFERENCE: f64 = 0.1;
/// Number of last products from which the final speed of the host is estimated.
const LAST: usize = 100;

#[derive(Debug, Clone)]
pub(super) struct Host {
    /// Coefficients in the usual state.
    pub(super) costs: Costs,
    /// For every product, its host's time relative to the usual state's.
    pub(super) ratios: Vec<f64>,
}

impl Host {
    /// Splits the states of products that share their kernels, and fits these anew.
    pub(super) fn find(
        products: &[TimedProduct],
        costs: &Costs,
        loss: f64,
        wanted: &CancelCheck<'_>,
    ) -> Result<Self, FitError> {
        let usual = Self { costs: *costs, ratios: vec![1.0; products.len()] };
        let mut best = (loss, usual);
        for guess in FIRST_GUESSES {
            if let Some(found) = Self::with_other_state(products, costs, guess, wanted)?
                && found.0 < best.0
            {
                best = found;
            }
        }
        Ok(best.1)
    }

    fn with_other_state(
        products: &[TimedProduct],
        costs: &Costs,
        guess: f64,
        wanted: &CancelCheck<'_>,
    ) -> Result<Option<(f64, Self)>, FitError> {
        let (mut ratio, mut found) = (guess, (f64::INFINITY, Self { costs: *costs, ratios: Vec::new() }));
        for round in 0..ROUNDS {
            let costs = found.1.costs;
            let logs = |ratio: f64| products.iter().map(move |timed| timed.at_host(ratio).log_error(&costs));
            let usual: Vec<f64> = logs(1.0).collect();
            let evidence: Vec<[f64; 2]> =
                usual.iter().copied().zip(logs(ratio)).map(<[f64; 2]>::from).collect();
            let other = other_state(&evidence);
            let (mut in_other, mut in_usual) = (Vec::new(), Vec::new());
            for ((timed, is_other), error) in products.iter().zip(&other).zip(&usual) {
                if timed.at_host(1.0).kernel_share(&costs) < HOST_BOUND {
                    if *is_other { in_other.push(*error) } else { in_usual.push(*error) }
                }
            }
            let enough = LEAST_SHARE * (in_other.len() + in_usual.len()) as f64;
            let (Some(one), Some(two)) = (median(&mut in_other), median(&mut in_usual)) else {
                return Ok(None);
            };
            if round > 0 {
                ratio = (one - two).exp();
            }
            if (in_other.len() as f64) < enough || (ratio - 1.0).abs() < LEAST_DIFFERENCE {
                return Ok(None);
            }
            let ratios: Vec<f64> = other.iter().map(|is_other| if *is_other { ratio } else { 1.0 }).collect();
            let slowed: Vec<TimedProduct> =
                products.iter().zip(&ratios).map(|(timed, ratio)| timed.at_host(*ratio)).collect();
            let learned = learn(&slowed, &costs, WEAK_PULL, wanted)?;
            found = (learned.loss, Self { costs: learned.costs, ratios });
        }
        Ok(Some(found))
    }
}

/// The host's time at the end of a recording, relative to the usual state's; `ratios` are the ratios of its products.
pub(super) fn final_ratio(products: &[TimedProduct], ratios: &[f64], costs: &Costs) -> f64 {
    let shows = |(timed, _): &(&TimedProduct, &f64)| timed.at_host(1.0).kernel_share(costs) < HOST_BOUND;
    let mut last: Vec<f64> =
        products.iter().zip(ratios).rev().filter(shows).take(LAST).map(|(_, ratio)| *ratio).collect();
    last.sort_unstable_by(f64::total_cmp);
    last.get(last.len() / 2).copied().unwrap_or(1.0)
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    (!values.is_empty()).then(|| quantile_of_sorted(values, 0.5))
}

/// Whether each product found the host in its other state; `evidence` is ln(measured/predicted) in both.
pub fn other_state(evidence: &[[f64; 2]]) -> Vec<bool> {
    let likelihoods: Vec<[f64; 2]> = evidence.iter().map(|pair| pair.map(likelihood)).collect();
    let mut forward = Vec::with_capacity(likelihoods.len());
    let mut state = [0.5; 2];
    for likelihood in &likelihoods {
        state = normal(times(after(state), *likelihood));
        forward.push(state);
    }
    let mut backward = [1.0; 2];
    let mut other = vec![false; likelihoods.len()];
    for (index, likelihood) in likelihoods.iter().enumerate().rev() {
        let [usual, changed] = times(forward[index], backward);
        other[index] = changed > usual;
        backward = normal(after(times(backward, *likelihood)));
    }
    other
}

/// With long tails: single products may be off for other reasons.
fn likelihood(log_error: f64) -> f64 {
    (1.0 + 0.5 * (log_error / SPREAD).powi(2)).powf(-1.5) + DOUBT
}

/// Probabilities one product later or earlier.
fn after([usual, other]: [f64; 2]) -> [f64; 2] {
    [STAYS * usual + (1.0 - STAYS) * other, (1.0 - STAYS) * usual + STAYS * other]
}

fn times([a, b]: [f64; 2], [c, d]: [f64; 2]) -> [f64; 2] {
    [a * c, b * d]
}

fn normal([a, b]: [f64; 2]) -> [f64; 2] {
    [a / (a + b), b / (a + b)]
}
