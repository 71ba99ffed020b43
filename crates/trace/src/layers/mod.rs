//! Tables of layers: forward time, backward time and bytes of gradients of each.
//!
//! `table` reads CSV with a header, `graph` the per-layer files that PipeDream's profiler writes, `waits` lists of the
//! time from one gradient to the next, `caffe` the logs of B-Caffe. All return [`Layer`]s, which become a profile:
//! forward in order, backward in reverse.

mod caffe;
mod graph;
mod table;
#[cfg(test)]
mod tests;
mod waits;

use crate::draft::{Draft, Label};
use crate::files::Content;
use crate::import::{Imported, Options};
use crate::source::{Memory, Source};
use crate::{Summary, SummaryValue, source};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use stepcast_core::fault::{Fault, Remedies};
use stepcast_core::profile::Profile;
use stepcast_core::quantity::{Bytes, Seconds};

struct Flavour {
    name: &'static str,
    recognises: fn(&str) -> bool,
    read: fn(Lines<'_, '_>) -> Result<Vec<Layer>, Fault>,
}

const FLAVOURS: [Flavour; 4] = [
    Flavour { name: "PipeDream profile", recognises: graph::recognises, read: graph::read },
    Flavour { name: "log of B-Caffe", recognises: caffe::recognises, read: caffe::read },
    Flavour { name: "CSV of layers", recognises: table::recognises, read: table::read },
    Flavour { name: "list of waits for gradients", recognises: waits::recognises, read: waits::read },
];

/// Whether a file that begins like this is a table of layers.
pub(crate) fn recognises(head: &[u8]) -> bool {
    flavour(head).is_some()
}

fn flavour(head: &[u8]) -> Option<&'static Flavour> {
    let text = String::from_utf8_lossy(&head[..head.len().min(8 << 10)]);
    FLAVOURS.iter().find(|flavour| (flavour.recognises)(text.trim_start_matches('\u{feff}')))
}

pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "tables of layers", "name one of them")?;
    let mut notes = Vec::new();
    let reading = options.reading(paths);
    let (layers, label) = source::first(path, &reading, recognises, &mut notes, |source| {
        let name = source.name().to_owned();
        let batch = options.required_batch(&name)?;
        let flavour = flavour(source.head()).unwrap_or(&FLAVOURS[2]);
        let layers = (flavour.read)(Lines::new(source))?;
        source.check()?;
        Ok((layers, Label { place: name, format: flavour.name, batch }))
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

const MOST_LAYERS: usize = 200_000;
const LONGEST_LINE: u64 = 64 << 10;

#[derive(Debug, Clone, PartialEq)]
struct Layer {
    name: String,
    /// Forward time; unknown for tables of the backward pass alone.
    forward: Option<Seconds>,
    backward: Seconds,
    gradients: Bytes,
}

/// Longer passes of one layer, in seconds, and larger ones, in bytes, are taken for mistakes.
const MOST_SECONDS: f64 = 1e6;
const MOST_BYTES: f64 = 1e14;

impl Layer {
    /// Bytes of its gradients; none without parameters.
    fn bytes(&self) -> Option<u64> {
        Some(self.gradients.get().round() as u64).filter(|bytes| *bytes > 0)
    }
}

/// The lines of a text, numbered for messages.
struct Lines<'a, 'b> {
    reader: BufReader<&'a mut Source<'b>>,
    place: String,
    number: usize,
    memory: Memory,
}

/// Bytes of memory for a line, and for each byte of it, including the resulting profile.
const LINE: usize = 1500;
const LINE_BYTE: usize = 10;

impl<'a, 'b> Lines<'a, 'b> {
    fn new(source: &'a mut Source<'b>) -> Self {
        let (place, memory) = (source.name().to_owned(), source.memory());
        Self { reader: BufReader::new(source), place, number: 0, memory }
    }

    /// The next line that is not blank, without its line break.
    fn next(&mut self) -> Result<Option<String>, Fault> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut bytes);
            if let Err(error) = read {
                return Err(self.reader.get_ref().fault(&error));
            }
            if bytes.is_empty() {
                return Ok(None);
            }
            self.number += 1;
            if bytes.len() as u64 == LONGEST_LINE {
                return Err(self.fault("this line has no end", "give one layer a line"));
            }
            let Ok(line) = std::str::from_utf8(&bytes) else {
                return Err(self.fault("this line is not UTF-8 text", "save the table as UTF-8"));
            };
            let line = line.trim_start_matches('\u{feff}').trim_end();
            if !line.trim().is_empty() {
                self.memory.hold(LINE + LINE_BYTE * line.len());
                self.memory.check(&format!("{}:{}", self.place, self.number))?;
                return Ok(Some(line.to_owned()));
            }
        }
    }

    fn fault(&self, reason: impl Into<String>, remedy: impl Into<Remedies>) -> Fault {
        Fault::in_file(format!("{}:{}", self.place, self.number), reason, remedy)
    }

    /// A duration or size within plausible bounds.
    fn plausible(&self, name: &str, value: f64, most: f64) -> Result<f64, Fault> {
        if (0.0..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.fault(format!("{name} is {value:e}, which is impossible"), "check the value and its unit"))
    }

    fn push(&self, layers: &mut Vec<Layer>, layer: Layer) -> Result<(), Fault> {
        if layers.len() == MOST_LAYERS {
            return Err(
                self.fault(format!("there are more than {MOST_LAYERS} layers"), "give one row a layer")
            );
        }
        layers.push(layer);
        Ok(())
    }
}
