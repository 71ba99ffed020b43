//! The overview to read: a table, a Markdown document, and the file of residuals.

use super::{Overview, OverviewRow};
use crate::ValidationError;
use crate::coverage::Coverage;
use stepcast_report::table::{Cells, Column, Table};
use stepcast_report::words::Hint;

impl Overview {
    /// All sets, with what the columns mean as a note.
    pub fn table(&self) -> Table {
        let mut table = Table::new(
            "",
            [
                Column::names("set"),
                Column::numbers("cases"),
                Column::numbers("mean"),
                Column::numbers("worst"),
                Column::numbers("bias"),
                Column::numbers("coverage"),
                Column::words("bound"),
                Column::names("holds"),
            ],
        );
        for row in &self.rows {
            table.row(cells(row));
        }
        let bound = self.coverage_bound;
        table.row([
            "all measured".to_owned(),
            self.coverage.cases.to_string(),
            String::new(),
            String::new(),
            String::new(),
            share(self.coverage),
            format!("coverage {:.0} to {:.0} %", 100.0 * bound.least, 100.0 * bound.most),
            verdict(self.covers()),
        ]);
        table.note = self.legend();
        table.hints = vec![Hint::Cases];
        table
    }

    /// The table as a Markdown document.
    pub fn markdown(&self) -> String {
        let table = self.table();
        format!("# Validation\n\n{}\n{}\n", markdown(&table), table.note)
    }

    /// The residuals as the file that intervals are made from.
    pub fn errors_csv(&self) -> Result<String, ValidationError> {
        let failed = |error: String| ValidationError::Data(format!("errors.csv: {error}"));
        let mut writer = csv::Writer::from_writer(ERRORS_HEADER.as_bytes().to_vec());
        for row in &self.residuals {
            writer.serialize(row).map_err(|error| failed(error.to_string()))?;
        }
        let bytes = writer.into_inner().map_err(|error| failed(error.to_string()))?;
        String::from_utf8(bytes).map_err(|error| failed(error.to_string()))
    }

    fn legend(&self) -> String {
        let mut text =
            "Errors in percent of the measured throughput, each case predicted by figures fitted without it. \
             Coverage: measured values within 90 % intervals made from the errors on other sets"
                .to_owned();
        if self.coverage.by_group > 0 {
            text += &format!(
                "; where no other set validates the method (*, {} cases), from the errors on other networks or \
                 families of the same set. Intervals made from other sets alone, whatever their methods, hold {:.0} % of all values",
                self.coverage.by_group,
                100.0 * self.coverage.inside_by_sets as f64 / self.coverage.cases.max(1) as f64
            );
        }
        text + "."
    }
}

/// The rows of a table in Markdown.
pub(super) fn markdown(table: &Table) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let mut text = line(table.columns.iter().map(|column| column.title.as_str()).collect());
    for column in &table.columns {
        text += if column.cells == Cells::Numbers { "|---:" } else { "|---" };
    }
    text += "|\n";
    for row in &table.rows {
        text += &line(row.cells.iter().map(String::as_str).collect());
    }
    text
}

const ERRORS_HEADER: &str = "\
# What methods got wrong on measured runs that they had not seen: ln(measured / predicted) of the throughput, by method,
# regime, set, and network or configuration. Made by `stepcast validate --errors validation/errors.csv`; the model error of
# every interval comes from here (docs/intervals.md). square: mean square, less that of what simulated runs differ by.
";

fn cells(row: &OverviewRow) -> [String; 8] {
    let error = |percent: Option<f64>| percent.map_or("–".to_owned(), |percent| format!("{percent:.1}"));
    [
        row.set.to_owned(),
        row.cases.to_string(),
        error(row.errors.map(|errors| errors.mean)),
        error(row.errors.map(|errors| errors.worst)),
        row.errors.map_or("–".to_owned(), |errors| format!("{:+.1}", errors.bias)),
        share(row.coverage),
        row.bound.clone(),
        verdict(row.holds),
    ]
}

fn share(coverage: Coverage) -> String {
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
