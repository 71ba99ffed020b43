//! A validation as text: every published cell, the errors, the fitted figures, the bounds.

use super::table;
use super::{Screen, count};
use stepcast_core::quantity::{BytesPerSec, Seconds};
use stepcast_report::table::{Column, Table};
use stepcast_validation::zeng2023::{BoundCheck, Calibration, CellRow, CountRow, ErrorRow, Report};

/// The validation against Zeng 2023, its last line ended.
pub(crate) fn render(report: &Report, screen: &Screen) -> String {
    let mut sections = vec![headline(report, screen), counts(&report.table1, screen)];
    sections.extend(report.cells.chunk_by(same_machines).map(|cells| cell_table(cells, screen)));
    sections.push(legend(screen));
    let (tables, sweeps): (Vec<&ErrorRow>, Vec<&ErrorRow>) =
        report.errors.iter().partition(|row| row.authors.is_some());
    sections.push(errors("Errors against the measured times, by table", &tables, screen));
    let title = format!("Errors on the {} measurements of the authors' workbook", report.sweeps.len());
    sections.push(errors(&title, &sweeps, screen));
    sections.push(calibrations(&report.calibrations, screen));
    sections.push(bounds(&report.bounds, screen));
    sections.join("\n")
}

fn same_machines(one: &CellRow, other: &CellRow) -> bool {
    one.table == other.table && one.config == other.config
}

fn headline(report: &Report, screen: &Screen) -> String {
    let kept = report.bounds.iter().filter(|bound| bound.holds).count();
    let title = format!("zeng2023: {kept} of {} bounds kept", report.bounds.len());
    let source = "Zeng et al. 2023, doi 10.1155/2023/2663115: the printed tables recomputed, the measured times \
                  predicted.";
    format!("{}\n{}", screen.strong(&title), screen.paragraph(0, source))
}

fn counts(rows: &[CountRow], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
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
    titled("Table 1: operations of one sample, forward, and of one step, backward", table, screen)
}

pub(super) fn titled(title: &str, table: Table, screen: &Screen) -> String {
    format!("{}\n{}", screen.title(title), table::render(&table, screen))
}

fn cell_table(cells: &[CellRow], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
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
            deviation(cell),
            seconds(cell.literal),
            seconds(cell.calibrated),
            seconds(cell.measured),
            share(cell.printed_accuracy),
            share(cell.accuracy_over_pt),
            share(cell.accuracy_over_mt),
            mark,
        ]);
    }
    let title = match cells {
        [first, ..] => format!("Table {}: {}, times in s", first.table, first.config),
        [] => String::new(),
    };
    titled(&title, table, screen)
}

fn seconds(time: Seconds) -> String {
    format!("{:.3}", time.get())
}

/// Two decimals, as the paper prints; more where the figure is the workbook's.
fn as_printed(time: Seconds) -> String {
    let hundredths = time.get() * 100.0;
    if (hundredths - hundredths.round()).abs() < 1e-6 { format!("{:.2}", time.get()) } else { seconds(time) }
}

/// By how much the authors' inputs miss the printed time.
fn deviation(cell: &CellRow) -> String {
    let difference = cell.authors.get() - cell.printed.get();
    format!("{difference:+.3}")
}

fn legend(screen: &Screen) -> String {
    let text = "PT: predicted time as printed. authors: recomputed with the authors' own inputs; Δ: how far that \
                is from PT. literal: the printed formulas as they stand. fitted: the layer-wise model, \
                calibrated on the other networks. MT: measured time. acc.: accuracy as printed; /PT and /MT: \
                1 − |PT − MT| over either. typed: the authors typed in a computing time. Table 3 repeats \
                Table 2 in print; its rows here are those of the authors' workbook.";
    screen.paragraph(2, text)
}

fn errors(title: &str, rows: &[&ErrorRow], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
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
    titled(title, table, screen)
}

fn calibrations(rows: &[Calibration], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
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
    titled("Calibration: shares of the peak rate and of the memory rate that are reached", table, screen)
}

pub(super) fn bounds(checks: &[BoundCheck], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [Column::words("bound"), Column::numbers("wanted"), Column::numbers("found"), Column::names("")],
    );
    for check in checks {
        let verdict = if check.holds { "ok" } else { "MISSED" };
        table.row([check.what.clone(), check.bound.clone(), check.found.clone(), verdict.to_owned()]);
    }
    let text = titled("Bounds", table, screen);
    let paint = |line: &str| {
        let painted = [("ok", screen.good("ok")), ("MISSED", screen.bad("MISSED"))];
        let found = painted.iter().find_map(|(word, painted)| Some((line.strip_suffix(word)?, painted)));
        found.map_or_else(|| format!("{line}\n"), |(rest, painted)| format!("{rest}{painted}\n"))
    };
    text.lines().map(paint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_bound_is_seen() {
        let check = |holds| BoundCheck {
            what: "mean error".to_owned(),
            bound: "0 to 4 %".to_owned(),
            found: "5 %".to_owned(),
            holds,
        };
        let plain = bounds(&[check(true), check(false)], &Screen { width: 100, colours: false });
        assert!(plain.contains("5 %  ok\n") && plain.ends_with("5 %  MISSED\n"), "{plain}");
        let coloured = bounds(&[check(false)], &Screen { width: 100, colours: true });
        assert!(coloured.contains("\u{1b}[33mMISSED\u{1b}[0m\n"), "{coloured:?}");
    }

    #[test]
    fn printed_times_keep_their_digits() {
        assert_eq!(as_printed(Seconds::new(2.8)), "2.80");
        assert_eq!(as_printed(Seconds::new(0.01712)), "0.017");
    }
}
