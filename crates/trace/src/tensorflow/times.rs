//! The times of every operation in every step, with estimates for unrecorded ones.

use super::graph::Vertex;
use super::records::{Interval, Key, RecordedStep};
use crate::draft::{followers, topological_order};
use stepcast_core::fault::Fault;
use stepcast_core::profile::Step;

/// A gap to the next step longer than this share of the step itself is not the time between two steps (a guess).
const LONGEST_GAP: f64 = 0.5;

/// Nanoseconds in a second. Dividing, not multiplying by the inverse, keeps times short in print.
const NANOSECONDS: f64 = 1e9;

/// How early an operation may start before its prerequisites end without a note, in seconds (a guess).
/// Records are written without locks around the recorded operation.
const TOLERANCE: f64 = 50e-6;

/// From the start of each step to the start of the next one, in seconds. `steps` are in order of time.
///
/// The last step, and a step that is not followed at once by the next recorded one, is as long as its own
/// records plus the mean gap of the others.
pub(super) fn lengths(steps: &[RecordedStep], notes: &mut Vec<String>) -> Vec<f64> {
    let seconds = |from: i128, to: i128| (to - from) as f64 / NANOSECONDS;
    let span = |step: &RecordedStep| seconds(step.first, step.last);
    let gaps: Vec<Option<f64>> = steps
        .windows(2)
        .map(|pair| {
            let gap = seconds(pair[0].last, pair[1].first);
            (gap.abs() <= LONGEST_GAP * span(&pair[0])).then_some(gap)
        })
        .collect();
    let followed = gaps.iter().flatten().count();
    let mean = if followed == 0 { 0.0 } else { gaps.iter().flatten().sum::<f64>() / followed as f64 };
    if followed == 0 {
        notes.push(
            "no two steps follow each other at once, so the time between steps is taken as zero".to_owned(),
        );
    } else if followed < gaps.len() {
        notes.push(format!(
            "{} of {} steps are not followed at once by the next recorded one; the mean gap of the others is added to them",
            gaps.len() - followed,
            gaps.len()
        ));
    }
    let mut lengths = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate() {
        let gap = gaps.get(index).copied().flatten();
        lengths.push(match gap {
            Some(_) => seconds(step.first, steps[index + 1].first),
            None => Some(span(step) + mean).filter(|length| *length > 0.0).unwrap_or_else(|| span(step)),
        });
    }
    lengths
}

/// Start and end within a step in seconds, where recorded.
type Time = Option<(f64, f64)>;

/// Start and end of every vertex in every step.
///
/// An operation that a step did not record starts its mean wait after its last predecessor ends. It ends after its mean
/// duration, or its mean lead before its first successor, whichever varies less over the other
/// steps; but never after that successor has started.
pub(super) fn fill(
    vertices: &[Vertex],
    steps: &[(&RecordedStep, f64)],
    notes: &mut Vec<String>,
) -> Result<Vec<Step>, Fault> {
    let order = order(vertices)?;
    let followers = followers(vertices.len(), |index| vertices[index].after.iter().copied());
    let found: Vec<Vec<Time>> = steps
        .iter()
        .map(|(step, _)| vertices.iter().map(|vertex| relative(step, &vertex.key)).collect())
        .collect();
    let mut filled = Vec::with_capacity(steps.len());
    for (times, (_, length)) in found.iter().zip(steps) {
        let mut start = vec![0.0; vertices.len()];
        let mut end = vec![0.0; vertices.len()];
        for &index in &order {
            let (begin, done) = times[index].unwrap_or_else(|| {
                let ready = vertices[index].after.iter().map(|&before| end[before]).fold(0.0, f64::max);
                estimate(index, ready, times, &found, &vertices[index].after, &followers[index])
            });
            (start[index], end[index]) = (begin, done);
        }
        filled.push(Step { start, end, length: *length });
    }
    report(vertices, &found, steps, notes);
    Ok(filled)
}

/// Start and end of an operation that was not recorded, given when its predecessors had ended.
fn estimate(
    index: usize,
    ready: f64,
    times: &[Time],
    found: &[Vec<Time>],
    after: &[usize],
    followers: &[usize],
) -> (f64, f64) {
    let elsewhere = || found.iter().filter_map(|times| Some((times, times[index]?)));
    let wait = Spread::from_values(elsewhere().map(|(times, (start, _))| start - last_end(times, after)));
    let duration = Spread::from_values(elsewhere().map(|(_, (start, end))| end - start));
    let lead = Spread::from_values(
        elsewhere().filter_map(|(times, (_, end))| Some(first_start(times, followers)? - end)),
    );
    let needed = first_start(times, followers);
    let start = ready + wait.map_or(0.0, |wait| wait.mean.max(0.0));
    let end = match (duration, lead, needed) {
        (Some(duration), Some(lead), Some(needed)) if lead.variance < duration.variance => needed - lead.mean,
        (Some(duration), _, _) => start + duration.mean,
        (None, _, needed) => needed.unwrap_or(start),
    };
    let end = end.min(needed.unwrap_or(end)).max(ready);
    (start.min(end), end)
}

fn last_end(times: &[Time], after: &[usize]) -> f64 {
    after.iter().filter_map(|&before| times[before]).map(|(_, end)| end).fold(0.0, f64::max)
}

fn first_start(times: &[Time], followers: &[usize]) -> Option<f64> {
    followers.iter().filter_map(|&follower| times[follower]).map(|(start, _)| start).reduce(f64::min)
}

struct Spread {
    mean: f64,
    variance: f64,
}

impl Spread {
    fn from_values(values: impl Iterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.collect();
        let mean = |values: &mut dyn Iterator<Item = f64>, count| values.sum::<f64>() / count as f64;
        let centre = mean(&mut values.iter().copied(), values.len());
        let variance = mean(&mut values.iter().map(|value| (value - centre).powi(2)), values.len());
        (!values.is_empty()).then_some(Self { mean: centre, variance })
    }
}

fn report(vertices: &[Vertex], found: &[Vec<Time>], steps: &[(&RecordedStep, f64)], notes: &mut Vec<String>) {
    let missing = |times: &[Time]| times.iter().filter(|time| time.is_none()).count();
    let count: usize = found.iter().map(|times| missing(times)).sum();
    if count > 0 {
        let touched = found.iter().filter(|times| missing(times) > 0).count();
        let transfers = found
            .iter()
            .flat_map(|times| times.iter().zip(vertices))
            .filter(|(time, vertex)| time.is_none() && vertex.resource.is_transfer())
            .count();
        let example = found.iter().zip(steps).find(|(times, _)| missing(times) > 0);
        let example = example.map_or("", |(_, (step, _))| step.name.as_str());
        notes.push(format!(
            "missing records, estimated from the other steps: {count} ({transfers} of transfers) in {touched} of {} \
             steps, first in {example}",
            found.len(),
        ));
    }
    let mut early = 0_usize;
    let mut pairs = 0_usize;
    let mut worst = 0.0_f64;
    for times in found {
        for (index, vertex) in vertices.iter().enumerate() {
            let Some((start, _)) = times[index] else { continue };
            pairs += 1;
            let latest = vertex.after.iter().filter_map(|&before| times[before]).map(|(_, end)| end);
            let ahead = latest.fold(f64::NEG_INFINITY, f64::max) - start;
            early += usize::from(ahead > TOLERANCE);
            worst = worst.max(ahead);
        }
    }
    if early > 0 {
        notes.push(format!(
            "{early} of {pairs} recorded operations started more than {:.0} µs before something they wait for had \
             ended, at worst {:.3} ms: if there are many, the clocks of the machines differ",
            TOLERANCE * 1e6,
            worst * 1e3
        ));
    }
}

fn relative(step: &RecordedStep, key: &Key) -> Time {
    let Interval { start, end, .. } = step.records.get(key)?;
    let seconds = |time: i128| (time - step.first) as f64 / NANOSECONDS;
    Some((seconds(*start), seconds(*end)))
}

fn order(vertices: &[Vertex]) -> Result<Vec<usize>, Fault> {
    let order = topological_order(vertices.len(), |index| vertices[index].after.iter().copied());
    let Some(stuck) =
        (0..vertices.len()).find(|index| order.len() < vertices.len() && !order.contains(index))
    else {
        return Ok(order);
    };
    let reason =
        format!("operations wait for each other in a circle, \"{}\" among them", vertices[stuck].name);
    Err(Fault::in_file("partition graphs", reason, "give the graphs that belong to these steps"))
}
