//! The tables of this set: every published cell, the errors, the fitted coefficients, the bounds.

use super::{Calibration, CellPrediction, OperationCount, TableErrors, TablePredictions};
use crate::{BoundCheck, Section};
use stepcast_core::quantity::{BytesPerSec, Seconds};
use stepcast_report::format::count;
use stepcast_report::table::{Column, Table};

const LEGEND: &str = "PT: predicted time as printed. authors: recomputed with the authors' own inputs; Δ: how far that is \
                      from PT. literal: the printed formulas as they stand. fitted: the layer-wise model, calibrated on \
                      the other networks. MT: measured time. acc.: accuracy as printed; /PT and /MT: 1 − |PT − MT| over \
                      either. typed: the authors typed in a computing time. Table 3 repeats Table 2 in print; its rows \
                      here are those of the authors' workbook.";

pub(super) fn sections(predictions: &TablePredictions) -> Vec<Section> {
    let mut sections: Vec<Section> = vec![counts(&predictions.table1).into()];
    let same_machines = |a: &CellPrediction, b: &CellPrediction| a.table == b.table && a.config == b.config;
    sections.extend(predictions.cells.chunk_by(same_machines).map(|cells| cell_table(cells).into()));
    sections.push(Section::paragraph(LEGEND));
    let (tables, sweeps): (Vec<&TableErrors>, Vec<&TableErrors>) =
        predictions.errors.iter().partition(|errors| errors.authors.is_some());
    sections.push(errors("Errors against the measured times, by table", &tables).into());
    let title = format!("Errors on the {} measurements of the authors' workbook", predictions.sweeps.len());
    sections.push(errors(&title, &sweeps).into());
    sections.push(calibrations(&predictions.calibrations).into());
    sections.push(BoundCheck::table(&predictions.bounds).into());
    sections
}

fn counts(rows: &[OperationCount]) -> Table {
    let mut table = Table::new(
        "Table 1: operations of one sample, forward, and of one step, backward",
        [
            Column::names("model"),
            Column::numbers("forward"),
            Column::numbers("published"),
            Column::numbers("backward"),
            Column::numbers("published"),
            Column::names(""),
        ],
    );
    for row in rows {
        table.row([
            row.model.clone(),
            count(row.forward),
            count(row.published_forward),
            count(row.backward),
            count(row.published_backward),
            if row.exact { "exact" } else { "differs" }.to_owned(),
        ]);
    }
    table
}

fn cell_table(cells: &[CellPrediction]) -> Table {
    let title = match cells {
        [first, ..] => format!("Table {}: {}, times in s", first.table, first.config),
        [] => String::new(),
    };
    let mut table = Table::new(
        title,
        [
            Column::names("model"),
            Column::numbers("batch"),
            Column::numbers("PT"),
            Column::numbers("authors"),
            Column::numbers("Δ"),
            Column::numbers("literal"),
            Column::numbers("fitted"),
            Column::numbers("MT"),
            Column::numbers("acc."),
            Column::numbers("/PT"),
            Column::numbers("/MT"),
            Column::names(""),
        ],
    );
    for cell in cells {
        let share = |share: f64| format!("{share:.3}");
        let mark = match (cell.note.as_str(), cell.reproduced) {
            ("", true) => String::new(),
            ("", false) => "not reproduced".to_owned(),
            (note, _) => note.to_owned(),
        };
        table.row([
            cell.model.clone(),
            cell.batch.to_string(),
            as_printed(cell.printed),
            seconds(cell.authors),
            format!("{:+.3}", cell.authors.get() - cell.printed.get()),
            seconds(cell.literal),
            seconds(cell.calibrated),
            seconds(cell.measured),
            share(cell.printed_accuracy),
            share(cell.accuracy_over_pt),
            share(cell.accuracy_over_mt),
            mark,
        ]);
    }
    table
}

fn seconds(time: Seconds) -> String {
    format!("{:.3}", time.get())
}

/// Two decimals, as the paper prints; more where the figure is the workbook's.
fn as_printed(time: Seconds) -> String {
    let hundredths = time.get() * 100.0;
    if (hundredths - hundredths.round()).abs() < 1e-6 { format!("{:.2}", time.get()) } else { seconds(time) }
}

fn errors(title: &str, rows: &[&TableErrors]) -> Table {
    let mut table = Table::new(
        title,
        [
            Column::names("mean / worst error in %"),
            Column::numbers("cells"),
            Column::numbers("printed formulas"),
            Column::numbers("authors' inputs"),
            Column::numbers("calibrated"),
        ],
    );
    let both = |[mean, worst]: [f64; 2]| format!("{mean:.1} / {worst:>5.1}");
    for row in rows {
        table.row([
            row.set.clone(),
            row.cells.to_string(),
            both(row.literal),
            row.authors.map_or_else(|| "–".to_owned(), both),
            both(row.calibrated),
        ]);
    }
    table
}

fn calibrations(rows: &[Calibration]) -> Table {
    let mut table = Table::new(
        "Calibration: shares of the peak rate and of the memory rate that are reached",
        [
            Column::names("fitted without"),
            Column::numbers("E5-2620"),
            Column::numbers("E5-2660"),
            Column::numbers("RTX 4000"),
            Column::numbers("start-up"),
            Column::numbers("host copy"),
        ],
    );
    for row in rows {
        let device = |compute: f64, memory: f64| format!("{compute:.3} / {memory:.3}");
        let host = row.host_per_byte.get();
        table.row([
            row.left_out.clone().unwrap_or_else(|| "(all networks)".to_owned()),
            device(row.cpu20.compute, row.cpu20.memory),
            device(row.cpu22.compute, row.cpu22.memory),
            device(row.gpu.compute, row.gpu.memory),
            row.startup.human(),
            if host > 0.0 { BytesPerSec::new(1.0 / host).human() } else { "no cost".to_owned() },
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_times_keep_their_digits() {
        assert_eq!(as_printed(Seconds::new(2.8)), "2.80");
        assert_eq!(as_printed(Seconds::new(0.01712)), "0.017");
    }
}
