//! Tables of layers: forward time, backward time and bytes of gradients of each.
//!
//! `table` reads CSV with a header, `graph` the per-layer files that PipeDream's profiler writes, `waits` lists of the
//! time from one gradient to the next, `caffe` the logs of B-Caffe. All return [`Layer`]s, which become a profile:
//! forward in order, backward in reverse.

mod caffe;
mod graph;
mod lines;
mod table;
mod waits;

use crate::content::Content;
use crate::draft::{Draft, Label};
use crate::imported::Imported;
use crate::options::Options;
use crate::source;
use crate::{Summary, SummaryValue};
use lines::{Layer, Lines};
use std::path::PathBuf;
use stepcast_core::fault::Fault;
use stepcast_core::profile::Profile;
use stepcast_core::quantity::Seconds;

#[derive(Clone, Copy)]
enum Flavour {
    Table,
    Graph,
    Waits,
    Caffe,
}

impl Flavour {
    const ALL: [Self; 4] = [Self::Graph, Self::Caffe, Self::Table, Self::Waits];

    fn recognises(self, head: &str) -> bool {
        match self {
            Self::Table => table::recognises(head),
            Self::Graph => graph::recognises(head),
            Self::Waits => waits::recognises(head),
            Self::Caffe => caffe::recognises(head),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Table => "CSV of layers",
            Self::Graph => "PipeDream profile",
            Self::Waits => "list of waits for gradients",
            Self::Caffe => "log of B-Caffe",
        }
    }
}

/// Whether a file that begins like this is a table of layers.
pub(crate) fn recognises(head: &[u8]) -> bool {
    flavour(head).is_some()
}

fn flavour(head: &[u8]) -> Option<Flavour> {
    let text = String::from_utf8_lossy(&head[..head.len().min(8 << 10)]);
    Flavour::ALL.into_iter().find(|flavour| flavour.recognises(text.trim_start_matches('\u{feff}')))
}

/// Imports one table.
pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "tables of layers", "name one of them")?;
    let mut notes = Vec::new();
    let reading = options.reading(paths);
    let (layers, label) = source::first(path, &reading, recognises, &mut notes, |source| {
        let name = source.name().to_owned();
        let batch = options.required_batch(&name)?;
        let flavour = flavour(source.head()).unwrap_or(Flavour::Table);
        let lines = Lines::new(source);
        let layers = match flavour {
            Flavour::Table => table::read(lines)?,
            Flavour::Graph => graph::read(lines)?,
            Flavour::Waits => waits::read(lines)?,
            Flavour::Caffe => caffe::read(lines)?,
        };
        source.check()?;
        Ok((layers, Label { place: name, format: flavour.name(), batch }))
    })?;
    Ok(profile(layers, &label, notes)?.map(Content::Profile))
}

fn profile(layers: Vec<Layer>, label: &Label, mut notes: Vec<String>) -> Result<Imported<Profile>, Fault> {
    let wrong = |reason: &str, remedy: &str| Err(Fault::in_file(&label.place, reason, remedy));
    if layers.is_empty() {
        return wrong("it has no layers", "give one row for each layer");
    }
    if layers.iter().all(|layer| layer.gradients.get() < 1.0) {
        return wrong("no layer has gradients", "give the bytes of each layer's parameters");
    }
    let backward: Seconds = layers.iter().map(|layer| layer.backward).sum();
    // Half of the backward pass: Liu 2022, eq. 4.
    let known = layers.iter().all(|layer| layer.forward.is_some());
    let forward = |layer: &Layer| layer.forward.unwrap_or(layer.backward / 2.0);
    let total: Seconds = layers.iter().map(forward).sum();
    if !known {
        notes.push(
            "it has no times of the forward pass: half of the backward pass is assumed (Liu 2022, eq. 4)"
                .to_owned(),
        );
    }
    if backward + total <= Seconds::ZERO {
        return wrong("no layer takes any time", "give the times of the layers");
    }
    let mut draft = Draft::new(1);
    let weights: Vec<Option<u32>> = layers
        .iter()
        .map(|layer| layer.bytes().map(|bytes| draft.weight(&part(layer, "weight"), bytes)))
        .collect();
    let mut last = None;
    for (layer, weight) in layers.iter().zip(weights) {
        let after = last.into_iter().chain(weight).collect();
        last = Some(draft.compute(&part(layer, "forward"), after, |_| forward(layer).get()));
    }
    for layer in layers.iter().rev() {
        let after = last.into_iter().collect();
        let made = draft.compute(&part(layer, "backward"), after, |_| layer.backward.get());
        if let Some(bytes) = layer.bytes() {
            draft.gradient(&part(layer, "gradient"), bytes, made);
        }
        last = Some(made);
    }
    let mut summary = Summary::default();
    summary.figure("layers", "layers", SummaryValue::Count(layers.len() as u64), "");
    summary.figure("forward", "forward", SummaryValue::Time(total), if known { "" } else { "assumed" });
    summary.figure("backward", "backward", SummaryValue::Time(backward), "");
    Ok(Imported { content: draft.finish(label)?, summary, notes })
}

fn part(layer: &Layer, what: &str) -> String {
    format!("{}, {what}", layer.name)
}

#[cfg(test)]
mod tests;
