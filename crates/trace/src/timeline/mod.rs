//! Timelines for trace viewers: events by place and time, loads of links, and links between causes and effects.
//!
//! [`chrome`] and [`perfetto`] print a [`Timeline`], and an import reads it back: the steps of the first worker become a profile.
//! Only that worker's events are kept in memory. Viewers draw events of a lane inside each other,
//! so events of one lane either nest or do not meet: [`Timeline::untangle`] moves overlapping ones to separate lanes.

pub mod chrome;
pub mod perfetto;
#[cfg(test)]
mod tests;

use crate::draft::topological_order;
use crate::files::{Content, write_whole};
use crate::import::{Imported, Options, profile_fault};
use crate::overview::{Summary, SummaryValue};
use crate::source::{self, Memory};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::profile::{Operation, Profile, Step};
use stepcast_core::quantity::Seconds;

pub fn is_perfetto(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "pftrace" || ending == "perfetto-trace")
}

/// Writes a timeline to `path`, whole or not at all: in Perfetto's format if the name says so (`.pftrace`,
/// `.perfetto-trace`), as JSON otherwise.
pub fn write_timeline(path: &Path, timeline: &Timeline<'_>) -> Result<(), Fault> {
    write_whole(path, |mut file| match is_perfetto(path) {
        true => perfetto::print(timeline, &mut file),
        false => chrome::print(timeline, &mut file),
    })
}

/// The format that this version writes into a timeline and reads from one.
pub const FORMAT: &str = "stepcast-timeline/1";

/// A group of lanes and levels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Process {
    pub name: String,
    /// Names of its lanes, from top to bottom.
    pub lanes: Vec<String>,
    pub levels: Vec<(String, &'static str)>,
}

/// The link of an event to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flow {
    #[default]
    None,
    Begins(u64),
    Ends(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Event<'a> {
    pub process: u32,
    /// Index of its lane within the process.
    pub lane: u32,
    pub name: Cow<'a, str>,
    /// Its kind: events of one kind have one colour.
    pub kind: Option<&'static str>,
    pub since: Seconds,
    pub until: Seconds,
    pub figure: Option<(&'static str, u64)>,
    /// Its link to a cause or an effect.
    pub flow: Flow,
}

/// A level from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Level {
    pub process: u32,
    /// Index of the level within the process.
    pub level: u32,
    pub at: Seconds,
    pub value: f64,
}

/// Data about the job that an import needs to restore a profile from the timeline.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct About {
    /// [`FORMAT`].
    pub format: String,
    pub name: String,
    pub batch: u32,
    /// The operations of every step, as in a profile; none if no profile can describe the job.
    pub operations: Vec<Operation>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timeline<'a> {
    pub about: About,
    /// Groups of lanes, from top to bottom.
    pub processes: Vec<Process>,
    pub events: Vec<Event<'a>>,
    /// Levels; in order of time for each.
    pub levels: Vec<Level>,
}

impl Timeline<'_> {
    /// Sorts events by process, lane and time, and moves those that overlap an earlier one without lying in it to further
    /// lanes of the same name.
    pub fn untangle(&mut self) {
        let key = |event: &Event<'_>| (event.process, event.lane);
        self.events.sort_by(|a, b| {
            let times = a.since.get().total_cmp(&b.since.get());
            key(a).cmp(&key(b)).then(times).then(b.until.get().total_cmp(&a.until.get()))
        });
        let mut first = 0;
        while first < self.events.len() {
            let (process, lane) = key(&self.events[first]);
            let length =
                self.events[first..].iter().take_while(|event| key(event) == (process, lane)).count();
            let lanes = &mut self.processes[process as usize].lanes;
            // Ends of the events that are open, innermost last, by lane.
            let mut open: Vec<(u32, Vec<Seconds>)> = vec![(lane, Vec::new())];
            for event in &mut self.events[first..first + length] {
                let (since, until) = (event.since, event.until);
                let fits = |(_, open): &mut (u32, Vec<Seconds>)| {
                    open.retain(|end| *end > since);
                    open.last().is_none_or(|end| until <= *end)
                };
                let place = open.iter_mut().position(fits).unwrap_or_else(|| {
                    let name = format!("{} ({})", lanes[lane as usize], open.len() + 1);
                    lanes.push(name);
                    open.push((lanes.len() as u32 - 1, Vec::new()));
                    open.len() - 1
                });
                event.lane = open[place].0;
                open[place].1.push(until);
            }
            first += length;
        }
        // Lanes that were added are behind the others of their process.
        self.events.sort_by_key(key);
    }
}

/// Whole nanoseconds; times before zero or beyond 584 years are clamped.
pub(super) fn nanoseconds(time: Seconds) -> u64 {
    (time.get() * 1e9).round() as u64
}

/// Whether a file that begins like this is a timeline of ours.
pub(crate) fn recognises(head: &[u8]) -> bool {
    matches!(head.first(), Some(b'{' | 0x0a))
        && head.windows(FORMAT.len()).any(|bytes| bytes == FORMAT.as_bytes())
}

pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "timelines", "name one of them")?;
    let mut notes = Vec::new();
    let reading = options.reading(paths);
    let mut imported = source::first(path, &reading, recognises, &mut notes, |source| {
        let name = source.name().to_owned();
        let is_json = source.head().first() == Some(&b'{');
        let memory = source.memory();
        let read = match is_json {
            true => chrome::read_events(&mut *source, &memory),
            false => perfetto::read_packets(BufReader::new(&mut *source), &memory),
        };
        source.check()?;
        let again = Remedy::option_to(RequestOption::Timeline, "to write it again");
        let events = read.map_err(|reason| Fault::in_file(name.clone(), reason, again))?;
        events.profile(&name, options.batch)
    })?;
    imported.notes.extend(notes);
    Ok(imported.map(Content::Profile))
}

/// Start and end in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Span {
    pub(super) since: u64,
    pub(super) until: u64,
}

pub(super) struct Events {
    about: About,
    index: HashMap<String, u32>,
    steps: Vec<Span>,
    chunks: Vec<(Span, u32)>,
    memory: Memory,
}

/// Bytes of a step or a chunk in a list that grows, and of an operation of a step in the profile.
const EVENT: usize = 80;
const MEASURED: usize = 80;
/// Bytes of an operation.
const OPERATION: usize = 700;

impl Events {
    pub(super) fn new(about: About, memory: &Memory) -> Result<Self, String> {
        if about.format != FORMAT {
            return Err(format!("\"{}\" is not a format that this version reads", about.format));
        }
        let after: usize = about.operations.iter().map(|operation| operation.after.len()).sum();
        let text: usize = about.operations.iter().map(|operation| operation.name.len()).sum();
        memory.hold(about.operations.len() * OPERATION + after * 24 + text * 4);
        let names = about.operations.iter().map(|operation| operation.name.clone());
        let index = names.zip(0..).collect();
        Ok(Self { about, index, steps: Vec::new(), chunks: Vec::new(), memory: memory.clone() })
    }

    pub(super) fn step(&mut self, span: Span) {
        self.memory.hold(EVENT + self.about.operations.len() * MEASURED);
        self.steps.push(span);
    }

    /// Adds a part of an operation; events other than operations of the profile, such as pauses, are skipped.
    pub(super) fn chunk(&mut self, name: &str, span: Span) {
        if let Some(&op) = self.index.get(name) {
            self.memory.hold(EVENT);
            self.chunks.push((span, op));
        }
    }

    pub(super) fn profile(mut self, place: &str, batch: Option<u32>) -> Result<Imported<Profile>, Fault> {
        let operations = std::mem::take(&mut self.about.operations);
        if operations.is_empty() {
            let reason = "no profile can be made of SPRINT's threads: they do not take turns";
            let remedy = "import a timeline of a parameter server or of synchronous all-reduce";
            return Err(Fault::in_file(place, reason, remedy));
        }
        let order = topological_order(operations.len(), |op| {
            operations[op].after.iter().map(|&before| before as usize)
        });
        self.steps.sort_unstable();
        self.chunks.sort_unstable();
        let mut chunks = self.chunks.iter().peekable();
        let mut steps = Vec::with_capacity(self.steps.len());
        for (number, step) in self.steps.iter().enumerate() {
            let mut spans: Vec<Option<Span>> = vec![None; operations.len()];
            while let Some((span, op)) = chunks.next_if(|(span, _)| span.since < step.until) {
                let own = spans[*op as usize].get_or_insert(*span);
                own.until = own.until.max(span.until);
            }
            let next = self.steps.get(number + 1).map_or(step.until, |next| next.since);
            steps.push(measured(&operations, &order, &spans, *step, next));
        }
        let About { name, batch: recorded, .. } = &self.about;
        let source = "a timeline that Stepcast simulated";
        let profile = Profile::new(name, source, batch.unwrap_or(*recorded), operations, steps);
        profile.check().map_err(|fault| profile_fault(place, fault))?;
        let mut summary = Summary::default();
        summary.figure("chunks", "chunks of operations", SummaryValue::Count(self.chunks.len() as u64), "");
        let notes = vec![
            "these are the steps of worker 0; its transfers waited for those of the others, and a simulation finds out \
             anew how long they take"
                .to_owned(),
        ];
        Ok(Imported { content: profile, summary, notes })
    }
}

/// Restores operations that took no time, which are not in a timeline: they end with their prerequisites.
fn measured(
    operations: &[Operation],
    order: &[usize],
    spans: &[Option<Span>],
    step: Span,
    next: u64,
) -> Step {
    let mut start = vec![0; operations.len()];
    let mut end = vec![0; operations.len()];
    for &op in order {
        let before = operations[op].after.iter().map(|&before| end[before as usize]);
        let ready = before.max().unwrap_or(step.since).max(step.since);
        let span = spans[op].unwrap_or(Span { since: ready, until: ready });
        (start[op], end[op]) = (span.since, span.until);
    }
    let seconds = |time: u64| Seconds::new(time.saturating_sub(step.since) as f64 / 1e9).get();
    Step {
        start: start.into_iter().map(seconds).collect(),
        end: end.into_iter().map(seconds).collect(),
        length: seconds(next),
    }
}
