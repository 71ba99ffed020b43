//! The model of products: kernels with fitted coefficients, and smooth corrections.

use super::corrections::Corrections;
use super::costs::{Costs, Product};
use super::learn::{STRONG_PULL, WEAK_PULL, learn, start};
use super::{Alignment, GemmError, Sample, Shape, Variant, switch};
use std::collections::{BTreeMap, BTreeSet};
use stepcast_core::device::Precision;
use stepcast_core::quantity::{Flops, Seconds};

/// Fewest products of one variant that tell its coefficients.
const FEWEST: usize = 50;
/// Multiprocessors of GPUs that are trained on, tried where the number is not given.
const USUAL_MULTIPROCESSORS: [u32; 15] = [13, 15, 20, 28, 40, 46, 56, 68, 72, 80, 84, 108, 114, 132, 142];
/// Tried first, while the way of timing is searched for.
const FIRST_GUESS: u32 = 108;

/// What all variants share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Units that run one block of a kernel at a time.
    pub multiprocessors: u32,
    /// Products of at least so many operations were timed alone, smaller ones in a queue of calls; none: all in a
    /// queue.
    pub switch: Option<Flops>,
}

impl Machine {
    pub(super) fn product(&self, sample: &Sample) -> Product {
        self.product_of(sample.variant, sample.shape)
    }

    fn product_of(&self, variant: Variant, shape: Shape) -> Product {
        let alone = self.switch.is_some_and(|switch| shape.flops() >= switch);
        Product::new(shape, variant, self.multiprocessors, alone)
    }
}

/// A predicted product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GemmTime {
    /// Of the call, as it was timed.
    pub time: Seconds,
    /// Of the device: computing or reading, writing and merging, without launch and start.
    pub device: Seconds,
    /// Whether anything like it was measured.
    pub coverage: Coverage,
}

/// Whether a prediction rests on measurements nearby.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coverage {
    /// Its sizes lie within the measured range, its rows are aligned like measured ones.
    Measured,
    /// No rows of this alignment were measured: their cost relative to measured ones is assumed.
    OtherAlignment,
    /// A size lies outside the measured range: the kernels are extrapolated.
    OutsideSizes,
}

/// Times of products on one device.
#[derive(Debug, Clone, PartialEq)]
pub struct GemmModel {
    pub(super) machine: Machine,
    pub(super) variants: BTreeMap<Variant, Fitted>,
}

/// What was fitted for one variant.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    pub(super) costs: Costs,
    pub(super) corrections: Corrections,
    /// Alignments that were measured.
    pub(super) alignments: BTreeSet<Alignment>,
}

impl GemmModel {
    /// Fits measured products; the number of multiprocessors is fitted too where it is not given.
    pub fn fit(samples: &[Sample], multiprocessors: Option<u32>) -> Result<Self, GemmError> {
        check(samples)?;
        let switch = switch::find(samples, multiprocessors.unwrap_or(FIRST_GUESS))?;
        let machine = match multiprocessors {
            Some(multiprocessors) => Machine { multiprocessors, switch },
            None => likeliest(samples, switch)?,
        };
        let mut variants = BTreeMap::new();
        for all in by_precision(samples).values() {
            // Variants share their kernels: what one grid of sizes cannot tell, another may.
            let shared = learn(all, &machine, &start(all, &machine), WEAK_PULL)?.costs;
            for (variant, own) in by_variant(all) {
                let costs = learn(&own, &machine, &shared, STRONG_PULL)?.costs;
                let corrections = Corrections::smooth(&unexplained(&own, &machine, &costs));
                let alignments = own.iter().map(|sample| Alignment::of(variant, sample.shape)).collect();
                variants.insert(variant, Fitted { costs, corrections, alignments });
            }
        }
        Ok(Self { machine, variants })
    }

    /// The time of a product; none where the variant was not measured.
    pub fn predict(&self, variant: Variant, shape: Shape) -> Option<GemmTime> {
        let Fitted { costs, corrections, alignments } = self.variants.get(&variant)?;
        let product = self.machine.product_of(variant, shape);
        let kernel = product.kernel(costs);
        let aligned = alignments.contains(&Alignment::of(variant, shape));
        // What measured kernels leave unexplained says nothing about others.
        let correction = if aligned { corrections.log_ratio(shape).exp() } else { 1.0 };
        Some(GemmTime {
            time: Seconds::new(product.time(costs, kernel.time) * correction),
            device: Seconds::new(product.device_time(costs, &kernel) * correction),
            coverage: match (corrections.covers(shape), aligned) {
                (true, true) => Coverage::Measured,
                (true, false) => Coverage::OtherAlignment,
                (false, _) => Coverage::OutsideSizes,
            },
        })
    }

    /// What was measured.
    pub fn variants(&self) -> impl Iterator<Item = Variant> {
        self.variants.keys().copied()
    }

    /// What all variants share.
    pub fn machine(&self) -> Machine {
        self.machine
    }
}

/// Log ratios of measured to predicted times, as far as the kernel's time is seen: how long a host takes to launch says
/// nothing about sizes.
fn unexplained(samples: &[Sample], machine: &Machine, costs: &Costs) -> Vec<(Shape, f64)> {
    let ratio = |sample: &Sample| {
        let product = machine.product(sample);
        let kernel = product.kernel(costs).time;
        let log_ratio = (sample.time.get() / product.time(costs, kernel)).ln();
        (sample.shape, log_ratio * product.kernel_share(costs, kernel))
    };
    samples.iter().map(ratio).collect()
}

/// The number of multiprocessors that explains the measurements best.
fn likeliest(samples: &[Sample], switch: Option<Flops>) -> Result<Machine, GemmError> {
    let mut best = (f64::INFINITY, Machine { multiprocessors: FIRST_GUESS, switch });
    for multiprocessors in USUAL_MULTIPROCESSORS {
        let machine = Machine { multiprocessors, switch };
        let loss = switch::total_loss(samples, &machine)?;
        if loss < best.0 {
            best = (loss, machine);
        }
    }
    Ok(best.1)
}

fn check(samples: &[Sample]) -> Result<(), GemmError> {
    let mut seen = BTreeSet::new();
    for &Sample { variant, shape, time } in samples {
        if !(time.is_finite() && time > Seconds::ZERO) || shape.flops() <= Flops::ZERO {
            return Err(GemmError::BadTime { variant, shape, time });
        }
        if !seen.insert((variant, shape)) {
            return Err(GemmError::Twice { variant, shape });
        }
    }
    for (variant, own) in by_variant(samples) {
        if own.len() < FEWEST {
            return Err(GemmError::TooFew { variant, found: own.len(), needed: FEWEST });
        }
    }
    Ok(())
}

pub(super) fn by_precision(samples: &[Sample]) -> BTreeMap<Precision, Vec<Sample>> {
    grouped(samples, |variant| variant.precision)
}

pub(super) fn by_variant(samples: &[Sample]) -> BTreeMap<Variant, Vec<Sample>> {
    grouped(samples, |variant| variant)
}

fn grouped<K: Ord>(samples: &[Sample], key: impl Fn(Variant) -> K) -> BTreeMap<K, Vec<Sample>> {
    let mut groups = BTreeMap::new();
    for sample in samples {
        groups.entry(key(sample.variant)).or_insert_with(Vec::new).push(*sample);
    }
    groups
}
