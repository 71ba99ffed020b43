//! Timelines in the Trace Event Format, which Perfetto and `chrome://tracing` open.
//!
//! A pure writer: it knows processes, lanes and events, not what they stand for. Times are written in microseconds
//! and cut to whole nanoseconds, starts and ends alike, so that events that touch do not overlap in print.

use crate::TraceError;
use crate::write::write_whole;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;
use stepcast_core::quantity::Seconds;

/// Viewers take number 0 for the idle process and thread, so numbers in the file begin with 1.
const FIRST: u32 = 1;

/// A row of lanes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// What it is called.
    pub name: String,
    /// Names of its lanes, from top to bottom.
    pub lanes: Vec<String>,
}

/// Something that took a while.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a> {
    /// Index of its process.
    pub process: u32,
    /// Index of its lane within the process.
    pub lane: u32,
    /// What it is called.
    pub name: &'a str,
    /// From when.
    pub since: Seconds,
    /// Until when.
    pub until: Seconds,
    /// A figure to show with it, and what that is called.
    pub figure: Option<(&'a str, u64)>,
}

#[derive(Serialize)]
struct Complete<'a> {
    name: &'a str,
    ph: char,
    pid: u32,
    tid: u32,
    ts: f64,
    dur: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<serde_json::Value>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    name: &'a str,
    ph: char,
    pid: u32,
    tid: u32,
    args: serde_json::Value,
}

/// Whole nanoseconds; what lies before zero or beyond 584 years is cut off.
fn nanoseconds(time: Seconds) -> u64 {
    (time.get() * 1e9).round() as u64
}

fn microseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e3
}

impl<'a> From<&Event<'a>> for Complete<'a> {
    fn from(event: &Event<'a>) -> Self {
        let (since, until) = (nanoseconds(event.since), nanoseconds(event.until));
        Self {
            name: event.name,
            ph: 'X',
            pid: FIRST + event.process,
            tid: FIRST + event.lane,
            ts: microseconds(since),
            dur: microseconds(until.saturating_sub(since)),
            args: event.figure.map(|(name, value)| serde_json::json!({ name: value })),
        }
    }
}

/// Prints a timeline as JSON, one line per event.
pub fn print_timeline<'a>(
    processes: &[Process],
    events: impl IntoIterator<Item = Event<'a>>,
    out: &mut impl Write,
) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
    let mut lines = Lines { out, any: false };
    for (pid, process) in (FIRST..).zip(processes) {
        let about = |name, tid, args| Metadata { name, ph: 'M', pid, tid, args };
        let named = |name: &str| serde_json::json!({ "name": name });
        lines.print(&about("process_name", 0, named(&process.name)))?;
        lines.print(&about("process_sort_index", 0, serde_json::json!({ "sort_index": pid })))?;
        for (tid, lane) in (FIRST..).zip(&process.lanes) {
            lines.print(&about("thread_name", tid, named(lane)))?;
            lines.print(&about("thread_sort_index", tid, serde_json::json!({ "sort_index": tid })))?;
        }
    }
    for event in events {
        lines.print(&Complete::from(&event))?;
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

/// Writes a timeline to `path`, whole or not at all.
pub fn write_timeline<'a>(
    path: &Path,
    processes: &[Process],
    events: impl IntoIterator<Item = Event<'a>>,
) -> Result<(), TraceError> {
    write_whole(path, |file| print_timeline(processes, events, file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn sample() -> (Vec<Process>, Vec<Event<'static>>) {
        let process = |name: &str| Process {
            name: name.to_owned(),
            lanes: vec!["steps".to_owned(), "a \"b\"".to_owned()],
        };
        let event = |process, lane, name, since, until, figure| Event {
            process,
            lane,
            name,
            since: Seconds::new(since),
            until: Seconds::new(until),
            figure,
        };
        let events = vec![
            event(0, 0, "step 0", 0.0, 0.7, Some(("stale", 3))),
            event(0, 1, "x", 0.1, 0.1 + 0.2, None),
            event(0, 1, "y", 0.1 + 0.2, 1.0 / 3.0, None),
            event(1, 1, "z", 1e-9, 1e5, None),
        ];
        (vec![process("worker 0"), process("worker 1")], events)
    }

    fn printed() -> Vec<Value> {
        let (processes, events) = sample();
        let mut text = Vec::new();
        print_timeline(&processes, events, &mut text).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        value["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn events_keep_their_times_and_touch_without_overlapping() {
        let complete: Vec<Value> = printed().into_iter().filter(|event| event["ph"] == "X").collect();
        let (_, events) = sample();
        assert_eq!(complete.len(), events.len());
        let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
        for (line, event) in complete.iter().zip(&events) {
            assert!((number(line, "ts") - event.since.get() * 1e6).abs() <= 0.000_501, "{line}");
            let length = (event.until - event.since).get() * 1e6;
            assert!((number(line, "dur") - length).abs() <= 0.001_01, "{line}");
            assert_eq!(line["pid"], event.process + 1);
            assert_eq!(line["tid"], event.lane + 1);
            assert_eq!(line["name"], event.name);
        }
        let nanoseconds = |value: f64| (value * 1e3).round() as u64;
        let end = nanoseconds(number(&complete[1], "ts")) + nanoseconds(number(&complete[1], "dur"));
        assert_eq!(end, nanoseconds(number(&complete[2], "ts")));
        assert_eq!(complete[0]["args"]["stale"], 3);
        assert!(complete[1].get("args").is_none());
    }

    #[test]
    fn processes_and_lanes_are_named() {
        let names: Vec<(u64, u64, String)> = printed()
            .iter()
            .filter(|event| event["name"] == "process_name" || event["name"] == "thread_name")
            .map(|event| {
                let text = event["args"]["name"].as_str().unwrap().to_owned();
                (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap(), text)
            })
            .collect();
        let expected = [
            (1, 0, "worker 0"),
            (1, 1, "steps"),
            (1, 2, "a \"b\""),
            (2, 0, "worker 1"),
            (2, 1, "steps"),
            (2, 2, "a \"b\""),
        ];
        assert_eq!(names, expected.map(|(pid, tid, name)| (pid, tid, name.to_owned())));
    }

    #[test]
    fn nothing_is_a_timeline_too() {
        let mut text = Vec::new();
        print_timeline(&[], [], &mut text).unwrap();
        let value: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["traceEvents"].as_array().unwrap().len(), 0);
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("timeline.json");
        let (processes, events) = sample();
        write_timeline(&path, &processes, events.clone()).unwrap();
        let first = std::fs::read(&path).unwrap();
        write_timeline(&path, &processes, events.clone()).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), first);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left behind");
        let absent = folder.path().join("absent").join("timeline.json");
        assert!(write_timeline(&absent, &processes, events.clone()).unwrap_err().remedy.contains("folder"));
        assert!(write_timeline(Path::new("/"), &processes, events).is_err());
    }
}
