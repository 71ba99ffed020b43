//! Computing times of a workload on a device: how long the layers of one step take.
//!
//! A step takes three times the forward operations at a share of the peak rate, plus work per weight at a share of
//! the memory rate. These shares are measured, given in the scenario, or assumed with a warning. For a device with
//! fitted step times, the fit gives the time of each layer at the given batch.

use crate::fitted::steps::{LayerTimes, StepLayers};
use crate::machine::WorkerGroup;
use crate::prediction::Warning;
use crate::quantity::{Bytes, FlopsPerSec, Seconds};
use crate::scenario::Scenario;
use crate::speed::{BYTES_PER_WEIGHT, Speed};
use std::collections::BTreeMap;

/// Share of the peak rate that is assumed without a measurement.
pub const ASSUMED_EFFICIENCY: f64 = 0.5;

/// Code of the warning that an efficiency is assumed.
pub const ASSUMED: &str = "assumed-efficiency";

/// Code of the warning that a fit is extrapolated.
pub const EXTRAPOLATED: &str = "extrapolated";

/// Factor by which an assumed share may be off in either direction: from 0.2 to 1.25 of the peak rate. Measured
/// shares range from 0.29 (ResNet-50 on half a K80, TensorFlow's benchmarks of 2017) to 1.59 (Zeng's networks on an
/// RTX 4000, with fast convolutions counted in full).
pub const ASSUMED_EFFICIENCY_FACTOR: f64 = 2.5;

/// Share of the memory rate that is assumed without a measurement.
pub const ASSUMED_MEMORY_EFFICIENCY: f64 = 0.5;

impl Speed {
    /// The speed of a worker of the group at `index`, for its whole batch.
    pub fn of(scenario: &Scenario, index: usize) -> Self {
        if let Some(layers) = fitted(scenario, index) {
            return Self::Fitted(layers);
        }
        let group = &scenario.cluster.groups[index];
        let rate = rate(scenario, index);
        let memory = memory_efficiency(scenario, group);
        Self::Rates {
            per_flop: Seconds::new(f64::from(scenario.batch(index))) / rate.get(),
            per_weight: Bytes::new(BYTES_PER_WEIGHT) / (group.device.memory_rate * (memory * group.speed)),
        }
    }
}

/// The rate at which a worker of the group at `index` computes: a share of the peak rate of its device.
pub fn rate(scenario: &Scenario, index: usize) -> FlopsPerSec {
    let group = &scenario.cluster.groups[index];
    let peak = group.device.peak(scenario.strategy.precision).unwrap_or_else(|| group.device.fp32_peak());
    peak * (efficiency(scenario, group).unwrap_or(ASSUMED_EFFICIENCY) * group.speed)
}

/// Fitted times of the layers with parameters. The times of layers without parameters are added to the next layer
/// with parameters, as in a [`Workload`](crate::workload::Workload). The update is added to the backward pass in
/// proportion to the parameters of each layer.
fn fitted(scenario: &Scenario, index: usize) -> Option<BTreeMap<String, LayerTimes>> {
    let group = &scenario.cluster.groups[index];
    let model = scenario.workload.graph.as_ref()?;
    let fitted = group.device.steps()?;
    let StepLayers { layers: times, update } =
        fitted.layers(model, scenario.strategy.precision, scenario.batch(index))?;
    let mut layers: Vec<(String, LayerTimes)> = Vec::new();
    let mut rest = LayerTimes::default();
    for (layer, own) in model.layers().iter().zip(times) {
        rest.forward += own.forward;
        rest.backward += own.backward;
        let parameters = layer.cost.weights + layer.cost.biases;
        if parameters > 0 {
            rest.backward += update * (parameters as f64 / model.parameters() as f64);
            layers.push((layer.name.clone(), std::mem::take(&mut rest)));
        }
    }
    if let Some((_, last)) = layers.last_mut() {
        last.forward += rest.forward;
        last.backward += rest.backward;
    }
    for (_, times) in &mut layers {
        times.forward = times.forward / group.speed;
        times.backward = times.backward / group.speed;
    }
    Some(layers.into_iter().collect())
}

/// Time to copy a batch to the device, if it has its own link.
pub fn host_to_device(scenario: &Scenario, index: usize) -> Seconds {
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

fn efficiency(scenario: &Scenario, group: &WorkerGroup) -> Option<f64> {
    let shares = group.device.shares(scenario.strategy.precision);
    group.efficiency.or(shares.map(|shares| shares.compute)).or(group.device.efficiency)
}

/// Share of the memory rate that a worker of the group reaches.
pub fn memory_efficiency(scenario: &Scenario, group: &WorkerGroup) -> f64 {
    let shares = group.device.shares(scenario.strategy.precision);
    let given = shares.map(|shares| shares.memory).or(group.device.memory_efficiency);
    given.unwrap_or(ASSUMED_MEMORY_EFFICIENCY)
}

/// Warnings about efficiencies that were assumed rather than given, and about extrapolated fits.
pub fn assumptions(scenario: &Scenario) -> Vec<Warning> {
    let mut assumed: Vec<&str> = Vec::new();
    let mut warnings = Vec::new();
    for (index, group) in scenario.cluster.groups.iter().enumerate() {
        let name = group.device.name.as_str();
        if group.device.fitted.is_none() && efficiency(scenario, group).is_none() && !assumed.contains(&name)
        {
            assumed.push(name);
        }
        warnings.extend(stretched(scenario, index));
    }
    warnings.dedup();
    if !assumed.is_empty() {
        let message = format!(
            "no efficiency is known for {}: {ASSUMED_EFFICIENCY} of the peak rate is assumed; measure one step and \
             set `efficiency`",
            assumed.join(", ")
        );
        warnings.insert(0, Warning { code: ASSUMED, message });
    }
    warnings
}

/// Warning if a batch lies outside the range in the fit of a device's steps.
fn stretched(scenario: &Scenario, index: usize) -> Option<Warning> {
    let group = &scenario.cluster.groups[index];
    let [least, most] = group.device.steps()?.precision.get(&scenario.strategy.precision)?.batches;
    let batch = scenario.batch(index);
    (!(least..=most).contains(&batch)).then(|| Warning {
        code: EXTRAPOLATED,
        message: format!(
            "steps of the {} were measured with batches of {least} to {most}: those of {batch} are extrapolated",
            group.device.name
        ),
    })
}
