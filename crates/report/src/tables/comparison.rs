//! Methods side by side.

use crate::format::{grouped, limit, percent, plain};
use crate::table::Table;
use crate::words::Wording;
use stepcast_core::quantity::Seconds;
use stepcast_study::predict::compare::{Answer, Comparison};

pub fn predictions(comparison: &Comparison) -> Table {
    let mut table = Table::new("", ["method", "#step time", "#throughput", "#scaling factor", "bottleneck"]);
    for row in &comparison.rows {
        let Answer::Predicted(figures) = &row.answer else { continue };
        let cells = [
            row.method.to_owned(),
            figures.iteration.human(),
            grouped(figures.throughput.human()),
            percent(figures.scaling_factor),
            limit(figures.bottleneck).to_owned(),
        ];
        table.marked_row(cells, (comparison.chosen == Some(row.method)).then_some("auto"));
    }
    table
}

/// The effects that methods model differently, where a method's answer depends on the network.
pub fn effects(comparison: &Comparison) -> Table {
    let mut table = Table::new(
        "What a step consists of",
        ["method", "#computing", "#server software", "#not overlapped", "#contention", "#start-up"],
    );
    // Rounding errors are shown as zero.
    let time = |time: Seconds, step: Seconds| match (time / step).abs() < 1e-9 {
        true => "0".to_owned(),
        false => time.human().replace('-', "−"),
    };
    for row in &comparison.rows {
        let Answer::Predicted(figures) = &row.answer else { continue };
        let Some(effects) = &figures.effects else { continue };
        let times = effects.named().map(|(_, time)| time);
        let step = times.iter().copied().sum();
        table.row([row.method.to_owned()].into_iter().chain(times.map(|part| time(part, step))));
    }
    table
}

/// The methods that do not apply, and what would have to change.
pub fn refusals(comparison: &Comparison, words: Wording) -> Table {
    let mut table = Table::new("Methods that do not apply", ["method", "~why", "~what to change"]);
    for row in &comparison.rows {
        let Answer::Refused(why) = &row.answer else { continue };
        table.row([row.method.to_owned(), plain(&why.reason), plain(&why.remedy.worded(words.remedy))]);
    }
    table
}
