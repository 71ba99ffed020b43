//! When gradients are ready, and when the parameters they belong to are needed.

use super::join::Joined;
use super::recording::Recording;
use super::records::{Accumulation, Collective, Kind, Numbered, Placed, Span, Time, inside};
use std::collections::HashMap;

/// One gradient of one step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Gradient {
    /// When the last work that makes it has ended.
    pub(super) ready: Time,
    /// When the first work that reads its parameter starts, if the trace has it.
    pub(super) needed: Option<Time>,
    /// When the host had finished with it.
    pub(super) host: Time,
    /// From recorded shapes.
    pub(super) elements: Option<u64>,
    /// Bytes of one element; 0 if unknown.
    pub(super) element: u8,
}

/// The gradients of the step that the host worked on in `window`, in the order in which they were ready.
///
/// Autograd adds a gradient to its parameter when it has launched all the work that computes it; that work has ended when
/// everything that its thread had launched by then has ended. Where hooks send every gradient before it is added, it is
/// ready when it is sent.
pub(super) fn of_step(
    recording: &Recording,
    joined: &Joined,
    works: &[&Placed],
    sent: &[Collective],
    window: Span,
) -> Vec<Gradient> {
    let added = added(recording, window);
    let by_hooks = sent.len() >= added.len()
        && sent.first().zip(added.first()).is_some_and(|(sent, added)| sent.span.start < added.span.start);
    let mut asked: Vec<&Placed> =
        works.iter().copied().filter(|it| it.work.kind != Kind::Collective).collect();
    asked.sort_by_key(|placed| placed.launch);
    let ends = latest_ends(&asked);
    let ready = |thread: u16, host: Time| {
        let own = ends.get(&thread).map_or(&[][..], Vec::as_slice);
        let asked = own.partition_point(|(launch, _)| *launch <= host);
        asked.checked_sub(1).map_or(host, |last| own[last].1)
    };
    let mut gradients: Vec<Gradient> = if by_hooks {
        let gradient = |it: &Collective| Gradient {
            ready: ready(it.thread, it.span.start),
            needed: None,
            host: it.span.start,
            elements: it.elements,
            element: it.element,
        };
        sent.iter().map(gradient).collect()
    } else {
        let forward = Forward::new(recording, window);
        let gradient = |it: &Accumulation| Gradient {
            ready: if joined.on_host { it.span.end } else { ready(it.thread, it.span.end) },
            needed: forward.first_use(it, &asked),
            host: it.span.end,
            elements: (it.elements > 0).then_some(it.elements),
            element: it.element,
        };
        added.iter().map(gradient).collect()
    };
    let mut latest = Time::MIN;
    for gradient in &mut gradients {
        latest = latest.max(gradient.ready);
        gradient.ready = latest;
    }
    gradients
}

/// For every thread: when each of its works was launched, and when all works up to it have ended.
fn latest_ends(asked: &[&Placed]) -> HashMap<u16, Vec<(Time, Time)>> {
    let mut ends = HashMap::<u16, Vec<(Time, Time)>>::new();
    for placed in asked {
        let own = ends.entry(placed.thread).or_default();
        let before = own.last().map_or(Time::MIN, |(_, end)| *end);
        own.push((placed.launch, before.max(placed.work.span.end)));
    }
    ends
}

/// Accumulations of a step in order. An accumulation and autograd's own range around it count once.
fn added(recording: &Recording, window: Span) -> Vec<Accumulation> {
    let mut all: Vec<Accumulation> = inside(&recording.accumulations, window, |it| it.span.start).to_vec();
    all.sort_by_key(|it| (it.span.start, -it.span.end));
    let mut distinct: Vec<Accumulation> = Vec::new();
    for next in all {
        match distinct.last_mut() {
            Some(last) if last.thread == next.thread && next.span.start < last.span.end => *last = next,
            _ => distinct.push(next),
        }
    }
    distinct
}

/// Operators of the forward pass that autograd has numbered.
struct Forward {
    /// Backward nodes by thread and time, and forward operators by number: the first of each.
    nodes: Vec<Numbered>,
    operators: Vec<Numbered>,
}

impl Forward {
    fn new(recording: &Recording, window: Span) -> Self {
        let mut threads: Vec<u16> =
            inside(&recording.accumulations, window, |it| it.span.start).iter().map(|it| it.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let inside = inside(&recording.numbered, window, |it| it.start).iter().copied();
        let (mut nodes, mut operators): (Vec<_>, Vec<_>) =
            inside.partition(|it| threads.binary_search(&it.thread).is_ok());
        nodes.sort_by_key(|it| (it.thread, it.start));
        operators.sort_by_key(|it| (it.number, it.start));
        operators.dedup_by_key(|it| it.number);
        Self { nodes, operators }
    }

    /// The start of the first work that was launched by the operator whose backward pass computed this gradient.
    fn first_use(&self, gradient: &Accumulation, asked: &[&Placed]) -> Option<Time> {
        let before = (gradient.thread, gradient.span.start);
        let node = self.nodes.partition_point(|it| (it.thread, it.start) <= before).checked_sub(1)?;
        let node = self.nodes.get(node).filter(|it| it.thread == gradient.thread)?;
        let operator = self.operators.binary_search_by_key(&node.number, |it| it.number).ok()?;
        let operator = self.operators.get(operator)?;
        let first = asked.partition_point(|placed| placed.launch < operator.start);
        asked[first..]
            .iter()
            .find(|placed| placed.thread == operator.thread)
            .map(|placed| placed.work.span.start)
    }
}
