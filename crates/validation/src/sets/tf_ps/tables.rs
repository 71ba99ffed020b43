//! The tables of this set.

use super::predictions::RunPredictions;
use crate::errors::signed_error;
use crate::{Errors, Section};
use stepcast_report::table::{Column, Table};

pub(super) fn sections(predictions: &RunPredictions) -> Vec<Section> {
    vec![runs(predictions).into(), errors(predictions).into(), testbed(predictions)]
}

fn range(interval: [f64; 2]) -> String {
    format!("{:.2}–{:.2}", interval[0], interval[1])
}

fn runs(predictions: &RunPredictions) -> Table {
    let mut table = Table::new(
        "Throughput",
        [
            Column::names("configuration"),
            Column::numbers("workers"),
            Column::numbers("measured"),
            Column::numbers("predicted"),
            Column::numbers("90 % of runs"),
            Column::numbers("with model error"),
            Column::numbers("error"),
            Column::numbers("held out"),
            Column::numbers("cynthia"),
            Column::numbers("lin"),
        ],
    );
    for row in &predictions.rows {
        let error = |predicted: f64| signed_error(predicted / row.measured);
        table.row([
            row.configuration.clone(),
            row.workers.to_string(),
            format!("{:.2}", row.measured),
            format!("{:.2}", row.predicted),
            range(row.interval),
            range(row.likely),
            error(row.predicted),
            row.held_out.map_or_else(String::new, error),
            error(row.cynthia),
            error(row.lin),
        ]);
    }
    table
}

fn errors(predictions: &RunPredictions) -> Table {
    let mut table = Errors::table("Errors with two workers and more", "method", &predictions.errors);
    table.note = format!(
        "Bounds: {}, and smaller errors than both other methods. The 90 % interval of the simulated runs holds {:.0} % of \
         the measured points, the 90 % interval with model error {:.0} %.",
        predictions.bounds,
        100.0 * predictions.coverage,
        100.0 * predictions.likely_coverage
    );
    table
}

fn testbed(predictions: &RunPredictions) -> Section {
    let testbed = &predictions.testbed;
    let measured = format!(
        "Measured once for all: goodput {:.3} of the link rate, parsing {} and {} a byte, {} cores; connections' shares \
         spread by {:.2} down and {:.2} up, windows of {} at first, spread by {:.2}; a download that joins another gets \
         {:.2} of its rate.",
        testbed.goodput,
        testbed.parse_fixed.human(),
        testbed.parse_per_byte.human(),
        testbed.cores,
        testbed.spread[0],
        testbed.spread[1],
        testbed.first_window.human(),
        testbed.first_window_spread,
        testbed.joining,
    );
    let chosen = format!(
        "Chosen on runs: {} of the queues delay acknowledgements, downloads are established after {}.",
        testbed.acknowledgements_queued,
        testbed.established.human()
    );
    let mut paragraphs = vec![measured, chosen];
    paragraphs.extend(predictions.choices.iter().map(|choice| {
        format!(
            "Without {}: {} and {}, {:.1} % mean error on the others.",
            choice.configuration,
            choice.acknowledgements_queued,
            choice.established.human(),
            choice.error_on_others
        )
    }));
    paragraphs.extend(predictions.failed.iter().map(|error| format!("left out: {error}")));
    paragraphs.extend(predictions.notes.iter().cloned());
    Section::Text { title: "Testbed".to_owned(), paragraphs }
}
