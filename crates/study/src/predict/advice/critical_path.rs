//! The critical path of a step.
//!
//! A short piece of a run is simulated and one of its steps is traced backwards. Every operation began when another one ended:
//! one that it depends on, the one before it on its lane, or, for operations of all workers, the slowest worker's
//! operation. The chain of these operations fills the step. In its gaps, transfers start up or workers wait for their
//! turn.

use crate::simulate::{Excerpt, Simulate, excerpt};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use stepcast_core::method::{CancelCheck, Method};
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::workload::Gradient;
use stepcast_sim::{ChunkRecord, StepRecord};

/// Part of the budget of a forecast that a critical path may take; where that is too little, there is none.
const BUDGET: f64 = 0.1;

/// Largest difference between the simulated and the predicted step for the path to explain it.
const SAME_STEP: f64 = 0.1;

/// Moments closer than this share of a step count as equal.
const SAME: f64 = 1e-9;

/// Chunks of a recording up to which a debug build looks at every one of them to check what was found.
const FEW: usize = 2000;

const WAITING: &str = "start-up, waiting";

/// Part of the path.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Share {
    /// A resource, or a layer.
    pub name: String,
    /// Time of the step that is spent on it.
    #[serde(rename = "time_s", with = "InBaseUnits")]
    pub time: Seconds,
    /// As a share of the step.
    pub share: f64,
}

/// The chain of operations that determines the length of a step.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct CriticalPath {
    /// Length of the step that is predicted.
    #[serde(rename = "step_s", with = "InBaseUnits")]
    pub step: Seconds,
    /// By resource, the longest first; they sum up to the step.
    pub resources: Vec<Share>,
    /// By layer or operation, the longest first; they sum up to the step.
    pub layers: Vec<Share>,
}

/// A piece of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Link<'a> {
    resource: &'a str,
    operation: &'a str,
    time: f64,
}

impl CriticalPath {
    /// The critical path of the predicted step. `None` if the scenario cannot be simulated or
    /// would take too long, if the simulated step is another one because the method ignores what the engine knows, and
    /// for SPRINT, whose breakdown lists its threads separately.
    pub(super) fn of(scenario: &Scenario, prediction: &Prediction, wanted: &CancelCheck<'_>) -> Option<Self> {
        Simulate.applies(scenario).ok()?;
        let predicted = prediction.iteration;
        let effort = BUDGET * scenario.methods.simulate.budget as f64;
        let excerpt = excerpt(scenario, prediction.simulation.is_none(), effort as u64, wanted).ok()??;
        let step = *typical(&excerpt, predicted)?;
        let path = Walk::new(&excerpt).path(&step);
        let length = step.until - step.since;
        if (length / predicted.get() - 1.0).abs() > SAME_STEP {
            return None;
        }
        let gradients = scenario.gradients().ok()?;
        let shares = |name: &dyn Fn(&Link<'_>) -> String| {
            let mut times: BTreeMap<String, f64> = BTreeMap::new();
            for link in &path {
                *times.entry(name(link)).or_default() += link.time;
            }
            let share = |(name, time): (String, f64)| Share {
                name,
                time: predicted * (time / length),
                share: time / length,
            };
            let mut shares: Vec<Share> = times.into_iter().map(share).collect();
            shares.sort_by(|a, b| b.time.get().total_cmp(&a.time.get()));
            shares
        };
        Some(Self {
            step: predicted,
            resources: shares(&|link| link.resource.to_owned()),
            layers: shares(&|link| layer(link.operation, &gradients)),
        })
    }
}

/// The subject of an operation: the layer of "conv1, backward"; the gradients of "all-reduce 4-5".
fn layer(operation: &str, gradients: &[Gradient]) -> String {
    let bare = operation.strip_prefix("parse ").unwrap_or(operation);
    if let Some((layer, _)) = bare.rsplit_once(", ") {
        return layer.to_owned();
    }
    let named = |number: &str| Some(&gradients.get(number.parse::<usize>().ok()?)?.name);
    let numbers = bare.rsplit_once(' ').map_or("", |(_, numbers)| numbers);
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    match (named(first), named(last)) {
        (Some(first), Some(last)) if first == last => first.clone(),
        (Some(first), Some(last)) => format!("{first} … {last}"),
        _ => bare.to_owned(),
    }
}

/// The simulated step whose duration is closest to the predicted one.
fn typical(excerpt: &Excerpt, predicted: Seconds) -> Option<&StepRecord> {
    // By worker: the ends of its chunks, and the latest beginning until then.
    let mut worked: Vec<Vec<(f64, f64)>> = vec![Vec::new(); excerpt.program.lane_of.len()];
    for chunk in &excerpt.chunks {
        let own = &mut worked[chunk.worker as usize];
        let latest = own.last().map_or(chunk.since, |(_, latest)| latest.max(chunk.since));
        own.push((chunk.until, latest));
    }
    // Another worker may stand for this one, in some steps or in all.
    let simulated = |step: &&StepRecord| {
        let own = &worked[step.worker as usize];
        let ended = own.partition_point(|(until, _)| *until <= step.until);
        ended.checked_sub(1).is_some_and(|last| own[last].1 >= step.since)
    };
    let distance = |step: &StepRecord| ((step.until - step.since) - predicted.get()).abs();
    excerpt.steps.iter().filter(simulated).min_by(|a, b| distance(a).total_cmp(&distance(b)))
}

/// Indices for tracing an excerpt backwards.
struct Walk<'a> {
    recording: &'a Excerpt,
    /// By operation: the operations that it waits for.
    before: Vec<Vec<u32>>,
    names: Vec<&'a str>,
    /// By lane: whether several workers use it.
    shared: Vec<bool>,
    on_lane: Vec<Vec<u32>>,
    of_op: Vec<Vec<u32>>,
    /// All chunks, by operation, then by worker, then in order.
    owned: Vec<u32>,
}

impl<'a> Walk<'a> {
    fn new(recording: &'a Excerpt) -> Self {
        let program = &recording.program;
        let mut before = vec![Vec::new(); program.graph.len()];
        for op in 0..program.graph.len() as u32 {
            for &next in program.graph.successors(op) {
                before[next as usize].push(op);
            }
        }
        let mut names = vec![""; program.lanes.len()];
        let mut users = vec![0_u32; program.lanes.len()];
        for lanes in &program.lane_of {
            for (local, &lane) in lanes.iter().enumerate() {
                names[lane as usize] = recording.lane_names.get(local).map_or("", String::as_str);
                users[lane as usize] += 1;
            }
        }
        let mut on_lane = vec![Vec::new(); program.lanes.len()];
        let mut of_op = vec![Vec::new(); program.graph.len()];
        for (index, chunk) in (0_u32..).zip(&recording.chunks) {
            on_lane[chunk.lane as usize].push(index);
            of_op[chunk.op as usize].push(index);
        }
        let mut owned: Vec<u32> = (0..recording.chunks.len() as u32).collect();
        owned.sort_unstable_by_key(|&index| {
            let chunk = &recording.chunks[index as usize];
            (chunk.op, chunk.worker, index)
        });
        let shared = users.iter().map(|&users| users > 1).collect();
        Self { recording, before, names, shared, on_lane, of_op, owned }
    }

    /// Traces the path from the end of the step to its beginning.
    fn path(&self, step: &StepRecord) -> Vec<Link<'a>> {
        let same = SAME * (step.until - step.since);
        let chunks = &self.recording.chunks;
        // Operations that take no time at the end of the step may belong to the next one.
        let own = |chunk: &ChunkRecord| chunk.worker == step.worker && chunk.until > chunk.since;
        let mut links = Vec::new();
        let mut now = step.until;
        let mut next = self.ended_by(step.until + same).rev().find(|&index| own(&chunks[index]));
        let mut waits_for = "";
        while let Some(index) = next.filter(|&index| chunks[index].until > step.since + same) {
            let chunk = &chunks[index];
            let operation = self.recording.program.graph.name(chunk.op);
            if now > chunk.until + same {
                links.push(Link { resource: WAITING, operation: waits_for, time: now - chunk.until });
                now = chunk.until;
            }
            let since = chunk.since.max(step.since);
            let resource = self.names[chunk.lane as usize];
            links.push(Link { resource, operation, time: (now - since).max(0.0) });
            now = since;
            waits_for = operation;
            next = self.led_to(chunk, self.ended_by(chunk.since + same).end.min(index));
        }
        if now > step.since + same {
            links.push(Link { resource: WAITING, operation: waits_for, time: now - step.since });
        }
        links
    }

    /// Chunks that ended by `moment`; they are sorted by their ends.
    fn ended_by(&self, moment: f64) -> std::ops::Range<usize> {
        0..self.recording.chunks.partition_point(|chunk| chunk.until <= moment)
    }

    /// The last of the first `count` chunks for which `after` may have waited: one on its lane, or one of its operation or
    /// of those before it, by the same worker or, on a lane that workers share, by any.
    fn led_to(&self, after: &ChunkRecord, count: usize) -> Option<usize> {
        let last_of = |chunks: &[u32]| {
            let before = chunks.partition_point(|&index| (index as usize) < count);
            before.checked_sub(1).map(|last| chunks[last] as usize)
        };
        let shared = self.shared[after.lane as usize];
        let of = |op: u32| match shared {
            true => last_of(&self.of_op[op as usize]),
            false => self.last_of_worker(op, after.worker, count),
        };
        let waited_for = self.before[after.op as usize].iter().copied().chain([after.op]);
        let found = waited_for.filter_map(of).chain(last_of(&self.on_lane[after.lane as usize])).max();
        // Looking at every chunk takes time that grows with the square of their number.
        debug_assert!(self.recording.chunks.len() > FEW || found == self.scanned(after, count));
        found
    }

    /// The result of [`Self::led_to`] by a scan of every earlier chunk, the last one first.
    fn scanned(&self, after: &ChunkRecord, count: usize) -> Option<usize> {
        self.recording.chunks[..count].iter().rposition(|before| {
            let waited_for = before.op == after.op || self.before[after.op as usize].contains(&before.op);
            let meets = before.worker == after.worker || self.shared[after.lane as usize];
            before.lane == after.lane || (waited_for && meets)
        })
    }

    /// The last of the first `count` chunks that belongs to an operation of a worker.
    fn last_of_worker(&self, op: u32, worker: u32, count: usize) -> Option<usize> {
        let chunks = &self.recording.chunks;
        let before = self.owned.partition_point(|&index| {
            let chunk = &chunks[index as usize];
            (chunk.op, chunk.worker, index as usize) < (op, worker, count)
        });
        let last = self.owned[before.checked_sub(1)?] as usize;
        (chunks[last].op == op && chunks[last].worker == worker).then_some(last)
    }
}
