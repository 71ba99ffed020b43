//! The validation of fitted step times as text.

use super::Screen;
use super::table;
use stepcast_report::table::{Column, Table};
use stepcast_study::fit::steps::LeftOutErrors;
use stepcast_validation::steps::{Report, Times, is_bounded};

/// The validation, its last line ended.
pub(crate) fn render(report: &Report, screen: &Screen) -> String {
    let verdict = if report.holds() { "bounds kept" } else { "bounds missed" };
    let title = screen.strong(&format!("steps: {verdict}"));
    let source = "Whole training steps on one device, each model predicted from its layers by coefficients fitted to \
                  the other models.";
    let bounds = format!(
        "Bounds: {}, for models left out. Small batches in bf16 measure the \
         host, families left out how far the coefficients carry: shown, not bounded.",
        report.bounds
    );
    let mut sections = vec![
        format!("{title}\n{}", screen.paragraph(0, source)),
        steps(report, screen),
        left_out("Each model left out of the fit", &report.models, Some(report), screen),
        left_out("Each family left out of the fit", &report.families, None, screen),
        screen.paragraph(2, &bounds),
    ];
    sections.extend(report.notes.iter().map(|note| screen.paragraph(2, note)));
    sections.join("\n")
}

fn steps(report: &Report, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
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
    let error = |times: &Times| format!("{:+.1} %", 100.0 * (times.predicted / times.measured - 1.0));
    for row in &report.rows {
        table.row([
            super::name(&row.model),
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
    format!(
        "{}\n{}",
        screen.title("Measured steps, and errors of their prediction"),
        table::render(&table, screen)
    )
}

/// Mean and worst errors, and whether they keep the bounds of a report.
pub(super) fn left_out(
    title: &str,
    rows: &[LeftOutErrors],
    judged_by: Option<&Report>,
    screen: &Screen,
) -> String {
    let mut table = Table::new(
        "",
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
        let verdict = match judged_by.filter(|_| is_bounded(row)).map(|report| report.keeps(row)) {
            None => "",
            Some(true) => "ok",
            Some(false) => "MISSED",
        };
        table.row([
            row.group.to_string(),
            row.steps.to_string(),
            row.moment.to_string(),
            percent(row.mean),
            percent(row.worst),
            verdict.to_owned(),
        ]);
    }
    format!("{}\n{}", screen.title(title), table::render(&table, screen))
}
