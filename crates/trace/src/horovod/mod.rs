//! Horovod timelines: when each gradient was ready and how it was reduced, recorded by rank 0.
//!
//! `record` pairs beginnings and ends of phases. Horovod records no computing: the time between
//! the end of one step's last reduction and the readiness of the next gradients counts as computing. This includes the
//! optimiser, which is thus part of the next step.

mod record;
#[cfg(test)]
mod tests;

use crate::draft::{Draft, Label};
use crate::files::Content;
use crate::import::{Imported, Options, tally};
use crate::overview::{Summary, SummaryTable, SummaryValue};
use crate::{objects, source};
use record::{Recorder, Reduction};
use std::collections::HashMap;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::Seconds;

/// Words that only Horovod's lists of events have.
const WORDS: [&[u8]; 3] = [b"\"NEGOTIATE_", b"\"CYCLE_START\"", b"\"start_time_since_epoch_in_micros\""];

/// A list of events with one of Horovod's words among them.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let list = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    list && WORDS.iter().any(|word| head.windows(word.len()).any(|bytes| bytes == *word))
}

pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "Horovod's timelines", "name one of them")?;
    let mut notes = Vec::new();
    let reading = options.reading(paths);
    let (recorder, label, read) = source::first(path, &reading, recognises, &mut notes, |source| {
        let place = source.name().to_owned();
        let batch = options.required_batch(&place)?;
        let mut recorder = Recorder::default();
        let mut read = Vec::new();
        objects::each(source, &[], &mut read, &mut |event| {
            let before = recorder.held();
            recorder.take(&event);
            recorder.held() - before
        })?;
        Ok((recorder, Label { place, format: "Horovod timeline", batch }, read))
    })?;
    notes.extend(read);
    Ok(profile(&recorder, &label, notes)?.map(Content::Profile))
}

fn profile(recorder: &Recorder, label: &Label, mut notes: Vec<String>) -> Result<Imported<Profile>, Fault> {
    recorder.report(&mut notes);
    let found = find_steps(recorder, &label.place, &mut notes)?;
    let names: Vec<&str> =
        found.tensors.iter().map(|&tensor| recorder.tensors[tensor].name.as_str()).collect();
    let mut sizes = Vec::with_capacity(names.len());
    for &tensor in &found.tensors {
        let Some(bytes) = recorder.tensors[tensor].bytes else {
            let reason = format!(
                "it records no size of {}, nor of {} of its {} tensors in all",
                recorder.tensors[tensor].name,
                found.tensors.iter().filter(|&&tensor| recorder.tensors[tensor].bytes.is_none()).count(),
                names.len()
            );
            let remedy = "record with a Horovod that writes dtype and shape when a reduction ends";
            return Err(Fault::in_file(&label.place, reason, remedy));
        };
        sizes.push(bytes);
    }
    let mut draft = Draft::new(found.steps.len());
    let weights: Vec<u32> = names
        .iter()
        .zip(&sizes)
        .map(|(name, &bytes)| draft.weight(&format!("{name}, weight"), bytes))
        .collect();
    let mut last = None;
    for (place, (name, &bytes)) in names.iter().zip(&sizes).enumerate() {
        let after = last.map_or_else(|| weights.clone(), |last| vec![last]);
        let computed = |step: usize| {
            let until = |place: usize| found.steps[step].gradients[place].0;
            until(place) - if place == 0 { 0.0 } else { until(place - 1) }
        };
        let made = draft.compute(&format!("{name}, computing"), after, computed);
        draft.add(name, Resource::Uplink, bytes, vec![made], |step| found.steps[step].gradients[place]);
        last = Some(made);
    }
    notes.push(
        "it records no computing: the time from a step's last reduction to each gradient is taken for it, optimiser included"
            .to_owned(),
    );
    let summary = summary(recorder, &found.steps, names.len());
    Ok(Imported { content: draft.finish(label)?, summary, notes })
}

fn summary(recorder: &Recorder, steps: &[Step], tensors: usize) -> Summary {
    let count = steps.len().max(1) as f64;
    let mean =
        |of: fn(&Step) -> f64| SummaryValue::Time(Seconds::new(steps.iter().map(of).sum::<f64>() / count));
    let mut summary = Summary::default();
    summary.figure("ranks", "ranks", recorder.ranks().map_or(SummaryValue::Unknown, SummaryValue::Count), "");
    summary.figure("tensors", "tensors", SummaryValue::Count(tensors as u64), "reduced in every step");
    summary.figure("computing", "computing", mean(Step::computing), "until the last gradient is ready");
    summary.figure(
        "exposed",
        "not hidden",
        mean(Step::exposed),
        "reduction after the last gradient is ready",
    );
    let messages: usize = steps.iter().map(|step| step.messages).sum();
    let messages = (messages as f64 / count).round() as u64;
    summary.figure(
        "messages",
        "messages",
        SummaryValue::Count(messages),
        "in a mean step, after tensor fusion",
    );
    let cycle =
        recorder.cycle().map_or(SummaryValue::Unknown, |cycle| SummaryValue::Time(Seconds::new(cycle)));
    summary.figure("cycle", "cycle time", cycle, "median");
    let rows = recorder.phases().map(|(name, phase)| {
        let mean = phase.total / phase.count.max(1) as f64;
        vec![
            SummaryValue::Text(name.clone()),
            SummaryValue::Count(phase.count),
            SummaryValue::Time(Seconds::new(mean)),
            SummaryValue::Time(Seconds::new(phase.longest)),
        ]
    });
    summary.tables.push(SummaryTable {
        key: "phases",
        title: "Phases",
        columns: vec![("phase", "phase"), ("count", "count"), ("mean", "mean"), ("longest", "longest")],
        rows: rows.collect(),
    });
    summary
}

/// Steps beyond these are not used.
const MOST_STEPS: usize = 500;

#[derive(Debug, Clone, PartialEq)]
struct Step {
    /// When each gradient was ready and when it had been reduced, in seconds since the last reduction of the step before;
    /// in order of readiness, which never decreases.
    gradients: Vec<(f64, f64)>,
    /// Groups of tensors that were transferred together.
    messages: usize,
}

impl Step {
    fn computing(&self) -> f64 {
        self.gradients.last().map_or(0.0, |(ready, _)| *ready)
    }

    fn exposed(&self) -> f64 {
        self.gradients.iter().map(|(_, ended)| *ended).fold(0.0, f64::max) - self.computing()
    }
}

#[derive(Debug)]
struct Steps {
    /// Tensors in order of their mean readiness.
    tensors: Vec<usize>,
    steps: Vec<Step>,
}

/// Steps that follow another and reduce every tensor that half of the steps reduce.
fn find_steps(recorder: &Recorder, place: &str, notes: &mut Vec<String>) -> Result<Steps, Fault> {
    let wrong = |reason: &str, remedy: &str| Err(Fault::in_file(place, reason, remedy));
    if recorder.reductions.is_empty() {
        return wrong("no reduction of a tensor was recorded to its end", "record some steps of training");
    }
    let parts = split(&recorder.reductions);
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for reduction in parts.iter().flatten() {
        *counts.entry(reduction.tensor).or_default() += 1;
    }
    let mut tensors: Vec<usize> =
        counts.iter().filter(|(_, count)| 2 * **count >= parts.len()).map(|(tensor, _)| *tensor).collect();
    tensors.sort_unstable();
    let rare = counts.len() - tensors.len();
    tally(notes, rare, "tensor", "ignored: reduced in fewer than half of the steps");
    let mut whole: Vec<(f64, HashMap<usize, Reduction>)> = Vec::new();
    let mut broken = 0_usize;
    for pair in parts.windows(2) {
        let since = pair[0].iter().map(|reduction| reduction.ended).fold(f64::NEG_INFINITY, f64::max);
        let found: HashMap<usize, Reduction> =
            pair[1].iter().map(|reduction| (reduction.tensor, *reduction)).collect();
        if tensors.iter().all(|tensor| found.contains_key(tensor)) {
            whole.push((since, found));
        } else {
            broken += 1;
        }
    }
    tally(notes, broken, "step", "ignored: without tensors that most steps reduce");
    if whole.is_empty() || tensors.is_empty() {
        let remedy = "record at least two whole steps: the forward pass lies between them";
        return wrong("it has no whole step that follows another", remedy);
    }
    if whole.len() > MOST_STEPS {
        notes.push(format!("only the first {MOST_STEPS} of {} steps were imported", whole.len()));
        whole.truncate(MOST_STEPS);
    }
    let readiness =
        |tensor: usize| whole.iter().map(|(since, found)| found[&tensor].ready - since).sum::<f64>();
    let mut order: Vec<(f64, usize)> = tensors.iter().map(|&tensor| (readiness(tensor), tensor)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let tensors: Vec<usize> = order.into_iter().map(|(_, tensor)| tensor).collect();
    let steps = whole.iter().map(|(since, found)| step(*since, found, &tensors)).collect();
    Ok(Steps { tensors, steps })
}

/// Reductions in order of readiness, cut where a tensor recurs.
fn split(reductions: &[Reduction]) -> Vec<Vec<Reduction>> {
    let mut sorted = reductions.to_vec();
    sorted.sort_by(|a, b| a.ready.total_cmp(&b.ready).then(a.tensor.cmp(&b.tensor)));
    let mut parts: Vec<Vec<Reduction>> = Vec::new();
    let mut last_seen: HashMap<usize, usize> = HashMap::new();
    for reduction in sorted {
        let current = parts.len();
        if current == 0 || last_seen.get(&reduction.tensor) == Some(&current) {
            parts.push(Vec::new());
        }
        last_seen.insert(reduction.tensor, parts.len());
        if let Some(part) = parts.last_mut() {
            part.push(reduction);
        }
    }
    parts
}

fn step(since: f64, found: &HashMap<usize, Reduction>, tensors: &[usize]) -> Step {
    let mut latest = 0.0_f64;
    let gradients = tensors.iter().map(|tensor| {
        let reduction = &found[tensor];
        latest = latest.max(reduction.ready - since);
        (latest, (reduction.ended - since).max(latest))
    });
    let gradients = gradients.collect();
    let mut wires: Vec<(f64, f64)> = tensors.iter().filter_map(|tensor| found[tensor].wire).collect();
    wires.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut busy_until = f64::NEG_INFINITY;
    let mut messages = 0;
    for (start, end) in wires {
        messages += usize::from(start >= busy_until);
        busy_until = busy_until.max(end);
    }
    Step { gradients, messages }
}
