//! A fit as text: its errors on both sets, and what it found.

use super::table;
use super::{Screen, count, name, percent};
use stepcast_report::table::{Column, Table};
use stepcast_study::fit::FitReport;
use stepcast_validation::sets::steps::left_out_table;

pub(crate) fn render(fitted: &FitReport, written: &str, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("errors of"),
            Column::names("set"),
            Column::numbers("points"),
            Column::numbers("median"),
            Column::numbers("3rd quartile"),
            Column::numbers("95th percentile"),
            Column::numbers("worst"),
        ],
    );
    for row in &fitted.rows {
        let quality = &row.quality;
        table.row([
            name(&row.what),
            row.set.to_owned(),
            count(quality.points as u64),
            percent(quality.median),
            percent(quality.third_quartile),
            percent(quality.percentile_95),
            percent(quality.worst),
        ]);
    }
    let mut text = table::render(&table, screen);
    text.push('\n');
    if !fitted.left_out.is_empty() {
        let left_out = left_out_table("Each model left out of the fit", &fitted.left_out, |_| "");
        text.push_str(&format!("{}\n{}", screen.title(&left_out.title), table::render(&left_out, screen)));
        text.push('\n');
    }
    for note in &fitted.notes {
        text.push_str(&screen.paragraph(2, note));
    }
    text.push_str(&screen.paragraph(2, &format!("Written to {written}.")));
    text
}
