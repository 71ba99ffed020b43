//! The validation against the benchmarks of HKBU as text.

use super::validation::{bounds, titled};
use super::{Screen, several};
use stepcast_report::table::{Column, Table};
use stepcast_validation::hkbu::{ErrorRow, Ranking, Report, Row};

/// The validation, its last line ended.
pub(crate) fn render(report: &Report, screen: &Screen) -> String {
    let kept = report.bounds.iter().filter(|bound| bound.holds).count();
    let title = screen.strong(&format!("hkbu: {kept} of {} bounds kept", report.bounds.len()));
    let source = "Throughput published by HKBU (github.com/HKBU-HPML/ddl-benchmarks, 2020): 10 Gigabit Ethernet, 4 GPUs \
                  a node over PCIe, predicted from the throughput of one GPU.";
    let mut sections = vec![format!("{title}\n{}", screen.paragraph(0, source))];
    sections.extend(report.rows.chunk_by(|a, b| a.model == b.model).map(|rows| throughput(rows, screen)));
    sections.push(errors(report, screen));
    sections.push(rankings(&report.rankings, screen));
    sections.push(bounds(&report.bounds, screen));
    sections.join("\n")
}

fn signed(error: f64) -> String {
    format!("{error:+.1} %")
}

fn throughput(rows: &[Row], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::numbers("GPUs"),
            Column::names("scheme"),
            Column::numbers("measured"),
            Column::numbers("predicted"),
            Column::numbers("error"),
            Column::names(""),
        ],
    );
    for row in rows {
        table.row([
            row.gpus.to_string(),
            row.scheme.to_string(),
            format!("{:.1}", row.measured),
            format!("{:.1}", row.predicted),
            signed(row.error()),
            if row.fitted { "fitted" } else { "" }.to_owned(),
        ]);
    }
    let model = rows.first().map_or("", |row| row.model.as_str());
    titled(&format!("{model}, samples/s"), table, screen)
}

fn errors(report: &Report, screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("scheme"),
            Column::names("on"),
            Column::numbers("rows"),
            Column::numbers("mean"),
            Column::numbers("worst"),
            Column::numbers("bias"),
            Column::numbers("mean by catalog"),
        ],
    );
    let row = |row: &ErrorRow| {
        let nodes = if row.several_nodes { "several nodes" } else { "one node" };
        let percent = |value: f64| format!("{value:.1} %");
        [
            row.scheme.to_string(),
            nodes.to_owned(),
            row.rows.to_string(),
            percent(row.mean),
            percent(row.worst),
            signed(row.bias),
            percent(row.by_catalog),
        ]
    };
    for error in &report.errors {
        table.row(row(error));
    }
    let note = format!(
        "One figure is fitted, on the one row marked above, which does not count here: all-reduce within a node runs at \
         {}, where the catalog has {} for PCIe. Between nodes rate and latency are the catalog's. How bytes travel was \
         chosen with these rows in view.",
        report.within_rate.human(),
        report.catalog_rate.human()
    );
    format!("{}\n{}", titled("Errors", table, screen), screen.paragraph(2, &note))
}

fn rankings(rows: &[Ranking], screen: &Screen) -> String {
    let mut table = Table::new(
        "",
        [
            Column::names("network"),
            Column::names("on"),
            Column::names("fastest"),
            Column::names("predicted"),
            Column::numbers("that one is slower by"),
            Column::numbers("pairs in order"),
        ],
    );
    for row in rows {
        table.row([
            row.model.clone(),
            several(u64::from(row.gpus), "GPU"),
            row.best_measured.to_string(),
            row.best_predicted.to_string(),
            format!("{:.1} %", row.regret),
            format!("{} of {}", row.right, row.pairs),
        ]);
    }
    titled("Order of the schemes", table, screen)
}
