//! Timelines for trace viewers: what happened where and when, how loaded links were, what led to what.
//!
//! [`chrome`] and [`perfetto`] print a [`Timeline`], and an import reads it back. Viewers draw events of a lane inside each other,
//! so events of one lane either nest or do not meet: [`Timeline::untangle`] gives those that would overlap lanes of their own.

pub mod chrome;
pub mod perfetto;
mod read;
#[cfg(test)]
mod tests;

use crate::files::write_whole;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::profile::Operation;
use stepcast_core::quantity::Seconds;

pub(crate) use read::{import, recognises};

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
    /// What it is one of: events of one kind have one colour.
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

/// The job, as far as an import needs it to make a profile of the timeline again.
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

/// Whole nanoseconds; what lies before zero or beyond 584 years is cut off.
pub(super) fn nanoseconds(time: Seconds) -> u64 {
    (time.get() * 1e9).round() as u64
}
