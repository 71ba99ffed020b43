//! Chakra execution traces: the operations of one rank as nodes that wait for each other.
//!
//! `proto` and `json` read nodes, `replay` schedules them, `operators` makes a model out of a trace that has shapes but
//! no times: PyTorch's own execution traces, before they are joined with a profiler's.

mod call;
mod json;
mod model;
mod node;
mod operators;
mod proto;
mod replay;
#[cfg(test)]
mod tests;

use crate::content::Content;
use crate::draft::{Draft, Label};
use crate::imported::{Imported, tally};
use crate::options::Options;
use crate::{Summary, SummaryValue, source};
use node::{Collective, Kind, Nodes};
use operators::Operators;
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::profile::Profile;
use stepcast_core::quantity::Seconds;

const FORMAT: &str = "Chakra execution trace";

pub(crate) fn recognises(head: &[u8]) -> bool {
    json::recognises(head) || proto::recognises(head)
}

/// Imports the trace of one rank: a profile if it has times, a model if it has shapes only.
pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "Chakra traces", "name one of them")?;
    let mut notes = Vec::new();
    let reading = options.reading(paths);
    let (nodes, operators, place, read) = source::first(path, &reading, recognises, &mut notes, |source| {
        let mut read = Vec::new();
        let (nodes, operators) = if json::recognises(source.head()) {
            json::read(source, &mut read)?
        } else {
            (proto::read(source, &mut read)?, Operators::default())
        };
        Ok((nodes, operators, source.name().to_owned(), read))
    })?;
    notes.extend(read);
    nodes.report(&mut notes);
    let timed = nodes.nodes.iter().any(|node| node.kind == Kind::Compute && node.micros > 0.0);
    if timed {
        let batch = options.required_batch(&place)?;
        return Ok(profile(&nodes, &Label { place, format: FORMAT, batch }, notes)?.map(Content::Profile));
    }
    operators.model(&place, notes).map(|imported| imported.map(|model| Content::Model(Box::new(model))))
}

fn profile(nodes: &Nodes, label: &Label, mut notes: Vec<String>) -> Result<Imported<Profile>, Fault> {
    let replay = replay::replay(nodes);
    let mut say = |count: usize, what: &str| tally(&mut notes, count, what);
    say(replay.unknown, "dropped dependencies on nodes that the trace does not hold");
    say(replay.opened, "nodes in dependency cycles, whose dependencies were dropped");
    say(replay.twice, "nodes with the number of another, on the first of which all that name it depend");
    let is = |kind: fn(Kind) -> bool| nodes.nodes.iter().filter(move |node| kind(node.kind));
    let unsized_reductions =
        is(|kind| kind == Kind::Collective(Collective::AllReduce)).filter(|node| node.bytes == 0).count();
    say(unsized_reductions, "all-reduces without a size (comm_size), which were left out");
    let others = is(|kind| kind == Kind::Collective(Collective::Other)).filter(|node| !node.host).count();
    say(
        others,
        "collectives other than all-reduces, which were left out (broadcasts, all-gathers, or of unknown kind)",
    );
    say(is(|kind| kind == Kind::PointToPoint).count(), "transfers between two ranks, which were left out");
    let mut gradients: Vec<(f64, u64)> = nodes
        .nodes
        .iter()
        .zip(&replay.start)
        .filter(|(node, _)| {
            matches!(node.kind, Kind::Collective(Collective::AllReduce | Collective::ReduceScatter))
        })
        .filter(|(node, _)| node.bytes > 0)
        .map(|(node, start)| (start / 1e6, node.bytes))
        .collect();
    gradients.sort_by(|a, b| a.0.total_cmp(&b.0));
    let end = replay.end / 1e6;
    if gradients.is_empty() {
        let collectives = is(|kind| matches!(kind, Kind::Collective(_))).count();
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
    notes.push(
        "the whole trace is taken for one step, and for that of one rank alone: exchanges take no time"
            .to_owned(),
    );
    Ok(Imported { content: draft.finish(label)?, summary: summary(nodes, end), notes })
}

fn summary(nodes: &Nodes, end: f64) -> Summary {
    let total = |host: bool, computes: bool| {
        let of =
            nodes.nodes.iter().filter(|node| node.host == host && (node.kind == Kind::Compute) == computes);
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
