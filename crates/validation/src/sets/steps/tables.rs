//! The tables of this set.

use super::{StepPredictions, Times, is_bounded};
use crate::Section;
use crate::errors::signed_error;
use stepcast_fit::steps::LeftOutErrors;
use stepcast_report::format::name;
use stepcast_report::table::{Column, Table};

pub(super) fn sections(predictions: &StepPredictions) -> Vec<Section> {
    let verdict = |row: &LeftOutErrors| match predictions.keeps(row) {
        _ if !is_bounded(row) => "",
        true => "ok",
        false => "MISSED",
    };
    let bounds = format!(
        "Bounds: {}, for models left out. Small batches in bf16 measure the host, and families left out show how far the \
         coefficients carry: neither is bounded.",
        predictions.bounds
    );
    let mut sections = vec![
        steps(predictions).into(),
        left_out_table("Each model left out of the fit", &predictions.models, verdict).into(),
        left_out_table("Each family left out of the fit", &predictions.families, |_| "").into(),
        Section::paragraph(bounds),
    ];
    sections.extend(predictions.notes.iter().map(Section::paragraph));
    sections
}

fn steps(predictions: &StepPredictions) -> Table {
    let mut table = Table::new(
        "Measured steps, and errors of their prediction",
        [
            Column::names("model"),
            Column::names("precision"),
            Column::numbers("batch"),
            Column::numbers("forward"),
            Column::numbers("error"),
            Column::numbers("backward"),
            Column::numbers("error"),
            Column::numbers("iteration"),
            Column::numbers("error"),
        ],
    );
    let error = |times: &Times| signed_error(times.predicted / times.measured);
    for row in &predictions.rows {
        table.row([
            name(&row.model),
            row.precision.to_string(),
            row.batch.to_string(),
            row.forward.measured.human(),
            error(&row.forward),
            row.backward.measured.human(),
            error(&row.backward),
            row.iteration.measured.human(),
            error(&row.iteration),
        ]);
    }
    table
}

/// Mean and worst errors of groups of steps whose models were left out of a fit, each with a verdict, which may be empty.
pub fn left_out_table(
    title: &str,
    rows: &[LeftOutErrors],
    verdict: impl Fn(&LeftOutErrors) -> &'static str,
) -> Table {
    let mut table = Table::new(
        title,
        [
            Column::names("steps"),
            Column::numbers("number"),
            Column::names("errors of"),
            Column::numbers("mean"),
            Column::numbers("worst"),
            Column::names(""),
        ],
    );
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    for row in rows {
        table.row([
            row.group.to_string(),
            row.steps.to_string(),
            row.moment.to_string(),
            percent(row.mean),
            percent(row.worst),
            verdict(row).to_owned(),
        ]);
    }
    table
}
