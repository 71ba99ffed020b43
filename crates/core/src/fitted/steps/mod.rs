//! Times of a whole training step on a device, from a model fitted to measured steps.
//!
//! Every layer belongs to a [`Class`]. Its device time is a linear combination of [`Feature`]s with fitted,
//! non-negative coefficients. A host launches the kernels ([`LaunchCosts`]) and a device runs them in order, so the
//! host limits small batches and the device large ones: a kernel starts once it has been launched and the previous one has
//! ended, end = max(end, issued) + time. The accuracy is documented in docs/methods/steps.md.

mod class;
mod op;

pub use class::{Class, Feature, Nominal, Phase};
pub use op::{Setting, StepOp};

use crate::fitted::gemm::{GemmModel, Transposition, Variant};
use crate::model::Model;
use crate::precision::Precision;
use crate::quantity::{Bytes, Seconds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes per parameter that plain gradient descent moves: it reads the parameter and its gradient and writes the
/// parameter (counted, not fitted).
const UPDATE_BYTES: f64 = 12.0;
/// Update time per tensor, and per step: guesses tuned by hand on the H200 steps in `validation/steps`.
const UPDATE_TENSOR: Seconds = Seconds::new(0.25e-6);
const UPDATE_START: Seconds = Seconds::new(8e-6);

/// Fitted coefficients of one class of layers in one precision and phase, and the number of samples used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Coefficients {
    /// Number of layers measured while the device was busy; if zero, the coefficients are guesses.
    pub samples: usize,
    pub per: BTreeMap<Feature, f64>,
}

/// All classes of layers in one precision and phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PhaseModel {
    /// Ratio of the time of the whole phase to the sum of layers timed one by one.
    pub factor: f64,
    pub class: BTreeMap<Class, Coefficients>,
}

/// Forward and backward pass in one precision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct PrecisionModel {
    /// Smallest and largest measured batch.
    pub batches: [u32; 2],
    /// From the input to the loss.
    pub forward: PhaseModel,
    /// From the loss to the gradients.
    pub backward: PhaseModel,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StepModel {
    /// Nominal rates that define the features.
    pub nominal: Nominal,
    /// Costs of the host.
    pub launch: LaunchCosts,
    pub precision: BTreeMap<Precision, PrecisionModel>,
    /// Matrix products, if they have their own fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub products: Option<GemmModel>,
}

/// Times of one layer of the model.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerTimes {
    /// Increase of the forward time due to this layer.
    pub forward: Seconds,
    /// Increase of the backward time due to this layer.
    pub backward: Seconds,
}

/// Times of all layers of a model and of the update.
#[derive(Debug, Clone, PartialEq)]
pub struct StepLayers {
    /// Times in the order of the model's layers.
    pub layers: Vec<LayerTimes>,
    pub update: Seconds,
}

impl StepModel {
    pub(crate) fn check(&self) -> Result<(), String> {
        let sound = |value: f64| value.is_finite() && value >= 0.0;
        let Nominal { fp32, bf16, memory, multiprocessors } = self.nominal;
        let rates = [fp32.get(), bf16.get(), memory.get(), f64::from(multiprocessors)];
        if !rates.into_iter().all(|rate| sound(rate) && rate > 0.0) {
            return Err("a nominal rate is not positive".to_owned());
        }
        let LaunchCosts { forward, backward, gradient, forward_cast, backward_cast } = self.launch;
        if ![forward, backward, gradient, forward_cast, backward_cast].iter().all(|cost| sound(cost.get())) {
            return Err("a cost of launches is negative or endless".to_owned());
        }
        for (precision, model) in &self.precision {
            if let Some(missing) = self.products.as_ref().and_then(|products| lacks(products, *precision)) {
                return Err(format!("its matrix products lack {missing}"));
            }
            for phase in Phase::ALL {
                let PhaseModel { factor, class } = model.phase(phase);
                if !(sound(*factor) && *factor > 0.0) {
                    return Err(format!("the factor of {precision} is not positive"));
                }
                for fitted in Class::FITTED {
                    let whole = class.get(&fitted).is_some_and(|own| {
                        fitted
                            .features(*precision, phase, self.products.is_some())
                            .iter()
                            .all(|feature| own.per.get(feature).is_some_and(|v| sound(*v)))
                    });
                    if !whole {
                        return Err(format!(
                            "{precision} lacks a coefficient of {fitted:?} layers, or has a negative one"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The measured number format that serves `precision`; steps in 16 bits are measured with automatic casting, so that
    /// they serve mixed precision.
    pub fn measured(&self, precision: Precision) -> Option<Precision> {
        let formats = [precision, precision.of_products()];
        formats.into_iter().find(|format| self.precision.contains_key(format))
    }

    /// Times of a step; none if the precision was not measured.
    ///
    /// No time decreases as the batch grows. The queue alone ensures this for the forward pass and the whole step;
    /// the backward pass, a difference, is interpolated between running maxima at powers of two.
    pub fn predict(&self, model: &Model, precision: Precision, batch: u32) -> Option<StepTimes> {
        let ops = StepOp::from_model(model);
        let times = |batch: u32| {
            Some(self.lanes(&ops, model, precision, batch)?.times(&self.launch, self.factors(precision)?))
        };
        let own = times(batch)?;
        let mut low = 1;
        let mut below = times(low)?.backward;
        while low <= batch / 2 {
            low *= 2;
            below = below.max(times(low)?.backward);
        }
        let backward = if low == batch {
            below
        } else {
            let above = below.max(times(low.saturating_mul(2))?.backward);
            let share = (f64::from(batch) / f64::from(low)).log2();
            below * (above / below).powf(share)
        };
        Some(StepTimes { backward, ..own })
    }

    /// How much time each layer adds to a step; these times and the update add up to the step.
    pub fn layers(&self, model: &Model, precision: Precision, batch: u32) -> Option<StepLayers> {
        let ops = StepOp::from_model(model);
        let lanes = self.lanes(&ops, model, precision, batch)?;
        let ends = lanes.ends(&self.launch, self.factors(precision)?);
        let mut layers = vec![LayerTimes::default(); model.layers().len()];
        let last = layers.len().saturating_sub(1);
        let mut before = Seconds::ZERO;
        for (place, op) in ops.iter().chain(ops.iter().rev()).enumerate() {
            let own = layers.get_mut(op.layer.unwrap_or(last))?;
            let took = ends[place] - before;
            *(if place < lanes.forward { &mut own.forward } else { &mut own.backward }) += took;
            before = ends[place];
        }
        Some(StepLayers { layers, update: lanes.update })
    }

    fn factors(&self, precision: Precision) -> Option<[f64; 2]> {
        let model = self.precision.get(&precision)?;
        Some([model.forward.factor, model.backward.factor])
    }

    fn lanes(&self, ops: &[StepOp], model: &Model, precision: Precision, batch: u32) -> Option<Lanes> {
        let device = |place: usize, phase: Phase| {
            let products = self.products.as_ref();
            let setting = Setting { batch, precision, phase, nominal: &self.nominal, products };
            Some(self.precision.get(&precision)?.phase(phase).device(&ops[place], &setting))
        };
        lanes(ops, model, (precision, batch), &self.nominal, device)
    }
}

/// A variant of product that layers in `precision` need and `products` does not have.
pub fn lacks(products: &GemmModel, precision: Precision) -> Option<Variant> {
    let needed = [Transposition::Nn, Transposition::Nt, Transposition::Tn];
    let needed = needed.map(|transposition| Variant { precision, transposition });
    needed.into_iter().find(|variant| !products.variants.contains_key(variant))
}

impl PrecisionModel {
    pub fn phase(&self, phase: Phase) -> &PhaseModel {
        match phase {
            Phase::Forward => &self.forward,
            Phase::Backward => &self.backward,
        }
    }
}

impl PhaseModel {
    /// Device time of a layer before applying the factor.
    fn device(&self, op: &StepOp, setting: &Setting<'_>) -> Seconds {
        let fitted = self.class.get(&op.class).into_iter().flat_map(|own| &own.per);
        fitted.map(|(feature, value)| op.feature(*feature, setting) * *value).sum::<Seconds>()
            + op.counted(setting)
    }
}

/// The queue of a step of `model`, where `device` gives the device time of each of `ops` by index.
pub fn lanes(
    ops: &[StepOp],
    model: &Model,
    (precision, batch): (Precision, u32),
    nominal: &Nominal,
    device: impl Fn(usize, Phase) -> Option<Seconds>,
) -> Option<Lanes> {
    let mut work = Vec::with_capacity(2 * ops.len());
    for (place, op) in ops.iter().enumerate() {
        work.push((op.launches(precision, Phase::Forward), device(place, Phase::Forward)?));
    }
    for (place, op) in ops.iter().enumerate().rev() {
        work.push((op.launches(precision, Phase::Backward), device(place, Phase::Backward)?));
    }
    let moved = Bytes::new(UPDATE_BYTES * model.updated(f64::from(batch)));
    let update = moved / nominal.memory + UPDATE_TENSOR * model.gradients().len() as f64 + UPDATE_START;
    Some(Lanes { work, forward: ops.len(), update })
}

/// Host time to call the optimiser: a guess tuned by hand on the H200 steps in `validation/steps`.
const UPDATE_CALL: Seconds = Seconds::new(40e-6);

/// The launches and device times of a step; the device times are still to be scaled by one factor per phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Lanes {
    /// Layers in forward order, then in backward order; the first `forward` entries are the forward pass.
    pub(super) work: Vec<(Launches, Seconds)>,
    pub(super) forward: usize,
    pub(super) update: Seconds,
}

/// Times of a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepTimes {
    /// From the first launch to the end of the forward pass.
    pub forward: Seconds,
    /// From the end of the forward pass to the last gradient.
    pub backward: Seconds,
    /// The whole step, including the optimiser.
    pub iteration: Seconds,
}

impl Lanes {
    /// When the work of each layer ends, first forward and then backward.
    pub fn ends(&self, costs: &LaunchCosts, factors: [f64; 2]) -> Vec<Seconds> {
        let (mut issued, mut end) = (Seconds::ZERO, Seconds::ZERO);
        let ends = self.work.iter().enumerate().map(|(place, (launches, device))| {
            issued += costs.time(launches);
            end = end.max(issued) + *device * factors[usize::from(place >= self.forward)];
            end
        });
        ends.collect()
    }

    /// The times of the step if device times are scaled by `factors`, forward and backward.
    pub fn times(&self, costs: &LaunchCosts, factors: [f64; 2]) -> StepTimes {
        let host = |work: &[(Launches, Seconds)]| work.iter().map(|(launches, _)| costs.time(launches)).sum();
        let ends = self.ends(costs, factors);
        let end_of = |count: usize| count.checked_sub(1).map_or(Seconds::ZERO, |last| ends[last]);
        let (forward, end) = (end_of(self.forward), end_of(ends.len()));
        let [first, second]: [Seconds; 2] =
            [host(&self.work[..self.forward]), host(&self.work[self.forward..])];
        StepTimes {
            forward,
            backward: (end - forward).max(second),
            iteration: end.max(first + second + UPDATE_CALL) + self.update,
        }
    }
}

/// Numbers of host operations that a layer causes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Launches {
    pub forward: f64,
    pub backward: f64,
    /// Parameter gradients passed on by the framework.
    pub gradients: f64,
    pub forward_casts: f64,
    pub backward_casts: f64,
}

/// Host time of each of these operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LaunchCosts {
    /// A kernel of the forward pass, including the framework's overhead.
    pub forward: Seconds,
    pub backward: Seconds,
    /// A parameter gradient.
    pub gradient: Seconds,
    pub forward_cast: Seconds,
    pub backward_cast: Seconds,
}

impl LaunchCosts {
    pub fn time(&self, launches: &Launches) -> Seconds {
        self.forward * launches.forward
            + self.backward * launches.backward
            + self.gradient * launches.gradients
            + self.forward_cast * launches.forward_casts
            + self.backward_cast * launches.backward_casts
    }
}
