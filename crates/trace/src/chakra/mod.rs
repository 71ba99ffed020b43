//! Chakra execution traces: the operations of one rank as nodes that wait for each other.
//!
//! `proto` and `nodes` read nodes, `replay` schedules them, `operators` makes a model out of a trace that has shapes but
//! no times: PyTorch's own execution traces, before they are joined with a profiler's.

mod model;
mod nodes;
mod operators;
mod proto;
mod replay;
#[cfg(test)]
mod tests;

use crate::draft::{Draft, Label};
use crate::files::Content;
use crate::import::{Imported, Options, tally};
use crate::{Summary, SummaryValue, source};
use nodes::{Collective, NodeKind, Nodes};
use operators::Operators;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::profile::Profile;
use stepcast_core::quantity::Seconds;

const FORMAT: &str = "Chakra execution trace";

pub(crate) fn recognises(head: &[u8]) -> bool {
    nodes::recognises(head) || proto::recognises(head)
}

/// Imports the trace of one rank: a profile if it has times, a model if it has shapes only.
pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "Chakra traces", "name one of them")?;
    let mut notes = Vec::new();
    let reading = options.reading(paths);
    let (nodes, operators, place, read) = source::first(path, &reading, recognises, &mut notes, |source| {
        let mut read = Vec::new();
        let (nodes, operators) = if nodes::recognises(source.head()) {
            nodes::read(source, &mut read)?
        } else {
            (proto::read(source, &mut read)?, Operators::default())
        };
        Ok((nodes, operators, source.name().to_owned(), read))
    })?;
    notes.extend(read);
    nodes.report(&mut notes);
    let timed = nodes.nodes.iter().any(|node| node.kind == NodeKind::Compute && node.micros > 0.0);
    if timed {
        let batch = options.required_batch(&place)?;
        return Ok(profile(&nodes, &Label { place, format: FORMAT, batch }, notes)?.map(Content::Profile));
    }
    operators.model(&place, notes).map(|imported| imported.map(|model| Content::Model(Box::new(model))))
}

fn profile(nodes: &Nodes, label: &Label, mut notes: Vec<String>) -> Result<Imported<Profile>, Fault> {
    let replay = replay::replay(nodes);
    let mut say = |count: usize, noun: &str, fate: &str| tally(&mut notes, count, noun, fate);
    say(replay.unknown, "edge", "dropped: from nodes missing in the trace");
    say(replay.opened, "node", "in a dependency cycle, opened there");
    say(replay.twice, "node", "with the number of another: dependencies are on the first");
    let of_kind = |kind: NodeKind| nodes.nodes.iter().filter(move |node| node.kind == kind);
    let unsized_sums = of_kind(NodeKind::Collective(Collective::AllReduce)).filter(|node| node.bytes == 0);
    say(unsized_sums.count(), "all-reduce", "ignored: no size (comm_size)");
    let others = of_kind(NodeKind::Collective(Collective::Other)).filter(|node| !node.host).count();
    say(others, "other collective", "ignored (broadcasts, all-gathers, unknown kinds)");
    say(of_kind(NodeKind::PointToPoint).count(), "transfer", "between two ranks ignored");
    let mut gradients: Vec<(f64, u64)> = nodes
        .nodes
        .iter()
        .zip(&replay.start)
        .filter(|(node, _)| {
            matches!(node.kind, NodeKind::Collective(Collective::AllReduce | Collective::ReduceScatter))
        })
        .filter(|(node, _)| node.bytes > 0)
        .map(|(node, start)| (start / 1e6, node.bytes))
        .collect();
    gradients.sort_by(|a, b| a.0.total_cmp(&b.0));
    let end = replay.end / 1e6;
    if gradients.is_empty() {
        let collectives =
            nodes.nodes.iter().filter(|node| matches!(node.kind, NodeKind::Collective(_))).count();
        let reason = format!(
            "it records no size of any all-reduce: {} nodes, {}, {collectives} collectives",
            nodes.nodes.len(),
            Seconds::new(end).human()
        );
        let remedy = "import the protobuf trace (.et), whose collectives have comm_type and comm_size";
        return Err(Fault::in_file(&label.place, reason, remedy));
    }
    let mut draft = Draft::new(1);
    let weights: Vec<u32> = (1..)
        .zip(&gradients)
        .map(|(number, (_, bytes))| draft.weight(&format!("weights {number}"), *bytes))
        .collect();
    let (mut last, mut now) = (None, 0.0);
    for (number, &(ready, bytes)) in (1..).zip(&gradients) {
        let after = last.map_or_else(|| weights.clone(), |last| vec![last]);
        let made = draft.compute(&format!("computing {number}"), after, |_| ready - now);
        draft.gradient(&format!("all-reduce {number}"), bytes, made);
        (last, now) = (Some(made), ready);
    }
    draft.compute("computing after the last all-reduce", last.into_iter().collect(), |_| end - now);
    notes.push("the whole trace is one step of one rank alone: exchanges take no time".to_owned());
    Ok(Imported { content: draft.finish(label)?, summary: summary(nodes, end), notes })
}

fn summary(nodes: &Nodes, end: f64) -> Summary {
    let total = |host: bool, computes: bool| {
        let of = nodes
            .nodes
            .iter()
            .filter(|node| node.host == host && (node.kind == NodeKind::Compute) == computes);
        SummaryValue::Time(Seconds::new(of.fold(0.0, |total, node| total + node.micros) / 1e6))
    };
    let mut summary = Summary::default();
    summary.figure("nodes", "nodes", SummaryValue::Count(nodes.nodes.len() as u64), "");
    summary.figure("alone", "alone", SummaryValue::Time(Seconds::new(end)), "the step without exchanges");
    summary.figure("device", "on the device", total(false, true), "all computing nodes together");
    summary.figure("host", "on the host", total(true, true), "all computing nodes together");
    summary.figure("communication", "communication", total(false, false), "as recorded, hidden or not");
    summary
}
