//! Layers, and the lines of text that they are read from.

use crate::source::{Memory, Source};
use std::io::{BufRead, BufReader, Read};
use stepcast_core::fault::{Fault, Remedies};
use stepcast_core::quantity::{Bytes, Seconds};

/// Most layers of a network.
pub(super) const MOST_LAYERS: usize = 200_000;
/// Bytes of the longest line that is read.
const LONGEST_LINE: u64 = 64 << 10;

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Layer {
    pub(super) name: String,
    /// Not known for tables of the backward pass alone.
    pub(super) forward: Option<Seconds>,
    pub(super) backward: Seconds,
    pub(super) gradients: Bytes,
}

/// Longer passes of one layer, in seconds, and larger ones, in bytes, are taken for mistakes.
pub(super) const MOST_SECONDS: f64 = 1e6;
pub(super) const MOST_BYTES: f64 = 1e14;

impl Layer {
    /// Bytes of its gradients; none without parameters.
    pub(super) fn bytes(&self) -> Option<u64> {
        Some(self.gradients.get().round() as u64).filter(|bytes| *bytes > 0)
    }
}

/// The lines of a text, numbered for messages.
pub(super) struct Lines<'a, 'b> {
    reader: BufReader<&'a mut Source<'b>>,
    pub(super) place: String,
    number: usize,
    memory: Memory,
}

/// Bytes of memory that a line takes, and each byte of it, with the profile that is made of its layer.
const LINE: usize = 1500;
const LINE_BYTE: usize = 10;

impl<'a, 'b> Lines<'a, 'b> {
    pub(super) fn new(source: &'a mut Source<'b>) -> Self {
        let (place, memory) = (source.name().to_owned(), source.memory());
        Self { reader: BufReader::new(source), place, number: 0, memory }
    }

    /// The next line that is not blank, without its line break.
    pub(super) fn next(&mut self) -> Result<Option<String>, Fault> {
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
                if let Some(excess) = self.memory.excess() {
                    return Err(self.fault(excess.to_string(), excess.remedy()));
                }
                return Ok(Some(line.to_owned()));
            }
        }
    }

    pub(super) fn fault(&self, reason: impl Into<String>, remedy: impl Into<Remedies>) -> Fault {
        Fault::in_file(format!("{}:{}", self.place, self.number), reason, remedy)
    }

    /// A duration or size within plausible bounds.
    pub(super) fn plausible(&self, name: &str, value: f64, most: f64) -> Result<f64, Fault> {
        if (0.0..=most).contains(&value) {
            return Ok(value);
        }
        Err(self.fault(format!("{name} is {value:e}, which is impossible"), "check the value and its unit"))
    }

    pub(super) fn push(&self, layers: &mut Vec<Layer>, layer: Layer) -> Result<(), Fault> {
        if layers.len() == MOST_LAYERS {
            return Err(
                self.fault(format!("there are more than {MOST_LAYERS} layers"), "give one row a layer")
            );
        }
        layers.push(layer);
        Ok(())
    }
}
