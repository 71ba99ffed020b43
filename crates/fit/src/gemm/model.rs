//! Coefficients of the model of products: how calls were timed, the number of multiprocessors, each family of kernels, and
//! assumptions about families that were not measured.

use super::host::{Host, final_ratio};
use super::learn::{STRONG_PULL, TimedProduct, WEAK_PULL, best_rate, largest_first, learn, start, timed};
use super::smooth::smooth;
use super::{FEWEST, GemmError, MeasuredProduct, by_variant, families};
use crate::FitError;
use std::collections::{BTreeMap, BTreeSet};
use stepcast_core::fitted::gemm::costs::{Costs, LAUNCH};
use stepcast_core::fitted::gemm::{Alignment, Family, GemmModel, Machine, Shape, Variant};
use stepcast_core::method::CancelCheck;
use stepcast_core::quantity::{Flops, Seconds};

/// Multiprocessors of GPUs that are trained on, tried where the number is not given.
const USUAL_MULTIPROCESSORS: [u32; 15] = [13, 15, 20, 28, 40, 46, 56, 68, 72, 80, 84, 108, 114, 132, 142];
/// Number of multiprocessors assumed while the way of timing is searched for.
const FIRST_GUESS: u32 = 108;

/// A budget must lower the error by at least this share (a guess).
const LEAST_GAIN: f64 = 0.02;
/// Most products used for each family of kernels, chosen evenly.
const ENOUGH: usize = 1000;
/// First digits of a round number.
const ROUND: [f64; 3] = [1.0, 2.0, 5.0];

/// Coefficients fitted to bf16 products on an H200 with cuBLAS 13 (`validation/gemm/alignment_h200.csv.gz`, all
/// transpositions together), in the order of [`Costs`]; `LAUNCH_THERE` is the launch of an aligned product in that
/// recording.
const WORD: Costs = Costs([
    8.74e-6, 3.58e-6, 1.19e-5, 1.36e-6, 8.53e-9, 3.33e-13, 4.81e-13, 2.20e-6, 3.21e-13, //
    0.591e-12, 1.203e-12, 1.203e-12, 1.003e-12, 0.860e-12, 0.860e-12, 0.446e-12, 0.752e-12, 0.752e-12,
]);
const ELEMENT: Costs = Costs([
    8.86e-6, 3.73e-6, 8.37e-6, 1.76e-6, 1.71e-8, 8.32e-13, 6.43e-13, 1.12e-6, 4.07e-13, //
    2.646e-12, 1.520e-12, 1.812e-12, 1.506e-12, 1.112e-12, 1.188e-12, 0.890e-12, 1.130e-12, 1.130e-12,
]);
const LAUNCH_THERE: f64 = 10.5e-6;
/// Operations per second of the fastest aligned bf16 products of an H200 (`validation/gemm/h200.csv.gz`).
const BEST_RATE_THERE: f64 = 787e12;

/// Fits measured products, in the order in which they were measured; the number of multiprocessors is fitted too
/// where it is not given. The fit can be cancelled.
pub fn fit(
    samples: &[MeasuredProduct],
    multiprocessors: Option<u32>,
    wanted: &CancelCheck<'_>,
) -> Result<GemmModel, GemmError> {
    check(samples)?;
    let budget = find_budget(samples, multiprocessors.unwrap_or(FIRST_GUESS), wanted)?;
    let machine = match multiprocessors {
        Some(multiprocessors) => Machine { multiprocessors, budget },
        None => likeliest(samples, budget, wanted)?,
    };
    let mut variants: BTreeMap<Variant, BTreeMap<Alignment, Family>> = BTreeMap::new();
    for ((_, alignment), all) in families(samples) {
        // Variants share their kernels: coefficients that one grid of sizes leaves open, another may determine.
        let products = timed(&all, &machine);
        let shared = learn(&products, &largest_first(start(&all, &machine)), WEAK_PULL, wanted)?;
        let host = Host::find(&products, &shared.costs, shared.loss, wanted)?;
        for (variant, own) in by_variant(&all) {
            let of_variant = |sample: &MeasuredProduct| sample.variant == variant;
            let ratios = all.iter().zip(&host.ratios).filter(|(sample, _)| of_variant(sample));
            let ratios: Vec<f64> = ratios.map(|(_, ratio)| *ratio).collect();
            let fitted = fit_family(&own, &ratios, &machine, &host.costs, wanted)?;
            variants.entry(variant).or_default().insert(alignment, fitted);
        }
    }
    for (variant, families) in &mut variants {
        let Some(aligned) = families.get(&Alignment::Bulk).map(|fitted| fitted.costs) else { continue };
        let is_aligned = |sample: &&MeasuredProduct| {
            sample.variant.precision == variant.precision
                && Alignment::family(sample.variant, sample.shape) == Alignment::Bulk
        };
        let rate = best_rate(&samples.iter().filter(is_aligned).copied().collect::<Vec<_>>());
        for alignment in Alignment::families(variant.precision) {
            if let Some(costs) = assumed_costs(*alignment, &aligned, rate) {
                families.entry(*alignment).or_insert(Family { costs, corrections: None });
            }
        }
    }
    Ok(GemmModel { machine, variants })
}

/// Fits one variant's kernels of one family; `ratios` are its host's times relative to the usual state's, for which
/// `shared` holds.
fn fit_family(
    own: &[MeasuredProduct],
    ratios: &[f64],
    machine: &Machine,
    shared: &Costs,
    wanted: &CancelCheck<'_>,
) -> Result<Family, GemmError> {
    let as_usual = timed(own, machine);
    let products: Vec<TimedProduct> =
        as_usual.iter().zip(ratios).map(|(timed, ratio)| timed.at_host(*ratio)).collect();
    let costs = learn(&products, shared, STRONG_PULL, wanted)?.costs;
    let errors = products.iter().map(|timed| timed.log_error(&costs));
    let points: Vec<(Shape, f64)> = own.iter().map(|sample| sample.shape).zip(errors).collect();
    Ok(Family {
        costs: costs.with_host(final_ratio(&as_usual, ratios, &costs)),
        corrections: Some(smooth(&points, wanted)?),
    })
}

/// The number of multiprocessors that explains the measurements best.
fn likeliest(
    samples: &[MeasuredProduct],
    budget: Option<Flops>,
    wanted: &CancelCheck<'_>,
) -> Result<Machine, GemmError> {
    let mut best = (f64::INFINITY, Machine { multiprocessors: FIRST_GUESS, budget });
    for multiprocessors in USUAL_MULTIPROCESSORS {
        let machine = Machine { multiprocessors, budget };
        let loss = total_loss(samples, &machine, wanted)?;
        if loss < best.0 {
            best = (loss, machine);
        }
    }
    Ok(best.1)
}

fn check(samples: &[MeasuredProduct]) -> Result<(), GemmError> {
    let mut seen = BTreeSet::new();
    for &MeasuredProduct { variant, shape, time } in samples {
        if !(time.is_finite() && time > Seconds::ZERO) || shape.flops() <= Flops::ZERO {
            return Err(GemmError::BadTime { variant, shape, time });
        }
        if !seen.insert((variant, shape)) {
            return Err(GemmError::Twice { variant, shape });
        }
    }
    for (variant, own) in by_variant(samples) {
        let of_family = |alignment: &Alignment| {
            own.iter().filter(|sample| Alignment::family(variant, sample.shape) == *alignment).count()
        };
        let found = Alignment::families(variant.precision).iter().map(of_family).max().unwrap_or(0);
        if found < FEWEST {
            return Err(GemmError::TooFew { variant, found, needed: FEWEST });
        }
    }
    Ok(())
}

/// The budget of operations of a queue that explains the measurements best.
///
/// Benchmarks time short products as queues of calls and long ones call by call. Often every product gets
/// the same number of operations, `budget`: a queue has budget/flops calls, at least one and at most 20.
/// The first call of a queue hides nothing behind others, so that times rise towards `budget`. The budget is a round
/// number that a person chose: the one that explains the measurements best is taken, none unless it explains them
/// clearly better than endless queues.
fn find_budget(
    samples: &[MeasuredProduct],
    multiprocessors: u32,
    wanted: &CancelCheck<'_>,
) -> Result<Option<Flops>, FitError> {
    let flops = || samples.iter().map(|sample| sample.shape.flops().get());
    let (Some(least), Some(most)) = (flops().reduce(f64::min), flops().reduce(f64::max)) else {
        return Ok(None);
    };
    let loss = |budget| total_loss(samples, &Machine { multiprocessors, budget }, wanted);
    let mut best = (loss(None)? * (1.0 - LEAST_GAIN), None);
    for decade in least.log10().floor() as i32..=most.log10().floor() as i32 {
        for budget in ROUND.map(|digit| digit * 10f64.powi(decade)) {
            if budget <= least || budget >= most {
                continue;
            }
            let found = loss(Some(Flops::new(budget)))?;
            if found < best.0 {
                best = (found, Some(Flops::new(budget)));
            }
        }
    }
    Ok(best.1)
}

/// The loss over all families of kernels, each fitted separately to some of its products.
fn total_loss(
    samples: &[MeasuredProduct],
    machine: &Machine,
    wanted: &CancelCheck<'_>,
) -> Result<f64, FitError> {
    let mut total = 0.0;
    for all in families(samples).values() {
        let some: Vec<MeasuredProduct> = all.iter().step_by(all.len().div_ceil(ENOUGH)).copied().collect();
        let learned = learn(&timed(&some, machine), &start(&some, machine), WEAK_PULL, wanted)?;
        total += learned.loss * all.len() as f64;
    }
    Ok(total)
}

/// The assumed costs of a family of kernels, given measured aligned ones: an H200's, scaled to the measured host
/// and to the device's best rate in operations per second.
fn assumed_costs(family: Alignment, aligned: &Costs, best_rate: f64) -> Option<Costs> {
    let there = match family {
        Alignment::Bulk => return None,
        Alignment::Word => WORD,
        Alignment::Element => ELEMENT,
    };
    Some(there.with_host(aligned.0[LAUNCH] / LAUNCH_THERE).with_device(BEST_RATE_THERE / best_rate))
}
