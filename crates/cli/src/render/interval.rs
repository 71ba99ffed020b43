//! How sure a prediction is, as text.

use super::table;
use super::{Screen, grouped, percent};
use stepcast_core::quantity::SamplesPerSec;
use stepcast_report::table::{Column, Table};
use stepcast_report::words::between;
use stepcast_study::predict::interval::Interval;

/// Between what a figure should be measured.
pub(super) fn range(range: [String; 2]) -> String {
    format!("{} with 90 %", between(range))
}

/// A throughput without its unit, for a column that has it.
pub(super) fn rate(rate: SamplesPerSec) -> String {
    let text = grouped(rate.human());
    text.strip_suffix(" samples/s").unwrap_or(&text).to_owned()
}

/// Between what throughput should be measured, likewise.
pub(super) fn rates(range: [f64; 2]) -> String {
    let [low, high] = range.map(|end| rate(SamplesPerSec::new(end)));
    format!("{low} to {high}")
}

/// What the width comes from.
pub(super) fn parts(interval: &Interval, screen: &Screen) -> String {
    let mut table =
        Table::new("", [Column::names("source"), Column::numbers("throughput"), Column::words("")]);
    let both = |slower: f64, faster: f64| {
        format!("−{} +{}", percent(1.0 - (-slower).exp()), percent(faster.exp() - 1.0))
    };
    if let Some(sampling) = interval.sampling {
        table.row([
            "sampling".to_owned(),
            both(sampling, sampling),
            "by which simulated runs differ".to_owned(),
        ]);
    }
    for effect in &interval.by_input {
        table.row(["inputs".to_owned(), both(effect.slower, effect.faster), effect.key.clone()]);
    }
    let basis = &interval.basis;
    let from = format!(
        "{}: {} measured runs of {} networks or set-ups ({})",
        basis.what,
        basis.cases,
        basis.groups,
        basis.sets.join(", ")
    );
    table.row(["model error".to_owned(), both(interval.model, interval.model), from]);
    table::render(&table, screen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_no_unit() {
        assert_eq!(rates([12.0, 12_340.0]), "12 to 12,340");
    }
}
