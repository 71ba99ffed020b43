//! A run to look at: what every worker did when, how loaded links were, which push led to which update.

use std::collections::{BTreeMap, HashMap};
use stepcast_core::profile::{Operation, Resource};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_sim::{ChunkRecord, Program, Shared, Station};
use stepcast_trace::timeline::{About, Event, Flow, Level, Process, Timeline};

/// Lane of the steps, above all others.
const STEPS: u32 = 0;

/// Operations that a layer becomes: parameters, forward, backward, gradients, update.
const PER_LAYER: u64 = 5;

/// About how many events a step of all workers has in a timeline.
pub fn events_per_step(scenario: &Scenario) -> u64 {
    let operations = match scenario.profile() {
        Some(profile) => profile.operations.len() as u64,
        None => PER_LAYER * scenario.workload.layers.len() as u64,
    };
    scenario.cluster.workers().saturating_mul(operations).max(1)
}

/// A run to look at.
#[derive(Debug, Clone)]
pub struct Recording {
    /// What was run.
    pub program: Program,
    /// Names of every worker's local lanes.
    pub lane_names: Vec<String>,
    /// What happened.
    pub observed: stepcast_sim::Timeline,
    /// What a profile of it would be about; without operations if none can be made.
    pub about: About,
}

impl Recording {
    /// For viewers: a process for every worker with a lane for everything it uses, and one for what workers share.
    pub fn timeline(&self) -> Timeline<'_> {
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

    /// Chunks with their local lanes; those that take no time would only be in the way.
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

    /// How loaded what workers share is.
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

    /// How many operations of all workers wait, by what they wait for.
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

/// The pushes that an update waits for.
fn pushes<'a>(operations: &'a [Operation], update: &'a Operation) -> impl Iterator<Item = u32> + 'a {
    let is_push = |op: &u32| {
        operations.get(*op as usize).is_some_and(|operation| operation.resource == Resource::Uplink)
    };
    let before = if update.resource == Resource::Server { &update.after[..] } else { &[] };
    before.iter().copied().filter(is_push)
}

/// Lanes that are used, behind that of the steps.
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

/// Levels of what workers share. Values that are replaced at the same moment, or that change nothing, are not kept.
struct Levels {
    process: u32,
    names: Vec<(String, &'static str)>,
    levels: Vec<Level>,
    /// By level: where its last value stands.
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

#[cfg(test)]
mod tests {
    use super::super::timeline;
    use super::*;
    use stepcast_core::fault::Fault;
    use stepcast_core::files::Files;
    use stepcast_core::pass::{Pass, Recorded};
    use stepcast_core::profile::Profile;
    use stepcast_core::scenario::{Document, Override};

    fn recorded(changes: &[&str]) -> Recording {
        let text = "[model]\nzoo = \"alexnet\"\n[strategy]\nsynchronisation = \"async\"\n";
        let changes: Vec<Override> = changes.iter().map(|change| Override::parse(change).unwrap()).collect();
        timeline(&Document::new("test", text).scenario(&changes).unwrap(), 3).unwrap()
    }

    struct Example;

    impl Files for Example {
        fn profile(&self, path: &str) -> Result<Profile, Fault> {
            let text = include_bytes!("../../../../examples/one-worker.json");
            Ok(stepcast_trace::parse_profile(text, path).unwrap())
        }
    }

    /// Units carried over what is called `name`, by its level.
    fn carried(timeline: &Timeline<'_>, name: &str, capacity: f64, end: f64) -> f64 {
        let shared = timeline.processes.last().unwrap();
        let level = shared.levels.iter().position(|(level, _)| level == name).unwrap() as u32;
        let of: Vec<&Level> = timeline.levels.iter().filter(|entry| entry.level == level).collect();
        let ends = of.iter().skip(1).map(|next| next.at.get()).chain([end]);
        of.iter()
            .zip(ends)
            .map(|(entry, until)| entry.value / 100.0 * capacity * (until - entry.at.get()))
            .sum()
    }

    #[test]
    fn levels_of_links_account_for_every_byte() {
        for servers in [1, 2] {
            let recording = recorded(&[&format!("cluster.servers.count={servers}")]);
            let timeline = recording.timeline();
            let end = timeline.events.iter().map(|event| event.until.get()).fold(0.0, f64::max);
            let program = &recording.program;
            let steps = recording.observed.steps.records.len() as f64;
            let mut bytes = 0.0;
            let mut expected = 0.0;
            for (local, name) in recording.lane_names.iter().enumerate() {
                let capacity = match program.lanes[program.lane_of[0][local] as usize].station {
                    Station::Pool(pool) => program.pools[pool as usize].capacity,
                    Station::Links(route) => program.ports[route.ports()[0] as usize],
                    _ => continue,
                };
                bytes += carried(&timeline, &format!("{name}: used"), capacity, end);
                let on = |op: &usize| usize::from(program.graph.lane(*op as u32)) == local;
                let work = &program.steps[0][0].work;
                expected += steps * (0..work.len()).filter(on).map(|op| work[op]).sum::<f64>();
            }
            assert!(expected > 1e9 && (bytes / expected - 1.0).abs() < 1e-6, "{bytes} {expected}");
        }
    }

    #[test]
    fn every_push_leads_to_its_update() {
        let text = "[model]\nprofile = \"one-worker.json\"\n[strategy]\nsynchronisation = \"async\"\n";
        let scenario = Document::new("test", text).scenario_with(&Example, &[]).unwrap();
        let recording = timeline(&scenario, 3).unwrap();
        let timeline = recording.timeline();
        let operations = &recording.about.operations;
        let mut begins = BTreeMap::new();
        for event in &timeline.events {
            if let Flow::Begins(id) = event.flow {
                begins.insert(id, event);
            }
        }
        let mut ends = 0;
        for event in &timeline.events {
            let Flow::Ends(id) = event.flow else { continue };
            let push = begins[&id];
            assert!(push.process == event.process && push.until <= event.since, "{push:?} {event:?}");
            let update = operations.iter().find(|operation| operation.name == event.name).unwrap();
            assert!(pushes(operations, update).any(|op| operations[op as usize].name == push.name));
            ends += 1;
        }
        let updates = timeline.events.iter().filter(|event| {
            operations.iter().any(|op| op.resource == Resource::Server && op.name == event.name)
        });
        assert_eq!((ends, begins.len()), (updates.count(), ends));
        assert!(ends > 0);
    }

    /// What worker 0 computed, and when its gradients were ready, come back from the file.
    #[test]
    fn a_timeline_of_all_reduce_gives_its_passes_back() {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        let changes =
            ["strategy.architecture=all-reduce", "strategy.synchronisation=bsp", "methods.simulate.jitter=0"];
        let recording = recorded(&changes);
        stepcast_trace::timeline::write_timeline(file.path(), &recording.timeline()).unwrap();
        let imported =
            stepcast_trace::import(&[file.path().to_owned()], &stepcast_trace::Options::default()).unwrap();
        let stepcast_trace::Content::Profile(profile) = imported.content else {
            panic!("steps give a profile")
        };
        assert_eq!((profile.steps.len(), profile.batch), (3, 32));
        let read = Recorded::new(&profile).unwrap().mean(1.0);
        let ready = |pass: &Pass| -> Vec<(f64, f64)> {
            let mut now = pass.forward.get();
            let mut moments = Vec::new();
            for layer in &pass.layers {
                now += layer.backward.get();
                if layer.gradients.get() > 0.0 {
                    moments.push((now, layer.gradients.get()));
                }
            }
            moments.push((now + pass.update.get(), 0.0));
            moments
        };
        let text = "[model]\nzoo = \"alexnet\"\n";
        let changes = changes.map(|change| Override::parse(change).unwrap());
        let scenario = Document::new("test", text).scenario(&changes).unwrap();
        let run = ready(&crate::simulate::exchange::training(&scenario).unwrap().passes[0][0]);
        let read = ready(&read);
        assert_eq!(read.len(), run.len());
        for ((time, size), (expected, sent)) in read.into_iter().zip(run) {
            assert!((time - expected).abs() < 1e-7 && (size - sent).abs() < 0.5, "{time} {expected}");
        }
    }

    #[test]
    fn no_profile_is_made_of_sprint() {
        let file = tempfile::Builder::new().suffix(".json").tempfile().unwrap();
        let recording = recorded(&["strategy.architecture=all-reduce"]);
        stepcast_trace::timeline::write_timeline(file.path(), &recording.timeline()).unwrap();
        let error = stepcast_trace::import(&[file.path().to_owned()], &stepcast_trace::Options::default());
        assert!(error.unwrap_err().reason.contains("no profile can be made"));
    }

    #[test]
    fn queues_end_empty() {
        for changes in [
            &[][..],
            &["methods.simulate.transport=tcp"],
            &["strategy.architecture=all-reduce", "strategy.synchronisation=bsp"],
        ] {
            let recording = recorded(changes);
            let timeline = recording.timeline();
            let names = timeline.processes.last().map_or(&[][..], |process| &process.levels);
            for (level, _) in (0..).zip(names).filter(|(_, (name, _))| name.ends_with("waiting")) {
                let last = timeline.levels.iter().rfind(|entry| entry.level == level).unwrap();
                assert!(last.value.abs() < 1e-12, "{changes:?}: {last:?} {}", names[level as usize].0);
            }
        }
    }
}
