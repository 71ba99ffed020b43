//! PyTorch: traces of its profiler (Kineto), one file for each rank.
//!
//! `event` reads one event, `head` the rest of the file; `records` and `recording` keep the relevant data. `join` assigns kernels to
//! their calls, operators and phases and finds steps, `messages` separates sums of gradients from other collectives, `timeline`
//! removes these sums from a step and puts them back, `gradients` finds the exchanged gradients and their times. `rank` is the analysis of one file, `profile`
//! makes the profile and `report` the summary, of one rank or of several. Assumptions are documented in `docs/import.md`.
//!
//! Reading takes one pass, or two for traces of more than a million records.

mod event;
mod gradients;
mod head;
mod join;
mod messages;
mod profile;
mod rank;
mod recording;
mod records;
mod report;
mod timeline;

use crate::files::Content;
use crate::import::{Imported, Options, profile_fault, tally};
use crate::objects::split;
use crate::source;
use crate::source::{Limits, Reading, Source};
use gradients::SizeSource;
use rank::Rank;
use recording::{Part, Recording};
use records::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;

const MOST_RECORDS: usize = 1_000_000;

/// Bytes of memory for each record, including derived data.
const RECORD: u64 = 400;

/// Whether a file that begins like this is a trace of PyTorch's profiler: JSON that states the version of its schema and,
/// if it goes that far, has a list of events.
pub(crate) fn recognises(head: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    let schema = has(b"\"schemaVersion\"");
    let marks = has(b"\"deviceProperties\"") || has(b"\"External id\"") || has(b"\"cpu_op\"");
    (schema || marks) && (has(b"\"traceEvents\"") || has(b"\"deviceProperties\""))
}

/// Imports the traces of one or several ranks: files, folders or archives.
pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let mut all = Vec::new();
    let reading = options.reading(paths);
    let most = usize::try_from(reading.memory.limit() / RECORD).unwrap_or(MOST_RECORDS).min(MOST_RECORDS);
    for path in paths {
        read_all(path, &reading, most, &mut all)?;
    }
    let place = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    if all.is_empty() {
        let remedy = "record with ProfilerActivity.CPU and ProfilerActivity.CUDA";
        return Err(Fault::in_file(place, "nothing that computes was recorded", remedy));
    }
    let chosen = report::median_rank(&all);
    let rank = &all[chosen];
    let known = rank.batch.filter(|batch| *batch > 0);
    let batch = Options { batch: options.batch.or(known), ..*options }.required_batch(&rank.place)?;
    let mut notes = notes(rank);
    if options.batch.is_none() {
        notes.push(format!("batch {batch} was taken from the input of the first layer"));
    }
    let mut summary = report::summary(rank);
    if all.len() > 1 {
        let aligned = report::align_clocks(&all);
        check_one_job(&all, aligned.is_some())?;
        match aligned {
            Some(standings) => summary.tables.insert(0, report::ranks_table(&all, &standings, chosen)),
            None => notes
                .push("the ranks have no collectives in common; their clocks were not aligned".to_owned()),
        }
        let number = rank.number.map_or_else(|| rank.place.clone(), |number| format!("rank {number}"));
        notes.push(format!(
            "of {} ranks, the profile is that of {number}, whose own work is the median",
            all.len()
        ));
    }
    let file = source::short_name(&rank.place).to_owned();
    let profile = profile::profile(rank, batch, &file);
    profile.check().map_err(|error| profile_fault(&rank.place, error))?;
    Ok(Imported { content: Content::Profile(profile), summary, notes })
}

/// Refuses traces that cannot be ranks of one job: two with the same number, or without numbers and common collectives.
fn check_one_job(all: &[Rank], aligned: bool) -> Result<(), Fault> {
    let remedy = "name one of them, or all ranks of one job";
    let mut seen: BTreeMap<_, &str> = BTreeMap::new();
    for (rank, number) in all.iter().filter_map(|rank| Some((rank, rank.number?))) {
        if let Some(other) = seen.insert(number, &rank.place) {
            let reason = format!("{other} is also of rank {number}");
            return Err(Fault::in_file(rank.place.clone(), reason, remedy));
        }
    }
    if !aligned && all.iter().any(|rank| rank.number.is_none()) {
        let reason = format!("{} traces have no collectives in common: they are not of one job", all.len());
        return Err(Fault::in_file(all[0].place.clone(), reason, remedy));
    }
    Ok(())
}

/// A step of a rank, by activity of its device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TracedStep {
    /// Time from its first work to the first work of the next step.
    pub time: Seconds,
    /// Time that the device computes.
    pub computing: Seconds,
    /// Time that it neither computes nor communicates while the host loads data.
    pub loading: Seconds,
    /// Time that it neither computes nor communicates because the host has issued no work.
    pub silent: Seconds,
}

/// A rank with its steps.
pub type RankSteps = (u64, Vec<TracedStep>);

/// The rank of every trace at a path, with its steps. Empty if there is no trace of PyTorch's profiler.
pub fn rank_traces(path: &Path) -> Result<Vec<RankSteps>, Fault> {
    let paths = [path.to_owned()];
    let mut all = Vec::new();
    read_all(path, &Options::default().reading(&paths), MOST_RECORDS, &mut all)?;
    let step = |step: &rank::Step| {
        let timeline = &step.timeline;
        let [time, computing, loading, silent] =
            [timeline.span.length(), timeline.computing, timeline.loading, timeline.silent]
                .map(|time| Seconds::new(profile::seconds(time)));
        TracedStep { time, computing, loading, silent }
    };
    let steps = |(place, rank): (usize, &Rank)| {
        (rank.number.unwrap_or(place as u64), rank.steps.iter().map(step).collect())
    };
    Ok(all.iter().enumerate().map(steps).collect())
}

fn read_all(path: &Path, reading: &Reading<'_>, most: usize, all: &mut Vec<Rank>) -> Result<(), Fault> {
    let mut again: Vec<(String, Part)> = Vec::new();
    source::visit(path, Limits::STREAMED, reading, &mut |mut stream| {
        if recognises(stream.head()) {
            let (recording, notes) = read(&mut stream, Recording::new(most, reading.memory.clone()))?;
            match recording.overflow() {
                Some(records) => {
                    again.push((stream.name().to_owned(), part(&recording, records, most, stream.name())?))
                }
                None => add(&mut stream, recording, notes, all)?,
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    if again.is_empty() {
        return Ok(());
    }
    source::visit(path, Limits::STREAMED, reading, &mut |mut stream| {
        if let Some((_, part)) = again.iter().find(|(name, _)| name == stream.name()) {
            let (recording, mut notes) =
                read(&mut stream, Recording::within(*part, most, reading.memory.clone()))?;
            notes.push(format!(
                "the trace is large: only steps that took the host {:.3} s were read in detail",
                profile::seconds(part.window.length())
            ));
            add(&mut stream, recording, notes, all)?;
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Adds the rank of a recording, and forgets the recording.
fn add(
    stream: &mut Source<'_>,
    recording: Recording,
    notes: Vec<String>,
    all: &mut Vec<Rank>,
) -> Result<(), Fault> {
    let memory = stream.memory();
    let recorded = recording.held();
    if let Some(rank) = Rank::new(stream.name().to_owned(), recording, notes) {
        memory.hold(rank.held());
        all.push(rank);
    }
    memory.release(recorded);
    stream.check()
}

fn read(stream: &mut Source<'_>, mut recording: Recording) -> Result<(Recording, Vec<String>), Fault> {
    let (course, failed) = split(stream, &["traceEvents"], &mut recording);
    stream.check()?;
    let mut notes = Vec::new();
    let Some(course) = course else {
        return Err(match failed {
            Some(error) => stream.fault(&error),
            None => {
                let remedy = "copy the file again; it may be cut short";
                Fault::in_file(stream.name(), "it has no list of events (traceEvents)", remedy)
            }
        });
    };
    let read = recording.events;
    if let Some(error) = failed {
        let fault = stream.fault(&error);
        if stream.exceeded() {
            return Err(fault);
        }
        notes.push(format!("{}; {read} events before that were read", fault.reason));
    } else if !course.complete {
        notes.push(format!("the file ends in the middle of its events; {read} were read"));
    }
    let losses = recording.losses;
    for (count, fate) in [
        (losses.repaired, "repaired: not quite JSON (nan, control characters, not UTF-8)"),
        (course.spoilt, "ignored: unreadable"),
        (losses.absurd, "ignored: impossible times"),
    ] {
        tally(&mut notes, count, "event", fate);
    }
    Ok((recording, notes))
}

/// The part of a trace with as many steps after the first as fit into memory.
fn part(recording: &Recording, records: usize, most: usize, name: &str) -> Result<Part, Fault> {
    let marks = join::step_marks(recording);
    let per_step = records / marks.len().max(1) + 1;
    let fit = most * 3 / 4 / per_step;
    let first = usize::from(marks.len() > 1);
    match (marks.get(first), marks.get((first + fit).min(marks.len()).saturating_sub(1))) {
        (Some(start), Some(end)) if fit > 0 => Ok(recording.part(Span { start: start.start, end: end.end })),
        _ => {
            let reason =
                format!("it has {records} records, too many to hold, and no single step has few enough");
            Err(Fault::in_file(name, reason, "record fewer steps, with a schedule that marks them"))
        }
    }
}

/// A note about communication other than sums of gradients, which a profile keeps as recorded.
fn kept_traffic(rank: &Rank) -> Option<String> {
    let kept: BTreeSet<&str> =
        rank.traffic.iter().filter(|own| !own.sums_gradients).map(|own| own.collective.as_str()).collect();
    if kept.is_empty() {
        return None;
    }
    let kept = kept.into_iter().collect::<Vec<_>>().join(", ");
    Some(format!(
        "{kept}: part of the step, as recorded; workers are replicas of the recorded plan (`[strategy.plan]` predicts other plans)"
    ))
}

fn notes(rank: &Rank) -> Vec<String> {
    let mut notes = rank.notes.clone();
    tally(&mut notes, rank.left_out, "step", "ignored: unlike the others");
    if rank.steps.len() > profile::MOST_STEPS {
        notes.push(format!(
            "of {} steps, the profile holds the first {}",
            rank.steps.len(),
            profile::MOST_STEPS
        ));
    }
    tally(&mut notes, rank.orphans, "kernel", "ignored: part of no complete step");
    if rank.overlapping > 0 {
        notes.push(format!(
            "steps overlap: {} begin on the device before the step before has ended; a step is measured from a work to \
             the like work of the next step",
            rank.overlapping
        ));
    }
    if rank.on_host {
        notes.push("no device was recorded: the host's operators are the work".to_owned());
    }
    notes.extend(kept_traffic(rank));
    let gradients = rank.steps.first().map_or(0, |step| step.gradients.len());
    if gradients == 0 {
        notes.push(
            "no gradients were found: record the backward pass too, or nothing can be exchanged".to_owned(),
        );
        return notes;
    }
    let between = rank.sizes.as_ref().and_then(|sizes| sizes.between);
    let range =
        between.map_or(String::new(), |(least, most)| format!(": between {least} and {most} parameters"));
    match rank.sizes.as_ref().map(|sizes| sizes.source) {
        None => {
            notes.push("the sizes of gradients are not recorded: record with record_shapes=True".to_owned())
        }
        Some(SizeSource::Buckets) => notes.push(
            "gradients share their bucket equally: record with record_shapes=True to have their sizes"
                .to_owned(),
        ),
        Some(SizeSource::Kernels | SizeSource::Chunks) => {
            notes.push(format!("sizes of gradients are estimated from the optimiser's kernels{range}; record with record_shapes=True"));
        }
        Some(SizeSource::Sent) if between.is_some() => {
            notes.push(format!(
                "some sizes of gradients are estimated from the kernels that copy them{range}"
            ));
        }
        Some(SizeSource::Shapes) if rank.traffic.iter().any(|own| own.reduces() && !own.sums_gradients) => notes.push(
            "sizes of gradients are those of whole tensors, even if ranks hold parts of them: no sum of gradients shows the parts"
                .to_owned(),
        ),
        Some(SizeSource::Shapes | SizeSource::Divided | SizeSource::Copies | SizeSource::Sent) => {}
    }
    if rank.steps.iter().all(|step| step.gradients.iter().all(|gradient| gradient.needed.is_none())) {
        notes.push(
            "the times when parameters are needed are not recorded: the forward pass waits for all of them"
                .to_owned(),
        );
    }
    notes
}

/// Traces that are too large to be kept whole.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Job;

    fn ranks(text: &str, most: usize) -> Result<Vec<Rank>, Fault> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("job.json");
        std::fs::write(&path, text).unwrap();
        let mut ranks = Vec::new();
        read_all(&path, &Options::default().reading(&[]), most, &mut ranks).map(|()| ranks)
    }

    #[test]
    fn steps_that_fit_are_read_in_a_second_pass() {
        let text = Job { steps: 40, ..Job::default() }.trace();
        let whole = ranks(&text, 10_000).unwrap();
        let part = ranks(&text, 1000).unwrap();
        let (whole, part) = (&whole[0], &part[0]);
        assert_eq!(whole.steps.len(), 40);
        assert!((5..40).contains(&part.steps.len()), "{}", part.steps.len());
        assert!(part.notes.iter().any(|note| note.contains("only steps that took")), "{:?}", part.notes);
        let length = |rank: &Rank| rank.mean(|step| step.timeline.length());
        assert!((length(whole) - length(part)).abs() < 1.0, "{} {}", length(whole), length(part));
        assert_eq!(whole.sizes, part.sizes);
    }

    #[test]
    fn what_has_no_marks_and_does_not_fit_is_refused() {
        let text = Job { steps: 40, marks: false, ..Job::default() }.trace();
        let error = ranks(&text, 1000).unwrap_err();
        assert!(error.reason.contains("too many") && error.remedy.contains("schedule"), "{error}");
    }
}
