//! When gradients are ready, and when the parameters they belong to are needed.

use super::join::Joined;
use super::recording::Recording;
use super::records::{Accumulation, Collective, Numbered, Placed, Role, Span, Time, inside};
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
/// everything that its thread had launched by then has ended. Of several micro-batches, the last one completes gradients.
/// Where every gradient is sent by itself, before it is added (by hooks) or after the backward pass, it is ready when it is sent;
/// where gradients are sent together after the backward pass, no earlier than the first of these messages.
pub(super) fn of_step(
    recording: &Recording,
    joined: &Joined,
    works: &[&Placed],
    sent: &[Collective],
    window: Span,
) -> Vec<Gradient> {
    let forward = Forward::new(recording, window);
    let added = forward.last_pass(added(recording, window));
    let first = sent.first().map(|sent| sent.span.start);
    let by_hooks = first.zip(added.first()).is_some_and(|(sent, added)| sent < added.span.start);
    // Hooks of the last gradient send within the backward pass, except that threads of the host may begin a little later.
    let by_hook = |it: &Collective| match joined.on_host {
        true => sent.len() < added.len().max(2),
        false => added.iter().any(|added| added.thread == it.thread),
    };
    let after = first.zip(backward_end(recording, window)).is_some_and(|(sent, end)| sent >= end);
    let afterwards = after && !sent.first().is_some_and(by_hook);
    let mut asked: Vec<&Placed> = works.iter().copied().filter(|it| it.stays()).collect();
    asked.sort_by_key(|placed| placed.launch);
    let ends = latest_ends(&asked);
    let inputs = Inputs::new(works, joined.on_host);
    let ready = |thread: u16, host: Time| {
        let own = ends.get(&thread).map_or(&[][..], Vec::as_slice);
        let asked = own.partition_point(|(launch, _)| *launch <= host);
        asked.checked_sub(1).map_or(host, |last| own[last].1)
    };
    let mut gradients: Vec<Gradient> = if sent.len() >= added.len() && (by_hooks || afterwards) {
        let gradient = |it: &Collective| Gradient {
            ready: if afterwards { inputs.ready(it.span.start) } else { ready(it.thread, it.span.start) },
            needed: None,
            host: it.span.start,
            elements: it.elements,
            element: it.element,
        };
        sent.iter().map(gradient).collect()
    } else {
        let earliest = first.filter(|_| afterwards).map_or(Time::MIN, |first| inputs.ready(first));
        let gradient = |it: &Accumulation| Gradient {
            ready: if joined.on_host { it.span.end } else { ready(it.thread, it.span.end) }.max(earliest),
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

/// When the host has gone through autograd's graph.
fn backward_end(recording: &Recording, window: Span) -> Option<Time> {
    let own =
        recording.ranges.iter().filter(|it| it.role == Role::Backward && window.contains(it.span.start));
    own.map(|it| it.span.end).max()
}

/// What a collective waits for: all that the host has launched before it.
pub(super) struct Inputs {
    /// Launches in order, and when all works up to each have ended. Empty where the host computes: there a collective is
    /// recorded when it starts.
    ends: Vec<(Time, Time)>,
}

impl Inputs {
    pub(super) fn new(works: &[&Placed], on_host: bool) -> Self {
        let mut ends: Vec<(Time, Time)> = Vec::new();
        if !on_host {
            let stays = works.iter().filter(|it| it.stays());
            ends.extend(stays.map(|placed| (placed.launch, placed.work.span.end)));
            ends.sort_unstable();
            let mut latest = Time::MIN;
            for (_, end) in &mut ends {
                latest = latest.max(*end);
                *end = latest;
            }
        }
        Self { ends }
    }

    /// When the inputs of a collective are there that is launched at this time.
    pub(super) fn ready(&self, launch: Time) -> Time {
        let before = self.ends.partition_point(|(own, _)| *own <= launch);
        before.checked_sub(1).map_or(launch, |last| self.ends[last].1)
    }
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

    /// The accumulations of the last pass over the graph. A pass goes through nodes from the last to the first; another begins where
    /// a node is later again, and adds gradients of the same sizes.
    fn last_pass(&self, added: Vec<Accumulation>) -> Vec<Accumulation> {
        let sizes: Vec<u64> = added.iter().map(|it| it.elements).collect();
        let begins = |place: usize| {
            let before = place.checked_sub(1).and_then(|before| self.node(&added[before]));
            before.zip(self.node(&added[place])).is_some_and(|(before, own)| own.number > before.number)
        };
        let period = (1..=sizes.len() / 2).find(|&period| {
            sizes.len().is_multiple_of(period)
                && sizes[period..] == sizes[..sizes.len() - period]
                && (period..sizes.len()).step_by(period).all(begins)
        });
        match period {
            Some(period) => added[added.len() - period..].to_vec(),
            None => added,
        }
    }

    /// The node of the graph that computed a gradient.
    fn node(&self, gradient: &Accumulation) -> Option<&Numbered> {
        let before = (gradient.thread, gradient.span.start);
        let node = self.nodes.partition_point(|it| (it.thread, it.start) <= before).checked_sub(1)?;
        self.nodes.get(node).filter(|it| it.thread == gradient.thread)
    }

    /// The start of the first work that was launched by the operator whose backward pass computed this gradient.
    fn first_use(&self, gradient: &Accumulation, asked: &[&Placed]) -> Option<Time> {
        let node = self.node(gradient)?;
        let operator = self.operators.binary_search_by_key(&node.number, |it| it.number).ok()?;
        let operator = self.operators.get(operator)?;
        let first = asked.partition_point(|placed| placed.launch < operator.start);
        asked[first..]
            .iter()
            .find(|placed| placed.thread == operator.thread)
            .map(|placed| placed.work.span.start)
    }
}
