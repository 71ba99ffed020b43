//! Published throughput and its prediction as text.

use super::table;
use super::{Screen, errors, name};
use stepcast_report::table::{Column, Table};
use stepcast_validation::published::Report;

/// The validation, its last line ended.
pub(crate) fn render(report: &Report, screen: &Screen) -> String {
    let verdict = if report.holds() { "bounds kept" } else { "bounds missed" };
    let title = screen.strong(&format!("{}: {verdict}", report.set));
    let mut table = Table::new(
        "",
        [
            Column::names("machines"),
            Column::numbers(report.unit),
            Column::numbers("predicted"),
            Column::numbers("error"),
            Column::names(""),
        ],
    );
    for row in &report.rows {
        table.row([
            name(&row.what),
            format!("{:.2}", row.measured),
            format!("{:.2}", row.predicted),
            format!("{:+.1} %", 100.0 * (row.predicted / row.measured - 1.0)),
            if row.fitted { "fitted on this".to_owned() } else { String::new() },
        ]);
    }
    let sections = [
        format!("{title}\n{}", screen.paragraph(0, report.about)),
        table::render(&table, screen),
        format!("{}\n{}", screen.title("Errors"), errors::table("method", &[report.errors], screen)),
        screen.paragraph(2, &format!("Bounds: {}. Left out: {}", report.bounds, report.left_out)),
    ];
    sections.join("\n")
}
