//! Lists of waits for gradients: a line of explanation, the number of repetitions, the number of gradients, then for each
//! gradient, in order of the backward pass, the microseconds since the one before and its bytes. Logs of NetX's
//! communication studies have this form; the file itself names no unit of time.

use super::{Layer, Lines, MOST_BYTES, MOST_SECONDS};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, Seconds};

/// Lines before the first gradient.
const PREAMBLE: usize = 3;

fn pair(line: &str) -> Option<(f64, f64)> {
    let (wait, bytes) = line.split_once(',')?;
    Some((wait.trim().parse().ok()?, bytes.trim().parse().ok()?))
}

pub(super) fn recognises(head: &str) -> bool {
    let lines: Vec<&str> = head.lines().take(PREAMBLE + 1).collect();
    let [explanation, repetitions, gradients, first] = lines[..] else { return false };
    let count = |line: &str| line.trim().parse::<u32>().is_ok();
    pair(explanation).is_none() && count(repetitions) && count(gradients) && pair(first).is_some()
}

/// In order of the forward pass.
pub(super) fn read(mut lines: Lines<'_, '_>) -> Result<Vec<Layer>, Fault> {
    let mut expected = 0;
    let mut layers = Vec::new();
    for _ in 0..PREAMBLE {
        expected = lines.next()?.and_then(|line| line.trim().parse().ok()).unwrap_or(0);
    }
    while let Some(line) = lines.next()? {
        let Some((wait, bytes)) = pair(&line) else {
            return Err(lines.fault("this is not a wait and a size", "write microseconds,bytes"));
        };
        let layer = Layer {
            name: format!("gradient {}", layers.len() + 1),
            forward: None,
            backward: Seconds::new(lines.plausible("the wait", wait / 1e6, MOST_SECONDS)?),
            gradients: Bytes::new(lines.plausible("the size", bytes, MOST_BYTES)?),
        };
        lines.push(&mut layers, layer)?;
    }
    if layers.len() != expected {
        let reason = format!("it announces {expected} gradients and has {}", layers.len());
        return Err(Fault::in_file(&lines.place, reason, "copy the file again; it may be cut short"));
    }
    layers.reverse();
    Ok(layers)
}
