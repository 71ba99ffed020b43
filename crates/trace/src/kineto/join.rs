//! Kernels and copies of the device, joined with the calls of the host that launched them, and the boundaries of steps on the host.
//!
//! A kernel and the call that launched it have the same correlation; the call lies in ranges of its thread: the
//! optimiser, autograd's graph, the loader of data. A trace without a device has only the operators of the host: the
//! outermost ones are taken as the work.

use super::messages;
use super::recording::Recording;
use super::records::{Launch, Operator, Phase, Placed, Range, Role, Span, Time, Work, WorkKind, union};
use std::collections::{BTreeMap, HashMap};

#[derive(Debug)]
pub(super) struct Joined {
    /// Works in order of launch.
    pub(super) works: Vec<Placed>,
    /// Works without a launch: it was before the trace began, or was not recorded.
    pub(super) orphans: usize,
    /// Times at which the host waits for the device: it synchronises, or waits for a copy to end.
    pub(super) waiting: Vec<Span>,
    /// Whether the host itself computes.
    pub(super) on_host: bool,
}

impl Joined {
    /// Takes the works and launches out of the recording.
    pub(super) fn new(recording: &mut Recording) -> Self {
        let context = Context::new(recording);
        let recorded = std::mem::take(&mut recording.works);
        let launches = std::mem::take(&mut recording.launches);
        let on_host = recorded.iter().all(|placed| placed.work.kind == WorkKind::Transfer);
        let mut waiting: Vec<Span> = recording
            .ranges
            .iter()
            .filter(|range| range.role == Role::Synchronising)
            .map(|range| range.span)
            .collect();
        let (mut works, orphans) = if on_host {
            (host_works(recording, &context), 0)
        } else {
            device_works(recorded, launches, &context, &mut waiting)
        };
        works.sort_unstable_by_key(|placed| (placed.launch, placed.work.span));
        Self { works, orphans, waiting: union(waiting), on_host }
    }
}

fn device_works(
    mut works: Vec<Placed>,
    mut launches: Vec<Launch>,
    context: &Context,
    waiting: &mut Vec<Span>,
) -> (Vec<Placed>, usize) {
    launches.sort_unstable_by_key(|launch| launch.correlation);
    let all = works.len();
    works.retain_mut(|placed| {
        let found = launches.binary_search_by_key(&placed.work.correlation, |launch| launch.correlation);
        let Some(launch) = found.ok().and_then(|index| launches.get(index)) else { return false };
        if placed.work.kind == WorkKind::Transfer && placed.work.span.end <= launch.span.end {
            waiting.push(launch.span);
        }
        placed.launch = launch.span.start;
        placed.thread = launch.thread;
        placed.phase = context.phase(placed.work.kind, launch.thread, launch.span.start);
        true
    });
    let orphans = all - works.len();
    (works, orphans)
}

/// The outermost operators, and the collectives beside them.
fn host_works(recording: &Recording, context: &Context) -> Vec<Placed> {
    let mut operators: Vec<&Operator> = recording.operators.iter().collect();
    operators.sort_by_key(|operator| (operator.thread, operator.span.start, -operator.span.end));
    let place = |span: Span, kind, name, thread| Placed {
        work: Work { span, amount: 0, correlation: 0, name, kind, elements: 0 },
        launch: span.start,
        phase: context.phase(kind, thread, span.start),
        thread,
        sums_gradients: false,
    };
    let mut works = Vec::new();
    let mut until: Option<(u16, Time)> = None;
    for operator in operators {
        let nested =
            until.is_some_and(|(thread, end)| thread == operator.thread && operator.span.start < end);
        let sets_off = recording.name(operator.name) == "record_param_comms";
        if nested || sets_off || operator.span.length() == 0 {
            continue;
        }
        until = Some((operator.thread, operator.span.end));
        works.push(place(operator.span, WorkKind::Compute, operator.name, operator.thread));
    }
    let always = Span { start: Time::MIN, end: Time::MAX };
    let collectives = messages::recorded(recording, always);
    works.extend(collectives.iter().map(|it| place(it.span, WorkKind::Collective, it.name, it.thread)));
    works
}

/// Phases of the host, by thread and time.
struct Context {
    optimiser: Cover,
    loading: Cover,
    backward: Cover,
    /// Threads that do nothing but autograd's backward.
    autograd: Vec<u16>,
}

impl Context {
    fn new(recording: &Recording) -> Self {
        let cover =
            |roles: &[Role]| Cover::new(recording.ranges.iter().filter(|range| roles.contains(&range.role)));
        let main = [Role::Step, Role::Optimiser, Role::Clearing, Role::Loading];
        let is_main = |thread: u16| {
            recording.ranges.iter().any(|range| range.thread == thread && main.contains(&range.role))
        };
        let mut autograd: Vec<u16> = recording.accumulations.iter().map(|it| it.thread).collect();
        autograd.sort_unstable();
        autograd.dedup();
        autograd.retain(|thread| !is_main(*thread));
        Self {
            optimiser: cover(&[Role::Optimiser, Role::Clearing]),
            loading: cover(&[Role::Loading]),
            backward: cover(&[Role::Backward]),
            autograd,
        }
    }

    fn phase(&self, kind: WorkKind, thread: u16, time: Time) -> Phase {
        if kind == WorkKind::Collective {
            Phase::Collective
        } else if self.autograd.contains(&thread) || self.backward.contains(thread, time) {
            Phase::Backward
        } else if self.optimiser.contains(thread, time) {
            Phase::Optimiser
        } else if self.loading.contains(thread, time) {
            Phase::Loading
        } else {
            Phase::Forward
        }
    }
}

/// Ranges by thread, each list disjoint and in order.
struct Cover {
    by_thread: HashMap<u16, Vec<Span>>,
}

impl Cover {
    fn new<'a>(ranges: impl Iterator<Item = &'a Range>) -> Self {
        let mut by_thread = HashMap::<u16, Vec<Span>>::new();
        for range in ranges {
            by_thread.entry(range.thread).or_default().push(range.span);
        }
        for spans in by_thread.values_mut() {
            *spans = union(std::mem::take(spans));
        }
        Self { by_thread }
    }

    fn contains(&self, thread: u16, time: Time) -> bool {
        let Some(spans) = self.by_thread.get(&thread) else { return false };
        let after = spans.partition_point(|span| span.end <= time);
        spans.get(after).is_some_and(|span| span.contains(time))
    }
}

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

/// Least share of kernels in a repetition that agree with the kernels one period later (a guess).
const SAME: f64 = 0.95;

pub(super) fn step_windows(recording: &Recording, joined: &Joined) -> (Vec<Span>, StepBoundary) {
    let marked = step_marks(recording);
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
pub(super) fn step_marks(recording: &Recording) -> Vec<Span> {
    let mut marks: Vec<Span> = of_role(recording, Role::Step).collect();
    marks.sort_unstable();
    marks.dedup_by_key(|mark| mark.start);
    let next: Vec<Option<Time>> = marks.iter().skip(1).map(|mark| Some(mark.start)).chain([None]).collect();
    marks.into_iter().zip(next).map(|(mark, next)| Span { end: next.unwrap_or(mark.end), ..mark }).collect()
}

fn of_role(recording: &Recording, role: Role) -> impl Iterator<Item = Span> {
    recording.ranges.iter().filter(move |range| range.role == role).map(|range| range.span)
}

/// From the end of one step of the optimiser to the end of the next. The part before the first is a step if the trace
/// contains its beginning.
fn optimiser_steps(recording: &Recording, joined: &Joined) -> Vec<Span> {
    let mut ends: Vec<Time> = of_role(recording, Role::Optimiser).map(|span| span.end).collect();
    ends.sort_unstable();
    let first = joined.works.iter().map(|work| work.launch).min().into_iter();
    let first = first.chain(recording.operators.iter().map(|operator| operator.span.start)).min();
    let (Some(first), true) = (first, ends.len() > 1) else { return Vec::new() };
    let starts = [first].into_iter().chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, &end)| Span { start, end }).filter(|span| span.length() > 0).collect()
}

/// Periods of the sequence of kernels: between kernels of the rarest name, if the kernels in between are the same.
fn repetitions(joined: &Joined) -> Vec<Span> {
    let mut order: Vec<(Time, u32)> = joined.works.iter().map(|work| (work.launch, work.work.name)).collect();
    order.sort_unstable();
    let mut counts = BTreeMap::<u32, Vec<usize>>::new();
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
