//! The validation against real DDP jobs as text.

use super::table;
use super::{Screen, errors};
use stepcast_core::quantity::Seconds;
use stepcast_report::table::{Column, Table};
use stepcast_validation::ddp_gloo::{Parameters, Report};

/// The validation, its last line ended.
pub(crate) fn render(report: &Report, screen: &Screen) -> String {
    let verdict = if report.holds() { "bounds kept" } else { "bounds missed" };
    let title = screen.strong(&format!("ddp-gloo: {verdict}"));
    let source = "Real PyTorch DDP jobs over gloo on CPUs, predicted from the profile of one worker and a \
                  micro-benchmark of all-reduces; time of a step. Two figures are fitted to jobs of other models than \
                  the one that is predicted.";
    let sections = [
        format!("{title}\n{}", screen.paragraph(0, source)),
        jobs(report, screen),
        summary(report, screen),
        testbed(report, screen),
    ];
    sections.join("\n")
}

fn percent(predicted: Seconds, measured: Seconds) -> String {
    format!("{:+.1} %", 100.0 * (predicted / measured - 1.0))
}

fn jobs(report: &Report, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("model"),
            Column::numbers("ranks"),
            Column::numbers("rate"),
            Column::numbers("cores"),
            Column::numbers("bucket MiB"),
            Column::numbers("measured"),
            Column::numbers("predicted"),
            Column::numbers("error"),
            Column::numbers("plain overlap"),
        ],
    );
    for row in &report.rows {
        table.row([
            super::name(&row.model),
            row.ranks.to_string(),
            super::name(&row.rate),
            row.cores.to_string(),
            row.bucket_mb.to_string(),
            row.measured.human(),
            row.predicted.human(),
            percent(row.predicted, row.measured),
            percent(row.plain, row.measured),
        ]);
    }
    format!("{}\n{}", screen.title("Steps"), table::render(&table, screen))
}

fn summary(report: &Report, screen: &Screen) -> String {
    let table = errors::table("predicted with", &report.errors, screen);
    let mut bounds = format!("Bounds, with other models' fit: {}.", report.bounds);
    if report.left_out > 0 {
        bounds += &format!(" {} jobs have no profile and were left out.", report.left_out);
    }
    format!("{}\n{}\n{}", screen.title("Errors"), table, screen.paragraph(2, &bounds))
}

fn testbed(report: &Report, screen: &Screen) -> String {
    let testbed = &report.testbed;
    let figures = format!(
        "From profiles and micro-benchmarks: steps of a worker spread by {:.1} %, large all-reduces reach {:.3} of the \
         link rate.",
        100.0 * testbed.jitter,
        testbed.goodput
    );
    let mut table = Table::new(
        "",
        [
            Column::names("fitted"),
            Column::numbers("core time per byte"),
            Column::numbers("loaded host, slower by"),
        ],
    );
    let mut row = |name: String, parameters: &Parameters| {
        let slower = format!("{:.1} %", 100.0 * (parameters.slowness - 1.0));
        table.row([name, parameters.core_per_byte.human(), slower]);
    };
    for (model, parameters) in &report.without {
        row(format!("without {}", super::name(model)), parameters);
    }
    row("on all jobs".to_owned(), &report.parameters);
    format!(
        "{}\n{}\n{}",
        screen.title("Testbed"),
        screen.paragraph(2, &figures),
        table::render(&table, screen)
    )
}
