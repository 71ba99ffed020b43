//! The paper's model as a method.

use super::formulas::{Operations, cpu_rate, gpu_rate};
use crate::placement;
use crate::queue::{self, Arrival};
use crate::step::{self, Round, TransferCost};
use stepcast_core::cluster::WorkerGroup;
use stepcast_core::device::DeviceKind;
use stepcast_core::method::{Inapplicable, Method};
use stepcast_core::prediction::{GroupReport, Prediction, Warning};
use stepcast_core::quantity::{Bytes, FlopsPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// Zeng 2023: Algorithms 1 and 2, formulas 27-33.
#[derive(Debug, Clone, Copy, Default)]
pub struct Zeng2023;

impl Method for Zeng2023 {
    fn name(&self) -> &'static str {
        "zeng2023"
    }

    fn summary(&self) -> &'static str {
        "bulk-synchronous parameter server on unequal workers, from operation counts"
    }

    fn source(&self) -> &'static str {
        "Zeng et al. 2023, doi 10.1155/2023/2663115"
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Inapplicable> {
        step::only_bulk_synchronous("Zeng 2023", scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Inapplicable> {
        self.applies(scenario)?;
        let workers: Vec<Worker> =
            (0..scenario.cluster.groups.len()).map(|index| Worker::of(scenario, index)).collect();
        let (round, slack) = match scenario.strategy.architecture {
            Architecture::StandAlone => (alone(&workers[0]), vec![0.0]),
            _ => parameter_server(scenario, &workers),
        };
        let report = |(index, (worker, slack)): (usize, (&Worker, f64))| GroupReport {
            group: index,
            count: scenario.cluster.groups[index].count,
            compute: worker.host_to_device + worker.step,
            ready: worker.host_to_device + worker.until_push,
            slack: Some(slack),
        };
        let groups = workers.iter().zip(slack).enumerate().map(report).collect();
        let warnings = premature_end(scenario, &workers, &round).into_iter().collect();
        Ok(step::prediction(self.name(), scenario, &round, groups, warnings))
    }
}

/// Times of one worker in one step, before anybody waits for anybody.
#[derive(Debug, Clone, Copy)]
struct Worker {
    /// Copying the batch to the device.
    host_to_device: Seconds,
    /// Forward and backward pass (eqs. 28 and 33).
    step: Seconds,
    /// The part of it after which the worker begins to push: all of it on a CPU (Algorithm 1), up to the
    /// first gradient on a GPU (line 3 of Algorithm 2).
    until_push: Seconds,
}

impl Worker {
    fn of(scenario: &Scenario, index: usize) -> Self {
        let group = &scenario.cluster.groups[index];
        let batch = scenario.batch(index);
        let workload = &scenario.workload;
        let operations =
            Operations::new(workload.forward, workload.weights, scenario.zeng2023.flops_per_weight);
        let rate = rate(scenario, group);
        let step = operations.iteration(batch) / rate;
        let until_push = match group.device.kind {
            DeviceKind::Cpu => step,
            DeviceKind::Gpu => operations.until_first_push(batch, workload.tensors) / rate,
        };
        let host_to_device = match scenario.zeng2023.host_copy {
            true => step::host_to_device(scenario, index),
            false => Seconds::ZERO,
        };
        Self { host_to_device, step, until_push }
    }

    /// Computing of a round of `steps` until the push begins.
    fn computing(&self, steps: f64) -> Seconds {
        self.step * (steps - 1.0) + self.until_push
    }

    /// When the push of a round of `steps` begins.
    fn ready(&self, steps: f64) -> Seconds {
        self.host_to_device * steps + self.computing(steps)
    }
}

/// Eq. 28 for a CPU, eq. 33 for a GPU, times the share of it that the scenario says is reached.
fn rate(scenario: &Scenario, group: &WorkerGroup) -> FlopsPerSec {
    let device = &group.device;
    let rate = match device.kind {
        DeviceKind::Cpu => cpu_rate(device.clock, scenario.zeng2023.simd),
        DeviceKind::Gpu => gpu_rate(device.clock, device.units, scenario.zeng2023.fc),
    };
    rate * group.efficiency.unwrap_or(1.0)
}

fn alone(worker: &Worker) -> Round {
    Round { compute: worker.step, host_to_device: worker.host_to_device, ..Round::default() }
}

/// One push or pull of `size` (eqs. 30 and 31) with its start-up cost.
fn transfer(scenario: &Scenario, group: &WorkerGroup, size: Bytes) -> TransferCost {
    let network = &scenario.cluster.network;
    TransferCost { fixed: network.latency + network.startup, ..step::payload(&scenario.cluster, group, size) }
}

/// The queue of both algorithms, and the slack of every group.
///
/// With several servers the fullest one ends last, unless a worker's own port, which carries the shares of
/// all servers, is slower still.
fn parameter_server(scenario: &Scenario, workers: &[Worker]) -> (Round, Vec<f64>) {
    let groups = &scenario.cluster.groups;
    let steps = step::steps_per_round(scenario.strategy.synchronisation);
    let share = placement::largest_share(&scenario.workload, scenario.cluster.servers);
    let to_server: Vec<TransferCost> = groups.iter().map(|group| transfer(scenario, group, share)).collect();

    let mut arrivals: Vec<Arrival> = Vec::with_capacity(groups.len());
    let mut pull = TransferCost::default();
    for (index, worker) in workers.iter().enumerate() {
        let (ready, service, count) = (worker.ready(steps), to_server[index].total(), groups[index].count);
        arrivals.push(Arrival { ready, service, count, owner: index as u32 });
        pull = pull.plus(to_server[index].times(f64::from(count)));
    }
    queue::sort(&mut arrivals);
    let drained = queue::drain(&arrivals);
    let starting = &workers[arrivals[drained.first].owner as usize];
    let mut round = Round {
        compute: starting.computing(steps),
        host_to_device: starting.host_to_device * steps,
        pull,
        ..Round::default()
    };
    for arrival in &arrivals[drained.first..] {
        let one = to_server[arrival.owner as usize];
        round.queueing = round.queueing.plus(round.push).plus(one.times(f64::from(arrival.count) - 1.0));
        round.push = one;
    }

    let mut end = drained.end;
    if scenario.cluster.servers.count > 1 {
        let all = scenario.workload.bytes();
        for (group, worker) in groups.iter().zip(workers) {
            let own = transfer(scenario, group, all);
            if worker.ready(steps) + own.total() > end {
                end = worker.ready(steps) + own.total();
                round = Round {
                    compute: worker.computing(steps),
                    host_to_device: worker.host_to_device * steps,
                    push: own,
                    queueing: TransferCost::default(),
                    worker_link: true,
                    ..round
                };
            }
            if own.total() > round.pull.total() {
                round.pull = own;
                round.worker_link = true;
            }
        }
    }

    let mut slack = vec![0.0; groups.len()];
    for (arrival, latest) in arrivals.iter().zip(queue::latest(&arrivals, end)) {
        let owner = arrival.owner as usize;
        let own_link = match scenario.cluster.servers.count {
            1 => end,
            _ => end - transfer(scenario, &groups[owner], scenario.workload.bytes()).total(),
        };
        let spare = latest.min(own_link) - arrival.ready;
        slack[owner] = (spare / workers[owner].computing(steps)).max(0.0);
    }
    (round, slack)
}

/// Algorithm 2 ignores that the last gradient cannot leave before the backward pass has made it. Where that
/// bites, the prediction is too short (errata 1.5): a warning, not a change.
fn premature_end(scenario: &Scenario, workers: &[Worker], round: &Round) -> Option<Warning> {
    let steps = step::steps_per_round(scenario.strategy.synchronisation);
    let pushed = round.total() - round.pull.total();
    let short = workers.iter().zip(&scenario.cluster.groups).find_map(|(worker, group)| {
        let segment = step::payload(&scenario.cluster, group, scenario.workload.bytes()).total()
            / f64::from(scenario.workload.tensors);
        let earliest = (worker.host_to_device + worker.step) * steps + segment;
        (earliest > pushed).then_some((earliest - pushed, &group.device.name))
    });
    let (shortfall, device) = short?;
    (scenario.strategy.architecture == Architecture::ParameterServer).then(|| Warning {
        code: "premature-end",
        message: format!(
            "Algorithm 2 lets the {device} finish its push {} before its backward pass can have ended; \
             the real step is at least that much longer",
            shortfall.human()
        ),
    })
}
