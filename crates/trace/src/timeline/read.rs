//! Reads back what [`chrome`](super::chrome) and [`perfetto`](super::perfetto) print: the steps of the first worker
//! become a profile. Only that worker's events are kept in memory.

mod json;
mod packets;

use super::{About, FORMAT};
use crate::content::Content;
use crate::imported::Imported;
use crate::options::Options;
use crate::source;
use crate::summary::{Summary, SummaryValue};
use std::collections::HashMap;
use std::io::BufReader;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::profile::{self, Operation, Profile, Step};
use stepcast_core::quantity::Seconds;

/// Whether a file that begins like this is a timeline of ours.
pub(crate) fn recognises(head: &[u8]) -> bool {
    matches!(head.first(), Some(b'{' | 0x0a))
        && head.windows(FORMAT.len()).any(|bytes| bytes == FORMAT.as_bytes())
}

/// Imports one timeline.
pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "timelines", "name one of them")?;
    let mut notes = Vec::new();
    let mut imported = source::first(path, options.watch, recognises, &mut notes, |source| {
        let name = source.name().to_owned();
        let is_json = source.head().first() == Some(&b'{');
        let reader = BufReader::new(source);
        let read = if is_json { json::read(reader) } else { packets::read(reader) };
        let remedy = "write it again: stepcast predict --timeline";
        let events = read.map_err(|reason| Fault::in_file(name.clone(), reason, remedy))?;
        events.profile(&name, options.batch)
    })?;
    imported.notes.extend(notes);
    Ok(imported.map(Content::Profile))
}

/// From when until when, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    since: u64,
    until: u64,
}

/// What the first worker did.
struct Events {
    about: About,
    /// Where operations of that name stand.
    index: HashMap<String, u32>,
    steps: Vec<Span>,
    chunks: Vec<(Span, u32)>,
}

impl Events {
    fn new(about: About) -> Result<Self, String> {
        if about.format != FORMAT {
            return Err(format!("\"{}\" is not a format that this version reads", about.format));
        }
        let names = about.operations.iter().map(|operation| operation.name.clone());
        let index = names.zip(0..).collect();
        Ok(Self { about, index, steps: Vec::new(), chunks: Vec::new() })
    }

    /// What is no operation of the profile, parsing or a pause, is passed over.
    fn chunk(&mut self, name: &str, span: Span) {
        if let Some(&op) = self.index.get(name) {
            self.chunks.push((span, op));
        }
    }

    fn profile(mut self, place: &str, batch: Option<u32>) -> Result<Imported<Profile>, Fault> {
        let operations = std::mem::take(&mut self.about.operations);
        if operations.is_empty() {
            let reason = "no profile can be made of SPRINT's threads: they do not take turns";
            let remedy = "import a timeline of a parameter server or of synchronous all-reduce";
            return Err(Fault::in_file(place, reason, remedy));
        }
        let wrong =
            |error: Fault| Fault::in_file(format!("{place}, {}", error.origin()), error.reason, error.remedy);
        let order = order(&operations);
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
        let profile = Profile {
            format: profile::FORMAT.to_owned(),
            name: self.about.name,
            source: "a timeline that Stepcast simulated".to_owned(),
            batch: batch.unwrap_or(self.about.batch),
            operations,
            steps,
        };
        profile.check().map_err(wrong)?;
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

/// Operations that took no time are not in a timeline: they ended when what they wait for had.
fn measured(operations: &[Operation], order: &[u32], spans: &[Option<Span>], step: Span, next: u64) -> Step {
    let mut start = vec![0; operations.len()];
    let mut end = vec![0; operations.len()];
    for &op in order {
        let op = op as usize;
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

/// Operations after those they wait for; what waits in a circle, or for nothing that exists, is left out.
fn order(operations: &[Operation]) -> Vec<u32> {
    let mut waiting: Vec<usize> = operations.iter().map(|operation| operation.after.len()).collect();
    let mut followers = vec![Vec::new(); operations.len()];
    for (op, operation) in (0..).zip(operations) {
        for &before in &operation.after {
            if let Some(followers) = followers.get_mut(before as usize) {
                followers.push(op);
            }
        }
    }
    let mut order: Vec<u32> = (0..operations.len() as u32).filter(|&op| waiting[op as usize] == 0).collect();
    let mut done = 0;
    while let Some(&op) = order.get(done) {
        done += 1;
        for &follower in &followers[op as usize] {
            waiting[follower as usize] -= 1;
            if waiting[follower as usize] == 0 {
                order.push(follower);
            }
        }
    }
    order
}
