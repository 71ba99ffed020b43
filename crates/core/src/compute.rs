//! Computing times of a workload on a device: how long the layers of one step take.
//!
//! [`SpeedSource`] says where the speed of a group of workers comes from. For a GPU and a model with layers,
//! [`prior`](crate::prior) gives the time of each layer. A CPU is assumed to reach the rate of published runs on its
//! generation, everything else a fixed share of its peak rate. A measured step scales all of them.

use crate::fitted::artefact::Artefact;
use crate::fitted::steps::{LayerTimes, StepLayers, StepModel};
use crate::machine::{Device, DeviceKind, WorkerGroup, catalog};
use crate::model::Model;
use crate::precision::Precision;
use crate::prediction::Warning;
use crate::prior::device::{self, Settings};
use crate::prior::work::StepWork;
use crate::quantity::{BytesPerSec, FlopsPerSec, Seconds};
use crate::scenario::Scenario;
use crate::speed::{BYTES_PER_WEIGHT, Speed};
use crate::strategy::Optimiser;
use std::sync::LazyLock;

/// Share of the peak rate that is assumed without a measurement.
pub const ASSUMED_EFFICIENCY: f64 = 0.5;

/// Code of the warning that the speed of a device is assumed.
pub const ASSUMED: &str = "assumed-efficiency";

/// Code of the warning that a fit is extrapolated.
pub const EXTRAPOLATED: &str = "extrapolated";

/// Largest error of an assumed share, as a factor in either direction: from 0.2 to 1.25 of the peak rate. Measured
/// shares range from 0.29 (ResNet-50 on half a K80, TensorFlow's benchmarks of 2017) to 1.59 (Zeng's networks on an
/// RTX 4000, with fast convolutions counted in full).
pub const ASSUMED_EFFICIENCY_FACTOR: f64 = 2.5;

/// Operations per cycle of a core with fused multiply-add, for which libraries have separate kernels: AVX2 has 32.
const FUSED_WIDTH: f64 = 32.0;

/// Share of the memory rate that is assumed without a measurement.
pub const ASSUMED_MEMORY_EFFICIENCY: f64 = 0.5;

/// Where the speed of the workers of a group comes from, in order of preference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpeedSource<'a> {
    /// Fitted steps give the time of each layer: those of the scenario, or those that come with the catalog, where the
    /// scenario says nothing else and its settings are those of the measured steps.
    FittedSteps(&'a StepModel),
    /// A measured step of one worker scales the assumed times.
    Measured,
    /// A given or fitted share of the peak rate.
    Share(f64),
    /// Nothing is known: the data sheet and published runs, or a fixed share of the peak rate.
    Assumed,
}

impl<'a> SpeedSource<'a> {
    pub fn new(scenario: &Scenario, group: &'a WorkerGroup) -> Self {
        let strategy = &scenario.strategy;
        if scenario.as_published {
            let is_timed = group.throughput.is_some() || group.step_time.is_some();
            let given = share(group, strategy.precision).unwrap_or(1.0);
            return if is_timed { Self::Measured } else { Self::Share(given) };
        }
        let of_machine = group.device.measured().is_some();
        let is_usable = |fit: &&StepModel| fit.measured(strategy.precision).is_some();
        // The steps of a measured machine count where no plan splits the model and their precision was measured.
        let own =
            group.device.steps().filter(|fit| !of_machine || (strategy.plan.is_none() && is_usable(fit)));
        if let Some(fit) = own {
            return Self::FittedSteps(fit);
        }
        if group.throughput.is_some() || group.step_time.is_some() {
            return Self::Measured;
        }
        if let Some(share) = share(group, strategy.precision) {
            return Self::Share(share);
        }
        let as_measured = !strategy.compiled
            && !strategy.channels_last
            && strategy.optimiser == Optimiser::Sgd
            && strategy.plan.is_none()
            && scenario.workload.graph.is_some();
        let shipped = as_measured.then(|| shipped_steps(&group.device)).flatten().filter(is_usable);
        shipped.map_or(Self::Assumed, Self::FittedSteps)
    }
}

/// Fitted steps of devices of the catalog: `catalog/fitted`, written by `stepcast fit steps`.
static SHIPPED_STEPS: LazyLock<Vec<(Device, StepModel)>> = LazyLock::new(|| {
    let read = |(id, text): (&str, &str)| match Artefact::from_toml(text) {
        Ok(Artefact::Steps(model)) => Some((catalog::device(id).ok()?, *model)),
        _ => None,
    };
    stepcast_catalog::FITTED.into_iter().filter_map(read).collect()
});

/// The fitted steps of a device, if the catalog has exactly this device.
fn shipped_steps(device: &Device) -> Option<&'static StepModel> {
    let found = SHIPPED_STEPS.iter().find(|(known, _)| known.name == device.name && known == device);
    found.map(|(_, model)| model)
}

impl Speed {
    /// The speed of a worker of the group at `index`, for its whole batch.
    pub fn of_group(scenario: &Scenario, index: usize) -> Self {
        let group = &scenario.cluster.groups[index];
        let samples = [f64::from(scenario.batch(index)), scenario.updating(index)];
        let source = SpeedSource::new(scenario, group);
        if let SpeedSource::FittedSteps(fit) = source
            && let Some((model, times)) = fitted_times(scenario, index, fit)
        {
            return Self::Layers(with_parameters(model, times, 1.0 / group.speed, samples));
        }
        let at = Point { batch: scenario.batch(index), precision: scenario.strategy.precision };
        let prior = prior(scenario, group);
        let slowness = calibration(scenario, index, prior.map(|(_, work)| work)).unwrap_or(1.0) / group.speed;
        if let Some((model, work)) = prior {
            let settings = Settings::from_strategy(&scenario.strategy, at.precision);
            let times = device::layers(work, &group.device, settings, at.batch, &scenario.priors.one_gpu);
            return Self::Layers(with_parameters(model, times, slowness, samples));
        }
        let [per_flop, per_weight] = rates(scenario, group, at);
        let [_, samples] = samples;
        Self::Rates { per_flop: per_flop * slowness, per_weight: per_weight * slowness, samples }
    }
}

/// A batch in a number format.
#[derive(Debug, Clone, Copy)]
struct Point {
    batch: u32,
    precision: Precision,
}

/// The rate at which a worker of the group at `index` computes: a share of the peak rate of its device.
pub fn rate(scenario: &Scenario, index: usize) -> FlopsPerSec {
    let group = &scenario.cluster.groups[index];
    let slowness = calibration(scenario, index, None).unwrap_or(1.0);
    let [rate, _] = reached(scenario, group, scenario.strategy.precision);
    FlopsPerSec::new(rate * group.speed / slowness)
}

/// The rate of the memory that a worker of the group at `index` reaches.
pub fn memory_rate(scenario: &Scenario, index: usize) -> BytesPerSec {
    let group = &scenario.cluster.groups[index];
    let slowness = calibration(scenario, index, None).unwrap_or(1.0);
    let share = memory_efficiency(group, scenario.strategy.precision);
    group.device.memory_rate * (share * group.speed / slowness)
}

/// The given or fitted share of the peak rate.
fn share(group: &WorkerGroup, precision: Precision) -> Option<f64> {
    let shares = group.device.shares(precision);
    group.efficiency.or(shares.map(|shares| shares.compute)).or(group.device.efficiency)
}

/// Share of the memory rate that a worker of the group reaches.
pub fn memory_efficiency(group: &WorkerGroup, precision: Precision) -> f64 {
    let shares = group.device.shares(precision);
    let given = shares.map(|shares| shares.memory).or(group.device.memory_efficiency);
    given.unwrap_or(ASSUMED_MEMORY_EFFICIENCY)
}

/// Operations and bytes of memory per second that a worker of the group reaches: given or fitted shares of the peak
/// rates; for a CPU the achieved rate of one core times a power of their number; else fixed shares.
fn reached(scenario: &Scenario, group: &WorkerGroup, precision: Precision) -> [f64; 2] {
    let (device, priors) = (&group.device, &scenario.priors.one_gpu);
    let peak = device.peak(precision).unwrap_or_else(|| device.fp32_peak()).get();
    let memory = device.memory_rate.get();
    let given = share(group, precision);
    if scenario.as_published {
        // Papers count operations, not the work on weights.
        return [peak * given.unwrap_or(1.0), f64::INFINITY];
    }
    if device.kind == DeviceKind::Cpu && given.is_none() {
        let fused = device.flops_per_cycle >= FUSED_WIDTH;
        let cores = f64::from(device.units.max(1));
        let used = cores.powf(if fused { priors.cores } else { priors.cores_avx }) / cores;
        return [peak * priors.cpu * used, memory * priors.cpu_memory * used];
    }
    [peak * given.unwrap_or(ASSUMED_EFFICIENCY), memory * memory_efficiency(group, precision)]
}

/// Time of an operation on every sample, and of a weight once a step.
fn rates(scenario: &Scenario, group: &WorkerGroup, at: Point) -> [Seconds; 2] {
    let [rate, memory] = reached(scenario, group, at.precision);
    [Seconds::new(f64::from(at.batch) / rate), Seconds::new(BYTES_PER_WEIGHT / memory)]
}

/// The model and its work, if priors from published runs give the times of its layers on the device of a group.
fn prior<'a>(scenario: &'a Scenario, group: &WorkerGroup) -> Option<(&'a Model, &'a StepWork)> {
    let assumed = !scenario.as_published && share(group, scenario.strategy.precision).is_none();
    let model = scenario.workload.graph.as_deref()?;
    let work = scenario.workload.step.as_ref()?;
    (assumed && group.device.kind == DeviceKind::Gpu).then_some((model, work))
}

/// How many times longer than assumed the measured step of a worker takes; none without a measurement. The assumption
/// comes from priors for the work of `prior`, or from fixed shares of the rates.
fn calibration(scenario: &Scenario, index: usize, prior: Option<&StepWork>) -> Option<f64> {
    let group = &scenario.cluster.groups[index];
    let at = Point {
        batch: group.measured_batch.unwrap_or_else(|| scenario.batch(index)),
        precision: group.measured_precision.unwrap_or(scenario.strategy.precision),
    };
    let samples = f64::from(at.batch);
    let measured = group.step_time.or(group.throughput.map(|throughput| throughput.time_for(samples)))?;
    let assumed = match prior {
        Some(work) => {
            let settings = Settings::from_strategy(&scenario.strategy, at.precision);
            device::step(work, &group.device, settings, at.batch, &scenario.priors.one_gpu)
        }
        None => {
            let [per_flop, per_weight] = rates(scenario, group, at);
            let speed = Speed::Rates { per_flop, per_weight, samples };
            let layers = scenario.workload.layers.iter();
            layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum()
        }
    };
    (assumed > Seconds::ZERO).then(|| measured / assumed)
}

fn fitted_times<'a>(
    scenario: &'a Scenario,
    index: usize,
    fit: &StepModel,
) -> Option<(&'a Model, StepLayers)> {
    let model = scenario.workload.graph.as_deref()?;
    let precision = fit.measured(scenario.strategy.precision)?;
    Some((model, fit.layers(model, precision, scenario.batch(index))?))
}

/// Times of the layers with parameters, `slowness` times as long. The times of layers without parameters are added to
/// the next layer with parameters, as in a [`Workload`](crate::workload::Workload). The update is added to the backward
/// pass in proportion to the parameters that it changes in each layer: `own` samples were counted, `all` touch rows.
fn with_parameters(model: &Model, times: StepLayers, slowness: f64, [own, all]: [f64; 2]) -> Vec<LayerTimes> {
    let StepLayers { layers: times, update } = times;
    let mut layers: Vec<LayerTimes> = Vec::new();
    let mut rest = LayerTimes::default();
    let counted = model.updated(own);
    for (layer, own) in model.layers().iter().zip(times) {
        rest.forward += own.forward;
        rest.backward += own.backward;
        let parameters = layer.cost.weights + layer.cost.biases;
        if parameters > 0 {
            rest.backward += update * (layer.updated(all) / counted);
            layers.push(std::mem::take(&mut rest));
        }
    }
    if let Some(last) = layers.last_mut() {
        last.forward += rest.forward;
        last.backward += rest.backward;
    }
    for times in &mut layers {
        times.forward = times.forward * slowness;
        times.backward = times.backward * slowness;
    }
    layers
}

/// Time that copying a batch to the device adds to the layers; nothing where their times come from whole steps, whether
/// published or measured, because those include it.
pub fn host_to_device(scenario: &Scenario, index: usize) -> Seconds {
    let group = &scenario.cluster.groups[index];
    let of_whole_steps = match SpeedSource::new(scenario, group) {
        SpeedSource::FittedSteps(_) | SpeedSource::Share(_) => false,
        SpeedSource::Measured => true,
        SpeedSource::Assumed => prior(scenario, group).is_some(),
    };
    if of_whole_steps || scenario.as_published { Seconds::ZERO } else { copy_of_batch(scenario, index) }
}

/// Time to copy a batch to the device, if it has its own link.
pub fn copy_of_batch(scenario: &Scenario, index: usize) -> Seconds {
    let batch = scenario.workload.sample * f64::from(scenario.batch(index));
    scenario.cluster.groups[index].device.host_link.map_or(Seconds::ZERO, |link| batch / link)
}

/// Time that a worker of the group at `index`, which computes for `computing` in a step, waits for its batch: the
/// input pipeline of its machine prepares the batches of all its workers while they compute.
pub fn input_wait(scenario: &Scenario, index: usize, computing: Seconds) -> Seconds {
    let Some(rate) = scenario.input.rate else { return Seconds::ZERO };
    let on_machine = u64::from(scenario.cluster.workers_per_node()).min(scenario.cluster.workers());
    let batches = f64::from(scenario.batch(index)) * on_machine as f64;
    (rate.time_for(batches) - computing).max(Seconds::ZERO)
}

/// Whether the speed of any worker comes from a fit.
pub fn is_fitted(scenario: &Scenario) -> bool {
    scenario.cluster.groups.iter().any(|group| {
        let by_steps = || matches!(SpeedSource::new(scenario, group), SpeedSource::FittedSteps(_));
        group.device.fitted.is_some() || by_steps()
    })
}

/// Whether the times of a transformer's parts on the workers of a group are assumed from the data sheet and published
/// runs, as on GPUs without a measurement.
pub fn is_by_parts(scenario: &Scenario, group: &WorkerGroup) -> bool {
    let is_assumed = || SpeedSource::new(scenario, group) == SpeedSource::Assumed;
    group.device.kind == DeviceKind::Gpu && is_assumed()
}

/// Warnings about speeds that were assumed rather than given, and about extrapolated fits.
pub fn assumptions(scenario: &Scenario) -> Vec<Warning> {
    let mut assumed: [Vec<&str>; 2] = Default::default();
    let mut stretched: Vec<Warning> = Vec::new();
    for (index, group) in scenario.cluster.groups.iter().enumerate() {
        let has_plan = scenario.strategy.plan.is_some();
        match SpeedSource::new(scenario, group) {
            SpeedSource::FittedSteps(fit) => stretched.extend(outside_batches(scenario, index, fit)),
            // A measured machine gives the achieved rates of a split transformer's parts.
            SpeedSource::Assumed if !(has_plan && group.device.measured().is_some()) => {
                let is_gpu = group.device.kind == DeviceKind::Gpu;
                let by_layer = if has_plan { is_gpu } else { prior(scenario, group).is_some() };
                let by_runs = by_layer || (!is_gpu && !has_plan);
                let names = &mut assumed[usize::from(!by_runs)];
                if !names.contains(&group.device.name.as_str()) {
                    names.push(&group.device.name);
                }
            }
            SpeedSource::Assumed | SpeedSource::Measured | SpeedSource::Share(_) => {}
        }
    }
    stretched.dedup();
    let sources =
        ["its data sheet and published runs".to_owned(), format!("{ASSUMED_EFFICIENCY} of its peak rate")];
    let assumed = assumed.iter().zip(sources).filter(|(names, _)| !names.is_empty());
    let assumed = assumed.map(|(names, source)| Warning {
        code: ASSUMED,
        message: format!(
            "the speed of the {} is assumed from {source}; measure one worker and set `throughput` in \
             [[cluster.workers]]",
            names.join(", the ")
        ),
    });
    assumed.chain(stretched).chain(scenario.sparse_warnings()).collect()
}

/// Warning if a batch lies outside the range in the fit of a device's steps.
fn outside_batches(scenario: &Scenario, index: usize, fitted: &StepModel) -> Option<Warning> {
    let group = &scenario.cluster.groups[index];
    let precision = fitted.measured(scenario.strategy.precision)?;
    let [least, most] = fitted.precision.get(&precision)?.batches;
    let batch = scenario.batch(index);
    (!(least..=most).contains(&batch)).then(|| Warning {
        code: EXTRAPOLATED,
        message: format!(
            "steps of the {} were measured with batches of {least} to {most}: those of {batch} are extrapolated",
            group.device.name
        ),
    })
}
