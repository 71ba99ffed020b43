//! The events of one timeline: operations on lanes of devices, and sizes of tensors if they were asked for.

use super::super::place::{Place, is_kernel_stream};
use crate::objects::{Object, number, text};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};

/// Operations and tensors beyond these are only counted.
const MOST: usize = 1_000_000;
/// Microseconds beyond which a time is a mistake: the year 2286.
const LATEST: f64 = 1e16;

/// One operation of a step.
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
    /// The place of each lane that is used.
    lanes: HashMap<String, Place>,
    pub(super) ignored: BTreeSet<String>,
    pub(super) odd: usize,
    pub(super) excess: usize,
    /// Bytes of names and of lists of inputs.
    named: usize,
}

/// Bytes of an operation, a size or a lane, and of one input, here and in the graph that is made of them.
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
