//! TensorFlow's timelines: the JSON that `timeline.Timeline` makes of a step's records, for Chrome's viewer.
//!
//! A timeline has the place and time of every operation, and the names of its inputs. A tensor that comes from another
//! process has the name of its producer with a number: `w/read_S11` or `w/read/_11`. Its size is there only if the
//! timeline was made with `show_memory=True`. Each file is one step; several, in a folder or archive or named one after
//! the other, are steps of one worker.

mod events;
mod graph;
#[cfg(test)]
mod tests;

use super::place::Place;
use crate::Summary;
use crate::content::Content;
use crate::draft::{Draft, Label};
use crate::imported::{Imported, tally};
use crate::objects;
use crate::options::Options;
use crate::source::{self, Limits};
use events::Events;
use graph::Vertex;
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

/// Imports the timelines of one worker's steps.
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
    if excess > 0 {
        notes.push(format!("timelines beyond the first {MOST_STEPS}, which were left out: {excess}"));
    }
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
        notes.push(format!(
            "only {worker} was imported; further workers that were recorded: {}",
            workers.len() - 1
        ));
    }
    let Some((_, first)) = steps.first() else { return wrong("it holds no timeline", "name a timeline") };
    let mut dropped = 0_usize;
    let vertices = graph::vertices(first, worker, &mut dropped);
    tally(
        &mut notes,
        dropped,
        "inputs that were ready only after their operation had started, for which it does not wait",
    );
    let times: Vec<Vec<(f64, f64)>> =
        steps.iter().filter_map(|(_, events)| graph::times(&vertices, events)).collect();
    let missing = steps.len() - times.len();
    tally(&mut notes, missing, "steps that lack operations of the first and were left out");
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
    tally(notes, unknown, "tensors that move and have no size, which is taken as zero");
    Ok(())
}

fn report(steps: &[(String, Events)], notes: &mut Vec<String>) {
    let sum = |of: fn(&Events) -> usize| steps.iter().map(|(_, events)| of(events)).sum::<usize>();
    for (count, what) in [
        (sum(|events| events.odd), "operations without a readable time, which were left out"),
        (sum(|events| events.excess), "operations beyond the first million of a step, which were left out"),
    ] {
        tally(notes, count, what);
    }
    let ignored: BTreeSet<&String> = steps.iter().flat_map(|(_, events)| &events.ignored).collect();
    if let Some(device) = ignored.first() {
        notes.push(format!("other devices whose lanes were not used, such as {device}: {}", ignored.len()));
    }
}
