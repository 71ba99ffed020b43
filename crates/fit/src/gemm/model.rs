//! Coefficients of the model of products.

use super::assumed::assumed_costs;
use super::error::GemmError;
use super::host::{Host, final_ratio};
use super::learn::{STRONG_PULL, TimedProduct, WEAK_PULL, best_rate, largest_first, learn, start, timed};
use super::products::{FEWEST, MeasuredProduct, by_variant, families};
use super::smooth::smooth;
use super::timing;
use std::collections::{BTreeMap, BTreeSet};
use stepcast_core::fitted::gemm::costs::Costs;
use stepcast_core::fitted::gemm::{Alignment, Family, GemmModel, Machine, Shape, Variant};
use stepcast_core::method::CancelCheck;
use stepcast_core::quantity::{Flops, Seconds};

/// Multiprocessors of GPUs that are trained on, tried where the number is not given.
const USUAL_MULTIPROCESSORS: [u32; 15] = [13, 15, 20, 28, 40, 46, 56, 68, 72, 80, 84, 108, 114, 132, 142];
/// Tried first, while the way of timing is searched for.
const FIRST_GUESS: u32 = 108;

/// Fits measured products, in the order in which they were measured; the number of multiprocessors is fitted too
/// where it is not given. The fit goes on as long as it is wanted.
pub fn fit(
    samples: &[MeasuredProduct],
    multiprocessors: Option<u32>,
    wanted: &CancelCheck<'_>,
) -> Result<GemmModel, GemmError> {
    check(samples)?;
    let budget = timing::find(samples, multiprocessors.unwrap_or(FIRST_GUESS), wanted)?;
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
        let loss = timing::total_loss(samples, &machine, wanted)?;
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
