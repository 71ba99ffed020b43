//! The sources of a prediction's uncertainty.

use crate::format::percent;
use crate::table::{Column, Table};
use stepcast_study::predict::interval::Interval;

/// How far each source may move the throughput, in both directions.
pub(super) fn sources(interval: &Interval) -> Table {
    let mut table = Table::new(
        "Uncertainty",
        [Column::names("source"), Column::numbers("throughput"), Column::words("")],
    );
    let both = |slower: f64, faster: f64| {
        format!("−{} +{}", percent(1.0 - (-slower).exp()), percent(faster.exp() - 1.0))
    };
    if let Some(sampling) = interval.sampling {
        table.row(["sampling".to_owned(), both(sampling, sampling), "spread of simulated runs".to_owned()]);
    }
    for effect in &interval.by_input {
        table.row(["inputs".to_owned(), both(effect.slower, effect.faster), effect.key.clone()]);
    }
    let basis = &interval.basis;
    let measured = format!(
        "{}: {} measured runs of {} networks or set-ups ({})",
        basis.what,
        basis.cases,
        basis.groups,
        basis.sets.join(", ")
    );
    table.row(["model error".to_owned(), both(interval.model, interval.model), measured]);
    table
}
