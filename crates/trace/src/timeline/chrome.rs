//! The Trace Event Format, which Perfetto and `chrome://tracing` open, printed and read back event by event.
//!
//! Times are written in microseconds and cut to whole nanoseconds, starts and ends alike, so that events that touch do
//! not overlap in print.

use super::{About, Event, Events, Flow, Level, Span, Timeline, nanoseconds};
use crate::source::Memory;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use serde_with::skip_serializing_none;
use std::borrow::Cow;
use std::cell::Cell;
use std::io::{BufReader, Read, Write};
use std::rc::Rc;
use std::{fmt, io};
use stepcast_core::quantity::Seconds;

/// Viewers take number 0 for the idle process and thread, so numbers in the file begin with 1.
pub(super) const FIRST: u32 = 1;

#[skip_serializing_none]
#[derive(Serialize)]
struct Complete<'a> {
    name: &'a str,
    cat: Option<&'static str>,
    ph: char,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    args: Option<Value>,
}

/// Everything but complete events.
#[skip_serializing_none]
#[derive(Serialize)]
struct Mark<'a> {
    name: &'a str,
    ph: char,
    pid: u32,
    tid: u32,
    ts: Option<f64>,
    cat: Option<&'static str>,
    id: Option<u64>,
    /// Where the arrow ends: at the event around the moment, not at the next one.
    bp: Option<char>,
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

#[derive(Deserialize)]
struct RecordedEvent<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    tid: u32,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
}

pub(super) fn read_events(reader: impl Read, memory: &Memory) -> Result<Events, String> {
    let unread = Unread(Rc::default());
    let bounded = Bounded { inner: reader, unread: unread.clone(), memory };
    let mut deserializer = serde_json::Deserializer::from_reader(BufReader::new(bounded));
    let events = deserializer.deserialize_map(Whole(memory, unread)).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(events)
}

/// Bytes since the last event taken in.
#[derive(Clone)]
struct Unread(Rc<Cell<u64>>);

/// Bytes of memory for each byte of an event that is not taken in yet.
const EXPANSION: u64 = 8;

/// Ends in an error where a single text or list takes more memory than there is.
struct Bounded<'m, R> {
    inner: R,
    unread: Unread,
    memory: &'m Memory,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let unread = self.unread.0.get().saturating_add(count as u64);
        self.unread.0.set(unread);
        if unread.saturating_mul(EXPANSION) > self.memory.left() {
            return Err(io::Error::other("a part of it takes too much memory"));
        }
        Ok(count)
    }
}

struct Whole<'m>(&'m Memory, Unread);

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = Events;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timeline")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Events, A::Error> {
        let mut events = None;
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), &mut events) {
                ("stepcast", None) => {
                    events = Some(Events::new(map.next_value::<About>()?, self.0).map_err(A::Error::custom)?);
                }
                ("traceEvents", Some(events)) => map.next_value_seed(Kept(events, &self.1))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            self.1.0.set(0);
        }
        events.ok_or_else(|| A::Error::custom("it does not describe the job"))
    }
}

/// Keeps the events of the first worker.
struct Kept<'e>(&'e mut Events, &'e Unread);

impl<'de> DeserializeSeed<'de> for Kept<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Kept<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = list.next_element::<RecordedEvent<'_>>()? {
            self.1.0.set(0);
            if event.ph != "X" || event.pid != FIRST {
                continue;
            }
            let nanoseconds = |time: f64| (time * 1e3).round() as u64;
            let since = nanoseconds(event.ts);
            let span = Span { since, until: since.saturating_add(nanoseconds(event.dur)) };
            match event.tid {
                FIRST => self.0.step(span),
                _ => self.0.chunk(&event.name, span),
            }
        }
        Ok(())
    }
}
