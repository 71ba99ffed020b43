//! The row of one point: comparable figures of its prediction, or the reason for its refusal.

use super::variants::Walker;
use crate::predict::MethodChoice;
use crate::predict::training;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::{serde_as, skip_serializing_none};
use std::ops::ControlFlow;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, Method, Stopped};
use stepcast_core::prediction::{Bottleneck, GradientKernel, PartKind, Prediction, Verdict};
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// Figures of one point.
#[skip_serializing_none]
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct PointFigures {
    /// The method that made the prediction.
    pub method: &'static str,
    /// Number of workers.
    pub workers: u64,
    /// Machines: nodes with workers, and servers.
    pub nodes: u64,
    /// Time of one step.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
    pub iteration: Seconds,
    /// Samples per second of the whole cluster.
    #[serde(rename = "throughput_samples_per_s", with = "InBaseUnits")]
    pub throughput: SamplesPerSec,
    /// 90 % interval of the throughput; none for simulations, for large sweeps, and without measured runs that show its error.
    #[serde(rename = "interval_samples_per_s")]
    #[serde_as(as = "Option<[InBaseUnits; 2]>")]
    pub interval: Option<[SamplesPerSec; 2]>,
    /// Part of the step in which gradients are computed.
    #[serde(rename = "compute_s", with = "InBaseUnits")]
    pub compute: Seconds,
    /// Time from one update to the next, where updates run beside the steps.
    #[serde(rename = "update_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub update: Option<Seconds>,
    /// The gradient by its kernels, where these were measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub kernels: Vec<GradientKernel>,
    /// Throughput relative to the sum of the throughputs of all workers alone.
    pub scaling_factor: f64,
    /// One pass over the data, where a data set is given.
    #[serde(rename = "epoch_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub epoch: Option<Seconds>,
    /// All passes.
    #[serde(rename = "training_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub training: Option<Seconds>,
    /// Cost of all passes, where prices are given.
    pub cost: Option<f64>,
    /// Mean staleness: updates between the weights that a gradient was computed with and the update that it enters;
    /// none if the method does not predict it.
    pub staleness: Option<f64>,
    /// Samples that enter one update, on average; none if the method does not predict it.
    pub minibatch: Option<f64>,
    /// Kinds of devices among the workers.
    #[serde(skip)]
    pub kinds: u64,
    /// Whether the model's state and a batch's activations fit into the memory of every device.
    pub fits: bool,
    /// The bottleneck of the step.
    pub bottleneck: Bottleneck,
    /// Codes of the method's warnings.
    pub warnings: Vec<&'static str>,
}

/// Why a point has no figures.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Refused {
    /// The reason.
    pub refused: String,
}

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct SweepRow {
    /// Its index.
    pub index: u64,
    /// Positions on the axes.
    pub digits: Vec<u64>,
    /// The figures, or the reason for having none.
    pub answer: Result<PointFigures, Refused>,
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self { refused: fault.reason }
    }
}

impl MethodChoice {
    /// The figures of a scenario, or the reason for having none; breaks off when cancelled.
    pub fn figures(
        self,
        scenario: &Scenario,
        wanted: &CancelCheck<'_>,
    ) -> ControlFlow<(), Result<PointFigures, Refused>> {
        // Closed forms do not check for cancellation.
        wanted()?;
        let predict = |method: &dyn Method| method.predict_watched(scenario, &|_| wanted());
        match self.method(scenario).map_err(Stopped::from).and_then(predict) {
            Ok(prediction) => ControlFlow::Continue(Ok(PointFigures::of(scenario, &prediction))),
            Err(Stopped::Fault(fault)) => ControlFlow::Continue(Err(fault.into())),
            Err(Stopped::Cancelled) => ControlFlow::Break(()),
        }
    }
}

impl Walker<'_> {
    /// The figures at a point, or the reason for having none; breaks off when cancelled.
    pub fn figures(
        &mut self,
        digits: &[u64],
        choice: MethodChoice,
        wanted: &CancelCheck<'_>,
    ) -> ControlFlow<(), Result<PointFigures, Refused>> {
        match self.look(digits, |scenario| choice.figures(scenario, wanted)) {
            Ok(answer) => answer,
            Err(fault) => ControlFlow::Continue(Err(fault.into())),
        }
    }
}

impl PointFigures {
    fn of(scenario: &Scenario, prediction: &Prediction) -> Self {
        let epoch = training::epoch(scenario, prediction);
        let all = training::all_epochs(scenario, prediction);
        let fits = prediction
            .transformer
            .as_ref()
            .map_or_else(|| training::fits(scenario), |report| report.memory.verdict != Verdict::DoesNotFit);
        let updating = prediction.updating.as_deref();
        Self {
            method: prediction.method,
            workers: prediction.workers,
            nodes: nodes(scenario),
            iteration: prediction.iteration,
            throughput: prediction.throughput,
            interval: None,
            compute: prediction.part(PartKind::Compute),
            update: updating.map(|updating| updating.iteration),
            kernels: updating.map(|updating| updating.kernels.clone()).unwrap_or_default(),
            scaling_factor: prediction.scaling_factor,
            epoch,
            training: all.as_ref().map(|all| all.time),
            cost: all.and_then(|all| all.cost),
            staleness: staleness(scenario, prediction),
            minibatch: minibatch(scenario, prediction),
            kinds: devices(scenario).len() as u64,
            fits,
            bottleneck: prediction.bottleneck,
            warnings: codes(scenario, prediction, fits),
        }
    }
}

/// Codes of all warnings, each once; `fits` is known already, because memory takes long to count.
fn codes(scenario: &Scenario, prediction: &Prediction, fits: bool) -> Vec<&'static str> {
    let mut codes: Vec<&'static str> = prediction.warnings.iter().map(|warning| warning.code).collect();
    let counted = scenario.profile().is_none() && scenario.strategy.plan.is_none();
    codes.extend((counted && !fits).then_some(training::MEMORY));
    codes.extend(training::more_than_all(scenario, prediction).map(|warning| warning.code));
    codes.dedup();
    codes
}

/// The devices of all workers, each kind once, with their number.
pub fn devices(scenario: &Scenario) -> Vec<(&str, u64)> {
    let mut devices: Vec<(&str, u64)> = Vec::new();
    for group in &scenario.cluster.groups {
        let (device, count) = (group.device.name.as_str(), u64::from(group.count) * u64::from(group.gpus));
        match devices.iter_mut().find(|(known, _)| *known == device) {
            Some((_, known)) => *known += count,
            None => devices.push((device, count)),
        }
    }
    devices
}

/// Machines: nodes that workers fill, and servers.
pub(crate) fn nodes(scenario: &Scenario) -> u64 {
    let servers = match scenario.strategy.architecture {
        Architecture::ParameterServer => u64::from(scenario.cluster.servers.count),
        _ => 0,
    };
    scenario.cluster.workers().div_ceil(u64::from(scenario.cluster.workers_per_node())) + servers
}

/// Whether every update applies gradients of all workers, computed with the weights that it changes.
fn is_synchronous(scenario: &Scenario) -> bool {
    matches!(scenario.strategy.synchronisation, Synchronisation::Bsp | Synchronisation::LocalSgd(_))
}

fn staleness(scenario: &Scenario, prediction: &Prediction) -> Option<f64> {
    if is_synchronous(scenario) {
        return Some(0.0);
    }
    let updating = prediction.updating.as_ref().map(|updating| updating.staleness);
    updating.or(prediction.simulation.as_ref().map(|simulation| simulation.mean_staleness))
}

fn minibatch(scenario: &Scenario, prediction: &Prediction) -> Option<f64> {
    if is_synchronous(scenario) {
        return Some(prediction.samples as f64);
    }
    let updating = prediction.updating.as_ref().map(|updating| updating.minibatch);
    updating.or(prediction.simulation.as_ref().map(|simulation| simulation.effective_minibatch))
}
