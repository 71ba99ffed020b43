//! Transformers that a plan splits, simulated: a replica with all its stages for every kind of replica; and a pipeline to
//! display: a row of passes for every stage, and rows for the traffic beside them.

mod costs;
mod figures;
mod pipeline;

use super::measure::{Measured, measure, observe, spread};
use super::{Recording, about, broken};
use figures::{StageTimes, Stages, breakdown, bubble, slowest};
use pipeline::{Training, training};
use stepcast_analytic::transformer::{Planned, Transformer, outer_part, planned};
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::method::{CancelCheck, Method, Progress, Stopped, Watch};
use stepcast_core::prediction::{
    Bottleneck, PartKind, Prediction, Resource, Simulation, Spread, Usage, Warning,
};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Sends;
use stepcast_sim::pipeline::{Mark, Phase, Role, Traffic};
use stepcast_stats::spread_of_logarithms;
use stepcast_trace::timeline::{Event, Flow, Process, Timeline};

/// Passes beyond which a simulation is refused: closed forms answer at once.
const MOST_PASSES: u64 = 200_000;

pub(super) fn applies(scenario: &Scenario) -> Result<(), Fault> {
    let Planned { plan, division, .. } = planned(scenario)?;
    if matches!(plan.stage_sends(), Sends::OnDemand | Sends::Planned) || plan.issue_time > Seconds::ZERO {
        let reason = "the engine does not know receives that are posted late, nor the time to issue messages";
        let remedy = [Remedy::method("transformer"), Remedy::advice("remove `sends` and `issue-time`")];
        return Err(Fault::in_key("strategy.plan.sends", reason, remedy));
    }
    if plan.outer_replicas > 1 && scenario.cluster.groups.len() > 1 {
        let reason = "the engine runs one of the replicas with outer gradients, which must be alike";
        let remedy = [Remedy::method("transformer"), Remedy::advice("use one kind of workers")];
        return Err(Fault::in_key("strategy.plan.outer-replicas", reason, remedy));
    }
    let passes = division.micro_batches.saturating_mul(plan.pipeline * plan.virtual_stages);
    if passes <= MOST_PASSES {
        return Ok(());
    }
    let reason = format!("{passes} passes of micro-batches through stages are too many to simulate");
    let remedy = [Remedy::method("transformer"), Remedy::advice("use a smaller `global-batch`")];
    Err(Fault::in_key("strategy.plan", reason, remedy))
}

struct StepFigures {
    throughput: f64,
    interval: [f64; 2],
    run_spread: Option<f64>,
    runs: usize,
    steps: u64,
    lengths: Vec<f64>,
    stages: Vec<StageTimes>,
    end: String,
    warning: Option<Warning>,
}

pub(super) fn predict(scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
    let closed = Transformer.predict(scenario)?;
    let training = training(scenario)?;
    let built = training.pipeline.build().map_err(broken)?;
    let stages = training.pipeline.costs[0].tails.len();
    let observer = || Stages::new(&built, stages);
    if scenario.methods.simulate.given_jitter() <= 0.0 {
        let mut observed = observer();
        let wanted = || watch(Progress::Working);
        let time = observe(&built.program, scenario.methods.simulate.seed, 1, &mut observed, &wanted)?;
        return Ok(prediction(closed, &training, single(&training, &observed, time)));
    }
    let each = training.samples as f64 / built.program.workers() as f64;
    let batches = vec![each; built.program.workers()];
    measure(&built.program, &batches, &scenario.methods.simulate, observer, watch, |measured| {
        prediction(closed.clone(), &training, shown(measured))
    })
}

fn single(training: &Training, observed: &Stages<'_>, time: f64) -> StepFigures {
    let throughput = training.samples as f64 / time;
    StepFigures {
        throughput,
        interval: [throughput; 2],
        run_spread: None,
        runs: 1,
        steps: 1,
        lengths: vec![time],
        stages: observed.mean(),
        end: "all steps are alike".to_owned(),
        warning: None,
    }
}

fn shown(measured: &Measured<'_, Stages<'_>>) -> StepFigures {
    let estimate = &measured.estimate;
    let mut lengths = Vec::new();
    let mut stages: Vec<StageTimes> = Vec::new();
    let mut steps = 0;
    for (measurement, window) in measured.runs.iter().zip(&estimate.windows) {
        let observed = measurement.run.observer();
        let records = super::measure::Recorder::records(observed);
        steps += records.len() as u64;
        lengths.extend(window.ending(records).map(|record| record.until - record.since));
        if stages.is_empty() {
            stages = observed.mean();
        }
    }
    StepFigures {
        throughput: estimate.throughput,
        interval: estimate.interval(),
        run_spread: spread_of_logarithms(&estimate.rates),
        runs: measured.runs.len(),
        steps,
        lengths,
        stages,
        end: measured.end(),
        warning: estimate.warning(),
    }
}

/// The prediction: memory and counts as for the closed form, with simulated times.
fn prediction(closed: Prediction, training: &Training, shown: StepFigures) -> Prediction {
    let samples = training.samples as f64;
    let inner = SamplesPerSec::new(shown.throughput).time_for(samples);
    let with_outer = |inner: Seconds| training.outer.map_or(inner, |outer| outer.step(inner));
    let iteration = with_outer(inner);
    let throughput = SamplesPerSec::from_time(samples, iteration);
    let interval = shown.interval.map(|rate| samples / with_outer(Seconds::new(samples / rate)).get());
    let faster = closed.iteration / iteration;
    let slowest = &shown.stages[slowest(&shown.stages)];
    let mut parts = breakdown(slowest, inner);
    parts.extend(outer_part(iteration - inner));
    let of = |kinds: &[PartKind]| -> Seconds {
        parts.iter().filter(|part| kinds.contains(&part.kind)).map(|part| part.time).sum()
    };
    let compute = of(&[PartKind::Compute, PartKind::Recompute]);
    let exposed = iteration - compute - of(&[PartKind::Host, PartKind::PipelineBubble]);
    let nothing = Spread { low: 0.0, median: 0.0, high: 0.0 };
    let mut lengths = shown.lengths;
    let usage = |(index, stage): (usize, &StageTimes)| Usage {
        resource: Resource::Stage(index),
        share: (stage.compute + stage.recompute + stage.update) / iteration.get(),
    };
    let mut usage: Vec<Usage> = shown.stages.iter().enumerate().map(usage).collect();
    usage.sort_by(|a, b| b.share.total_cmp(&a.share));
    let simulation = Simulation {
        throughput_interval: interval,
        run_spread: shown.run_spread,
        runs: shown.runs,
        steps: shown.steps,
        step_s: spread(&mut lengths),
        staleness: nothing,
        mean_staleness: 0.0,
        staleness_histogram: vec![1.0],
        effective_minibatch: samples,
        exposed_communication: (iteration - compute) / iteration,
        usage,
        end: shown.end,
    };
    let report = closed.transformer.map(|mut report| {
        report.tokens_per_s *= faster;
        report.tokens_per_s_per_device *= faster;
        report.mfu *= faster;
        report.hfu *= faster;
        report.bubble = bubble(&shown.stages);
        report.exposed = parts.iter().filter(|part| part.kind.is_link()).cloned().collect();
        if let (Some(report), Some(outer)) = (&mut report.outer, training.outer) {
            report.exposed = outer.exposed(inner);
        }
        for (stage, times) in report.stages.iter_mut().zip(&shown.stages) {
            stage.end = Seconds::new(times.end);
        }
        report
    });
    let mut warnings = closed.warnings;
    warnings.extend(shown.warning);
    warnings.extend((training.stands_for > 1).then(|| too_many(training.stands_for)));
    Prediction {
        method: "simulate",
        iteration,
        throughput,
        speedup: closed.speedup * faster,
        scaling_factor: closed.scaling_factor * faster,
        breakdown: parts,
        bottleneck: if compute >= exposed { Bottleneck::Compute } else { Bottleneck::WorkerLink },
        warnings,
        simulation: Some(Box::new(simulation)),
        transformer: report,
        ..closed
    }
}

fn too_many(stands_for: u64) -> Warning {
    let message = format!(
        "there are too many replicas for the budget: each simulated one stands for {stands_for}, and its stages go at the pace \
         of the slowest rank of them, which is an upper bound of the step"
    );
    Warning { code: "replicas", message }
}

/// Events of a pass in a timeline: computing, traffic and a send.
const EVENTS_OF_A_PASS: u64 = 5;

/// Roughly how many events a step has in a timeline; none without a plan.
pub(super) fn events_per_step(scenario: &Scenario) -> Option<u64> {
    let Planned { plan, division, .. } = planned(scenario).ok()?;
    let places = plan.pipeline.saturating_mul(plan.virtual_stages);
    Some(division.micro_batches.saturating_mul(2 * EVENTS_OF_A_PASS).saturating_mul(places))
}

/// The first `steps` steps of one replica of each kind.
pub(super) fn timeline(
    scenario: &Scenario,
    steps: u64,
    wanted: &CancelCheck<'_>,
) -> Result<Recording, Stopped> {
    let mut pipeline = training(scenario)?.pipeline;
    pipeline.replicas.dedup();
    let built = pipeline.build().map_err(broken)?;
    let mut observed = stepcast_sim::Timeline::default();
    observe(&built.program, scenario.methods.simulate.seed, steps, &mut observed, wanted)?;
    Ok(Recording {
        // A profile has no stages: none can be made of this run.
        about: about(scenario, Vec::new()),
        program: built.program,
        lane_names: Vec::new(),
        observed,
        marks: built.marks,
    })
}

/// Rows of a stage, from top to bottom.
const ROWS: [&str; 10] = [
    "passes",
    "tensor",
    "context",
    "expert",
    "sharded",
    "offload",
    "sends",
    "sends back",
    "gradients",
    "weights",
];

/// The row of an operation; none if it is not shown. Waits of a stage appear between its passes.
fn row(role: Role) -> Option<usize> {
    match role {
        Role::Pass(_) | Role::Recompute | Role::Update | Role::Traffic { overlapped: false, .. } => Some(0),
        Role::Traffic { kind, .. } => Some(1 + kind as usize),
        Role::Host | Role::Wait => None,
    }
}

/// Kinds of the events of a pipeline, each with its own colour.
pub const KINDS: [&str; 7] =
    ["forward", "backward", "weight", "communication", "recompute", "update", "send"];

/// Meaning of the colour of an operation: one of [`KINDS`].
fn kind(role: Role) -> &'static str {
    match role {
        Role::Pass(Phase::Forward) => "forward",
        Role::Pass(Phase::Backward) => "backward",
        Role::Pass(Phase::Weight) => "weight",
        Role::Recompute => "recompute",
        Role::Update => "update",
        Role::Traffic { kind: Traffic::SendForward | Traffic::SendBackward, .. } => "send",
        Role::Traffic { .. } | Role::Host | Role::Wait => "communication",
    }
}

/// For viewers: a process for every stage of every replica that was simulated.
pub(super) fn stages_timeline<'a>(recording: &'a Recording, marks: &[Mark]) -> Timeline<'a> {
    let stages = marks.iter().map(|mark| mark.stage + 1).max().unwrap_or(0);
    let replicas = recording.program.workers() as u32;
    let chunks = recording.observed.chunks.iter().filter(|chunk| chunk.until > chunk.since);
    let shown: Vec<_> = chunks
        .filter_map(|chunk| {
            let mark = marks[chunk.op as usize];
            Some((chunk, mark, row(mark.role)?))
        })
        .collect();
    let mut used = [false; ROWS.len()];
    for (.., row) in &shown {
        used[*row] = true;
    }
    let mut number = [0; ROWS.len()];
    let mut lanes = Vec::new();
    for (row, name) in ROWS.iter().enumerate().filter(|(row, _)| used[*row]) {
        number[row] = lanes.len() as u32;
        lanes.push((*name).to_owned());
    }
    let process = |(replica, stage): (u32, u32)| Process {
        name: match replicas {
            1 => format!("stage {stage}"),
            _ => format!("replica {replica}, stage {stage}"),
        },
        lanes: lanes.clone(),
        levels: Vec::new(),
    };
    let all = (0..replicas).flat_map(|replica| (0..stages).map(move |stage| (replica, stage)));
    let event = |(chunk, mark, row): &(&stepcast_sim::ChunkRecord, Mark, usize)| Event {
        process: chunk.worker * stages + mark.stage,
        lane: number[*row],
        name: recording.program.graph.name(chunk.op).into(),
        kind: Some(kind(mark.role)),
        since: Seconds::new(chunk.since),
        until: Seconds::new(chunk.until),
        figure: mark.micro_batch.map(|number| ("micro-batch", u64::from(number))),
        flow: Flow::None,
    };
    let mut timeline = Timeline {
        about: recording.about.clone(),
        processes: all.map(process).collect(),
        events: shown.iter().map(event).collect(),
        levels: Vec::new(),
    };
    timeline.untangle();
    timeline
}
