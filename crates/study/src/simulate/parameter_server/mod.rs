//! Training with parameter servers, simulated: from a scenario to a program, and from the figures of its runs to a
//! prediction.

mod replay;

use super::broken;
use super::excerpt::NamedProgram;
use super::measure::{Measured, Measurement, batches, groups, histogram, mean, measure, spread};
pub(super) use replay::simulated_servers;
use replay::{hides, replay, server_port};
use std::borrow::Cow;
use stepcast_analytic::servers;
use stepcast_core::compute;
use stepcast_core::fault::Fault;
use stepcast_core::method::{Stopped, Watch};
use stepcast_core::prediction::{
    Bottleneck, Part, PartKind, Prediction, Resource, Simulation, Usage, Warning, samples_per_step,
};
use stepcast_core::profile::{Operation, Profile};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::{self, Scenario};
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{LocalLanes, Program, Station, StepWork, Steps, Window, jittered, synthesise};
use stepcast_stats::spread_of_logarithms;

/// Least number of measured steps that show the variation of steps.
const FEW_STEPS: usize = 10;

/// Largest utilisation of the busiest resource that suggests workers in lock-step.
const LOCK_STEP: f64 = 0.75;

pub(super) fn predict(scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
    let prepared = Prepared::new(scenario)?;
    let options = &scenario.methods.simulate;
    measure(&prepared.program, &prepared.batches, options, Steps::default, watch, |measured| {
        prepared.prediction(scenario, measured)
    })
}

pub(super) fn named_program(scenario: &Scenario) -> Result<NamedProgram, Fault> {
    let Prepared { program, lanes, operations, .. } = Prepared::new(scenario)?;
    Ok(NamedProgram { program, lane_names: lanes.names(), operations })
}

struct Prepared {
    program: Program,
    lanes: LocalLanes,
    /// The profile's operations: the first of the program's.
    operations: Vec<Operation>,
    /// Samples of a step, by worker.
    batches: Vec<f64>,
    compute: Vec<Seconds>,
    warnings: Vec<Warning>,
}

impl Prepared {
    fn new(scenario: &Scenario) -> Result<Self, Fault> {
        let mut warnings = Vec::new();
        let profile = profile(scenario, &mut warnings);
        warnings.extend(servers::assumption(scenario));
        let replay = replay(scenario, &profile);
        let program = replay.program().map_err(broken)?;
        let lanes = replay.local_lanes();
        let compute = computing(scenario, &program, lanes);
        if compute.iter().any(|time| time.get() <= 0.0) {
            return Err(Fault::in_key(
                "model",
                "the profile has no computing",
                "record the worker's operations too",
            ));
        }
        let operations = profile.operations.clone();
        Ok(Self { lanes, program, operations, batches: batches(scenario), compute, warnings })
    }

    /// Samples per second that the links of the servers can carry; traffic inside a machine passes no link.
    fn capacity(&self, scenario: &Scenario) -> f64 {
        if scenario.cluster.servers.colocated {
            return f64::INFINITY;
        }
        let (graph, mean) = (&self.program.graph, |steps: &[StepWork], op: usize| {
            steps.iter().map(|step| step.work[op]).sum::<f64>() / steps.len() as f64
        });
        let port = server_port(scenario).get();
        let period = match scenario.strategy.synchronisation {
            Synchronisation::LocalSgd(steps) => f64::from(steps),
            _ => 1.0,
        };
        let samples = self.batches.iter().sum::<f64>() / self.batches.len() as f64;
        let servers = 0..u32::from(self.lanes.servers);
        let bytes = servers.flat_map(|server| [self.lanes.down(server), self.lanes.up(server)]).map(|lane| {
            let over = (0..graph.len()).filter(|&op| graph.lane(op as u32) == lane);
            over.map(|op| mean(&self.program.steps[0], op)).sum::<f64>()
        });
        samples * period * port / bytes.fold(f64::MIN_POSITIVE, f64::max)
    }

    fn prediction(&self, scenario: &Scenario, measured: &Measured<'_, Steps>) -> Prediction {
        let estimate = &measured.estimate;
        let figures = measured.runs.iter().zip(&estimate.windows);
        let runs: Vec<Figures> =
            figures.map(|(run, window)| Figures::of_run(&self.program, self.lanes, run, window)).collect();
        let runs = &runs[..];
        // Steps under way at the end of a run may make it look faster than its links.
        let most = self.capacity(scenario);
        let throughput = SamplesPerSec::new(estimate.throughput.min(most));
        let groups = groups(scenario, &self.compute);
        let samples = samples_per_step(&groups) as f64;
        let iteration = throughput.time_for(samples);
        let batch = samples / scenario.cluster.workers() as f64;
        let usage = usage(self.lanes, runs);
        let (bottleneck, computing) = bottleneck(runs);
        let compute = iteration * computing;
        let mut lengths: Vec<f64> =
            runs.iter().flat_map(|figures| figures.step_lengths.iter().copied()).collect();
        let mut stale: Vec<f64> = runs.iter().flat_map(|figures| figures.staleness.iter().copied()).collect();
        let mean_staleness = stale.iter().sum::<f64>() / stale.len().max(1) as f64;
        let simulation = Simulation {
            throughput_interval: estimate.interval().map(|end| end.min(most)),
            run_spread: spread_of_logarithms(&estimate.rates),
            runs: runs.len(),
            steps: runs.iter().map(|figures| figures.steps).sum(),
            step_s: spread(&mut lengths),
            staleness: spread(&mut stale),
            mean_staleness,
            staleness_histogram: histogram(&stale),
            effective_minibatch: batch * (1.0 + mean_staleness),
            exposed_communication: 1.0 - computing,
            usage,
            end: measured.end(),
        };
        let breakdown = vec![
            Part { kind: PartKind::Compute, time: compute },
            Part { kind: PartKind::Waiting, time: iteration - compute },
        ];
        let mut warnings = self.warnings.clone();
        warnings.extend(estimate.warning());
        warnings.extend(lock_step(scenario, &simulation));
        Prediction {
            warnings,
            simulation: Some(Box::new(simulation)),
            ..Prediction::new("simulate", iteration, groups, breakdown, bottleneck)
        }
    }
}

/// The steps to draw from: recorded, or made from the model. Assumptions about them are added to `warnings`.
fn profile<'a>(scenario: &'a Scenario, warnings: &mut Vec<Warning>) -> Cow<'a, Profile> {
    let Some(profile) = scenario.profile() else {
        warnings.extend(compute::assumptions(scenario));
        return Cow::Owned(synthesise(scenario, 0, hides(scenario)));
    };
    match profile.steps.len() {
        1 => {
            let message = format!(
                "the profile has a single step: others are made from it, computing times spread by {:.0} %",
                100.0 * scenario.methods.simulate.varied()
            );
            warnings.push(Warning { code: "single-step", message });
            let groups = scenario.cluster.groups.len();
            Cow::Owned(jittered(
                profile,
                groups,
                scenario.methods.simulate.varied(),
                scenario.methods.simulate.seed,
            ))
        }
        steps if steps < FEW_STEPS => {
            let message = format!(
                "the profile has {steps} steps: too few to show how they vary, and equal steps keep workers in \
                 lock-step"
            );
            warnings.push(Warning { code: "few-steps", message });
            Cow::Borrowed(profile)
        }
        _ => Cow::Borrowed(profile),
    }
}

/// Time that a worker of each group is busy in a mean step without the others, including work between steps.
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

/// Asynchronous workers that leave every resource idle for long move in lock-step: all need the same resource at the same
/// time.
fn lock_step(scenario: &Scenario, simulation: &Simulation) -> Option<Warning> {
    let busiest = simulation.usage.first()?;
    let asynchronous =
        matches!(scenario.strategy.synchronisation, Synchronisation::Async | Synchronisation::Ssp(1..));
    let fair = scenario.methods.simulate.transport == scenario::SharingRule::Fair;
    (asynchronous && fair && scenario.cluster.workers() > 1 && busiest.share < LOCK_STEP).then(|| Warning {
        code: "lock-step",
        message: format!(
            "nothing is busy more than {:.0} % of the time: workers move in lock-step, wanting the same link at the \
             same time. Real connections share unequally and spread out: compare with `transport = \"uneven\"`",
            100.0 * busiest.share
        ),
    })
}

fn usage(lanes: LocalLanes, runs: &[Figures]) -> Vec<Usage> {
    let mut usage =
        vec![Usage { resource: Resource::Workers, share: mean(runs, |figures| figures.workers_busy) }];
    for server in 0..usize::from(lanes.servers) {
        for (direction, resource) in
            [Resource::Downlink(server), Resource::Uplink(server)].into_iter().enumerate()
        {
            let share = mean(runs, |figures| figures.links_used[2 * server + direction]);
            usage.push(Usage { resource, share });
        }
    }
    usage.push(Usage {
        resource: Resource::ServerComputing,
        share: mean(runs, |figures| figures.servers_busy),
    });
    usage.sort_by(|a, b| b.share.total_cmp(&a.share));
    usage
}

/// The busiest resource, and the share of time during which workers compute.
fn bottleneck(runs: &[Figures]) -> (Bottleneck, f64) {
    let computing = mean(runs, |figures| figures.workers_busy);
    let links = mean(runs, |figures| figures.links_used.iter().copied().fold(0.0, f64::max));
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

struct Figures {
    steps: u64,
    step_lengths: Vec<f64>,
    staleness: Vec<f64>,
    workers_busy: f64,
    servers_busy: f64,
    /// By server: downlink, uplink.
    links_used: Vec<f64>,
}

impl Figures {
    fn of_run(
        program: &Program,
        lanes: LocalLanes,
        measured: &Measurement<'_, Steps>,
        window: &Window,
    ) -> Self {
        let records = &measured.run.observer().records;
        let outcome = measured.run.outcome(measured.end.clone());
        let busy = |local: u16| {
            let lanes =
                program.lane_of.iter().map(|lanes| outcome.lane_busy[lanes[usize::from(local)] as usize]);
            lanes.sum::<f64>() / program.workers() as f64
        };
        let link = |local: u16| {
            let lane = program.lane_of[0][usize::from(local)] as usize;
            match program.lanes[lane].station {
                Station::Pool(pool) => outcome.pool_used[pool as usize],
                Station::Links(route) => {
                    route.ports().first().map_or(0.0, |&port| outcome.port_used[port as usize])
                }
                Station::Tcp { up, .. } => outcome.tcp_used[usize::from(up)],
                Station::Own(_) => outcome.lane_busy[lane],
            }
        };
        let software = |server: u32| {
            let lane = program.lane_of[0][usize::from(lanes.server_parser(server))] as usize;
            match program.lanes[lane].station {
                Station::Pool(pool) => outcome.pool_used[pool as usize],
                _ => 0.0,
            }
        };
        let servers = 0..u32::from(lanes.servers);
        Self {
            steps: outcome.steps,
            step_lengths: window.ending(records).map(|record| record.until - record.since).collect(),
            staleness: window.ending(records).map(|record| record.stale as f64).collect(),
            workers_busy: (0..lanes.computing).map(busy).fold(0.0, f64::max),
            servers_busy: servers
                .clone()
                .map(|server| busy(lanes.server(server)).max(software(server)))
                .fold(0.0, f64::max),
            links_used: servers
                .flat_map(|server| [link(lanes.down(server)), link(lanes.up(server))])
                .collect(),
        }
    }
}
