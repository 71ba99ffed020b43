//! Messages of collectives: which of them sum gradients, and what every process group sends in a step.

use super::rank::Understood;
use super::recording::Recording;
use super::records::{Collective, Kind, Message, Placed, Role, Span, Time, inside};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The messages of one collective in one process group, in all steps together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Traffic {
    /// Its kind, such as `all-reduce`.
    pub(super) collective: String,
    /// Name of the group; empty if unknown.
    pub(super) group: String,
    /// Ranks of the group; 0 if unknown.
    pub(super) ranks: u32,
    pub(super) messages: usize,
    /// Bytes of all messages; 0 if unknown.
    pub(super) bytes: u64,
    /// Time on the device, or on the host where no device was recorded.
    pub(super) time: Time,
}

impl Traffic {
    /// Whether it sums over workers.
    pub(super) fn sums(&self) -> bool {
        sums(&self.collective)
    }
}

/// The collectives that the host worked on in `window`, in order. One that is recorded twice, as an operator and as a
/// range, counts once.
fn recorded(recording: &Recording, window: Span) -> Vec<Collective> {
    let mut all: Vec<Collective> = inside(&recording.collectives, window, |it| it.span.start).to_vec();
    all.sort_by_key(|it| (it.thread, it.span.start, -it.span.end));
    let mut distinct: Vec<Collective> = Vec::new();
    for next in all {
        match distinct.last_mut() {
            Some(last) if last.thread == next.thread && next.span.start < last.span.end => {
                last.elements = last.elements.or(next.elements);
                last.element = last.element.max(next.element);
                last.message = last.message.or(next.message);
            }
            _ => distinct.push(next),
        }
    }
    distinct.sort_by_key(|it| it.span.start);
    distinct
}

/// The collectives of a step that sum gradients, in order. A process group that sums during the forward pass sums
/// activations: tensor parallelism.
pub(super) fn gradient_sums(recording: &Recording, window: Span) -> Vec<Collective> {
    let mut found = recorded(recording, window);
    found.retain(|it| sums(recording.name(it.name)) && it.elements != Some(0));
    let backward = recording.ranges.iter().filter(|it| it.role == Role::Backward);
    let backward = backward.map(|it| it.span.start).filter(|start| window.contains(*start)).min();
    let of_activations: Vec<u32> = found
        .iter()
        .filter(|it| backward.is_some_and(|start| it.span.start < start))
        .filter_map(|it| it.message.group)
        .collect();
    let of_gradients = |it: &Collective| it.message.group.is_none_or(|own| !of_activations.contains(&own));
    if found.iter().any(of_gradients) {
        found.retain(of_gradients);
    }
    found
}

/// What every process group sends in all steps, by collective; what takes longest comes first.
pub(super) fn traffic(recording: &Recording, steps: &[Understood<'_>], on_host: bool) -> Vec<Traffic> {
    let mut found = BTreeMap::<(String, String), Traffic>::new();
    let mut add = |kind: &str, message: Message, time: Time| {
        let group = message.group.map_or("", |group| recording.name(group));
        let all = found.entry((kind.to_owned(), group.to_owned())).or_insert_with(|| Traffic {
            collective: kind.to_owned(),
            group: group.to_owned(),
            ranks: 0,
            messages: 0,
            bytes: 0,
            time: 0,
        });
        all.ranks = all.ranks.max(message.ranks);
        all.messages += 1;
        all.bytes = all.bytes.saturating_add(message.bytes);
        all.time += time;
    };
    for (step, works) in steps {
        let recorded = recorded(recording, step.host);
        if on_host {
            for it in &recorded {
                add(kind(recording.name(it.name)), it.message, it.span.length());
            }
            continue;
        }
        for placed in works.iter().filter(|placed| placed.work.kind == Kind::Collective) {
            let message = message(recording, &recorded, placed);
            let name = message.collective.unwrap_or(placed.work.name);
            add(kind(recording.name(name)), message, placed.work.span.length());
        }
    }
    let mut found: Vec<Traffic> = found.into_values().collect();
    found.sort_by_key(|own| Reverse(own.time));
    found
}

/// What a kernel and the host's record around its launch say.
fn message(recording: &Recording, recorded: &[Collective], placed: &Placed) -> Message {
    let own = recording.messages.get(&placed.work.correlation).copied().unwrap_or_default();
    let around = recorded.iter().find(|it| it.thread == placed.thread && it.span.contains(placed.launch));
    around.map_or(own, |around| own.or(around.message))
}

/// Whether a collective of this name sums over workers: `all_reduce`, `allreduce_coalesced`, `_reduce_scatter_base`.
fn sums(name: &str) -> bool {
    matches!(kind(name), "all-reduce" | "reduce-scatter")
}

/// The kind of a collective or of its kernel: `_allgather_base` and `ncclDevKernel_AllGather_RING_LL` are all-gathers.
fn kind(name: &str) -> &str {
    let plain = name.replace(['_', '-'], "").to_ascii_lowercase();
    let kinds = [
        ("allreduce", "all-reduce"),
        ("reducescatter", "reduce-scatter"),
        ("allgather", "all-gather"),
        ("alltoall", "all-to-all"),
        ("broadcast", "broadcast"),
        ("sendrecv", "send and receive"),
        ("recv", "receive"),
        ("send", "send"),
        ("barrier", "barrier"),
    ];
    kinds.into_iter().find(|(word, _)| plain.contains(word)).map_or(name, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_follow_from_names_of_operators_and_kernels() {
        for (name, expected) in [
            ("allreduce_coalesced", "all-reduce"),
            ("_reduce_scatter_base", "reduce-scatter"),
            ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*)", "all-gather"),
            ("all_to_allv", "all-to-all"),
            ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8", "send and receive"),
            ("gather", "gather"),
        ] {
            assert_eq!(kind(name), expected, "{name}");
        }
        assert!(sums("allreduce") && sums("all-reduce") && !sums("all_gather"));
    }
}
