//! The validation against real asynchronous runs as text.

use super::table;
use super::{Screen, errors};
use stepcast_report::table::{Column, Table};
use stepcast_validation::tf_ps::Report;

/// The validation, its last line ended.
pub(crate) fn render(report: &Report, screen: &Screen) -> String {
    let verdict = if report.holds() { "bounds kept" } else { "bounds missed" };
    let title = screen.strong(&format!("tf-ps: {verdict}"));
    let source = "Real asynchronous TensorFlow training with one parameter server, predicted from the profile of one \
                  worker; samples/s. Two figures of the network model and parts of its structure were chosen on four \
                  such configurations (docs/validation.md); --held-out predicts each by what fits the others.";
    let sections = [
        format!("{title}\n{}", screen.paragraph(0, source)),
        points(report, screen),
        summary(report, screen),
        testbed(report, screen),
    ];
    sections.join("\n")
}

fn percent(predicted: f64, measured: f64) -> String {
    format!("{:+.1} %", 100.0 * (predicted / measured - 1.0))
}

fn range(interval: [f64; 2]) -> String {
    format!("{:.2}–{:.2}", interval[0], interval[1])
}

fn points(report: &Report, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("configuration"),
            Column::numbers("workers"),
            Column::numbers("measured"),
            Column::numbers("predicted"),
            Column::numbers("90 % of runs"),
            Column::numbers("with model error"),
            Column::numbers("error"),
            Column::numbers("held out"),
            Column::numbers("cynthia"),
            Column::numbers("lin"),
        ],
    );
    for row in &report.rows {
        table.row([
            row.configuration.clone(),
            row.workers.to_string(),
            format!("{:.2}", row.measured),
            format!("{:.2}", row.predicted),
            range(row.interval),
            range(row.likely),
            percent(row.predicted, row.measured),
            row.held_out.map_or_else(String::new, |predicted| percent(predicted, row.measured)),
            percent(row.cynthia, row.measured),
            percent(row.lin, row.measured),
        ]);
    }
    format!("{}\n{}", screen.title("Throughput"), table::render(&table, screen))
}

fn summary(report: &Report, screen: &Screen) -> String {
    let table = errors::table("method", &report.errors, screen);
    let bounds = format!(
        "Bounds: {}, better than both others. {:.0} % of the \
         points lie where 90 % of the simulated runs do, {:.0} % in the interval with model error.",
        report.bounds,
        100.0 * report.coverage,
        100.0 * report.likely_coverage
    );
    let title = screen.title("Errors with two workers and more");
    format!("{title}\n{}\n{}", table, screen.paragraph(2, &bounds))
}

fn testbed(report: &Report, screen: &Screen) -> String {
    let testbed = &report.testbed;
    let measured = format!(
        "Measured once for all: goodput {:.3} of the link rate, parsing {} and {} a byte, {} cores; connections' shares \
         spread by {:.2} down and {:.2} up, windows of {} at first, spread by {:.2}; a download that joins another gets \
         {:.2} of its rate.",
        testbed.goodput,
        testbed.parse_fixed.human(),
        testbed.parse_per_byte.human(),
        testbed.cores,
        testbed.spread[0],
        testbed.spread[1],
        testbed.first_window.human(),
        testbed.first_window_spread,
        testbed.joining,
    );
    let chosen = format!(
        "Chosen on runs: {} of the queues delay acknowledgements, downloads are established after {}.",
        testbed.acknowledgements_queued,
        testbed.established.human()
    );
    let mut text = format!("{}\n{}", screen.title("Testbed"), screen.paragraph(2, &measured));
    text.push_str(&screen.paragraph(2, &chosen));
    for choice in &report.choices {
        let figures = format!(
            "Without {}: {} and {}, {:.1} % mean error on the others.",
            choice.configuration,
            choice.acknowledgements_queued,
            choice.established.human(),
            choice.error_on_others
        );
        text.push_str(&screen.paragraph(2, &figures));
    }
    for note in report.failed.iter().map(|error| format!("left out: {error}")) {
        text.push_str(&screen.paragraph(2, &note));
    }
    for note in &report.notes {
        text.push_str(&screen.paragraph(2, note));
    }
    text
}
