//! Logs of B-Caffe: behind the prefix of every line "[index, elements, backward µs, communication µs, …]", one line for
//! each tensor in order of the forward pass. Weight and bias of a layer both have its backward time. Every pass begins
//! at index 0 again, and the first may have no times yet: the last one counts.

use super::{Layer, Lines, MOST_BYTES, MOST_SECONDS};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, Seconds};

const FLOAT: f64 = 4.0;

struct CaffeRow {
    index: u64,
    elements: f64,
    backward_us: f64,
}

fn row(line: &str) -> Option<CaffeRow> {
    let (prefix, list) = line.trim_end().strip_suffix(']')?.rsplit_once('[')?;
    if !prefix.trim_end().ends_with(']') {
        return None;
    }
    let mut cells = list.split(',').map(str::trim);
    let index = cells.next()?.parse().ok()?;
    let mut number = || cells.next()?.parse().ok();
    let (elements, backward_us, _communication): (_, _, f64) = (number()?, number()?, number()?);
    Some(CaffeRow { index, elements, backward_us })
}

pub(super) fn recognises(head: &str) -> bool {
    let first = head.lines().find(|line| !line.trim().is_empty());
    first.and_then(row).is_some_and(|row| row.index == 0)
}

/// In order of the forward pass.
pub(super) fn read(mut lines: Lines<'_, '_>) -> Result<Vec<Layer>, Fault> {
    let mut layers: Vec<Layer> = Vec::new();
    let mut last = f64::NAN;
    while let Some(line) = lines.next()? {
        let Some(row) = row(&line) else {
            return Err(
                lines.fault("this is not a tensor", "write [index, elements, backward µs, communication µs]")
            );
        };
        if row.index == 0 {
            layers.clear();
            last = f64::NAN;
        }
        let size = Bytes::new(lines.plausible("the size", FLOAT * row.elements, MOST_BYTES)?);
        let backward = lines.plausible("the backward time", row.backward_us / 1e6, MOST_SECONDS)?;
        match layers.last_mut().filter(|_| row.backward_us.to_bits() == last.to_bits()) {
            Some(layer) => layer.gradients += size,
            None => {
                let name = format!("tensor {}", row.index);
                let layer = Layer { name, forward: None, backward: Seconds::new(backward), gradients: size };
                lines.push(&mut layers, layer)?;
            }
        }
        last = row.backward_us;
    }
    Ok(layers)
}
