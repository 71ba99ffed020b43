//! Messages of collectives: which of them sum gradients, and the traffic of every process group in a step.

use super::gradients::Inputs;
use super::join::Joined;
use super::rank::AnalysedStep;
use super::recording::Recording;
use super::records::{Collective, Message, Placed, Role, Span, Time, inside, union, within};
use super::timeline::Exchange;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Gather-to-reduce ratio above which parameters are sharded (a guess: gathers of statistics are far below it).
const LEAST_GATHERED: f64 = 0.5;

/// The messages of one collective in one process group, in all steps together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Traffic {
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
    /// The part of it in which nothing is computed.
    pub(super) exposed: Time,
    pub(super) sums_gradients: bool,
}

impl Traffic {
    /// Whether it sums over ranks, gradients or activations.
    pub(super) fn reduces(&self) -> bool {
        sums(&self.collective)
    }
}

/// The collectives that the host worked on in `window`, in order. One that is recorded twice, as an operator and as a
/// range, counts once; sends and receives that are launched together are one.
pub(super) fn recorded(recording: &Recording, window: Span) -> Vec<Collective> {
    let mut all: Vec<Collective> = inside(&recording.collectives, window, |it| it.span.start).to_vec();
    all.sort_by_key(|it| (it.thread, it.span.start, -it.span.end));
    let mut distinct: Vec<Collective> = Vec::new();
    // Records at the end of the list without a range: they wait for the range that launches them.
    let mut pending = 0;
    for next in all {
        match distinct.last_mut() {
            Some(last) if last.thread == next.thread && next.span.start < last.span.end => {
                last.elements = last.elements.or(next.elements);
                last.element = last.element.max(next.element);
                last.message = last.message.or(next.message);
                pending = 0;
            }
            Some(last)
                if last.thread == next.thread && recording.name(next.name) == "coalesced" && pending > 0 =>
            {
                let parts = distinct.split_off(distinct.len() - pending);
                distinct.push(Collective { message: together(&parts), ..next });
                pending = 0;
            }
            last => {
                let before = if last.is_some_and(|last| last.thread == next.thread) { pending } else { 0 };
                let alone = matches!(kind(recording.name(next.name)), "send" | "receive");
                pending = if alone { before + 1 } else { 0 };
                distinct.push(next);
            }
        }
    }
    distinct.retain(|it| recording.name(it.name) != "wait");
    distinct.sort_by_key(|it| it.span.start);
    distinct
}

/// The message of records that are launched together; without a name if they are of different kinds.
fn together(parts: &[Collective]) -> Message {
    let mut all = Message::default();
    for part in parts {
        let bytes = all.bytes.saturating_add(part.message.bytes);
        all = Message { bytes, ..all.or(part.message) };
    }
    let same = parts.windows(2).all(|pair| pair[0].name == pair[1].name);
    Message { collective: all.collective.filter(|_| same), ..all }
}

pub(super) struct GradientSums {
    /// Sums over replicas, in order: they are taken out of the step.
    pub(super) sums: Vec<Collective>,
    /// Bytes that a rank exchanges with its replicas, or would exchange with more of them; none if unknown.
    pub(super) bytes: Option<u64>,
}

/// Finds the collectives of a step that sum gradients over replicas. A process group that sums during the forward pass sums
/// activations (tensor parallelism), also in the backward pass; if no other group sums, messages with sizes that do not occur in the
/// forward pass are gradients. Groups that also gather parameters hold parts of them (sharded data parallelism): their whole
/// exchange stays in the step, and replicas of such a group would exchange the parts.
pub(super) fn gradient_sums(recording: &Recording, window: Span) -> GradientSums {
    let all = recorded(recording, window);
    let mut sums = of_gradients(recording, &all, window);
    let bytes_of =
        |it: &Collective| Some(it.elements?.saturating_mul(it.element.into())).filter(|bytes| *bytes > 0);
    let mut sharded: BTreeSet<Option<u32>> = sums.iter().map(|it| it.message.group).collect();
    sharded.retain(|group| is_sharded(recording, &all, &sums, *group));
    let part = |it: &Collective| match sharded.contains(&it.message.group) {
        true => Some(bytes_of(it)? / u64::from(it.message.ranks).max(1)),
        false => bytes_of(it),
    };
    let bytes = sums.iter().map(part).try_fold(0, |all: u64, own| Some(all.saturating_add(own?)));
    sums.retain(|it| !sharded.contains(&it.message.group));
    GradientSums { sums, bytes }
}

/// Sums of gradients, over replicas or over ranks that hold parts of the parameters.
fn of_gradients(recording: &Recording, all: &[Collective], window: Span) -> Vec<Collective> {
    let summed = |it: &&Collective| sums(recording.name(it.name)) && it.elements != Some(0);
    let mut found: Vec<Collective> = all.iter().filter(summed).cloned().collect();
    let backward = recording.ranges.iter().filter(|it| it.role == Role::Backward);
    let Some(backward) = backward.map(|it| it.span.start).filter(|start| window.contains(*start)).min()
    else {
        return found;
    };
    let of_activations: BTreeSet<(u32, Option<u64>)> = found
        .iter()
        .filter(|it| it.span.start < backward)
        .filter_map(|it| Some((it.message.group?, it.elements)))
        .collect();
    let sums_activations = |group: u32| of_activations.iter().any(|(own, _)| *own == group);
    let other_group = |it: &Collective| it.message.group.is_none_or(|own| !sums_activations(own));
    if found.iter().any(other_group) {
        found.retain(other_group);
    } else {
        found.retain(|it| it.message.group.is_none_or(|own| !of_activations.contains(&(own, it.elements))));
    }
    found
}

/// Whether a group gathers about as much as it sums: by bytes, or by time where sizes are not recorded.
fn is_sharded(recording: &Recording, all: &[Collective], sums: &[Collective], group: Option<u32>) -> bool {
    let gathers =
        |it: &&Collective| kind(recording.name(it.name)) == "all-gather" && it.message.group == group;
    let gathered: Vec<&Collective> = all.iter().filter(gathers).collect();
    let summed: Vec<&Collective> = sums.iter().filter(|it| it.message.group == group).collect();
    let known = gathered.iter().chain(&summed).all(|it| it.message.bytes > 0);
    let amount = |list: &[&Collective]| -> f64 {
        let own = |it: &&Collective| if known { it.message.bytes as f64 } else { it.span.length() as f64 };
        list.iter().map(own).sum()
    };
    !gathered.is_empty() && amount(&gathered) >= LEAST_GATHERED * amount(&summed)
}

/// Marks the works that sum gradients. A kernel belongs to the host's record of a collective around its launch; without a
/// record, its name decides.
pub(super) fn mark_gradient_sums(recording: &Recording, joined: &mut Joined, windows: &[Span]) {
    for &window in windows {
        let records = recorded(recording, window);
        let own = gradient_sums(recording, window).sums;
        let first = joined.works.partition_point(|placed| placed.launch < window.start);
        let last = joined.works.partition_point(|placed| placed.launch < window.end);
        for placed in joined.works[first..last.max(first)].iter_mut().filter(|placed| placed.is_collective())
        {
            let launches = |it: &&Collective| it.thread == placed.thread && it.span.contains(placed.launch);
            placed.sums_gradients = match records.iter().find(launches) {
                Some(_) => own.iter().any(|it| launches(&it)),
                None => sums(recording.name(placed.work.name)),
            };
        }
    }
}

/// Traffic of every process group in all steps, by collective, the longest first.
pub(super) fn traffic(recording: &Recording, steps: &[AnalysedStep<'_>]) -> Vec<Traffic> {
    let mut found = BTreeMap::<(String, String, bool), Traffic>::new();
    for (step, works) in steps {
        let recorded = recorded(recording, step.host);
        let computing = works.iter().filter(|placed| !placed.is_collective());
        let computing = union(computing.map(|placed| placed.work.span).collect());
        for placed in works.iter().filter(|placed| placed.is_collective()) {
            let message = message(recording, &recorded, placed);
            let collective = kind(recording.name(message.collective.unwrap_or(placed.work.name)));
            let group = message.group.map_or("", |group| recording.name(group));
            let sums_gradients = placed.sums_gradients;
            let all =
                found.entry((collective.to_owned(), group.to_owned(), sums_gradients)).or_insert_with(|| {
                    Traffic {
                        collective: collective.to_owned(),
                        group: group.to_owned(),
                        ranks: 0,
                        messages: 0,
                        bytes: 0,
                        time: 0,
                        exposed: 0,
                        sums_gradients,
                    }
                });
            let span = placed.work.span;
            let hidden: Time = within(&computing, span).map(Span::length).sum();
            all.ranks = all.ranks.max(message.ranks);
            all.messages += 1;
            all.bytes = all.bytes.saturating_add(message.bytes);
            all.time += span.length();
            all.exposed += span.length() - hidden;
        }
    }
    let mut found: Vec<Traffic> = found.into_values().collect();
    found.sort_by_key(|own| Reverse(own.time));
    found
}

/// The collectives of a step, in the order in which they were launched.
pub(super) fn exchanges(
    recording: &Recording,
    window: Span,
    works: &[&Placed],
    on_host: bool,
) -> Vec<Exchange> {
    let recorded = recorded(recording, window);
    let inputs = Inputs::new(works, on_host);
    let mut collectives: Vec<&Placed> = works.iter().copied().filter(|it| it.is_collective()).collect();
    collectives.sort_by_key(|placed| placed.launch);
    let exchange = |placed: &Placed| Exchange {
        ran: placed.work.span,
        ready: inputs.ready(placed.launch),
        group: message(recording, &recorded, placed).group,
        sums_gradients: placed.sums_gradients,
    };
    collectives.into_iter().map(exchange).collect()
}

/// The message of a kernel and of the host's record around its launch.
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
