//! Kernels and copies of the device, joined with the calls of the host that launched them.
//!
//! A kernel and the call that launched it have the same correlation; the call lies in ranges of its thread: the
//! optimiser, autograd's graph, the loader of data. A trace without a device has only the operators of the host: the
//! outermost ones are taken as the work.

use super::messages;
use super::recording::Recording;
use super::records::{Kind, Launch, Operator, Phase, Placed, Range, Role, Span, Time, Work, union};
use std::collections::HashMap;

/// All works of a trace.
#[derive(Debug)]
pub(super) struct Joined {
    /// In order of launch.
    pub(super) works: Vec<Placed>,
    /// Works without a launch: it was before the trace began, or was not recorded.
    pub(super) orphans: usize,
    /// When the host waits for the device: it synchronises, or waits for a copy to end.
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
        let on_host = recorded.iter().all(|placed| placed.work.kind == Kind::Transfer);
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
        if placed.work.kind == Kind::Transfer && placed.work.span.end <= launch.span.end {
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
        works.push(place(operator.span, Kind::Compute, operator.name, operator.thread));
    }
    let always = Span { start: Time::MIN, end: Time::MAX };
    let collectives = messages::recorded(recording, always);
    works.extend(collectives.iter().map(|it| place(it.span, Kind::Collective, it.name, it.thread)));
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

    fn phase(&self, kind: Kind, thread: u16, time: Time) -> Phase {
        if kind == Kind::Collective {
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
