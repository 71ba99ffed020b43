//! A fit as text: its errors on both sets, and what it found.

use super::table::{Column, Table};
use super::{Screen, count, name, percent};
use stepcast_study::fit::Fitted;
use stepcast_study::fit::steps::LeftOut;

pub(crate) fn render(fitted: &Fitted, written: &str, screen: &Screen) -> String {
    let mut table = Table::new([
        Column::Name("errors of"),
        Column::Name("set"),
        Column::Number("points"),
        Column::Number("median"),
        Column::Number("3rd quartile"),
        Column::Number("95th percentile"),
        Column::Number("worst"),
    ]);
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
    let mut text = table.render(screen);
    text.push('\n');
    if !fitted.left_out.is_empty() {
        text.push_str(&left_out(&fitted.left_out, screen));
        text.push('\n');
    }
    for note in &fitted.notes {
        text.push_str(&screen.paragraph(2, note));
    }
    text.push_str(&screen.paragraph(2, &format!("Written to {written}.")));
    text
}

/// Mean and worst errors, each model being predicted by what fits the others.
pub(super) fn left_out(rows: &[LeftOut], screen: &Screen) -> String {
    let mut table = Table::new([
        Column::Name("each model left out of the fit"),
        Column::Name("errors of"),
        Column::Number("steps"),
        Column::Number("mean"),
        Column::Number("worst"),
    ]);
    for row in rows {
        table.row([
            row.group.to_string(),
            row.moment.to_string(),
            count(row.steps as u64),
            percent(row.mean),
            percent(row.worst),
        ]);
    }
    table.render(screen)
}
