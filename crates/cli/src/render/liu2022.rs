//! The validation against Liu 2022 as text.

use super::Screen;
use super::validation::{bounds, titled};
use stepcast_report::table::{Column, Table};
use stepcast_validation::BoundCheck;
use stepcast_validation::liu2022::{Check, Report, TableRow};

/// The validation, its last line ended.
pub(crate) fn render(report: &Report, screen: &Screen) -> String {
    let verdict = if report.holds() { "bounds kept" } else { "bounds missed" };
    let title = screen.strong(&format!("liu2022: {verdict}"));
    let source = "Liu et al. 2022, doi 10.1145/3485447.3511981: cases worked out independently of the code, and the \
                  printed tables. Nothing here is measured.";
    let sections = [
        format!("{title}\n{}", screen.paragraph(0, source)),
        checks(&report.checks, screen),
        tables(&report.tables, screen),
        print(report, screen),
    ];
    sections.join("\n")
}

fn checks(checks: &[Check], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::words("figures against their exact values"),
            Column::numbers("cases"),
            Column::numbers("figures"),
            Column::numbers("worst"),
            Column::numbers("tolerance"),
            Column::names(""),
        ],
    );
    for check in checks {
        table.row([
            check.what.clone(),
            check.cases.to_string(),
            check.figures.to_string(),
            deviation(check.worst),
            deviation(check.tolerance),
            if check.holds() { "ok" } else { "MISSED" }.to_owned(),
        ]);
    }
    titled("Reproduced", table, screen)
}

/// Rounding of the last digit differs between machines: what is far below any tolerance is told as such.
fn deviation(size: f64) -> String {
    const NOTHING: f64 = 1e-13;
    if size < NOTHING { format!("< {NOTHING:.0e}") } else { format!("{size:.0e}") }
}

fn tables(rows: &[TableRow], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("table"),
            Column::names("row"),
            Column::names("figure"),
            Column::numbers("printed"),
            Column::numbers("recomputed"),
            Column::names(""),
        ],
    );
    for row in rows {
        table.row([
            row.table.trim_start_matches('T').to_owned(),
            row.row.clone(),
            row.field.clone(),
            row.published.to_string(),
            format!("{:.3}", row.found),
            if row.as_printed { "as printed" } else { "differs" }.to_owned(),
        ]);
    }
    let note = "GFLOPs are giga-multiply-adds, rounded up; MB are MiB, in Table 3 without biases; tensors are layers of \
                Keras.";
    format!("{}\n{}", titled("Tables 2 and 3", table, screen), screen.paragraph(2, note))
}

fn print(report: &Report, screen: &Screen) -> String {
    let found = report.rows_as_printed();
    let check = BoundCheck {
        what: format!("figures of Tables 2 and 3 as printed, of {}", report.tables.len()),
        bound: report.rows_wanted.to_string(),
        found: found.to_string(),
        holds: found >= report.rows_wanted,
    };
    bounds(&[check], screen)
}
