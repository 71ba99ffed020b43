//! The paper's model as a method.

use super::pass::Pass;
use super::schedule::{Schedule, plan};
use crate::collectives::{Curve, Fabric, RingUpdate, all_gather, reduce_scatter};
use stepcast_core::cluster::WorkerGroup;
use stepcast_core::compute::{self, Speed};
use stepcast_core::method::{Inapplicable, Method};
use stepcast_core::prediction::{Bottleneck, GroupReport, Part, Prediction};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Architecture, Synchronisation};

/// s: gradients travel as 32-bit numbers.
const ELEMENT: Bytes = Bytes::new(4.0);

/// Liu 2022: bulk-synchronous all-reduce around a ring that overlaps the backward pass.
///
/// Beyond the paper: computing times are those of [`Speed`], with the work on weights beside the operations; the ring
/// runs at the rate of the slowest port; its δ is that of its 2(N-1) steps, each the network's latency and start-up;
/// hosts that copy are in series with the wire; workers may be unequal, and every all-reduce then waits for the
/// slowest.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Liu2022 {
    /// Which gradients travel together; by default none.
    pub schedule: Schedule,
}

impl Method for Liu2022 {
    fn name(&self) -> &'static str {
        "liu2022"
    }

    fn summary(&self) -> &'static str {
        "bulk-synchronous ring all-reduce, gradients sent layer by layer while computing"
    }

    fn source(&self) -> &'static str {
        "Liu et al. 2022, doi 10.1145/3485447.3511981"
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Inapplicable> {
        let refuse = |key, reason: &str, remedy: &str| {
            Err(Inapplicable { key, reason: format!("Liu 2022 {reason}"), remedy: remedy.to_owned() })
        };
        if scenario.profile().is_some() {
            return refuse(
                "model.profile",
                "needs operation counts, and a profile has none",
                "use `--method simulate`, or name a model with `zoo`",
            );
        }
        if scenario.strategy.architecture != Architecture::AllReduce {
            return refuse(
                "strategy.architecture",
                "models all-reduce only",
                "use `architecture = \"all-reduce\"`, or `--method layerwise`",
            );
        }
        match scenario.strategy.synchronisation {
            Synchronisation::Bsp => Ok(()),
            Synchronisation::LocalSgd(_) => refuse(
                "strategy.synchronisation",
                "does not model local SGD",
                "use `synchronisation = \"bsp\"`",
            ),
            Synchronisation::Async | Synchronisation::Ssp(_) => refuse(
                "strategy.synchronisation",
                "does not model asynchronous training",
                "use `synchronisation = \"bsp\"`",
            ),
        }
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Inapplicable> {
        self.applies(scenario)?;
        let passes: Vec<(Seconds, Pass)> = (0..scenario.cluster.groups.len())
            .map(|index| {
                let speed = Speed::of(scenario, index);
                (compute::host_to_device(scenario, index), Pass::of(&scenario.workload, &speed))
            })
            .collect();
        let Some(pass) = Pass::slowest(&passes) else {
            return Err(Inapplicable {
                key: "cluster.workers",
                reason: "Liu 2022 needs workers, and there are none".to_owned(),
                remedy: "add a group of workers".to_owned(),
            });
        };
        let ring = Ring::of(scenario);
        let plan = plan(&pass, &Curve::Ring(ring.update()), self.schedule);
        let outcome = plan.outcome;

        let end = |(delay, pass): &(Seconds, Pass)| *delay + pass.computing();
        let copying = passes
            .iter()
            .max_by(|a, b| end(a).get().total_cmp(&end(b).get()))
            .map_or(Seconds::ZERO, |(delay, _)| *delay);
        let breakdown = vec![
            Part { name: "compute", time: outcome.computing - copying },
            Part { name: "host-to-device", time: copying },
            Part { name: "exposed communication", time: outcome.exposed() },
        ];
        let bottleneck = if outcome.computing >= outcome.exposed() {
            Bottleneck::Compute
        } else {
            ring.bottleneck(plan.flushes.len(), plan.sent())
        };
        let report = |(index, (delay, pass)): (usize, &(Seconds, Pass))| GroupReport {
            group: index,
            count: scenario.cluster.groups[index].count,
            batch: scenario.batch(index),
            compute: *delay + pass.computing(),
            ready: *delay + pass.forward + pass.layers.first().map_or(Seconds::ZERO, |layer| layer.backward),
            slack: None,
        };
        let groups = passes.iter().enumerate().map(report).collect();
        Ok(Prediction {
            warnings: compute::assumptions(scenario).into_iter().collect(),
            ..Prediction::new(self.name(), outcome.iteration(), groups, breakdown, bottleneck)
        })
    }
}

/// The ring through all workers of a scenario.
#[derive(Debug, Clone, Copy)]
struct Ring {
    workers: u32,
    /// α, π and s, and β as the wire alone has it.
    wire: Fabric,
    /// Copying on the hosts, where it costs anything.
    host: Option<BytesPerSec>,
}

impl Ring {
    /// As fast as its slowest port and its slowest worker.
    fn of(scenario: &Scenario) -> Self {
        let cluster = &scenario.cluster;
        let network = &cluster.network;
        let port = |group: &WorkerGroup| group.bandwidth.unwrap_or(network.bandwidth);
        let slowest = cluster.groups.iter().map(port).reduce(|a, b| a.min(b)).unwrap_or(network.bandwidth);
        let peak = |group: &WorkerGroup| group.device.fp32_peak() * group.speed;
        let infinite = FlopsPerSec::new(f64::INFINITY);
        Self {
            workers: u32::try_from(cluster.workers()).unwrap_or(u32::MAX),
            wire: Fabric {
                step: network.latency + network.startup,
                bandwidth: slowest.to_bytes_per_sec() * network.efficiency,
                reduce: cluster.groups.iter().map(peak).fold(infinite, FlopsPerSec::min),
                element: ELEMENT,
            },
            host: network.host_rate,
        }
    }

    /// Eq. 7: a byte is on the wire and is copied, one after the other.
    fn update(&self) -> RingUpdate {
        let bandwidth = match self.host {
            Some(rate) => {
                let byte = Bytes::new(1.0);
                byte / (byte / self.wire.bandwidth + byte / rate)
            }
            None => self.wire.bandwidth,
        };
        RingUpdate::stepwise(&Fabric { bandwidth, ..self.wire }, self.workers)
    }

    /// What most of the time of `messages` of `size` in all goes to.
    fn bottleneck(&self, messages: usize, size: Bytes) -> Bottleneck {
        let around = |fabric: &Fabric| {
            reduce_scatter(fabric, self.workers, size).then(all_gather(fabric, self.workers, size)).transfer
        };
        let wire = around(&self.wire);
        let host = self.host.map_or(Seconds::ZERO, |rate| around(&Fabric { bandwidth: rate, ..self.wire }));
        let fixed = self.update().overhead() * messages as f64;
        if fixed >= wire + host {
            Bottleneck::FixedCost
        } else if host > wire {
            Bottleneck::HostCopy
        } else {
            Bottleneck::WorkerLink
        }
    }
}
