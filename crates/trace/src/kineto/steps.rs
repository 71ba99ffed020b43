//! Boundaries of steps on the host: marks, the optimiser, or repetitions on the device.

use super::join::Joined;
use super::recording::Recording;
use super::records::{Role, Span, Time};

/// How the boundaries of steps were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepBoundary {
    /// `ProfilerStep#…`.
    Marks,
    /// Each ends with a step of the optimiser.
    Optimiser,
    /// Kernels that come again in the same order.
    Repetition,
    /// No boundary: the trace is one step.
    Nothing,
}

/// Least share of kernels that agree with those one period later in a repetition (a guess).
const SAME: f64 = 0.95;

/// The steps of a recording, in order.
pub(super) fn windows(recording: &Recording, joined: &Joined) -> (Vec<Span>, StepBoundary) {
    let marked = marks(recording);
    if !marked.is_empty() {
        return (marked, StepBoundary::Marks);
    }
    let optimised = optimiser_steps(recording, joined);
    if !optimised.is_empty() {
        return (optimised, StepBoundary::Optimiser);
    }
    let repeated = repetitions(joined);
    if !repeated.is_empty() {
        return (repeated, StepBoundary::Repetition);
    }
    (everything(recording, joined).into_iter().collect(), StepBoundary::Nothing)
}

/// From each mark to the next; the last to its end.
pub(super) fn marks(recording: &Recording) -> Vec<Span> {
    let mut marks: Vec<Span> = of_role(recording, Role::Step).collect();
    marks.sort_unstable();
    marks.dedup_by_key(|mark| mark.start);
    let next: Vec<Option<Time>> = marks.iter().skip(1).map(|mark| Some(mark.start)).chain([None]).collect();
    marks.into_iter().zip(next).map(|(mark, next)| Span { end: next.unwrap_or(mark.end), ..mark }).collect()
}

fn of_role(recording: &Recording, role: Role) -> impl Iterator<Item = Span> {
    recording.ranges.iter().filter(move |range| range.role == role).map(|range| range.span)
}

/// From the end of one step of the optimiser to the end of the next. What comes before the first is a step if the trace
/// holds its beginning.
fn optimiser_steps(recording: &Recording, joined: &Joined) -> Vec<Span> {
    let mut ends: Vec<Time> = of_role(recording, Role::Optimiser).map(|span| span.end).collect();
    ends.sort_unstable();
    let first = joined.works.iter().map(|work| work.launch).min().into_iter();
    let first = first.chain(recording.operators.iter().map(|operator| operator.span.start)).min();
    let (Some(first), true) = (first, ends.len() > 1) else { return Vec::new() };
    let starts = [first].into_iter().chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, &end)| Span { start, end }).filter(|span| span.length() > 0).collect()
}

/// Periods of the sequence of kernels: between kernels of the rarest name, if what lies between them is the same.
fn repetitions(joined: &Joined) -> Vec<Span> {
    let mut order: Vec<(Time, u32)> = joined.works.iter().map(|work| (work.launch, work.work.name)).collect();
    order.sort_unstable();
    let mut counts = std::collections::BTreeMap::<u32, Vec<usize>>::new();
    for (place, (_, name)) in order.iter().enumerate() {
        counts.entry(*name).or_default().push(place);
    }
    let rarest = counts.values().filter(|places| places.len() > 1).min_by_key(|places| places.len());
    let Some([first, second, ..]) = rarest.map(Vec::as_slice) else { return Vec::new() };
    let period = second - first;
    let pairs = order.len().saturating_sub(period);
    let same = (0..pairs).filter(|&place| order[place].1 == order[place + period].1).count();
    if pairs < period || (same as f64) < SAME * pairs as f64 {
        return Vec::new();
    }
    let starts: Vec<Time> = order.iter().step_by(period).map(|(launch, _)| *launch).collect();
    starts.windows(2).map(|pair| Span { start: pair[0], end: pair[1] }).collect()
}

fn everything(recording: &Recording, joined: &Joined) -> Option<Span> {
    let launches = joined.works.iter().map(|placed| Span { start: placed.launch, end: placed.launch });
    let spans: Vec<Span> = launches.chain(recording.operators.iter().map(|operator| operator.span)).collect();
    let start = spans.iter().map(|span| span.start).min()?;
    let end = spans.iter().map(|span| span.end).max()?;
    Some(Span { start, end: end + 1 })
}
