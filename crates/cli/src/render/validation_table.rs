//! The table of all validation sets, as text and as Markdown.

use super::Screen;

use stepcast_report::table::{Column, Table as TextTable};
use stepcast_validation::coverage::Coverage;
use stepcast_validation::table::{Table, TableRow};

const TITLES: [&str; 8] = ["set", "cases", "mean", "worst", "bias", "coverage", "bound", "holds"];

/// The table, its last line ended.
pub(crate) fn render(table: &Table, screen: &Screen) -> String {
    let verdict = if table.holds() { "bounds kept" } else { "bounds missed" };
    let mut text = TextTable::new(
        "",
        [
            Column::names(TITLES[0]),
            Column::numbers(TITLES[1]),
            Column::numbers(TITLES[2]),
            Column::numbers(TITLES[3]),
            Column::numbers(TITLES[4]),
            Column::numbers(TITLES[5]),
            Column::words(TITLES[6]),
            Column::names(TITLES[7]),
        ],
    );
    for cells in cells(table) {
        text.row(cells);
    }
    let title = screen.strong(&format!("validation: {verdict}"));
    format!("{title}\n\n{}\n{}", super::table::render(&text, screen), screen.paragraph(2, &legend(table)))
}

/// The same as a Markdown document.
pub(crate) fn markdown(table: &Table) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = String::from("# Validation\n\n");
    text.push_str(&line(&TITLES.map(str::to_owned)));
    text.push_str("|---|---:|---:|---:|---:|---:|---|---|\n");
    for cells in cells(table) {
        text.push_str(&line(&cells));
    }
    format!("{text}\n{}\n", legend(table))
}

fn legend(table: &Table) -> String {
    let mut text =
        "Errors in percent of the measured throughput, each case predicted by figures fitted without it. \
                    Coverage: measured values within 90 % intervals made from the errors on other sets"
            .to_owned();
    if table.coverage.by_group > 0 {
        text += &format!(
            "; where no other set validates the method (*, {} cases), on other networks of the same set. With nothing \
             but other sets, whatever methods they are of, {:.0} % of all lie within",
            table.coverage.by_group,
            100.0 * table.coverage.inside_by_sets as f64 / table.coverage.cases.max(1) as f64
        );
    }
    text + ". `stepcast validate SET` shows every case."
}

fn cells(table: &Table) -> Vec<[String; 8]> {
    let mut rows: Vec<[String; 8]> = table.rows.iter().map(row).collect();
    let bound = table.coverage_bound;
    rows.push([
        "all measured".to_owned(),
        table.coverage.cases.to_string(),
        String::new(),
        String::new(),
        String::new(),
        coverage(table.coverage),
        format!("coverage {:.0} to {:.0} %", 100.0 * bound.least, 100.0 * bound.most),
        verdict(table.covers()),
    ]);
    rows
}

fn row(row: &TableRow) -> [String; 8] {
    let error = |of: Option<f64>| of.map_or("–".to_owned(), |percent| format!("{percent:.1}"));
    [
        row.set.to_owned(),
        row.cases.to_string(),
        error(row.errors.map(|errors| errors.mean)),
        error(row.errors.map(|errors| errors.worst)),
        row.errors.map_or("–".to_owned(), |errors| format!("{:+.1}", errors.bias)),
        coverage(row.coverage),
        row.bound.clone(),
        verdict(row.holds),
    ]
}

fn coverage(coverage: Coverage) -> String {
    let mark = if coverage.by_group > 0 { "*" } else { "" };
    coverage.share().map_or("–".to_owned(), |share| format!("{:.0} %{mark}", 100.0 * share))
}

fn verdict(holds: Option<bool>) -> String {
    match holds {
        None => "–",
        Some(true) => "ok",
        Some(false) => "MISSED",
    }
    .to_owned()
}
