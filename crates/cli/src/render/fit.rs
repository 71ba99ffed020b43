//! A fit as text: its errors on both sets, and the artefact that was written.

use super::screen::Screen;
use super::table;
use stepcast_fit::FitReport;
use stepcast_report::tables::fit as tables;
use stepcast_validation::sets::steps::left_out_table;

/// The errors and notes of a fit, its last line ended; `written` is the path of the artefact.
pub(crate) fn render(fitted: &FitReport, written: &str, screen: &Screen) -> String {
    let mut text = table::section(&tables::errors(fitted), screen);
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
