//! The paper's model as a method.

use super::csf;
use super::run::plan;
use super::{Buffer, Flush, Mean, Schedule};
use crate::beyond;
use crate::collectives::{curve, scenario_cost};
use crate::contention::Contention;
use stepcast_core::compute;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::{Method, MethodAbout, refuse_if, without_plan};
use stepcast_core::pass::{Pass, Recorded};
use stepcast_core::prediction::{Bottleneck, GroupReport, Part, PartKind, Prediction, Warning};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::Speed;
use stepcast_core::strategy::{Architecture, Fusion, Strategy, Synchronisation};

/// Liu 2022: bulk-synchronous all-reduce that overlaps the backward pass.
///
/// Extensions beyond the paper: computing times come from a profile, or from [`Speed`], which adds the work per
/// weight to the operations; any fusion rule and all-reduce algorithm can be used; all-reduces run at the rate of the
/// slowest port; every algorithm step costs the latency and start-up of the network; copies on the hosts do not
/// overlap the transfer on the wire; workers may differ, in which case every all-reduce waits for the slowest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Liu2022;

impl Method for Liu2022 {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "liu2022",
            summary: "bulk-synchronous all-reduce, gradients fused and sent while computing",
            source: "Liu et al. 2022, doi 10.1145/3485447.3511981",
        }
    }

    fn beyond_paper(&self, scenario: &Scenario) -> Vec<&'static str> {
        let beyond = [beyond::speed, beyond::reached, beyond::losses];
        beyond.iter().filter_map(|one| one(scenario)).collect()
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        let who = "Liu 2022";
        let Strategy { architecture, synchronisation, exchange, .. } = &scenario.strategy;
        without_plan(who, scenario)?;
        refuse_if(
            *architecture != Architecture::AllReduce,
            who,
            "strategy.architecture",
            "models all-reduce only",
            || [Remedy::set("strategy.architecture", "all-reduce"), Remedy::method("layerwise")],
        )?;
        let reason = match synchronisation {
            Synchronisation::LocalSgd(_) => "does not model local SGD",
            _ => "does not model asynchronous training",
        };
        refuse_if(*synchronisation != Synchronisation::Bsp, who, "strategy.synchronisation", reason, || {
            Remedy::set("strategy.synchronisation", "bsp")
        })?;
        let reason = "has one all-reduce at a time";
        refuse_if(exchange.channels > 1, who, "strategy.all-reduce.channels", reason, || {
            [Remedy::set("strategy.all-reduce.channels", "1"), Remedy::method("simulate")]
        })?;
        let reason = "does not model that communication slows computing down";
        refuse_if(exchange.interference > 0.0, who, "strategy.all-reduce.interference", reason, || {
            [Remedy::set("strategy.all-reduce.interference", "0"), Remedy::method("simulate")]
        })?;
        let reason = "does not model copies of gradients";
        refuse_if(exchange.copy_rate.is_some(), who, "strategy.all-reduce.copy-rate", reason, || {
            [Remedy::advice("remove it"), Remedy::method("simulate")]
        })
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.applies(scenario)?;
        let passes =
            passes(scenario).map_err(|fault| Fault::in_key("model.profile", fault.reason, fault.remedy))?;
        let Some(pass) = Pass::slowest(&passes) else {
            return Err(Fault::in_key(
                "cluster.workers",
                "Liu 2022 needs workers, and there are none",
                "add a group of workers",
            ));
        };
        let update = curve(scenario);
        let rule = schedule(scenario, &scenario.strategy.exchange.fusion, &update);
        let contention = Contention::from_scenario(scenario);
        let plan = plan(&contention.slowed(&pass), &update, &rule);
        let Mean { outcome, communication } = contention.mean(&pass, &update, &rule);

        let end = |(delay, pass): &(Seconds, Pass)| *delay + pass.computing();
        let copying = passes
            .iter()
            .max_by(|a, b| end(a).get().total_cmp(&end(b).get()))
            .map_or(Seconds::ZERO, |(delay, _)| *delay);
        let slowdown = outcome.computing + outcome.after - pass.computing() - pass.update;
        let breakdown = vec![
            Part { kind: PartKind::Compute, time: pass.computing() - copying + pass.update },
            Part { kind: PartKind::HostToDevice, time: copying },
            Part { kind: PartKind::Slowdown, time: slowdown },
            Part { kind: PartKind::ExposedCommunication, time: outcome.exposed() },
        ];
        let bottleneck = if pass.computing() >= outcome.exposed() + slowdown {
            Bottleneck::Compute
        } else {
            network_bottleneck(scenario, plan.flushes.len(), plan.sent())
        };
        let report = |(index, (delay, pass)): (usize, &(Seconds, Pass))| GroupReport {
            group: index,
            count: scenario.cluster.groups[index].count,
            batch: scenario.samples(index),
            compute: *delay + pass.computing() + pass.update,
            ready: *delay + pass.forward + pass.layers.first().map_or(Seconds::ZERO, |layer| layer.backward),
            slack: None,
        };
        let groups = passes.iter().enumerate().map(report).collect();
        Ok(Prediction {
            warnings: assumptions(scenario, &update, &plan.flushes),
            csf: Some(csf(&pass, &update)),
            communication: Some(communication),
            ..Prediction::new(self.name(), outcome.iteration(), groups, breakdown, bottleneck)
        })
    }
}

/// Warnings about assumed device efficiencies and about message sizes outside the measured range.
pub fn assumptions(scenario: &Scenario, update: &Curve, flushes: &[Flush]) -> Vec<Warning> {
    let mut warnings = match scenario.profile() {
        Some(_) => Vec::new(),
        None => compute::assumptions(scenario),
    };
    let beyond = |size: Bytes, [least, most]: [Bytes; 2]| size < least || size > most;
    if let Some(measured) = update.measured() {
        let sizes = flushes.iter().map(|flush| flush.size);
        if let Some(size) = sizes.filter(|size| beyond(*size, measured)).reduce(Bytes::max) {
            let [least, most] = measured.map(Bytes::human);
            let message = format!(
                "all-reduces of {least} to {most} were measured: the time of messages such as one of {} is extrapolated",
                size.human()
            );
            warnings.push(Warning { code: compute::EXTRAPOLATED, message });
        }
    }
    warnings
}

/// Start delay and mean computing pass of a worker of each group.
pub fn passes(scenario: &Scenario) -> Result<Vec<(Seconds, Pass)>, Fault> {
    let recorded = scenario.profile().map(Recorded::new).transpose()?;
    let pass = |index: usize| {
        let (copying, pass) = match &recorded {
            Some(recorded) => {
                let share = scenario.strategy.exchange.gradients.share();
                (Seconds::ZERO, recorded.mean(scenario.slowness(index)).compressed(share))
            }
            None => {
                let speed = Speed::of_group(scenario, index);
                let pass = Pass::by_tensor(&scenario.workload, &speed, |tensor| scenario.summed(tensor));
                (compute::host_to_device(scenario, index), pass)
            }
        };
        let waiting = compute::input_wait(scenario, index, copying + pass.computing() + pass.update);
        let batches = scenario.strategy.accumulation;
        ((copying + waiting) * f64::from(batches), pass.accumulated(batches))
    };
    Ok((0..scenario.cluster.groups.len()).map(pass).collect())
}

pub fn schedule(scenario: &Scenario, fusion: &Fusion, update: &Curve) -> Schedule {
    match fusion {
        Fusion::None => Schedule::PerLayer,
        Fusion::All => Schedule::AtEnd,
        Fusion::Buffer { size, timeout, reading } => {
            Schedule::Fused(Buffer { size: *size, timeout: *timeout, reading: *reading })
        }
        Fusion::Pytorch { first, cap } => Schedule::Pytorch { first: *first, cap: *cap },
        Fusion::Horovod { threshold, cycle } => {
            Schedule::Horovod { threshold: *threshold, cycle: *cycle, negotiation: negotiation(scenario) }
        }
        Fusion::Adaptive => Schedule::Adaptive { timeout: None },
        Fusion::MgWfbp => Schedule::MgWfbp { overhead: update.startup() },
        Fusion::Buckets(counts) => Schedule::Buckets(counts.clone()),
    }
}

/// Time to agree on the gradients that are ready on all workers: a few bytes to one worker and back, along a tree.
fn negotiation(scenario: &Scenario) -> Seconds {
    let network = &scenario.cluster.network;
    let workers = scenario.cluster.workers().max(1);
    (network.latency + network.startup) * (2.0 * (workers as f64).log2().ceil())
}

/// The resource that takes most of the time of `messages` messages with a total of `size` bytes.
fn network_bottleneck(scenario: &Scenario, messages: usize, size: Bytes) -> Bottleneck {
    let whole = scenario_cost(scenario, size);
    let host = match scenario.cluster.network.host_rate {
        Some(rate) => {
            let wire =
                scenario.cluster.network.bandwidth.to_bytes_per_sec() * scenario.cluster.network.efficiency;
            whole.transfer * (wire.get() / (wire.get() + rate.get()))
        }
        None => Seconds::ZERO,
    };
    let fixed = curve(scenario).startup() * messages as f64;
    if fixed >= whole.transfer {
        Bottleneck::FixedCost
    } else if host > whole.transfer - host {
        Bottleneck::HostCopy
    } else {
        Bottleneck::WorkerLink
    }
}
