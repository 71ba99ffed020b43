//! TensorFlow's timelines: the JSON that `timeline.Timeline` makes of a step's records, for Chrome's viewer.
//!
//! A timeline has the place and time of every operation, and the names of its inputs. A tensor that comes from another
//! process has the name of its producer with a number: `w/read_S11` or `w/read/_11`. Its size is there only if the
//! timeline was made with `show_memory=True`. Each file is one step; several, in a folder or archive or named one after
//! the other, are steps of one worker.

mod graph;
#[cfg(test)]
mod tests;

use super::records::{Place, is_kernel_stream};
use crate::draft::{Draft, Label};
use crate::files::Content;
use crate::import::{Imported, Options, counted, tally};
use crate::objects::{Object, number, text};
use crate::source::Limits;
use crate::{Summary, objects, source};
use graph::Vertex;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::profile::{Profile, Resource};

/// Steps beyond these are not used.
const MOST_STEPS: usize = 200;

/// A list of events with a lane named like TensorFlow's lanes of computing.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let has = |word: &[u8]| head.windows(word.len()).any(|bytes| bytes == word);
    has(b"\"traceEvents\"") && has(b" Compute\"") && (has(b"/job:") || has(b"/device:"))
}

pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let mut notes = Vec::new();
    let mut steps: Vec<(String, Events)> = Vec::new();
    let mut excess = 0_usize;
    let reading = options.reading(paths);
    for path in paths {
        source::visit(path, Limits::STREAMED, &reading, &mut |mut source| {
            if !recognises(source.head()) {
                return Ok(ControlFlow::Continue(()));
            }
            if steps.len() == MOST_STEPS {
                excess += 1;
                return Ok(ControlFlow::Continue(()));
            }
            let mut events = Events::default();
            objects::each(&mut source, &["traceEvents"], &mut notes, &mut |event| {
                let before = events.held();
                events.take(&event);
                events.held() - before
            })?;
            steps.push((source.name().to_owned(), events));
            Ok(ControlFlow::Continue(()))
        })?;
    }
    let place = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    tally(&mut notes, excess, "timeline", &format!("ignored: beyond the first {MOST_STEPS}"));
    let batch = options.required_batch(&place)?;
    let label = Label { place, format: "TensorFlow timeline", batch };
    Ok(profile(&steps, &label, notes)?.map(Content::Profile))
}

fn profile(
    steps: &[(String, Events)],
    label: &Label,
    mut notes: Vec<String>,
) -> Result<Imported<Profile>, Fault> {
    report(steps, &mut notes);
    let wrong = |reason: &str, remedy: &str| Err(Fault::in_file(&label.place, reason, remedy));
    let workers: BTreeSet<Place> = steps
        .iter()
        .flat_map(|(_, events)| &events.events)
        .map(|event| event.place)
        .filter(|place| matches!(place, Place::Worker(_)))
        .collect();
    let Some(&worker) = workers.first() else {
        let remedy = "record a job whose devices are in /job:worker and /job:ps";
        return wrong("no operation of a worker was recorded", remedy);
    };
    if workers.len() > 1 {
        notes.push(format!("only {worker} imported; {} ignored", counted(workers.len() - 1, "other worker")));
    }
    let Some((_, first)) = steps.first() else { return wrong("it holds no timeline", "name a timeline") };
    let mut dropped = 0_usize;
    let vertices = graph::vertices(first, worker, &mut dropped);
    tally(&mut notes, dropped, "input", "ignored: ready only after the start of its operation");
    let times: Vec<Vec<(f64, f64)>> =
        steps.iter().filter_map(|(_, events)| graph::times(&vertices, events)).collect();
    let missing = steps.len() - times.len();
    tally(&mut notes, missing, "step", "ignored: without some operations of the first step");
    check_sizes(&vertices, label, &mut notes)?;
    notes.push("a timeline does not record the time between steps; it is taken as zero".to_owned());
    let servers: BTreeSet<Place> = vertices.iter().filter_map(|vertex| vertex.server).collect();
    let number: HashMap<Place, u32> = servers.into_iter().zip(0..).collect();
    let mut draft = Draft::new(times.len());
    for (index, vertex) in vertices.iter().enumerate() {
        let after = vertex.after.iter().map(|&before| before as u32).collect();
        let server = vertex.server.map_or(0, |server| number[&server]);
        let bytes = vertex.bytes.unwrap_or(0);
        draft.add(&vertex.name, vertex.resource, bytes, after, |step| times[step][index]);
        draft.on_server(server);
    }
    Ok(Imported { content: draft.finish(label)?, summary: Summary::default(), notes })
}

fn check_sizes(vertices: &[Vertex], label: &Label, notes: &mut Vec<String>) -> Result<(), Fault> {
    let wrong = |reason: String, remedy: &str| Err(Fault::in_file(&label.place, reason, remedy));
    let moved = || vertices.iter().filter(|vertex| vertex.resource.is_transfer());
    let unknown = moved().filter(|vertex| vertex.bytes.is_none()).count();
    if !moved().any(|vertex| vertex.resource == Resource::Uplink) {
        let remedy = "record a step of training with variables on /job:ps";
        return wrong("no tensor goes from the worker to a server".to_owned(), remedy);
    }
    if unknown == moved().count() {
        let reason =
            format!("it records no size of the {unknown} tensors that move between worker and servers");
        return wrong(
            reason,
            "make it with generate_chrome_trace_format(show_memory=True), or import the RunMetadata",
        );
    }
    tally(notes, unknown, "transferred tensor", "without a recorded size, taken as empty");
    Ok(())
}

fn report(steps: &[(String, Events)], notes: &mut Vec<String>) {
    let sum = |of: fn(&Events) -> usize| steps.iter().map(|(_, events)| of(events)).sum::<usize>();
    for (count, fate) in [
        (sum(|events| events.odd), "ignored: no readable time"),
        (sum(|events| events.excess), "ignored: beyond the first million of a step"),
    ] {
        tally(notes, count, "operation", fate);
    }
    let ignored: BTreeSet<&String> = steps.iter().flat_map(|(_, events)| &events.ignored).collect();
    if let Some(device) = ignored.first() {
        notes.push(format!("{} ignored, such as {device}", counted(ignored.len(), "other device")));
    }
}

/// Operations and tensors beyond these are only counted.
const MOST: usize = 1_000_000;
/// Microseconds beyond which a time is a mistake: the year 2286.
const LATEST: f64 = 1e16;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) place: Place,
    /// Microseconds.
    pub(super) start: f64,
    pub(super) duration: f64,
    pub(super) inputs: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Events {
    pub(super) events: Vec<Event>,
    /// Bytes of an operation's first output.
    pub(super) sizes: HashMap<String, u64>,
    lanes: HashMap<String, Place>,
    pub(super) ignored: BTreeSet<String>,
    pub(super) odd: usize,
    pub(super) excess: usize,
    /// Bytes of names and of lists of inputs.
    named: usize,
}

/// Bytes of an operation, a size or a lane, and of one input, here and in the resulting graph.
const OPERATION: usize = 900;
const INPUT: usize = 200;

impl Events {
    /// About how many bytes it holds.
    pub(super) fn held(&self) -> usize {
        let others = self.sizes.len() + self.lanes.len() + self.ignored.len();
        (self.events.len() + others) * OPERATION + self.named
    }

    pub(super) fn take(&mut self, event: &Object) {
        match text(event.get("ph")) {
            Some("M") => self.lane(event),
            Some("X") => self.operation(event),
            Some("O") => self.snapshot(event),
            _ => {}
        }
    }

    /// A device's lane of operations is called "DEVICE Compute".
    fn lane(&mut self, event: &Object) {
        let name = event.get("args").and_then(|args| text(args.get("name")));
        let Some(device) = name.and_then(|name| name.strip_suffix(" Compute")) else { return };
        self.named += 2 * device.len();
        match Place::from_device(device).filter(|_| !is_kernel_stream(device)) {
            Some(place) => drop(self.lanes.insert(process(event), place)),
            None => drop(self.ignored.insert(device.to_owned())),
        }
    }

    fn operation(&mut self, event: &Object) {
        let (Some(&place), Some(args)) = (self.lanes.get(&process(event)), event.get("args")) else { return };
        let Some(name) = text(args.get("name")) else { return };
        // Transfers are not distinguished; the executor's own bookkeeping computes nothing.
        if matches!(name, "RecvTensor" | "_SOURCE" | "_SINK") {
            return;
        }
        let times = number(event.get("ts")).zip(number(event.get("dur")));
        let Some((start, duration)) =
            times.filter(|(start, duration)| start.abs() <= LATEST && (0.0..=LATEST).contains(duration))
        else {
            self.odd += 1;
            return;
        };
        if self.events.len() == MOST {
            self.excess += 1;
            return;
        }
        let inputs = (0..).map_while(|index| text(args.get(format!("input{index}"))).map(str::to_owned));
        let inputs: Vec<String> = inputs.collect();
        self.named += 6 * name.len() + inputs.iter().map(|input| INPUT + 4 * input.len()).sum::<usize>();
        self.events.push(Event { name: name.to_owned(), place, start, duration, inputs });
    }

    /// A tensor's description is text that says, among others, "requested_bytes: 400".
    fn snapshot(&mut self, event: &Object) {
        let description =
            event.get("args").and_then(|args| text(args.get("snapshot")?.get("tensor_description")));
        let bytes = description.and_then(|description| {
            let (_, after) = description.split_once("requested_bytes:")?;
            after.split_whitespace().next()?.parse().ok()
        });
        if let (Some(name), Some(bytes)) = (text(event.get("name")), bytes)
            && self.sizes.len() < MOST
        {
            self.named += 2 * name.len();
            self.sizes.insert(name.to_owned(), bytes);
        }
    }
}

fn process(event: &Object) -> String {
    match event.get("pid") {
        Some(Value::String(text)) => text.clone(),
        other => other.map(Value::to_string).unwrap_or_default(),
    }
}
