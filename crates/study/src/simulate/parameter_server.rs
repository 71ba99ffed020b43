//! From a scenario to a program, and from the figures of its runs to a prediction.

use super::figures::Figures;
use std::borrow::Cow;
use stepcast_analytic::placement;
use stepcast_core::compute;
use stepcast_core::fault::Fault;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::prediction::{
    Bottleneck, GroupReport, Part, Prediction, Simulation, Spread, Usage, Warning, samples_per_step,
};
use stepcast_core::profile::{Operation, Profile, Resource};
use stepcast_core::quantity::{BitsPerSec, BytesPerSec, SamplesPerSec, Seconds};
use stepcast_core::scenario::{self, Scenario};
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::measure::{mean_and_half_width, quantile, spread_of_logarithms};
use stepcast_sim::{
    Coordination, LocalLanes, ParseLane, Parsing, Program, Replay, ReplayWorker, Requeue, StreamOrder,
    Streams, TcpSpec, TransferOrder, Transport, jittered, synthesise,
};

/// Fewer measured steps than this do not show how steps vary.
const FEW_STEPS: usize = 10;

/// Competing workers keep something busier than this unless they move in lock-step.
const LOCK_STEP: f64 = 0.75;

/// A scenario made ready to run.
pub(super) struct Question {
    pub(super) program: Program,
    pub(super) lanes: LocalLanes,
    /// The profile's operations: the first of the program's.
    pub(super) operations: Vec<Operation>,
    /// Samples of a step, by worker.
    pub(super) batches: Vec<f64>,
    /// Computing of one step, by group.
    compute: Vec<Seconds>,
    warnings: Vec<Warning>,
}

impl Question {
    pub(super) fn of(scenario: &Scenario) -> Result<Self, Fault> {
        let mut warnings = Vec::new();
        let profile: Cow<'_, Profile> = match scenario.profile() {
            Some(profile) => Cow::Borrowed(profile),
            None => {
                warnings.extend(compute::assumptions(scenario));
                Cow::Owned(synthesise(scenario, 0))
            }
        };
        let profile = match profile.steps.len() {
            1 => {
                let message = format!(
                    "the profile has a single step: others are made from it, computing times spread by {:.0} %",
                    100.0 * scenario.simulate.jitter
                );
                warnings.push(Warning { code: "single-step", message });
                Cow::Owned(jittered(&profile, scenario.simulate.jitter, scenario.simulate.seed))
            }
            steps if steps < FEW_STEPS => {
                let message = format!(
                    "the profile has {steps} steps: too few to show how they vary, and equal steps keep workers in \
                     lock-step"
                );
                warnings.push(Warning { code: "few-steps", message });
                profile
            }
            _ => profile,
        };
        let replay = replay(scenario, &profile);
        let cycle =
            |error: stepcast_sim::GraphError| Fault::in_key("model", error.to_string(), "check the profile");
        let program = replay.program(&profile).map_err(cycle)?;
        let lanes = replay.local_lanes(&profile);
        let compute = computing(scenario, &program, lanes);
        if compute.iter().any(|time| time.get() <= 0.0) {
            return Err(Fault::in_key(
                "model",
                "the profile has no computing",
                "record the worker's operations too",
            ));
        }
        let mut batches = Vec::with_capacity(replay.workers.len());
        for (index, group) in scenario.cluster.groups.iter().enumerate() {
            batches.extend(std::iter::repeat_n(f64::from(scenario.batch(index)), group.count as usize));
        }
        let operations = profile.operations.clone();
        Ok(Self { lanes, program, operations, batches, compute, warnings })
    }

    pub(super) fn prediction(self, scenario: &Scenario, runs: &[Figures]) -> Prediction {
        let rates: Vec<f64> = runs.iter().map(|figures| figures.samples_per_second).collect();
        let (throughput, half_width) = mean_and_half_width(&rates);
        let throughput = SamplesPerSec::new(throughput);
        let report = |(index, group): (usize, &WorkerGroup)| GroupReport {
            group: index,
            count: group.count,
            batch: scenario.batch(index),
            compute: self.compute[index],
            ready: Seconds::ZERO,
            slack: None,
        };
        let groups: Vec<GroupReport> = scenario.cluster.groups.iter().enumerate().map(report).collect();
        let samples = samples_per_step(&groups) as f64;
        let iteration = throughput.time_for(samples);
        let batch = samples / scenario.cluster.workers() as f64;
        let usage = usage(scenario, runs);
        let (bottleneck, computing) = bottleneck(scenario, runs);
        let compute = iteration * computing;
        let mut lengths: Vec<f64> =
            runs.iter().flat_map(|figures| figures.step_lengths.iter().copied()).collect();
        let mut stale: Vec<f64> = runs.iter().flat_map(|figures| figures.staleness.iter().copied()).collect();
        let mean_staleness = stale.iter().sum::<f64>() / stale.len().max(1) as f64;
        let simulation = Simulation {
            throughput_interval: [(throughput.get() - half_width).max(0.0), throughput.get() + half_width],
            run_spread: spread_of_logarithms(&rates),
            runs: runs.len(),
            steps: runs.iter().map(|figures| figures.steps).sum(),
            step_s: spread(&mut lengths),
            staleness: spread(&mut stale),
            mean_staleness,
            staleness_histogram: histogram(&stale),
            effective_minibatch: batch * (1.0 + mean_staleness),
            exposed_communication: 1.0 - computing,
            usage,
            end: runs.first().map_or(String::new(), |figures| figures.end.clone()),
        };
        let breakdown = vec![
            Part { name: "compute", time: compute },
            Part { name: "waiting", time: iteration - compute },
        ];
        let mut warnings = self.warnings;
        warnings.extend(lock_step(scenario, &simulation));
        Prediction {
            warnings,
            simulation: Some(Box::new(simulation)),
            ..Prediction::new("simulate", iteration, groups, breakdown, bottleneck)
        }
    }
}

/// Time that a worker of each group is busy by itself in a mean step, what comes between steps included.
fn computing(scenario: &Scenario, program: &Program, lanes: LocalLanes) -> Vec<Seconds> {
    let first_worker = scenario.cluster.groups.iter().scan(0, |first, group| {
        let this = *first;
        *first += group.count as usize;
        Some(this)
    });
    let mean = |worker: usize| {
        let steps = &program.steps[program.kind[worker]];
        let own = (0..program.graph.len()).filter(|&op| program.graph.lane(op as u32) < lanes.computing);
        let total: f64 = own.map(|op| steps.iter().map(|step| step.work[op]).sum::<f64>()).sum();
        Seconds::new(total / steps.len() as f64)
    };
    first_worker.map(mean).collect()
}

/// Computing time of a group against the profile's: by batch and speed, or by what the device makes of the model.
fn slowness(scenario: &Scenario, index: usize) -> f64 {
    if scenario.profile().is_some() {
        return scenario.slowness(index);
    }
    let step = |index: usize| -> Seconds {
        let speed = compute::Speed::of(scenario, index);
        scenario.workload.layers.iter().map(|layer| speed.forward(layer) + speed.backward(layer)).sum()
    };
    step(index) / step(0)
}

fn replay(scenario: &Scenario, profile: &Profile) -> Replay {
    let cluster = &scenario.cluster;
    let network = &cluster.network;
    let payload = |rate: BitsPerSec| (rate * network.efficiency).to_bytes_per_sec();
    let mut workers = Vec::with_capacity(cluster.workers() as usize);
    for (index, group) in cluster.groups.iter().enumerate() {
        let port = payload(group.bandwidth.unwrap_or(network.bandwidth));
        let worker = ReplayWorker { slowness: slowness(scenario, index), port };
        workers.extend(std::iter::repeat_n(worker, group.count as usize));
    }
    let server_port = payload(cluster.servers.bandwidth.unwrap_or(network.bandwidth));
    let options = scenario.simulate;
    let per_byte =
        |rate: Option<BytesPerSec>| rate.map_or(Seconds::ZERO, |rate| Seconds::new(1.0 / rate.get()));
    Replay {
        workers,
        servers: cluster.servers.count,
        server_of: servers(profile, cluster.servers.count),
        server_port,
        startup: network.latency + network.startup,
        parsing: Parsing {
            per_byte: per_byte(options.parse_rate) + per_byte(network.host_rate),
            fixed: options.parse_fixed,
            lane: if options.parse_while_computing { ParseLane::Shared } else { ParseLane::Beside },
        },
        transport: match options.transport {
            scenario::Transport::Fair => Transport::Fair(Streams {
                window: options.window.map_or(f64::INFINITY, |window| window.get()),
                requeue: Requeue::OnSelection,
                order: StreamOrder::Fifo,
            }),
            scenario::Transport::Tcp => {
                Transport::Tcp(TcpSpec::linux(server_port.get(), options.queue.get()))
            }
        },
        header: 0.0,
        order: match options.order {
            scenario::TransferOrder::Profile => TransferOrder::Recorded,
            scenario::TransferOrder::Tic => TransferOrder::FewestBefore,
            scenario::TransferOrder::Tac => TransferOrder::EarliestNeeded,
            scenario::TransferOrder::Reverse => TransferOrder::Reverse,
            scenario::TransferOrder::Random => TransferOrder::Random(options.seed),
        },
        coordination: match scenario.strategy.synchronisation {
            Synchronisation::Bsp => Coordination::Bounded(0),
            Synchronisation::Async => Coordination::Async,
            Synchronisation::Ssp(bound) => Coordination::Bounded(bound),
            Synchronisation::LocalSgd(steps) => Coordination::Local(steps),
        },
        shared_cores: None,
    }
}

/// The server of every operation: parameters greedily in the order in which they come down (whole tensors are the finest
/// that a replay can place, so an even placement is a greedy one here), gradients with
/// the parameters of the same size, server operations with the transfer next to them.
fn servers(profile: &Profile, servers: u32) -> Vec<u32> {
    let count = profile.operations.len();
    let mut server_of = vec![0; count];
    if servers == 1 {
        return server_of;
    }
    let downlinks: Vec<usize> =
        (0..count).filter(|&op| profile.operations[op].resource == Resource::Downlink).collect();
    let sizes: Vec<u64> = downlinks.iter().map(|&op| profile.operations[op].bytes).collect();
    let placed = placement::greedy_sizes(&sizes, servers);
    let mut free: Vec<(u64, u32)> = Vec::new();
    for (&op, &server) in downlinks.iter().zip(&placed) {
        server_of[op] = server;
        free.push((profile.operations[op].bytes, server));
    }
    for op in (0..count).filter(|&op| profile.operations[op].resource == Resource::Uplink) {
        let twin = free.iter().rposition(|(bytes, _)| *bytes == profile.operations[op].bytes);
        server_of[op] = twin.map_or(0, |twin| free.swap_remove(twin).1);
    }
    for op in 0..count {
        let operation = &profile.operations[op];
        if operation.resource != Resource::Server {
            continue;
        }
        let before = operation
            .after
            .iter()
            .copied()
            .find(|&before| profile.operations[before as usize].resource == Resource::Uplink);
        let behind =
            || downlinks.iter().copied().find(|&down| profile.operations[down].after.contains(&(op as u32)));
        server_of[op] = before
            .map(|before| server_of[before as usize])
            .or_else(|| behind().map(|down| server_of[down]))
            .unwrap_or(0);
    }
    server_of
}

/// Asynchronous workers that compete and yet leave everything idle move together: they want the same thing at the same
/// time.
fn lock_step(scenario: &Scenario, simulation: &Simulation) -> Option<Warning> {
    let busiest = simulation.usage.first()?;
    let asynchronous = scenario.strategy.synchronisation == Synchronisation::Async;
    let fair = scenario.simulate.transport == scenario::Transport::Fair;
    (asynchronous && fair && scenario.cluster.workers() > 1 && busiest.share < LOCK_STEP).then(|| Warning {
        code: "lock-step",
        message: format!(
            "nothing is busy more than {:.0} % of the time: workers move in lock-step, wanting the same link at the \
             same time. Real connections share unequally and may spread out: compare with `transport = \"tcp\"`",
            100.0 * busiest.share
        ),
    })
}

pub(super) fn spread(values: &mut [f64]) -> Spread {
    Spread { low: quantile(values, 0.05), median: quantile(values, 0.5), high: quantile(values, 0.95) }
}

/// Shares of 0, 1, 2 …, at most 64 of them.
pub(super) fn histogram(stale: &[f64]) -> Vec<f64> {
    let most = stale.iter().copied().fold(0.0, f64::max).min(63.0) as usize;
    let mut shares = vec![0.0; most + 1];
    for value in stale {
        shares[(*value as usize).min(most)] += 1.0 / stale.len() as f64;
    }
    shares
}

fn mean(runs: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

fn usage(scenario: &Scenario, runs: &[Figures]) -> Vec<Usage> {
    let mut usage =
        vec![Usage { resource: "workers".to_owned(), share: mean(runs, |figures| figures.workers_busy) }];
    for server in 0..scenario.cluster.servers.count as usize {
        for (direction, name) in ["downlink", "uplink"].into_iter().enumerate() {
            let share = mean(runs, |figures| figures.links_used[2 * server + direction]);
            usage.push(Usage { resource: format!("server {server}, {name}"), share });
        }
    }
    usage.push(Usage {
        resource: "server computing".to_owned(),
        share: mean(runs, |figures| figures.servers_busy),
    });
    usage.sort_by(|a, b| b.share.total_cmp(&a.share));
    usage
}

/// What is busiest, and the share of time during which workers compute.
fn bottleneck(scenario: &Scenario, runs: &[Figures]) -> (Bottleneck, f64) {
    let computing = mean(runs, |figures| figures.workers_busy);
    let links = (0..2 * scenario.cluster.servers.count as usize)
        .map(|link| mean(runs, |figures| figures.links_used[link]))
        .fold(0.0, f64::max);
    let servers = mean(runs, |figures| figures.servers_busy);
    let which = if computing >= links.max(servers) {
        Bottleneck::Compute
    } else if links >= servers {
        Bottleneck::ServerLink
    } else {
        Bottleneck::Server
    };
    (which, computing)
}

/// What the lanes of a worker are, for timelines.
pub(super) fn lane_names(lanes: LocalLanes) -> Vec<String> {
    let mut names: Vec<String> = (0..lanes.computing).map(|lane| format!("worker, thread {lane}")).collect();
    names.push("worker, parsing".to_owned());
    for server in 0..lanes.servers {
        for lane in ["downlink", "uplink", "computing", "parsing"] {
            names.push(format!("server {server}, {lane}"));
        }
    }
    names
}
