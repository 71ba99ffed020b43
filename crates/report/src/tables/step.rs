//! What one step consists of: its parts, its communication, its critical path.

use super::BAR;
use crate::format::{name, percent};
use crate::table::{Column, Table, bar};
use stepcast_core::prediction::{Communication, Part};
use stepcast_core::quantity::Seconds;
use stepcast_study::{CriticalPath, Share};

/// Smaller shares of the critical path are left out.
const LEAST_SHARE: f64 = 0.005;
/// A simulated step this close to the predicted one, as a share, is not mentioned.
const ALIKE: f64 = 0.005;
/// Layers of the critical path that are listed.
const MOST_LAYERS: usize = 5;

fn columns(first: &str) -> [Column; 4] {
    [Column::names(first), Column::numbers("time"), Column::numbers("share"), Column::bars()]
}

fn add(table: &mut Table, name: String, time: Seconds, share: f64) {
    table.row([name, time.human(), percent(share), bar(share, BAR)]);
}

/// The parts of an iteration that take time; they add up to it.
pub(super) fn breakdown(title: &str, parts: &[Part], iteration: Seconds) -> Table {
    let mut table = Table::new(title, columns("part"));
    for part in parts.iter().filter(|part| part.time > Seconds::ZERO) {
        add(&mut table, part.kind.to_string(), part.time, part.time / iteration);
    }
    table
}

/// From the first gradients to the end of the last all-reduce.
pub(super) fn communication(title: &str, parts: &Communication) -> Table {
    let mut table = Table::new(title, columns("part"));
    let whole = parts.negotiate + parts.wait + parts.allreduce + parts.misc;
    for (name, time) in [
        ("ALLREDUCE", parts.allreduce),
        ("WAIT", parts.wait),
        ("NEGOTIATE", parts.negotiate),
        ("MISC", parts.misc),
    ] {
        if time > Seconds::ZERO {
            add(&mut table, name.to_owned(), time, time / whole);
        }
    }
    table.note = match parts.exposed > Seconds::ZERO {
        true => format!("{} of it is not hidden by the backward pass.", parts.exposed.human()),
        false => "All of it is hidden by the backward pass.".to_owned(),
    };
    table
}

/// The chain of operations that determines the length of a step, as shares of the step that is predicted.
pub(super) fn critical_path(path: &CriticalPath, iteration: Seconds) -> Table {
    let mut table = Table::new("What the step waits for", columns("on the critical path"));
    let mut rows = |shares: &[Share], most: usize| {
        for share in shares.iter().filter(|share| share.share >= LEAST_SHARE).take(most) {
            add(&mut table, name(&share.name), iteration * share.share, share.share);
        }
    };
    rows(&path.resources, usize::MAX);
    rows(&path.layers, MOST_LAYERS);
    let source = match ((path.step / iteration).ln().abs() < ALIKE) || path.step.human() == iteration.human()
    {
        true => String::new(),
        false => format!(" The path is that of a simulated step of {}.", path.step.human()),
    };
    table.note = format!("Shares of the predicted step, by resource, then by layer.{source}");
    table
}
