//! Coarse models of asynchronous training, available as methods for comparison: [`Cynthia2019`] and [`Lin2018`].
//!
//! Both describe a step as four sequential phases of an average worker ([`Phases`]) that uses one parameter server.
//! They are fast but rough, because they add up phases that overlap in reality.

use crate::phases::Phases;
use crate::{beyond, cynthia2019, lin2018, servers, step};
use stepcast_core::compute;
use stepcast_core::fault::{Fault, Remedies, Remedy};
use stepcast_core::machine::{Cluster, ServerSoftware};
use stepcast_core::method::{Method, MethodAbout};
use stepcast_core::prediction::{Bottleneck, GroupReport, Part, PartKind, Prediction};
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
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
        let rate = |phases: &Phases, workers| cynthia2019::from_phases(phases, workers, self.half);
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
        Ok(prediction(self.name(), "Lin 2018", scenario, lin2018::steps_per_second))
    }
}

fn beyond_phases(scenario: &Scenario) -> Vec<&'static str> {
    [beyond::speed, beyond::framing, beyond::software].iter().filter_map(|one| one(scenario)).collect()
}

/// Rejects scenarios other than asynchronous training with one parameter server.
fn only_asynchronous(who: &str, scenario: &Scenario) -> Result<(), Fault> {
    let refuse = |key, reason: String, remedy: Remedies| Err(Fault::in_key(key, reason, remedy));
    if scenario.strategy.architecture != Architecture::ParameterServer {
        let reason = format!("{who} models only parameter servers");
        return refuse(
            "strategy.architecture",
            reason,
            Remedy::set("strategy.architecture", "parameter-server").into(),
        );
    }
    if scenario.strategy.synchronisation != Synchronisation::Async {
        let reason = format!("{who} models only asynchronous training");
        return refuse(
            "strategy.synchronisation",
            reason,
            Remedy::set("strategy.synchronisation", "async").into(),
        );
    }
    if scenario.cluster.servers.count > 1 {
        let reason = format!("{who} models only one parameter server");
        return refuse(
            "cluster.servers.count",
            reason,
            [Remedy::method("simulate"), Remedy::set("cluster.servers.count", "1")].into(),
        );
    }
    if scenario.profile().is_some_and(|profile| !computes(profile)) {
        let reason = format!("{who} compares with computing, and the profile has none");
        return refuse("model.profile", reason, "use a profile in which the worker computes".into());
    }
    Ok(())
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
