//! The Trace Event Format, which Perfetto and `chrome://tracing` open.
//!
//! Times are written in microseconds and cut to whole nanoseconds, starts and ends alike, so that events that touch do
//! not overlap in print.

use super::event::{Event, Flow, Level, Timeline, nanoseconds};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};
use stepcast_core::quantity::Seconds;

/// Viewers take number 0 for the idle process and thread, so numbers in the file begin with 1.
pub(super) const FIRST: u32 = 1;

#[derive(Serialize)]
struct Complete<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    ph: char,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

/// Everything but complete events.
#[derive(Serialize)]
struct Mark<'a> {
    name: &'a str,
    ph: char,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    /// Where the arrow ends: at the event around the moment, not at the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<char>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Value>,
}

fn microseconds(time: Seconds) -> f64 {
    nanoseconds(time) as f64 / 1e3
}

fn mark(name: &str, ph: char, pid: u32, tid: u32) -> Mark<'_> {
    Mark { name, ph, pid, tid, ts: None, cat: None, id: None, bp: None, args: None }
}

fn complete<'a>(event: &'a Event<'_>) -> Complete<'a> {
    let (since, until) = (nanoseconds(event.since), nanoseconds(event.until));
    Complete {
        name: &event.name,
        cat: event.kind,
        ph: 'X',
        pid: FIRST + event.process,
        tid: FIRST + event.lane,
        ts: since as f64 / 1e3,
        dur: until.saturating_sub(since) as f64 / 1e3,
        args: event.figure.map(|(name, value)| json!({ name: value })),
    }
}

fn arrow(event: &Event<'_>) -> Option<Mark<'static>> {
    let (ph, id, bp) = match event.flow {
        Flow::None => return None,
        Flow::Begins(id) => ('s', id, None),
        Flow::Ends(id) => ('f', id, Some('e')),
    };
    let place = mark("flow", ph, FIRST + event.process, FIRST + event.lane);
    Some(Mark { ts: Some(microseconds(event.since)), cat: Some("flow"), id: Some(id), bp, ..place })
}

fn counter<'a>(level: &Level, (name, unit): &'a (String, &'static str)) -> Mark<'a> {
    let args = json!({ (*unit): level.value });
    let place = mark(name, 'C', FIRST + level.process, 0);
    Mark { ts: Some(microseconds(level.at)), args: Some(args), ..place }
}

/// Prints a timeline as JSON, one line per event.
pub fn print(timeline: &Timeline<'_>, out: &mut impl Write) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ms\",")?;
    write!(out, "\"stepcast\":{},", serde_json::to_string(&timeline.about)?)?;
    write!(out, "\"traceEvents\":[")?;
    let mut lines = Lines { out, any: false };
    for (pid, process) in (FIRST..).zip(&timeline.processes) {
        let about = |name, tid, args| Mark { args: Some(args), ..mark(name, 'M', pid, tid) };
        lines.print(&about("process_name", 0, json!({ "name": process.name })))?;
        lines.print(&about("process_sort_index", 0, json!({ "sort_index": pid })))?;
        for (tid, lane) in (FIRST..).zip(&process.lanes) {
            lines.print(&about("thread_name", tid, json!({ "name": lane })))?;
            lines.print(&about("thread_sort_index", tid, json!({ "sort_index": tid })))?;
        }
    }
    for event in &timeline.events {
        lines.print(&complete(event))?;
        if let Some(arrow) = arrow(event) {
            lines.print(&arrow)?;
        }
    }
    for level in &timeline.levels {
        let names = &timeline.processes[level.process as usize].levels;
        lines.print(&counter(level, &names[level.level as usize]))?;
    }
    writeln!(out, "\n]}}")
}

struct Lines<'w, W> {
    out: &'w mut W,
    any: bool,
}

impl<W: Write> Lines<'_, W> {
    fn print(&mut self, line: &impl Serialize) -> io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        serde_json::to_writer(&mut *self.out, line)?;
        Ok(())
    }
}
