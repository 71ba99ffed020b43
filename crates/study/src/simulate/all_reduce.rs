//! All-reduce training, simulated.

use super::broken;
use super::excerpt::NamedProgram;
use super::measure::{Measured, Measurement, Recorder, batches, groups, mean, measure, spread};
use stepcast_analytic::collectives::curve;
use stepcast_analytic::contention::Contention;
use stepcast_analytic::liu2022::{self, Flush, passes, plan, rule};
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::{Stopped, Watch};
use stepcast_core::pass::{Pass, Recorded};
use stepcast_core::prediction::{
    Bottleneck, Communication, Part, PartKind, Prediction, Resource, Simulation, Spread, Usage, Warning,
    samples_per_step,
};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::{self, Scenario};
use stepcast_core::strategy::{BufferReading, Fusion, Synchronisation};
use stepcast_sim::{
    AllReduce, Bucket, Interference, Limits, Messages, Observer, Program, Role, StepRecord, Steps, Window,
    jitter_factors, most_steps, run,
};
use stepcast_stats::spread_of_logarithms;

/// Phases of Horovod's cycles over which a single step is averaged.
const PHASES: u32 = 8;

/// Exchanges of a run whose steps differ only by the phases of cycles.
const ALIKE: u32 = 64;

fn inapplicable(fault: Fault) -> Fault {
    Fault::in_key("model.profile", fault.reason, fault.remedy)
}

struct Figures {
    steps: u64,
    lengths: Vec<f64>,
    communication: Communication,
    /// Share of the time during which workers compute, and during which something is exchanged.
    busy: [f64; 2],
}

impl Recorder for Exchanges {
    fn records(&self) -> &[StepRecord] {
        &self.steps.records
    }
}

impl Figures {
    fn of_run(program: &Program, measured: &Measurement<'_, Exchanges>, window: &Window) -> Self {
        let exchanges = measured.run.observer();
        let outcome = measured.run.outcome(measured.end.clone());
        let records = &exchanges.steps.records;
        let busy = |lanes: &mut dyn Iterator<Item = u32>| {
            let shares: Vec<f64> = lanes.map(|lane| outcome.lane_busy[lane as usize]).collect();
            shares.iter().sum::<f64>() / shares.len().max(1) as f64
        };
        let communication = exchanges.mean();
        Self {
            steps: outcome.steps,
            lengths: window.ending(records).map(|record| record.until - record.since).collect(),
            communication,
            busy: [
                busy(&mut program.lane_of.iter().map(|lanes| lanes[0])),
                busy(&mut program.lane_of[0].iter().skip(2).copied()),
            ],
        }
    }
}

pub(super) fn predict(scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
    let training = training(scenario).map_err(inapplicable)?;
    let program = training.program().map_err(broken)?;
    let compute = computing(scenario).map_err(inapplicable)?;
    let batches = batches(scenario);
    let observer = || Exchanges::new(training.roles(), 0);
    let options = match varies(scenario) {
        true => scenario.methods.simulate,
        false => shortened(&scenario.methods.simulate, training.period),
    };
    measure(&program, &batches, &options, observer, watch, |measured| {
        prediction(scenario, &program, &compute, measured)
    })
}

/// Whether steps differ from each other.
fn varies(scenario: &Scenario) -> bool {
    let recorded = scenario.profile().is_some_and(|profile| profile.steps.len() > 1);
    recorded || scenario.methods.simulate.given_jitter() > 0.0
}

/// A run that is long enough where steps are all alike.
fn shortened(options: &scenario::Simulate, period: u32) -> scenario::Simulate {
    let steps = ALIKE * period.max(1) + options.warm_up.unwrap_or(0);
    scenario::Simulate { runs: 1, steps: steps.min(options.steps), ..*options }
}

fn prediction(
    scenario: &Scenario,
    program: &Program,
    compute: &[Seconds],
    measured: &Measured<'_, Exchanges>,
) -> Prediction {
    let estimate = &measured.estimate;
    let figures = measured.runs.iter().zip(&estimate.windows);
    let runs: Vec<Figures> = figures.map(|(run, window)| Figures::of_run(program, run, window)).collect();
    let runs = &runs[..];
    let throughput = SamplesPerSec::new(estimate.throughput);
    let groups = groups(scenario, compute);
    let samples = samples_per_step(&groups) as f64;
    let iteration = throughput.time_for(samples);
    let communication = mean_communication(runs.iter().map(|figures| &figures.communication));
    let (computing, exchanging) =
        (mean(runs, |figures| figures.busy[0]), mean(runs, |figures| figures.busy[1]));
    let mut lengths: Vec<f64> = runs.iter().flat_map(|figures| figures.lengths.iter().copied()).collect();
    let nothing = Spread { low: 0.0, median: 0.0, high: 0.0 };
    let mut usage = vec![
        Usage { resource: Resource::Workers, share: computing },
        Usage { resource: Resource::AllReduce, share: exchanging },
    ];
    usage.sort_by(|a, b| b.share.total_cmp(&a.share));
    let simulation = Simulation {
        throughput_interval: estimate.interval(),
        run_spread: spread_of_logarithms(&estimate.rates),
        runs: runs.len(),
        steps: runs.iter().map(|figures| figures.steps).sum(),
        step_s: spread(&mut lengths),
        staleness: nothing,
        mean_staleness: 0.0,
        staleness_histogram: vec![1.0],
        effective_minibatch: samples,
        exposed_communication: communication.exposed / iteration,
        usage,
        end: measured.end(),
    };
    let busy = iteration * computing;
    let breakdown = vec![
        Part { kind: PartKind::Compute, time: busy },
        Part { kind: PartKind::Waiting, time: iteration - busy },
    ];
    let bottleneck = if computing >= exchanging { Bottleneck::Compute } else { Bottleneck::WorkerLink };
    let mut warnings = assumptions(scenario);
    warnings.extend(estimate.warning());
    Prediction {
        warnings,
        communication: Some(communication),
        simulation: Some(Box::new(simulation)),
        ..Prediction::new("simulate", iteration, groups, breakdown, bottleneck)
    }
}

fn mean_communication<'a>(all: impl ExactSizeIterator<Item = &'a Communication> + Clone) -> Communication {
    let count = all.len().max(1) as f64;
    let of = |part: fn(&Communication) -> Seconds| all.clone().map(part).sum::<Seconds>() / count;
    Communication {
        negotiate: of(|parts| parts.negotiate),
        wait: of(|parts| parts.wait),
        allreduce: of(|parts| parts.allreduce),
        misc: of(|parts| parts.misc),
        exposed: of(|parts| parts.exposed),
    }
}

/// A single step of a training, the mean over all phases of Horovod's cycles: its time, and the breakdown of
/// communication.
pub(crate) fn mean_step(training: &AllReduce) -> Result<(Seconds, Communication), Fault> {
    let Messages::Cycles { length, threshold, negotiation, .. } = training.messages else {
        return first_step(training);
    };
    let at = |place: u32| {
        let phase = Some((f64::from(place) + 0.5) / f64::from(PHASES));
        let messages = Messages::Cycles { length, threshold, negotiation, phase };
        first_step(&AllReduce { messages, ..training.clone() })
    };
    let steps = (0..PHASES).map(at).collect::<Result<Vec<_>, Fault>>()?;
    let time = steps.iter().map(|step| step.0).sum::<Seconds>() / f64::from(PHASES);
    Ok((time, mean_communication(steps.iter().map(|step| &step.1))))
}

fn first_step(training: &AllReduce) -> Result<(Seconds, Communication), Fault> {
    let program = training.program().map_err(broken)?;
    let mut exchanges = Exchanges::new(training.roles(), 0);
    let outcome = run(&program, 0, Limits::steps(1), &mut exchanges).map_err(broken)?;
    Ok((Seconds::new(outcome.time), exchanges.mean()))
}

pub(super) fn named_program(scenario: &Scenario) -> Result<NamedProgram, Fault> {
    let training = training(scenario).map_err(inapplicable)?;
    Ok(NamedProgram {
        program: training.program().map_err(broken)?,
        lane_names: training.lane_names(),
        operations: training.profile_operations(),
    })
}

/// Measures the exchanges of the first worker, step by step.
struct Exchanges {
    steps: Steps,
    roles: Vec<Role>,
    /// When the gradients of each layer were ready in the step under way.
    ready: Vec<f64>,
    /// Messages of the step under way: start, end, first layer.
    messages: Vec<(f64, f64, usize)>,
    negotiated: f64,
    sum: Communication,
    counted: u64,
    /// Steps that do not count.
    warm_up: u64,
}

impl Exchanges {
    fn new(roles: Vec<Role>, warm_up: u64) -> Self {
        Self {
            steps: Steps::default(),
            ready: vec![0.0; roles.len()],
            roles,
            messages: Vec::new(),
            negotiated: 0.0,
            sum: Communication::default(),
            counted: 0,
            warm_up,
        }
    }

    /// The mean over all steps that exchanged something.
    fn mean(&self) -> Communication {
        let share = |time: Seconds| time / self.counted.max(1) as f64;
        Communication {
            negotiate: share(self.sum.negotiate),
            wait: share(self.sum.wait),
            allreduce: share(self.sum.allreduce),
            misc: share(self.sum.misc),
            exposed: share(self.sum.exposed),
        }
    }

    /// Time from the first gradients to the end of the last message or of the backward pass, whichever is later.
    fn count(&mut self) {
        self.messages.sort_by(|a, b| a.0.total_cmp(&b.0));
        let first_ready =
            self.messages.iter().map(|message| self.ready[message.2]).fold(f64::INFINITY, f64::min);
        let backward = self.ready.iter().copied().fold(0.0, f64::max);
        let mut free = first_ready;
        let (mut wait, mut misc, mut allreduce) = (0.0, 0.0, 0.0);
        for &(start, end, first) in &self.messages {
            let idle = (start - free).max(0.0);
            let waiting = idle.min((start - self.ready[first]).max(0.0));
            wait += waiting;
            misc += idle - waiting;
            allreduce += (end - start.max(free)).max(0.0);
            free = free.max(end);
        }
        misc += (backward - free).max(0.0);
        let negotiated = self.negotiated.min(wait);
        self.sum.negotiate += Seconds::new(negotiated);
        self.sum.wait += Seconds::new(wait - negotiated);
        self.sum.misc += Seconds::new(misc);
        self.sum.allreduce += Seconds::new(allreduce);
        self.sum.exposed += Seconds::new((free - backward).max(0.0));
        self.counted += 1;
    }
}

impl Observer for Exchanges {
    fn chunk(&mut self, worker: u32, op: u32, _lane: u32, since: f64, until: f64) {
        if worker > 0 {
            return;
        }
        match self.roles[op as usize] {
            Role::Backward(layer) => self.ready[layer] = until,
            Role::Message(first) => self.messages.push((since, until, first)),
            Role::Other => {}
        }
    }

    fn negotiated(&mut self, since: f64, until: f64) {
        self.negotiated += until - since;
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.steps.step(worker, since, until, stale);
        if worker > 0 {
            return;
        }
        if self.warm_up > 0 {
            self.warm_up -= 1;
        } else if !self.messages.is_empty() {
            self.count();
        }
        self.messages.clear();
        self.negotiated = 0.0;
    }
}

/// The training of a scenario: steps as measured, or spread around the mean one where there are none to draw from.
pub(crate) fn training(scenario: &Scenario) -> Result<AllReduce, Fault> {
    let update = curve(scenario);
    let mean = passes(scenario)?;
    let slowest = Pass::slowest(&mean).unwrap_or_else(|| Pass::new(Vec::new()));
    let rule = rule(scenario, &scenario.strategy.exchange.fusion);
    if let Fusion::Buffer { reading: BufferReading::Serial, .. } = rule {
        let reason = "messages of the event engine wait while others are sent";
        let remedy = [Remedy::set("strategy.fusion.reading", "concurrent"), Remedy::method("liu2022")];
        return Err(Fault::in_key("strategy.fusion.reading", reason, remedy));
    }
    let groups = &scenario.cluster.groups;
    let exchange = &scenario.strategy.exchange;
    let mut contention = Contention::from_scenario(scenario);
    if varies(scenario) {
        contention = contention.of_varying_steps();
    }
    let period = match scenario.strategy.synchronisation {
        Synchronisation::LocalSgd(steps) => steps,
        _ => 1,
    };
    let slowed = contention.slowed(&slowest);
    // The exposed time beyond the schedule is the same in every exchange.
    let beyond = contention.beyond(&slowest, &rule, &liu2022::mean(&slowed, &update, &rule))
        / f64::from(period.max(1));
    let contention = contention.once_in(period);
    let beside_others = |pass: Pass| {
        let slowed = contention.slowed(&pass);
        Pass { update: slowed.update + beyond, ..slowed }
    };
    let drawn = |index: usize| -> Result<Vec<Pass>, Fault> {
        Ok(steps(scenario, index, &mean[index])?.into_iter().map(beside_others).collect())
    };
    Ok(AllReduce {
        passes: (0..groups.len()).map(drawn).collect::<Result<_, _>>()?,
        kind: groups
            .iter()
            .enumerate()
            .flat_map(|(index, group)| std::iter::repeat_n(index, group.count as usize))
            .collect(),
        messages: messages(&slowed, &update, &rule),
        startup: update.startup(),
        curve: update,
        channels: exchange.channels,
        interference: Interference {
            slowdown: exchange.interference,
            copy_byte: exchange.copy_rate.map_or(Seconds::ZERO, |rate| Seconds::new(1.0 / rate.get())),
        },
        period,
    })
}

/// The steps that a worker of the group at `index` draws from.
fn steps(scenario: &Scenario, index: usize, mean: &(Seconds, Pass)) -> Result<Vec<Pass>, Fault> {
    match scenario.profile() {
        Some(profile) if profile.steps.len() > 1 => {
            let (batches, share) =
                (scenario.strategy.accumulation, scenario.strategy.exchange.gradients.share());
            let recorded = Recorded::new(profile)?;
            let steps = recorded.steps(scenario.slowness(index));
            Ok(steps.map(|step| step.compressed(share).accumulated(batches)).collect())
        }
        _ => {
            let (delay, pass) = mean;
            let factors =
                jitter_factors(scenario.methods.simulate.given_jitter(), scenario.methods.simulate.seed);
            let factors =
                factors.take(most_steps(pass.layers.len().saturating_mul(scenario.cluster.groups.len())));
            Ok(factors.map(|factor| pass.scaled(factor, *delay)).collect())
        }
    }
}

/// The messages of a rule, in the form that the engine needs.
pub(crate) fn messages(pass: &Pass, update: &Curve, fusion: &Fusion) -> Messages {
    if let Fusion::Horovod { threshold, cycle, negotiation } = *fusion {
        return Messages::Cycles { length: cycle, threshold, negotiation, phase: None };
    }
    let bucket = |flush: &Flush| {
        let (after, wait) = flush.leaves(fusion);
        Bucket { first: flush.first, last: flush.last, after, wait }
    };
    Messages::Buckets(plan(pass, update, fusion).flushes.iter().map(bucket).collect())
}

/// Computing time of a mean step in which nothing is exchanged, by group.
fn computing(scenario: &Scenario) -> Result<Vec<Seconds>, Fault> {
    let passes = passes(scenario)?;
    Ok(passes.iter().map(|(delay, pass)| *delay + pass.computing() + pass.update).collect())
}

/// Warnings about assumptions on devices, and about messages of unmeasured sizes.
pub(crate) fn assumptions(scenario: &Scenario) -> Vec<Warning> {
    let update = curve(scenario);
    let slowest = passes(scenario).ok().and_then(|passes| Pass::slowest(&passes));
    let rule = rule(scenario, &scenario.strategy.exchange.fusion);
    let flushes = slowest.map(|pass| plan(&pass, &update, &rule).flushes).unwrap_or_default();
    liu2022::assumptions(scenario, &update, &flushes)
}
