//! Time of an epoch, memory of a batch, and warnings about scenarios that cannot run as predicted.

use crate::explore::plan::{TrainingRates, usual_plan};
use crate::simulate::is_sprint;
use stepcast_analytic::oyama2016::Structure;
use stepcast_core::prediction::{Prediction, Verdict, Warning};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{PlanSection, Synchronisation};

/// Largest batch that is tried.
const MOST: u32 = 1 << 30;

/// Parameters, gradients and momentum.
const STATES: f64 = 3.0;

/// Memory at the peak of a step with `batch` samples, by SPRINT's kernels where its threads train; of a profile, only
/// the parameters and their states are known.
pub(crate) fn needed(scenario: &Scenario, batch: u32) -> Bytes {
    let strategy = &scenario.strategy;
    let chain = scenario.workload.graph.as_deref().filter(|_| is_sprint(scenario));
    if let Some(Ok(structure)) = chain.map(Structure::from_model) {
        return structure.memory(batch);
    }
    match &scenario.workload.graph {
        Some(model) => model.peak_memory(batch, strategy.precision, strategy.optimiser),
        None => scenario.workload.bytes() * STATES,
    }
}

/// Least memory of a step with `batch` samples, with algorithms that need no workspace.
fn least(scenario: &Scenario, batch: u32) -> Bytes {
    let strategy = &scenario.strategy;
    match scenario.workload.graph.as_deref().filter(|_| !is_sprint(scenario)) {
        Some(model) => model.least_memory(batch, strategy.precision, strategy.optimiser),
        None => needed(scenario, batch),
    }
}

/// The share of its memory that the fullest device needs; a plan's need is known only from its prediction.
pub(crate) fn fullest(scenario: &Scenario) -> f64 {
    if scenario.strategy.plan.is_some() {
        return 0.0;
    }
    let groups = scenario.cluster.groups.iter().enumerate();
    let parts =
        groups.map(|(index, group)| least(scenario, scenario.batch(index)) / group.device.visible_memory());
    parts.fold(0.0, f64::max)
}

/// Most workers tried to find a number on which a transformer fits.
const MOST_WORKERS: u64 = 65_536;

/// Workers on which a usual plan of a transformer fits, by whole machines and twice as many each time; none if the
/// predicted plan fits.
pub(crate) fn fits_with(scenario: &Scenario, prediction: &Prediction) -> Option<u32> {
    let fits = prediction.transformer.as_ref()?.memory.verdict == Verdict::Fits;
    let node = u64::from(scenario.cluster.workers_per_node());
    let mut workers = scenario.cluster.workers().next_multiple_of(node);
    while !fits && workers <= MOST_WORKERS {
        let number = u32::try_from(workers).ok()?;
        let larger = scenario.on(scenario.cluster.resized(number));
        if usual_plan(&larger, &PlanSection::default()).is_ok_and(|plan| plan.fits) {
            return Some(number);
        }
        workers *= 2;
    }
    None
}

/// Whether every group's batch fits into its devices.
pub fn fits(scenario: &Scenario) -> bool {
    fullest(scenario) <= 1.0
}

/// The largest batch that fits into the smallest device, 0 if none does; `None` if activations are unknown.
pub(crate) fn largest_batch(scenario: &Scenario) -> Option<u32> {
    let memory = scenario.cluster.smallest_memory();
    if scenario.workload.activations <= Bytes::ZERO {
        return None;
    }
    let (mut fits, mut too_large) = (0, MOST);
    while too_large - fits > 1 {
        let middle = fits + (too_large - fits) / 2;
        *(if needed(scenario, middle) <= memory { &mut fits } else { &mut too_large }) = middle;
    }
    Some(fits)
}

/// Code of the warning that a batch may not fit into a device.
pub(crate) const MEMORY: &str = "memory";

/// One pass over the data, where a data set is given. Workers that wait for each other take a whole number of steps;
/// the last one may have fewer samples, but takes as long.
pub(crate) fn epoch(scenario: &Scenario, prediction: &Prediction) -> Option<Seconds> {
    let samples = scenario.epoch_samples()? as f64;
    let trained = match scenario.strategy.synchronisation {
        Synchronisation::Bsp | Synchronisation::LocalSgd(_) if prediction.samples > 0 => {
            let step = prediction.samples as f64;
            (samples / step).ceil() * step
        }
        _ => samples,
    };
    Some(prediction.throughput.time_for(trained))
}

/// All epochs of a scenario with a data set.
pub(crate) struct AllEpochs {
    pub(crate) time: Seconds,
    /// Share of the time spent in evaluations and in steps that are kept, if interruptions and checkpoints are counted.
    pub(crate) goodput: Option<f64>,
    pub(crate) cost: Option<f64>,
}

/// Time and cost of all epochs with evaluations; of a transformer with a plan, with interruptions, checkpoints and spare machines
/// too.
pub(crate) fn all_epochs(scenario: &Scenario, prediction: &Prediction) -> Option<AllEpochs> {
    let data = scenario.data?;
    let steps = epoch(scenario, prediction)? * data.epochs as f64;
    let evaluated = steps * scenario.with_evaluations(prediction.samples as f64);
    let plan = scenario.strategy.plan.as_ref().zip(scenario.transformer_of_plan().ok());
    let rates = plan
        .and_then(|(plan, shape)| TrainingRates::new(scenario, &shape, plan, None, prediction.samples).ok());
    let time = rates
        .as_ref()
        .map_or(evaluated, |rates| evaluated * rates.slowdown + Seconds::new(rates.compilation));
    let hourly = scenario.hourly_cost().map(|hourly| hourly / 3600.0);
    let each_second = rates.as_ref().map_or(hourly, |rates| rates.cost);
    Some(AllEpochs {
        time,
        goodput: rates.map(|rates| 1.0 / rates.slowdown),
        cost: each_second.map(|cost| cost * time.get()),
    })
}

/// Multiple of a device's memory beyond which an estimate certainly does not fit.
const FAR_TOO_LARGE: f64 = 2.0;

/// Whether what is estimated to be needed fits.
fn verdict(needed: Bytes, capacity: Bytes) -> Verdict {
    match needed / capacity {
        parts if parts <= 1.0 => Verdict::Fits,
        parts if parts < FAR_TOO_LARGE => Verdict::MayNotFit,
        _ => Verdict::DoesNotFit,
    }
}

/// Whether batches fit into devices: the verdict on the first group where they may not.
pub fn memory_verdict(scenario: &Scenario) -> Verdict {
    let groups = scenario.cluster.groups.iter().enumerate();
    let mut verdicts = groups.map(|(index, group)| {
        verdict(needed(scenario, scenario.batch(index)), group.device.visible_memory())
    });
    verdicts.find(|verdict| *verdict != Verdict::Fits).unwrap_or(Verdict::Fits)
}

/// Warnings about memory and data.
pub(crate) fn warnings(scenario: &Scenario, prediction: &Prediction) -> Vec<Warning> {
    let mut warnings = too_large(scenario);
    warnings.extend(more_than_all(scenario, prediction));
    warnings
}

/// Warns of devices that are too small for the model's state and activations.
fn too_large(scenario: &Scenario) -> Vec<Warning> {
    let mut warnings: Vec<Warning> = Vec::new();
    // The method for plans has memory among its figures.
    if scenario.profile().is_some() || scenario.strategy.plan.is_some() {
        return warnings;
    }
    for (index, group) in scenario.cluster.groups.iter().enumerate() {
        let batch = scenario.batch(index);
        let (device, capacity) = (&group.device.name, group.device.visible_memory());
        let needed = needed(scenario, batch);
        let message = match verdict(needed, capacity) {
            Verdict::Fits => continue,
            Verdict::MayNotFit => {
                let (needed, capacity) = (needed.human(), capacity.human());
                format!(
                    "a batch of {batch} may not fit: it needs about {needed}, and the {device} has {capacity}"
                )
            }
            Verdict::DoesNotFit => {
                let times = needed / capacity;
                format!(
                    "a batch of {batch} does not fit: it needs {times:.0} times the memory of the {device}"
                )
            }
        };
        let warning = Warning { code: MEMORY, message };
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// Warns of steps that have more samples than the data set.
pub(crate) fn more_than_all(scenario: &Scenario, prediction: &Prediction) -> Option<Warning> {
    let samples = scenario.epoch_samples()?;
    (prediction.samples > samples).then(|| Warning {
        code: "batch-above-data",
        message: format!(
            "a step of all workers has {} samples and the data set {samples}: an epoch is one step that is not full",
            prediction.samples
        ),
    })
}
