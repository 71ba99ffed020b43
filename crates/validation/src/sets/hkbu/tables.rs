//! The tables of this set.

use super::predictions::{Ranking, SchemeErrors, SchemePredictions, ThroughputPrediction};
use crate::{BoundCheck, Section};
use stepcast_report::format::several;
use stepcast_report::table::{Column, Table};

pub(super) fn sections(predictions: &SchemePredictions) -> Vec<Section> {
    let by_model = predictions.rows.chunk_by(|a, b| a.model == b.model);
    let mut sections: Vec<Section> = by_model.map(|rows| throughput(rows).into()).collect();
    sections.push(errors(predictions).into());
    sections.push(rankings(&predictions.rankings).into());
    sections.push(BoundCheck::table(&predictions.bounds).into());
    sections
}

fn signed(error: f64) -> String {
    format!("{error:+.1} %")
}

fn throughput(rows: &[ThroughputPrediction]) -> Table {
    let model = rows.first().map_or("", |row| row.model.as_str());
    let mut table = Table::new(
        format!("{model}, samples/s"),
        [
            Column::numbers("GPUs"),
            Column::names("scheme"),
            Column::numbers("measured"),
            Column::numbers("predicted"),
            Column::numbers("error"),
            Column::names(""),
        ],
    );
    for row in rows {
        table.row([
            row.gpus.to_string(),
            row.scheme.to_string(),
            format!("{:.1}", row.measured),
            format!("{:.1}", row.predicted),
            signed(row.error()),
            if row.fitted { "fitted" } else { "" }.to_owned(),
        ]);
    }
    table
}

fn errors(predictions: &SchemePredictions) -> Table {
    let mut table = Table::new(
        "Errors",
        [
            Column::names("scheme"),
            Column::names("on"),
            Column::numbers("rows"),
            Column::numbers("mean"),
            Column::numbers("worst"),
            Column::numbers("bias"),
            Column::numbers("mean by catalog"),
        ],
    );
    let percent = |value: f64| format!("{value:.1} %");
    for SchemeErrors { scheme, several_nodes, rows, mean, worst, bias, by_catalog } in &predictions.errors {
        table.row([
            scheme.to_string(),
            if *several_nodes { "several nodes" } else { "one node" }.to_owned(),
            rows.to_string(),
            percent(*mean),
            percent(*worst),
            signed(*bias),
            percent(*by_catalog),
        ]);
    }
    table.note = format!(
        "One figure is fitted, on the one row marked above, which does not count here: all-reduce within a node runs at \
         {}, where the catalog has {} for PCIe. Between nodes rate and latency are the catalog's. How bytes travel was \
         chosen with these rows in view.",
        predictions.within_rate.human(),
        predictions.catalog_rate.human()
    );
    table
}

fn rankings(rows: &[Ranking]) -> Table {
    let mut table = Table::new(
        "Order of the schemes",
        [
            Column::names("network"),
            Column::names("on"),
            Column::names("fastest"),
            Column::names("predicted"),
            Column::numbers("that one is slower by"),
            Column::numbers("pairs in order"),
        ],
    );
    for row in rows {
        table.row([
            row.model.clone(),
            several(u64::from(row.gpus), "GPU"),
            row.best_measured.to_string(),
            row.best_predicted.to_string(),
            format!("{:.1} %", row.regret),
            format!("{} of {}", row.right, row.pairs),
        ]);
    }
    table
}
