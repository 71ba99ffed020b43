//! Zeng et al. 2023: iteration time of bulk-synchronous parameter-server training on unequal CPUs and
//! GPUs, from operation counts and bandwidths.
//!
//! The equations and algorithms are those of "Modeling the Training Iteration Time for Heterogeneous Distributed Deep
//! Learning Systems" (doi 10.1155/2023/2663115), as corrected by the errata: counts are per iteration, T_push and T_pull
//! are per worker (the text calls them totals), and the n pulls of both algorithms are outside their loops.
//!
//! [`Zeng2023`] applies them to a scenario and adds what the paper
//! names as sources of error (start-up of transfers, copies to the device) and as future work (several servers, other
//! activations, local SGD). Each addition has its own input, whose default leaves the paper's model unchanged.

use crate::queue::{self, Arrival};
use crate::step::{self, Round, TransferCost};
use crate::{beyond, placement};
use stepcast_core::compute;
use stepcast_core::fault::Fault;
use stepcast_core::machine::{DeviceKind, WorkerGroup};
use stepcast_core::method::{Method, MethodAbout};
use stepcast_core::prediction::{GroupReport, PartKind, Prediction, Warning};
use stepcast_core::quantity::{Bytes, Flops, FlopsPerSec, Hertz, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;
use stepcast_core::workload::LayerWork;

/// Zeng 2023: Algorithms 1 and 2, formulas 27-33.
#[derive(Debug, Clone, Copy, Default)]
pub struct Zeng2023;

impl Method for Zeng2023 {
    fn about(&self) -> MethodAbout {
        MethodAbout {
            name: "zeng2023",
            summary: "bulk-synchronous parameter server on unequal workers, from operation counts",
            source: "Zeng et al. 2023, doi 10.1155/2023/2663115",
        }
    }

    fn beyond_paper(&self, scenario: &Scenario) -> Vec<&'static str> {
        beyond::framing(scenario).into_iter().collect()
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        step::only_bulk_synchronous("Zeng 2023", scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        self.applies(scenario)?;
        let workers = workers(scenario);
        let (round, slack) = match scenario.strategy.architecture {
            Architecture::StandAlone => (alone(&workers[0]), vec![0.0]),
            _ => parameter_server(scenario, &workers),
        };
        let report = |(index, (worker, slack)): (usize, (&Worker, f64))| GroupReport {
            group: index,
            count: worker.count,
            batch: scenario.samples(index),
            compute: worker.host_to_device + worker.step,
            ready: worker.host_to_device + worker.until_push,
            slack: Some(slack),
        };
        let groups = workers.iter().zip(slack).enumerate().map(report).collect();
        let warnings = premature_end(scenario, &workers, &round);
        let warnings = warnings.into_iter().chain(step::unused("Zeng 2023", scenario, &[])).collect();
        Ok(step::prediction(self.name(), scenario, &round, groups, warnings))
    }
}

/// Times of one worker of a group in one step, without any waiting for other workers.
#[derive(Debug, Clone, Copy)]
struct Worker {
    count: u32,
    host_to_device: Seconds,
    /// Forward and backward pass (eqs. 28 and 33).
    step: Seconds,
    /// The part of `step` before the push begins: all of it on a CPU (Algorithm 1), up to the first gradient on a GPU
    /// (line 3 of Algorithm 2).
    until_push: Seconds,
    /// The time for which one push to the fullest server occupies that server's port (eq. 30).
    to_server: TransferCost,
    /// The time for which one pull from the fullest server occupies that server's port (eq. 31).
    from_server: TransferCost,
    /// The time of a push and of a pull on the worker's own port, for all servers; none where it cannot be the limit.
    own: Option<[TransferCost; 2]>,
}

/// One worker per group; this is the only pass over the scenario's groups.
fn workers(scenario: &Scenario) -> Vec<Worker> {
    let workload = &scenario.workload;
    let network = &scenario.cluster.network;
    let worker = |(index, group): (usize, &WorkerGroup)| {
        let (batch, inputs) = (scenario.batch(index), &scenario.methods.zeng2023);
        let weights = workload.weights.saturating_sub(workload.untouched(f64::from(batch)));
        let operations = Operations::new(workload.forward, weights, inputs.flops_per_weight);
        let rate = rate(scenario, group);
        let step = operations.iteration(batch) / rate;
        let until_push = match group.device.kind {
            DeviceKind::Cpu => step,
            DeviceKind::Gpu => {
                operations.until_first_push(batch, inputs.pushes.unwrap_or(workload.tensors)) / rate
            }
        };
        let host_to_device = match inputs.host_copy {
            true => compute::copy_of_batch(scenario, index),
            false => Seconds::ZERO,
        };
        let fixed = network.latency + network.startup;
        let cluster = &scenario.cluster;
        let sent = |layer: &LayerWork| scenario.sent(index, layer);
        let share = placement::largest_share(workload, &cluster.servers, sent);
        let all = scenario.sent_in_all(index);
        let pulled = inputs.parameters.unwrap_or(all);
        let pushed = inputs.gradients.unwrap_or(pulled);
        let (server_port, worker_port) =
            (placement::server_port(cluster), placement::worker_port(cluster, group));
        let through = |port, size| TransferCost { fixed, ..step::across(cluster, port, size) };
        // A slower port of the worker leaves room for other workers.
        let by_server = |size: Bytes| through(server_port, share * (size / all));
        let limited = cluster.servers.count > 1 || worker_port < server_port;
        Worker {
            count: group.count,
            host_to_device,
            step,
            until_push,
            to_server: by_server(pushed),
            from_server: by_server(pulled),
            own: limited.then(|| [pushed, pulled].map(|size| through(worker_port, size))),
        }
    };
    scenario.cluster.groups.iter().enumerate().map(worker).collect()
}

impl Worker {
    /// Computing time in a round of `steps` until the push begins.
    fn computing(&self, steps: f64) -> Seconds {
        self.step * (steps - 1.0) + self.until_push
    }

    /// When the push of a round of `steps` begins.
    fn ready(&self, steps: f64) -> Seconds {
        self.host_to_device * steps + self.computing(steps)
    }

    /// One push of all gradients without other workers: by the slower of the two ports.
    fn undisturbed(&self) -> TransferCost {
        let own = self.own.map(|[push, _]| push);
        own.filter(|own| own.total() > self.to_server.total()).unwrap_or(self.to_server)
    }
}

/// Eq. 28 for a CPU and eq. 33 for a GPU, times the given or fitted efficiency.
fn rate(scenario: &Scenario, group: &WorkerGroup) -> FlopsPerSec {
    let device = &group.device;
    let rate = match device.kind {
        DeviceKind::Cpu => cpu_rate(device.clock, scenario.methods.zeng2023.simd),
        DeviceKind::Gpu => gpu_rate(device.clock, device.units, scenario.methods.zeng2023.fc),
    };
    let fitted = device.shares(scenario.strategy.precision).map(|shares| shares.zeng2023);
    rate * (group.efficiency.or(fitted).unwrap_or(1.0) * group.speed)
}

fn alone(worker: &Worker) -> Round {
    Round { compute: worker.step, host_to_device: worker.host_to_device, ..Round::default() }
}

/// The queue of both algorithms, and the slack of every group.
///
/// With several servers the fullest one finishes last. A worker's own port carries the traffic of all servers and of no
/// other worker: where it is slower than a server's, the server serves several workers at once, and the step lasts at
/// least as long as that port needs by itself.
fn parameter_server(scenario: &Scenario, workers: &[Worker]) -> (Round, Vec<f64>) {
    let steps = step::steps_per_round(scenario.strategy.synchronisation);
    let mut arrivals: Vec<Arrival> = Vec::with_capacity(workers.len());
    let mut pull = TransferCost::default();
    for (index, worker) in workers.iter().enumerate() {
        let (ready, service) = (worker.ready(steps), worker.to_server.total());
        arrivals.push(Arrival { ready, service, count: worker.count, owner: index as u32 });
        pull = pull.plus(worker.from_server.times(f64::from(worker.count)));
    }
    queue::sort(&mut arrivals);
    let drained = queue::drain(&arrivals);
    let first = &workers[arrivals[drained.first].owner as usize];
    let busy_since = arrivals[drained.first].ready;
    // All workers that arrive in the last busy period except the one served last. Workers are visited in storage
    // order rather than service order, so that memory is accessed sequentially.
    let busy = workers.iter().filter(|worker| worker.ready(steps) >= busy_since);
    let served = busy.map(|worker| worker.to_server.times(f64::from(worker.count)));
    let push = arrivals.last().map_or(TransferCost::default(), |last| workers[last.owner as usize].to_server);
    let mut round = Round {
        compute: first.computing(steps),
        host_to_device: first.host_to_device * steps,
        push,
        queueing: served.fold(push.times(-1.0), TransferCost::plus),
        pull,
        ..Round::default()
    };

    let mut end = drained.end;
    for (worker, [push, pull]) in workers.iter().filter_map(|worker| Some((worker, worker.own?))) {
        if worker.ready(steps) + push.total() > end {
            end = worker.ready(steps) + push.total();
            round = Round {
                compute: worker.computing(steps),
                host_to_device: worker.host_to_device * steps,
                push,
                queueing: TransferCost::default(),
                worker_link: true,
                ..round
            };
        }
        if pull.total() > round.pull.total() {
            round.pull = pull;
            round.worker_link = true;
        }
    }

    let mut latest = vec![Seconds::ZERO; workers.len()];
    for (arrival, time) in arrivals.iter().zip(queue::latest(&arrivals, end)) {
        latest[arrival.owner as usize] = time;
    }
    let slack = workers.iter().zip(latest).map(|(worker, latest)| {
        let latest = worker.own.map_or(latest, |[push, _]| latest.min(end - push.total()));
        ((latest - worker.ready(steps)) / worker.computing(steps)).max(0.0)
    });
    (round, slack.collect())
}

/// Algorithm 2 ignores that the last gradient cannot be sent before the backward pass has computed it. If that
/// matters, the prediction is too short (errata 1.5): the method warns but keeps the result.
fn premature_end(scenario: &Scenario, workers: &[Worker], round: &Round) -> Option<Warning> {
    if scenario.strategy.architecture == Architecture::StandAlone {
        return None;
    }
    let steps = step::steps_per_round(scenario.strategy.synchronisation);
    let pushed = round.total() - round.pull.total();
    let (index, shortfall) = workers.iter().enumerate().find_map(|(index, worker)| {
        let segment = worker.undisturbed().payload() / f64::from(scenario.workload.tensors);
        let earliest = (worker.host_to_device + worker.step) * steps + segment;
        (earliest > pushed).then_some((index, earliest - pushed))
    })?;
    let message = format!(
        "Algorithm 2 lets the {} finish its push {} before its backward pass can have ended; the real step is \
         at least that much longer",
        scenario.cluster.groups[index].device.name,
        shortfall.human()
    );
    Some(Warning { code: "premature-end", message })
}

/// A worker's round of Algorithms 1 and 2, as Figures 4 and 5 draw it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRound {
    /// Index of its group.
    pub group: usize,
    /// Its activities, each with start and end; on a GPU the rest of the backward pass goes on beside the push.
    pub parts: Vec<(PartKind, Seconds, Seconds)>,
}

/// All workers in the order in which servers receive their gradients, up to `most` of them.
pub fn round(scenario: &Scenario, most: usize) -> Result<Vec<WorkerRound>, Fault> {
    Zeng2023.applies(scenario)?;
    let all = workers(scenario);
    let steps = step::steps_per_round(scenario.strategy.synchronisation);
    let (round, _) = parameter_server(scenario, &all);
    let (pulls, end) = (round.total() - round.pull.total(), round.total());
    let arrival = |(index, worker): (usize, &Worker)| Arrival {
        ready: worker.ready(steps),
        service: worker.undisturbed().total(),
        count: worker.count,
        owner: index as u32,
    };
    let mut arrivals: Vec<Arrival> = all.iter().enumerate().map(arrival).collect();
    queue::sort(&mut arrivals);
    let mut free = Seconds::ZERO;
    let mut rounds = Vec::new();
    for arrival in arrivals {
        let group = arrival.owner as usize;
        let worker = &all[group];
        let whole = (worker.host_to_device + worker.step) * steps;
        for _ in 0..(arrival.count as usize).min(most - rounds.len()) {
            let start = free.max(arrival.ready);
            // Ports of workers that are slower than the server's leave room for others.
            free = start + worker.to_server.total();
            let parts = [
                (PartKind::HostToDevice, Seconds::ZERO, worker.host_to_device * steps),
                (PartKind::Compute, worker.host_to_device * steps, whole),
                (PartKind::Queueing, arrival.ready, start),
                (PartKind::Push, start, start + arrival.service),
                (PartKind::Pull, pulls, end),
            ];
            let lasting = parts.into_iter().filter(|(_, since, until)| until > since);
            rounds.push(WorkerRound { group, parts: lasting.collect() });
        }
    }
    Ok(rounds)
}

/// Operation counts of a model in Zeng's convention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operations {
    /// Forward pass of one sample (eq. 21).
    pub forward: Flops,
    /// Backward pass of one iteration (eqs. 22-24): operations per weight times weights. It does not grow with the
    /// batch, and biases are not counted; otherwise Table 1 cannot be reproduced.
    pub backward: Flops,
}

impl Operations {
    /// Counts the backward pass as `flops_per_weight` × `weights`.
    pub fn new(forward: Flops, weights: u64, flops_per_weight: f64) -> Self {
        Self { forward, backward: Flops::new(weights as f64 * flops_per_weight) }
    }

    /// Eq. 27: total operations of one iteration.
    pub fn iteration(&self, batch: u32) -> Flops {
        self.forward * f64::from(batch) + self.backward
    }

    /// Line 3 of Algorithm 2: operations until the first of `pushes` segments can be sent.
    pub fn until_first_push(&self, batch: u32, pushes: u32) -> Flops {
        self.forward * f64::from(batch) + self.backward / f64::from(pushes)
    }
}

/// The rate in eq. 28: one core at `clock` with `simd` operations per cycle.
pub fn cpu_rate(clock: Hertz, simd: f64) -> FlopsPerSec {
    clock.at(simd)
}

/// The rate in eq. 33: `processors` at `clock` with `fc` operations per cycle each.
pub fn gpu_rate(clock: Hertz, processors: u32, fc: f64) -> FlopsPerSec {
    clock.at(f64::from(processors) * fc)
}

/// Transfer times of one worker: eqs. 30 and 31.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transfers {
    /// T_push.
    pub push: Seconds,
    /// T_pull.
    pub pull: Seconds,
}

/// Eq. 29: iteration time of `workers` of equal speed.
pub fn equal_workers(compute: Seconds, transfers: Transfers, workers: u32) -> Seconds {
    compute + transfers.push * f64::from(workers) + transfers.pull * f64::from(workers)
}

/// Algorithms 1 and 2: iteration time of workers of unequal speed with one server. `ready` lists, in any order, each
/// worker's computing time before its push.
pub fn unequal_workers(ready: &[Seconds], transfers: Transfers) -> Seconds {
    let mut arrivals: Vec<Arrival> = ready.iter().map(|&ready| arrival(ready, transfers)).collect();
    queue::sort(&mut arrivals);
    queue::drain(&arrivals).end + transfers.pull * ready.len() as f64
}

fn arrival(ready: Seconds, transfers: Transfers) -> Arrival {
    Arrival { ready, service: transfers.push, count: 1, owner: 0 }
}
