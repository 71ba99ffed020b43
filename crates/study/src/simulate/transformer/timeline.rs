//! A pipeline to look at: a row of passes for every stage, and rows for what is sent beside them.

use super::super::measure::observe;
use super::super::{Recording, about, broken};
use super::training;
use stepcast_analytic::transformer::planned;
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_sim::pipeline::{Mark, Phase, Role, Traffic};
use stepcast_trace::timeline::{Event, Flow, Process, Timeline};

/// Events of a pass in a timeline: computing, traffic and a send.
const EVENTS_OF_A_PASS: u64 = 5;

/// Roughly how many events a step has in a timeline; none without a plan.
pub(in crate::simulate) fn events_per_step(scenario: &Scenario) -> Option<u64> {
    let (shape, plan) = planned(scenario).ok()?;
    let division = plan.divide(&shape, scenario.cluster.workers()).ok()?;
    let places = plan.pipeline.saturating_mul(plan.virtual_stages);
    Some(division.micro_batches.saturating_mul(2 * EVENTS_OF_A_PASS).saturating_mul(places))
}

/// The first `steps` steps of one replica of each kind.
pub(in crate::simulate) fn timeline(
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

/// The row of an operation; none if it is not shown. What a stage waits for stands between its passes.
fn row(role: Role) -> Option<usize> {
    match role {
        Role::Pass(_) | Role::Recompute | Role::Update | Role::Traffic { overlapped: false, .. } => Some(0),
        Role::Traffic { kind, .. } => Some(1 + kind as usize),
        Role::Host | Role::Wait => None,
    }
}

/// Kinds of the events of a pipeline, each with a colour of its own.
pub const KINDS: [&str; 7] =
    ["forward", "backward", "weight", "communication", "recompute", "update", "send"];

/// What the colour of an operation stands for: one of [`KINDS`].
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
pub(in crate::simulate) fn stages_timeline<'a>(recording: &'a Recording, marks: &[Mark]) -> Timeline<'a> {
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
