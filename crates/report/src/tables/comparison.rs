//! Methods side by side.

use crate::format::{grouped, limit, percent, plain};
use crate::table::Table;
use crate::table::Wording;
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
    // Rounding errors are zero.
    let is_zero = |time: Seconds, step: Seconds| (time / step).abs() < 1e-9;
    let rows = comparison.rows.iter().filter_map(|row| match &row.answer {
        Answer::Predicted(figures) => {
            let times = figures.effects.as_ref()?.named().map(|(_, time)| time);
            let step = times.iter().copied().sum();
            Some((row.method, times.map(|time| (!is_zero(time, step)).then_some(time))))
        }
        Answer::Refused(_) => None,
    });
    let rows: Vec<_> = rows.collect();
    let titles = ["#computing", "#software", "#not overlapped", "#contention", "#start-up"];
    let happens = |place: &usize| rows.iter().any(|(_, times)| times[*place].is_some());
    let shown: Vec<usize> = (0..titles.len()).filter(happens).collect();
    let columns = shown.iter().map(|place| titles[*place]);
    let mut table = Table::new("What a step consists of", ["method"].into_iter().chain(columns));
    let written = |time: Option<Seconds>| time.map_or("0".to_owned(), |time| time.human().replace('-', "−"));
    for (method, times) in &rows {
        let cells = shown.iter().map(|place| written(times[*place]));
        table.row([(*method).to_owned()].into_iter().chain(cells));
    }
    table
}

/// The methods that do not apply, and changes that would make them apply.
pub fn refusals(comparison: &Comparison, words: Wording) -> Table {
    let mut table = Table::new("Methods that do not apply", ["method", "~why", "~what to change"]);
    for row in &comparison.rows {
        let Answer::Refused(why) = &row.answer else { continue };
        table.row([row.method.to_owned(), plain(&why.reason), plain(&why.remedy.worded(words.remedy))]);
    }
    table
}
