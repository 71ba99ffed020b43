//! A sweep as text: its rows, or what became of its file.

use super::table;
use super::{Screen, count, duration, grouped, limit, money, percent, several};
use serde_json::json;
use std::path::Path;
use stepcast_report::table::{Column, Table};
use stepcast_study::explore::sweep::{Axis, Figures, Row, Variants};

/// Rows that are shown.
const SHOWN: usize = 40;

/// What became of a file.
pub(crate) struct Written<'a> {
    pub(crate) path: &'a Path,
    /// Rows that were there before.
    pub(crate) begun: u64,
    pub(crate) rows: u64,
    pub(crate) points: u64,
}

impl Written<'_> {
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        let path = self.path.display().to_string();
        let value =
            json!({ "written": path, "resumed_at": self.begun, "rows": self.rows, "points": self.points });
        serde_json::to_string_pretty(&value).map(|text| text + "\n")
    }

    pub(crate) fn render(&self, screen: &Screen) -> String {
        let path = self.path.display();
        let rows = several(self.rows, "row");
        let text = match (self.rows >= self.points, self.rows == self.begun && self.begun > 0) {
            (true, true) => format!("{path} was complete: {rows}."),
            (true, false) => format!("{path} has {rows}, one for every point."),
            (false, _) => format!(
                "Interrupted: {path} has {} of {rows_wanted}. The same command with --resume goes on from there.",
                count(self.rows),
                rows_wanted = several(self.points, "row"),
            ),
        };
        screen.paragraph(0, &text)
    }
}

/// Rows on the screen.
pub(crate) struct Shown {
    points: u64,
    rows: Vec<Row>,
    seen: u64,
    refused: u64,
    /// Why the first of them was.
    refusal: Option<String>,
    /// The row with the most samples per second.
    fastest: Option<Row>,
}

impl Shown {
    pub(crate) fn new(points: u64) -> Self {
        Self { points, rows: Vec::new(), seen: 0, refused: 0, refusal: None, fastest: None }
    }

    pub(crate) fn see(&mut self, row: Row) {
        self.seen += 1;
        let rate = |row: &Row| row.answer.as_ref().map_or(0.0, |figures| figures.throughput.get());
        if let Err(why) = &row.answer {
            self.refused += 1;
            self.refusal.get_or_insert_with(|| why.refused.clone());
        }
        if row.answer.is_ok() && self.fastest.as_ref().is_none_or(|fastest| rate(&row) > rate(fastest)) {
            self.fastest = Some(row.clone());
        }
        if self.rows.len() < SHOWN {
            self.rows.push(row);
        }
    }

    /// The first rows, and where the fastest is.
    pub(crate) fn render(&self, variants: &Variants<'_>, screen: &Screen) -> String {
        let mut text = table(variants, &self.rows, screen);
        let mut notes = Vec::new();
        if self.seen > self.rows.len() as u64 {
            let rest = count(self.seen - self.rows.len() as u64);
            notes.push(format!("{rest} more rows are not shown; -o sweep.csv has them all."));
        }
        if self.seen < self.points {
            let points = several(self.points, "point");
            notes.push(format!("Interrupted after {} of {points}.", count(self.seen)));
        }
        if let Some(fastest) = self.fastest.as_ref().filter(|_| self.seen > 1) {
            let rate = fastest.answer.as_ref().map_or(String::new(), |figures| figures.throughput.human());
            let values = values(variants.axes(), &fastest.digits);
            notes.push(format!("Fastest: {values} with {}.", grouped(rate)));
        }
        if let Some(why) = &self.refusal {
            let why: String = why.chars().filter(|c| !c.is_control()).collect();
            notes.push(format!("{} refused, the first because: {why}.", several(self.refused, "point")));
        }
        text.push('\n');
        text.push_str(&screen.paragraph(0, &notes.join(" ")));
        text
    }
}

/// "batch 32, workers.count 4".
pub(crate) fn values(axes: &[Axis], digits: &[u64]) -> String {
    let titles = titles(axes);
    let pairs = axes.iter().zip(digits).zip(&titles);
    let words: Vec<String> =
        pairs.map(|((axis, &digit), title)| format!("{title} {}", super::name(&axis.value(digit)))).collect();
    words.join(", ")
}

/// The shortest ends of the keys that tell them apart.
pub(super) fn titles(axes: &[Axis]) -> Vec<String> {
    let end = |axis: &Axis, parts: usize| {
        let all: Vec<&str> = axis.key.split('.').collect();
        all[all.len().saturating_sub(parts)..].join(".")
    };
    let title = |axis: &Axis| {
        let clear = |parts: &usize| {
            let own = end(axis, *parts);
            let vague = matches!(own.as_str(), "count" | "efficiency" | "bandwidth" | "workers" | "batch");
            let shared = axes.iter().any(|other| other != axis && end(other, *parts) == own);
            let nameless = own.starts_with(|c: char| c.is_ascii_digit());
            !shared && !vague && !nameless
        };
        let parts = (1..8).find(clear).unwrap_or(8);
        if axis.key == "strategy.batch" { "batch".to_owned() } else { end(axis, parts) }
    };
    axes.iter().map(title).collect()
}

/// A column that may be left out where there is no room for it.
struct Wide {
    column: Column,
    /// Columns with higher numbers are left out first; 0 stays.
    dispensable: u8,
    cells: Vec<String>,
}

impl Wide {
    fn width(&self) -> usize {
        let title = &self.column.title;
        let longest = self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        longest.max(title.chars().count()) + 2
    }
}

fn table(variants: &Variants<'_>, rows: &[Row], screen: &Screen) -> String {
    let titles = titles(variants.axes());
    let figure = |show: &dyn Fn(&Figures) -> Option<String>| -> Vec<String> {
        let cell = |row: &Row| row.answer.as_ref().map_or(Some("–".to_owned()), show);
        rows.iter().map(|row| cell(row).unwrap_or_default()).collect()
    };
    let mut columns: Vec<Wide> = Vec::new();
    for (place, (axis, title)) in variants.axes().iter().zip(&titles).enumerate() {
        let cells = rows.iter().map(|row| super::name(&axis.value(row.digits[place]))).collect();
        columns.push(Wide { column: Column::numbers(title), dispensable: 0, cells });
    }
    let mut add = |column, dispensable, cells: Vec<String>| columns.push(Wide { column, dispensable, cells });
    add(Column::numbers("step time"), 0, figure(&|figures| Some(figures.iteration.human())));
    add(Column::numbers("throughput"), 0, figure(&|figures| Some(grouped(figures.throughput.human()))));
    add(Column::numbers("scaling"), 4, figure(&|figures| Some(percent(figures.scaling_factor))));
    add(Column::numbers("epoch"), 3, figure(&|figures| figures.epoch.map(duration)));
    add(Column::numbers("cost"), 2, figure(&|figures| figures.cost.map(money)));
    add(Column::names("method"), 1, figure(&|figures| Some(figures.method.to_owned())));
    add(Column::names("bottleneck"), 5, figure(&|figures| Some(limit(figures.bottleneck).to_owned())));
    // What is the same everywhere, or nowhere, is not worth a column.
    let told = |cells: &[String]| cells.iter().any(|cell| !cell.is_empty() && cell != "–");
    columns.retain(|wide| wide.dispensable == 0 || told(&wide.cells));
    let varies = |cells: &[String]| {
        let mut told = cells.iter().filter(|cell| *cell != "–");
        told.next().is_some_and(|first| told.any(|cell| cell != first))
    };
    columns.retain(|wide| wide.dispensable != 1 || varies(&wide.cells));
    while columns.iter().map(Wide::width).sum::<usize>() > usize::from(screen.width) {
        let Some(most) = columns.iter().map(|wide| wide.dispensable).max().filter(|most| *most > 0) else {
            break;
        };
        columns.retain(|wide| wide.dispensable < most);
    }
    let mut table = Table::new("", columns.iter().map(|wide| wide.column.clone()).collect::<Vec<_>>());
    for place in 0..rows.len() {
        table.row(columns.iter().map(|wide| wide.cells[place].clone()));
    }
    table::render(&table, screen)
}
