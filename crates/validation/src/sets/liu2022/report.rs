//! The tables of this set.

use super::Reproduction;
use super::tables::PrintedFigure;
use crate::{BoundCheck, ExactCheck, Section};
use stepcast_report::table::{Column, Table};

pub(super) fn sections(reproduction: &Reproduction) -> Vec<Section> {
    vec![
        ExactCheck::table(&reproduction.checks).into(),
        printed_figures(&reproduction.tables).into(),
        BoundCheck::table(&[as_printed(reproduction)]).into(),
    ]
}

fn printed_figures(figures: &[PrintedFigure]) -> Table {
    let mut table = Table::new(
        "Tables 2 and 3",
        [
            Column::names("table"),
            Column::names("row"),
            Column::names("figure"),
            Column::numbers("printed"),
            Column::numbers("recomputed"),
            Column::names(""),
        ],
    );
    for figure in figures {
        table.row([
            figure.table.trim_start_matches('T').to_owned(),
            figure.row.clone(),
            figure.field.clone(),
            figure.published.to_string(),
            format!("{:.3}", figure.found),
            if figure.as_printed { "as printed" } else { "differs" }.to_owned(),
        ]);
    }
    table.note = "GFLOPs are giga-multiply-adds, rounded up; MB are MiB, in Table 3 without biases; tensors are layers of \
                  Keras."
        .to_owned();
    table
}

fn as_printed(reproduction: &Reproduction) -> BoundCheck {
    let found = reproduction.rows_as_printed();
    BoundCheck {
        what: format!("figures of Tables 2 and 3 as printed, of {}", reproduction.tables.len()),
        bound: reproduction.rows_wanted.to_string(),
        found: found.to_string(),
        holds: found >= reproduction.rows_wanted,
    }
}
