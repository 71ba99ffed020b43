//! Figures that only a simulation provides: spreads, staleness, utilisation.

use super::BAR;
use crate::format::{count, name, percent, ratio, several};
use crate::table::{Table, bar};
use stepcast_core::prediction::{Simulation, Spread};
use stepcast_core::quantity::Seconds;

/// Rows of the histogram; where there are more values, neighbours share a row.
const HISTOGRAM_ROWS: usize = 12;

/// Values at either end of the histogram that are rarer than this share a row with their neighbour.
const RARE: f64 = 0.0005;

/// The last value with its own entry in the histogram, which includes all larger values.
const LAST: usize = 63;

const MOST_RESOURCES: usize = 16;

/// The tables of a simulation; the histogram only where staleness varies.
pub(super) fn all(simulation: &Simulation) -> Vec<Table> {
    let mut tables = vec![figures(simulation), spreads(simulation)];
    if simulation.staleness_histogram.len() > 1 {
        tables.push(staleness(simulation));
    }
    tables.push(usage(simulation));
    tables
}

fn figures(simulation: &Simulation) -> Table {
    let mut table = Table::of_figures("Simulation");
    table.figure(
        "mean staleness",
        ratio_or_whole(simulation.mean_staleness),
        "updates of others between a worker's pull and its own update",
    );
    table.figure(
        "effective minibatch",
        format!("{} samples", ratio_or_whole(simulation.effective_minibatch)),
        "that enter the parameters meanwhile, the worker's own included",
    );
    table.figure(
        "exposed communication",
        percent(simulation.exposed_communication),
        "of a step, during which the worker does not compute",
    );
    let Spread { low, high, .. } = simulation.step_s;
    let runs = match simulation.runs {
        1 if low >= high => "in 1 run, whose steps are all alike".to_owned(),
        1 => "in 1 run; the spread between runs needs at least 2".to_owned(),
        runs => format!("in {runs} runs"),
    };
    table.figure("simulated", several(simulation.steps, "step"), runs);
    if simulation.end != "all steps were done" {
        let end: String = simulation.end.chars().filter(|c| !c.is_control()).collect();
        table.note = format!("The runs ended early: {end}.");
    }
    table
}

fn spreads(simulation: &Simulation) -> Table {
    let mut table = Table::new("Percentiles", ["", "#5th", "#50th", "#95th"]);
    let mut row = |title: &str, spread: Spread, write: fn(f64) -> String| {
        table.row([title.to_owned(), write(spread.low), write(spread.median), write(spread.high)]);
    };
    row("step of a worker", simulation.step_s, |time| Seconds::new(time).human());
    row("staleness", simulation.staleness, ratio_or_whole);
    table
}

fn ratio_or_whole(value: f64) -> String {
    match value.fract().abs() < 1e-9 && (0.0..1e15).contains(&value) {
        true => count(value as u64),
        false => ratio(value),
    }
}

/// A row for each staleness, or for each range of them.
fn staleness(simulation: &Simulation) -> Table {
    let mut table = Table::new("Staleness of updates", ["#staleness", "#share", "|"]);
    for (label, share) in bins(&simulation.staleness_histogram) {
        let shown = if share > 0.0 { percent(share) } else { "–".to_owned() };
        table.row([label, shown, bar(share, BAR)]);
    }
    table
}

/// The histogram in at most [`HISTOGRAM_ROWS`] rows.
fn bins(histogram: &[f64]) -> Vec<(String, f64)> {
    let mut below = histogram.iter().scan(0.0, |sum, share| Some(accumulate(sum, *share)));
    let mut above = histogram.iter().rev().scan(0.0, |sum, share| Some(accumulate(sum, *share)));
    let Some(first) = below.position(|sum| sum > RARE) else { return Vec::new() };
    let last = above.position(|sum| sum > RARE).map_or(first, |place| histogram.len() - 1 - place).max(first);
    let width = (last + 1 - first).div_ceil(HISTOGRAM_ROWS);
    let bin = |start: usize| {
        let end = (start + width - 1).min(last);
        let is_first = start == first && histogram[..first].iter().any(|share| *share > 0.0);
        let is_last = end == last && (end == LAST || histogram[end + 1..].iter().any(|share| *share > 0.0));
        let from = if is_first { 0 } else { start };
        let to = if is_last { histogram.len() - 1 } else { end };
        let label = match (is_first, is_last, start == end) {
            (true, true, _) => "any".to_owned(),
            (true, false, _) => format!("up to {end}"),
            (false, true, _) => format!("{start} or more"),
            (false, false, true) => start.to_string(),
            (false, false, false) => format!("{start}–{end}"),
        };
        (label, histogram[from..=to].iter().sum())
    };
    (first..=last).step_by(width).map(bin).collect()
}

fn accumulate(sum: &mut f64, share: f64) -> f64 {
    *sum += share;
    *sum
}

fn usage(simulation: &Simulation) -> Table {
    let mut table = Table::new("How busy resources are", ["resource", "#used", "|"]);
    for usage in simulation.usage.iter().take(MOST_RESOURCES) {
        table.row([name(&usage.resource.to_string()), percent(usage.share), bar(usage.share, BAR)]);
    }
    let more = simulation.usage.len().saturating_sub(MOST_RESOURCES);
    if more > 0 {
        table.note = format!("{} more are less busy.", several(more as u64, "resource"));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_fit_into_some_rows() {
        let label = |rows: &[(String, f64)]| rows.iter().map(|(label, _)| label.clone()).collect::<Vec<_>>();
        let total = |rows: &[(String, f64)]| rows.iter().map(|(_, share)| share).sum::<f64>();
        assert_eq!(bins(&[]), []);
        assert_eq!(bins(&[0.0, 0.0]), []);
        assert_eq!(bins(&[f64::NAN]), []);
        assert_eq!(bins(&[0.0, 0.25, 0.75, 0.0]), [("1".to_owned(), 0.25), ("2".to_owned(), 0.75)]);
        let rows = bins(&[1.0 / 64.0; 64]);
        assert!(rows.len() <= HISTOGRAM_ROWS, "{rows:?}");
        assert_eq!((rows[0].0.as_str(), rows[10].0.as_str()), ("0–5", "60 or more"));
        assert!((total(&rows) - 1.0).abs() < 1e-12);
        let mut beyond = [0.0; 64];
        beyond[LAST] = 1.0;
        assert_eq!(bins(&beyond), [("63 or more".to_owned(), 1.0)]);
        // Rare values at the ends are added to their neighbours, and none is lost.
        let mut tailed = [0.000_01; 40];
        tailed[3..6].fill(0.333_21);
        let rows = bins(&tailed);
        assert_eq!(label(&rows), ["up to 3", "4", "5 or more"]);
        assert!((total(&rows) - tailed.iter().sum::<f64>()).abs() < 1e-12);
    }

    #[test]
    fn whole_numbers_have_no_decimals() {
        assert_eq!(ratio_or_whole(3.0), "3");
        assert_eq!(ratio_or_whole(3.25), "3.25");
        assert_eq!(ratio_or_whole(f64::NAN), "NaN");
    }
}
