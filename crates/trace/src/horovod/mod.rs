//! Horovod timelines: when each gradient was ready and how it was reduced, recorded by rank 0.
//!
//! `record` pairs beginnings and ends of phases, `steps` finds the steps. Horovod records no computing: the time between
//! the end of one step's last reduction and the readiness of the next gradients is taken for it. That includes the
//! optimiser, which is thus part of the next step.

mod record;
mod steps;
#[cfg(test)]
mod tests;

use crate::content::Content;
use crate::draft::{Draft, Label};
use crate::imported::Imported;
use crate::options::Options;
use crate::summary::{Summary, SummaryTable, SummaryValue};
use crate::{objects, source};
use record::Recorder;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::Seconds;
use steps::Step;

/// Words that only Horovod's lists of events have.
const WORDS: [&[u8]; 3] = [b"\"NEGOTIATE_", b"\"CYCLE_START\"", b"\"start_time_since_epoch_in_micros\""];

/// A list of events with one of Horovod's words among them.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let list = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    list && WORDS.iter().any(|word| head.windows(word.len()).any(|bytes| bytes == *word))
}

/// Imports one timeline.
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
    let found = steps::find(recorder, &label.place, &mut notes)?;
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
        "it records no computing: that is what lies between the end of a step's last reduction and the readiness of each \
         gradient, the optimiser included"
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
