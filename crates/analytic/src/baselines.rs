//! Coarse models of asynchronous training, available as methods for comparison: [`Cynthia2019`] and [`Lin2018`].
//!
//! Both describe a step as four sequential phases of an average worker ([`Phases`]) that uses one parameter server.
//! They are fast but rough, because they add up phases that overlap in reality.
//!
//! Cynthia (as quoted by Li et al. 2020) takes the throughput from the network utilisation of one worker:
//!
//! ```text
//! W·K / (T_p · max(1, W·U₁) + 2·T_C)
//! ```
//!
//! T_p is the time to process a batch of K samples, T_C the time to transmit the model once, and U₁ the share of time
//! during which one worker uses the network. Saturation multiplies T_p rather than T_C, so the limit is K / (T_p·U₁)
//! rather than K / (2·T_C). This is dimensionally odd but kept as published (errata 3.5).
//!
//! In Lin et al. 2018 (as described by Li et al. 2020) each worker is a customer of a closed queueing network that
//! cycles through downlink, computing, uplink and update. Downlink and uplink are stations that serve all customers at
//! once (processor sharing); computing and updating do not delay other customers. Exact mean-value analysis gives the
//! throughput. Whether Lin et al. use exactly this model is not known (errata 3.5).

use crate::servers::{self, Service};
use crate::{beyond, step};
use stepcast_core::compute;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::machine::{Cluster, ServerSoftware};
use stepcast_core::method::{Method, MethodAbout, refuse_if};
use stepcast_core::prediction::{Bottleneck, GroupReport, Part, PartKind, Prediction};
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::{BitsPerSec, Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::Speed;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// Cynthia (Zheng et al. 2019): saturation from the network utilisation of one worker.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cynthia2019 {
    /// Use the variant of Li 2020, section 4.4, which halves the time to transmit the model.
    pub half: bool,
}

/// Lin et al. 2018: a closed queueing network, solved by mean-value analysis.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lin2018;

impl Method for Cynthia2019 {
    fn about(&self) -> MethodAbout {
        let source = "Zheng et al. 2019 (Cynthia), as quoted by Li et al. 2020, section 4.4";
        match self.half {
            true => MethodAbout {
                name: "cynthia2019-half",
                summary: "as cynthia2019, with half of the time to transmit the model",
                source,
            },
            false => MethodAbout {
                name: "cynthia2019",
                summary: "asynchronous training with one parameter server, from one worker's use of the network",
                source,
            },
        }
    }

    fn is_rough(&self) -> bool {
        true
    }

    fn beyond_paper(&self, scenario: &Scenario) -> Vec<&'static str> {
        beyond_phases(scenario)
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        only_asynchronous("Cynthia", scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.applies(scenario)?;
        let rate = |phases: &Phases, workers| cynthia2019_rate(phases, workers, self.half);
        Ok(prediction(self.name(), "Cynthia", scenario, rate))
    }
}

impl Method for Lin2018 {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "lin2018",
            summary: "asynchronous training with one parameter server, as a closed queueing network",
            source: "Lin et al. 2018, as described by Li et al. 2020, section 4.4",
        }
    }

    fn is_rough(&self) -> bool {
        true
    }

    fn beyond_paper(&self, scenario: &Scenario) -> Vec<&'static str> {
        beyond_phases(scenario)
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        only_asynchronous("Lin 2018", scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.applies(scenario)?;
        Ok(prediction(self.name(), "Lin 2018", scenario, lin2018_rate))
    }
}

fn beyond_phases(scenario: &Scenario) -> Vec<&'static str> {
    [beyond::speed, beyond::framing, beyond::software].iter().filter_map(|one| one(scenario)).collect()
}

/// Rejects scenarios other than asynchronous training with one parameter server.
fn only_asynchronous(who: &str, scenario: &Scenario) -> Result<(), Fault> {
    let other = scenario.strategy.architecture != Architecture::ParameterServer;
    refuse_if(other, who, "strategy.architecture", "models only parameter servers", || {
        Remedy::set("strategy.architecture", "parameter-server")
    })?;
    let other = scenario.strategy.synchronisation != Synchronisation::Async;
    refuse_if(other, who, "strategy.synchronisation", "models only asynchronous training", || {
        Remedy::set("strategy.synchronisation", "async")
    })?;
    let several = scenario.cluster.servers.count > 1;
    refuse_if(several, who, "cluster.servers.count", "models only one parameter server", || {
        [Remedy::method("simulate"), Remedy::set("cluster.servers.count", "1")]
    })?;
    let idle = scenario.profile().is_some_and(|profile| !computes(profile));
    refuse_if(
        idle,
        who,
        "model.profile",
        "compares with computing, and the profile has none",
        || "use a profile in which the worker computes",
    )
}

fn computes(profile: &Profile) -> bool {
    let worker = |op: &usize| profile.operations[*op].resource == Resource::Worker;
    let takes_time = |op: usize| profile.steps.iter().any(|step| step.duration(op) > Seconds::ZERO);
    (0..profile.operations.len()).filter(worker).any(takes_time)
}

fn group_phases(scenario: &Scenario, index: usize) -> Phases {
    let cluster = &scenario.cluster;
    let groups = vec![cluster.groups[index].clone()];
    let alone = scenario.on(Cluster { groups, ..cluster.clone() });
    Phases::from_scenario(&alone)
}

/// The prediction, computed from the total rate of steps of all workers.
fn prediction(
    name: &'static str,
    who: &str,
    scenario: &Scenario,
    rate: impl Fn(&Phases, u32) -> f64,
) -> Prediction {
    let cluster = &scenario.cluster;
    let workers = cluster.workers();
    let mean = Phases::from_scenario(scenario);
    let report = |(index, group): (usize, &stepcast_core::machine::WorkerGroup)| {
        let compute = group_phases(scenario, index).compute;
        GroupReport {
            group: index,
            count: group.count,
            batch: scenario.samples(index),
            compute,
            // Phases do not overlap: no gradient is ready before the whole backward pass ends, so any delay lengthens
            // the step.
            ready: compute,
            slack: Some(0.0),
        }
    };
    let groups: Vec<GroupReport> = cluster.groups.iter().enumerate().map(report).collect();
    // Scenarios have at most a million workers.
    let steps_per_second = rate(&mean, u32::try_from(workers).unwrap_or(u32::MAX));
    let iteration = Seconds::new(workers as f64 / steps_per_second);
    let compute = mean.compute.min(iteration);
    let mut warnings = if scenario.profile().is_some() { Vec::new() } else { compute::assumptions(scenario) };
    warnings.extend(servers::assumption(scenario));
    let named = scenario.cluster.servers.software.filter(|software| *software != ServerSoftware::Byteps);
    warnings.extend(step::unused(who, scenario, &[named.unwrap_or(ServerSoftware::Grpc)]));
    let breakdown = vec![
        Part { kind: PartKind::Compute, time: compute },
        Part { kind: PartKind::Waiting, time: iteration - compute },
    ];
    let bottleneck = bottleneck(scenario, &mean, iteration);
    Prediction { warnings, ..Prediction::new(name, iteration, groups, breakdown, bottleneck) }
}

/// Compute if it takes at least half of the step; otherwise the largest of the other phases.
fn bottleneck(scenario: &Scenario, phases: &Phases, iteration: Seconds) -> Bottleneck {
    let network = &scenario.cluster.network;
    let transfers = phases.down + phases.up;
    let fixed = (network.latency + network.startup) * 2.0;
    if phases.compute * 2.0 >= iteration {
        Bottleneck::Compute
    } else if phases.update.max(phases.software) > transfers {
        Bottleneck::Server
    } else if fixed * 2.0 >= transfers {
        Bottleneck::FixedCost
    } else {
        Bottleneck::ServerLink
    }
}

/// Durations of the phases of one step of a single worker without contention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phases {
    /// Pulling the parameters.
    pub down: Seconds,
    pub compute: Seconds,
    /// Pushing the gradients.
    pub up: Seconds,
    /// Applying the gradients at the server.
    pub update: Seconds,
    /// Time of the server's software, which serves one worker at a time.
    pub software: Seconds,
}

impl Phases {
    /// From the mean step of a profile, with transfers at `rate`.
    pub fn from_profile(profile: &Profile, rate: BitsPerSec) -> Self {
        let steps = profile.steps.len() as f64;
        let busy = |resource: Resource| {
            let operations = profile.operations.iter().enumerate().filter(|(_, op)| op.resource == resource);
            let total: Seconds = operations
                .flat_map(|(index, _)| profile.steps.iter().map(move |step| step.duration(index)))
                .sum();
            total / steps
        };
        Self {
            down: profile.bytes(Resource::Downlink).to_bits() / rate,
            compute: busy(Resource::Worker),
            up: profile.bytes(Resource::Uplink).to_bits() / rate,
            update: busy(Resource::Server),
            software: Seconds::ZERO,
        }
    }

    pub fn from_scenario(scenario: &Scenario) -> Self {
        let cluster = &scenario.cluster;
        let workers = cluster.workers() as f64;
        let copies = f64::from(cluster.servers.copies);
        let served = |pulled: Bytes, pushed: Bytes, tensors: f64| {
            let messages = tensors * (1.0 + copies);
            let time = |service: Service| service.time(pulled * copies + pushed, messages, workers);
            Service::from_scenario(scenario).map_or(Seconds::ZERO, time)
        };
        let mut mean = Self {
            down: Seconds::ZERO,
            compute: Seconds::ZERO,
            up: Seconds::ZERO,
            update: Seconds::ZERO,
            software: Seconds::ZERO,
        };
        for (index, group) in cluster.groups.iter().enumerate() {
            let share = f64::from(group.count) / workers;
            let transfer = |bytes: Bytes| {
                step::payload(cluster, group, bytes).total()
                    + cluster.network.latency
                    + cluster.network.startup
            };
            let phases = match scenario.profile() {
                Some(profile) => {
                    let phases = Self::from_profile(profile, cluster.network.bandwidth);
                    let (down, up) = (profile.bytes(Resource::Downlink), profile.bytes(Resource::Uplink));
                    let pushes = profile.operations.iter().filter(|op| op.resource == Resource::Uplink);
                    Self {
                        down: transfer(down * copies),
                        compute: phases.compute * scenario.slowness(index),
                        up: transfer(up),
                        update: phases.update,
                        software: served(down, up, pushes.count() as f64),
                    }
                }
                None => {
                    let speed = Speed::of_group(scenario, index);
                    let layers = scenario.workload.layers.iter();
                    let layers: Seconds =
                        layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
                    let compute = compute::host_to_device(scenario, index) + layers;
                    let bytes = scenario.sent_in_all(index);
                    let tensors = scenario.workload.layers.iter().map(|layer| layer.tensors.len());
                    Self {
                        down: transfer(bytes * copies),
                        compute,
                        up: transfer(bytes),
                        update: Seconds::ZERO,
                        software: served(bytes, bytes, tensors.sum::<usize>() as f64),
                    }
                }
            };
            mean.down += phases.down * share;
            mean.compute += phases.compute * share;
            mean.up += phases.up * share;
            mean.update += phases.update * share;
            mean.software += phases.software * share;
        }
        mean
    }
}

/// Cynthia: steps per second of all workers together. `utilisation` is U₁; if not measured, it is 2·T_C / (T_p + 2·T_C).
pub fn cynthia2019(process: Seconds, transmit: Seconds, utilisation: Option<f64>, workers: u32) -> f64 {
    let both_ways = transmit * 2.0;
    let utilisation = utilisation.unwrap_or_else(|| both_ways / (process + both_ways));
    let workers = f64::from(workers);
    workers / (process * (workers * utilisation).max(1.0) + both_ways).get()
}

/// Cynthia: steps per second from the phases of one step; `half` selects the variant of Li 2020 section 4.4, which halves T_C,
/// also in U₁. Beyond the description, the server's software takes the place of the wire where it takes longer.
pub fn cynthia2019_rate(phases: &Phases, workers: u32, half: bool) -> f64 {
    let transmit = (phases.down + phases.up).max(phases.software) * if half { 0.25 } else { 0.5 };
    cynthia2019(phases.compute, transmit, None, workers)
}

/// Cycles per second of `workers` customers, given the service demands of the shared `stations` and the `delay` spent
/// outside them.
pub fn mean_value_analysis(stations: &[Seconds], delay: Seconds, workers: u32) -> f64 {
    let mut queues = vec![0.0; stations.len()];
    let mut rate = 0.0;
    for customers in 1..=workers {
        let residence = |(demand, queue): (&Seconds, &f64)| demand.get() * (1.0 + queue);
        let cycle: f64 = delay.get() + stations.iter().zip(&queues).map(residence).sum::<f64>();
        rate = f64::from(customers) / cycle;
        for (demand, queue) in stations.iter().zip(&mut queues) {
            *queue = rate * demand.get() * (1.0 + *queue);
        }
    }
    rate
}

/// Lin 2018: steps per second of all workers together. Beyond the description, the server's software is a station too, where it
/// takes time.
pub fn lin2018_rate(phases: &Phases, workers: u32) -> f64 {
    let stations = [phases.down, phases.up, phases.software];
    mean_value_analysis(&stations, phases.compute + phases.update, workers)
}
