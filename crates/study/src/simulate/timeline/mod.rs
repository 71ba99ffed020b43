//! A run to display: the work of every worker, the load of links, and the update that each push led to; and the round of
//! Zeng 2023: when each worker computes, waits for the server, pushes and pulls (the paper's Figures 4 and 5).

use super::transformer;
use std::collections::{BTreeMap, HashMap};
use stepcast_analytic::zeng2023::{WorkerRound, round};
use stepcast_core::fault::Fault;
use stepcast_core::prediction::PartKind;
use stepcast_core::profile::{Operation, Resource};
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_sim::pipeline::Mark;
use stepcast_sim::{ChunkRecord, Program, Shared, Station, Window, most_steps};
use stepcast_trace::timeline::{About, Event, FORMAT, Flow, Level, Process, Timeline};

/// Lane of the steps, above all others.
const STEPS: u32 = 0;

/// Operations that a layer becomes: parameters, forward, backward, gradients, update.
const PER_LAYER: u64 = 5;

/// Copies of the times of a step: in the profile, in the program and in its runs.
const COPIES: u64 = 8;

/// Roughly how many events a step of all workers has in a timeline.
pub fn events_per_step(scenario: &Scenario) -> u64 {
    if let Some(events) = transformer::events_per_step(scenario) {
        return events.max(1);
    }
    scenario.cluster.workers().saturating_mul(operations(scenario)).max(1)
}

/// Operations of a step of one worker, roughly.
fn operations(scenario: &Scenario) -> u64 {
    match scenario.profile() {
        Some(profile) => profile.operations.len() as u64,
        None => PER_LAYER * scenario.workload.layers.len() as u64,
    }
}

/// Numbers that a simulation keeps: the state of every operation of every worker, and its times in the steps that every
/// group draws from.
pub(super) fn numbers_kept(scenario: &Scenario) -> u64 {
    let (operations, groups) = (operations(scenario), scenario.cluster.groups.len() as u64);
    let steps = match scenario.profile() {
        Some(profile) if profile.steps.len() > 1 => profile.steps.len(),
        _ => most_steps(usize::try_from(operations.saturating_mul(groups)).unwrap_or(usize::MAX)),
    };
    let drawn = groups.saturating_mul(steps as u64).saturating_mul(COPIES);
    let each = scenario.cluster.workers().saturating_add(drawn);
    operations.saturating_mul(each)
}

/// A run to display.
#[derive(Debug, Clone)]
pub struct Recording {
    /// The program that was run.
    pub program: Program,
    /// Names of every worker's local lanes.
    pub lane_names: Vec<String>,
    /// Its steps, chunks and levels.
    pub observed: stepcast_sim::Timeline,
    /// The header of a profile made from it; without operations if none can be made.
    pub about: About,
    /// By operation: its stage and role; empty unless a plan splits a transformer into stages.
    pub marks: Vec<Mark>,
}

impl Recording {
    /// For viewers: a process for every worker with a lane for everything it uses, and one for shared resources; for
    /// pipelines, a process for every stage.
    pub fn timeline(&self) -> Timeline<'_> {
        if !self.marks.is_empty() {
            return transformer::stages_timeline(self, &self.marks);
        }
        let chunks = self.chunks();
        let lanes = Lanes::of(&self.lane_names, &chunks);
        let worker = |worker| Process {
            name: format!("worker {worker}"),
            lanes: lanes.names.clone(),
            levels: Vec::new(),
        };
        let mut processes: Vec<Process> = (0..self.program.workers()).map(worker).collect();
        let flows = self.flows(&chunks);
        let mut events = self.steps();
        events.extend(chunks.iter().zip(flows).map(|((chunk, local), flow)| Event {
            process: chunk.worker,
            lane: lanes.number[*local],
            name: self.program.graph.name(chunk.op).into(),
            kind: None,
            since: Seconds::new(chunk.since),
            until: Seconds::new(chunk.until),
            figure: None,
            flow,
        }));
        let mut shared = Levels::new(processes.len() as u32);
        self.loads(&mut shared);
        self.queues(&mut shared);
        processes.extend(shared.process());
        let mut timeline = Timeline { about: self.about.clone(), processes, events, levels: shared.levels };
        timeline.untangle();
        timeline
    }

    /// Throughput in `slices` of equal length, with `samples` of each step; steps count by their part inside (Li 2020,
    /// Figure 16).
    pub fn throughput(&self, samples: f64, slices: u32) -> Vec<(Seconds, SamplesPerSec)> {
        let records = &self.observed.steps.records;
        let end = records.iter().map(|record| record.until).fold(0.0, f64::max);
        let slice = |place: u32| {
            let at = |share: f64| end * (f64::from(place) + share) / f64::from(slices);
            let window = Window { since: at(0.0), until: at(1.0) };
            (Seconds::new(at(0.5)), SamplesPerSec::new(samples * window.steps_per_second(records)))
        };
        (0..slices).map(slice).collect()
    }

    /// Chunks with their local lanes, without those that take no time.
    fn chunks(&self) -> Vec<(&ChunkRecord, usize)> {
        let local = |chunk: &ChunkRecord| {
            self.program.lane_of[chunk.worker as usize].iter().position(|&own| own == chunk.lane)
        };
        let long = self.observed.chunks.iter().filter(|chunk| chunk.until > chunk.since);
        long.filter_map(|chunk| Some((chunk, local(chunk)?))).collect()
    }

    fn steps(&self) -> Vec<Event<'_>> {
        let mut done = vec![0_u64; self.program.workers()];
        let event = |step: &stepcast_sim::StepRecord| {
            let index = &mut done[step.worker as usize];
            *index += 1;
            Event {
                process: step.worker,
                lane: STEPS,
                name: format!("step {}", *index - 1).into(),
                kind: None,
                since: Seconds::new(step.since),
                until: Seconds::new(step.until),
                figure: Some(("staleness", step.stale)),
                flow: Flow::None,
            }
        };
        self.observed.steps.records.iter().map(event).collect()
    }

    /// A flow from the last chunk of every push to the update that it leads to.
    fn flows(&self, chunks: &[(&ChunkRecord, usize)]) -> Vec<Flow> {
        let operations = &self.about.operations;
        let own = |op: u32| operations.get(op as usize).filter(|it| it.name == self.program.graph.name(op));
        let mut flows = vec![Flow::None; chunks.len()];
        let mut pushed: HashMap<(u32, u32), usize> = HashMap::new();
        let mut next = 1;
        for (index, (chunk, _)) in chunks.iter().enumerate() {
            let Some(operation) = own(chunk.op) else { continue };
            if operation.resource == Resource::Uplink {
                pushed.insert((chunk.worker, chunk.op), index);
            }
            let push = pushes(operations, operation)
                .filter_map(|push| pushed.remove(&(chunk.worker, push)))
                .max_by(|&a, &b| chunks[a].0.until.total_cmp(&chunks[b].0.until));
            if let Some(push) = push {
                flows[push] = Flow::Begins(next);
                flows[index] = Flow::Ends(next);
                next += 1;
            }
        }
        flows
    }
}

fn pushes<'a>(operations: &'a [Operation], update: &'a Operation) -> impl Iterator<Item = u32> + 'a {
    let is_push = |op: &u32| {
        operations.get(*op as usize).is_some_and(|operation| operation.resource == Resource::Uplink)
    };
    let before = if update.resource == Resource::Server { &update.after[..] } else { &[] };
    before.iter().copied().filter(is_push)
}

/// Lanes that are used, after the lane of the steps.
struct Lanes {
    names: Vec<String>,
    /// By local lane.
    number: Vec<u32>,
}

impl Lanes {
    fn of(all: &[String], chunks: &[(&ChunkRecord, usize)]) -> Self {
        let mut used = vec![false; all.len()];
        for &(_, lane) in chunks {
            used[lane] = true;
        }
        let mut names = vec!["steps".to_owned()];
        let mut number = vec![STEPS; all.len()];
        for (lane, name) in all.iter().enumerate().filter(|(lane, _)| used[*lane]) {
            number[lane] = names.len() as u32;
            names.push(name.clone());
        }
        Self { names, number }
    }
}

impl Recording {
    /// How loaded the stations are that workers share.
    fn loads(&self, levels: &mut Levels) {
        let mut known: BTreeMap<Shared, [u32; 2]> = BTreeMap::new();
        for (name, &lane) in self.lane_names.iter().zip(&self.program.lane_of[0]) {
            let shared = match self.program.lanes[lane as usize].station {
                Station::Own(_) => continue,
                Station::Pool(pool) => Shared::Pool(pool),
                Station::Tcp { up, .. } => Shared::Tcp { up },
                // The first port is the server's.
                Station::Links(route) => match route.ports().first() {
                    Some(&port) => Shared::Port(port),
                    None => continue,
                },
            };
            known.entry(shared).or_insert_with(|| {
                [
                    levels.add(format!("{name}: used"), "%"),
                    levels.add(format!("{name}: in flight"), "transfers"),
                ]
            });
        }
        for load in &self.observed.loads {
            if let Some([used, in_flight]) = known.get(&load.of) {
                levels.set(*used, load.at, 100.0 * load.share);
                levels.set(*in_flight, load.at, f64::from(load.customers));
            }
        }
    }

    /// How many operations of all workers wait, by local lane.
    fn queues(&self, levels: &mut Levels) {
        let mut local = vec![None; self.program.lanes.len()];
        for lanes in &self.program.lane_of {
            for (index, &lane) in lanes.iter().enumerate() {
                local[lane as usize] = Some(index);
            }
        }
        let mut waiting = vec![0; self.program.lanes.len()];
        let mut total = vec![0_u32; self.lane_names.len()];
        let mut level = vec![None; self.lane_names.len()];
        for queue in &self.observed.queues {
            let Some(index) = local[queue.lane as usize].filter(|index| *index < total.len()) else {
                continue;
            };
            let before = std::mem::replace(&mut waiting[queue.lane as usize], queue.operations);
            total[index] = total[index] + queue.operations - before;
            if level[index].is_some() || total[index] > 0 {
                let name = || levels.add(format!("{}: waiting", self.lane_names[index]), "operations");
                let level = *level[index].get_or_insert_with(name);
                levels.set(level, queue.at, f64::from(total[index]));
            }
        }
    }
}

/// Levels of stations that workers share. Values that are replaced at the same moment, or that change nothing, are not kept.
struct Levels {
    process: u32,
    names: Vec<(String, &'static str)>,
    levels: Vec<Level>,
    /// By level: the place of its last value.
    last: Vec<Option<usize>>,
}

impl Levels {
    fn new(process: u32) -> Self {
        Self { process, names: Vec::new(), levels: Vec::new(), last: Vec::new() }
    }

    fn add(&mut self, name: String, unit: &'static str) -> u32 {
        self.names.push((name, unit));
        self.last.push(None);
        self.names.len() as u32 - 1
    }

    fn set(&mut self, level: u32, at: f64, value: f64) {
        let last = &mut self.last[level as usize];
        if let Some(before) = last.map(|last| &mut self.levels[last]) {
            if before.at.get() >= at {
                before.value = value;
                return;
            }
            if before.value.total_cmp(&value).is_eq() {
                return;
            }
        }
        *last = Some(self.levels.len());
        self.levels.push(Level { process: self.process, level, at: Seconds::new(at), value });
    }

    fn process(&self) -> Option<Process> {
        let levels = self.names.clone();
        (!levels.is_empty()).then(|| Process { name: "shared".to_owned(), lanes: Vec::new(), levels })
    }
}

/// Workers of a round that are shown, the first to arrive at the server.
const MOST_ROUND_WORKERS: usize = 100;

const ROUND_LANES: [&str; 4] = ["computing", "waiting", "push", "pull"];

/// A process for every worker, in the order in which servers receive their gradients.
pub fn round_timeline(scenario: &Scenario) -> Result<Timeline<'static>, Fault> {
    let rounds = round(scenario, MOST_ROUND_WORKERS)?;
    let process = |(worker, of): (usize, &WorkerRound)| Process {
        name: format!("w{worker}, {}", scenario.cluster.groups[of.group].device.name),
        lanes: ROUND_LANES.map(str::to_owned).into(),
        levels: Vec::new(),
    };
    let processes = rounds.iter().enumerate().map(process).collect();
    let mut events = Vec::new();
    for (process, of) in (0..).zip(&rounds) {
        events.extend(of.parts.iter().map(|&(kind, since, until)| Event {
            process,
            lane: match kind {
                PartKind::Queueing => 1,
                PartKind::Push => 2,
                PartKind::Pull => 3,
                _ => 0,
            },
            name: kind.to_string().into(),
            kind: None,
            since,
            until,
            figure: None,
            flow: Flow::None,
        }));
    }
    let about = About {
        format: FORMAT.to_owned(),
        name: scenario.name().to_owned(),
        batch: scenario.batch(0),
        operations: Vec::new(),
    };
    Ok(Timeline { about, processes, events, levels: Vec::new() })
}
