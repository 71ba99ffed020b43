//! The tables of this set.

use super::predictions::JobPredictions;
use super::testbed::Parameters;
use crate::errors::signed_error;
use crate::{Errors, Section};
use stepcast_report::format::name;
use stepcast_report::table::{Column, Table};

pub(super) fn sections(predictions: &JobPredictions) -> Vec<Section> {
    let testbed = &predictions.testbed;
    let figures = format!(
        "From profiles and micro-benchmarks: steps of a worker spread by {:.1} %, large all-reduces reach {:.3} of the \
         link rate.",
        100.0 * testbed.jitter,
        testbed.goodput
    );
    vec![
        jobs(predictions).into(),
        errors(predictions).into(),
        Section::Text { title: "Testbed".to_owned(), paragraphs: vec![figures] },
        fitted(predictions).into(),
    ]
}

fn jobs(predictions: &JobPredictions) -> Table {
    let mut table = Table::new(
        "Steps",
        [
            Column::names("model"),
            Column::numbers("ranks"),
            Column::numbers("rate"),
            Column::numbers("cores"),
            Column::numbers("bucket MiB"),
            Column::numbers("measured"),
            Column::numbers("predicted"),
            Column::numbers("error"),
            Column::numbers("plain overlap"),
        ],
    );
    for row in &predictions.rows {
        table.row([
            name(&row.model),
            row.ranks.to_string(),
            name(&row.rate),
            row.cores.to_string(),
            row.bucket_mb.to_string(),
            row.measured.human(),
            row.predicted.human(),
            signed_error(row.predicted / row.measured),
            signed_error(row.plain / row.measured),
        ]);
    }
    table
}

fn errors(predictions: &JobPredictions) -> Table {
    let mut table = Errors::table("Errors", "predicted with", &predictions.errors);
    table.note = format!("Bounds, with other models' fit: {}.", predictions.bounds);
    if predictions.left_out > 0 {
        table.note += &format!(" {} jobs have no profile and were left out.", predictions.left_out);
    }
    table
}

fn fitted(predictions: &JobPredictions) -> Table {
    let mut table = Table::new(
        "",
        [
            Column::names("fitted"),
            Column::numbers("core time per byte"),
            Column::numbers("loaded host, slower by"),
        ],
    );
    let mut row = |name: String, parameters: &Parameters| {
        let slower = format!("{:.1} %", 100.0 * (parameters.slowness - 1.0));
        table.row([name, parameters.core_per_byte.human(), slower]);
    };
    for (model, parameters) in &predictions.without {
        row(format!("without {}", name(model)), parameters);
    }
    row("on all jobs".to_owned(), &predictions.parameters);
    table
}
