//! A sweep as text: its rows, or what became of its file.

use super::forecast::{limit, money};
use super::table::{Column, Table};
use super::{Screen, count, duration, grouped, percent, several};
use serde_json::json;
use std::path::Path;
use stepcast_study::sweep::{Axis, Row, Variants};

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
    /// The row with the most samples per second.
    fastest: Option<Row>,
}

impl Shown {
    pub(crate) fn new(points: u64) -> Self {
        Self { points, rows: Vec::new(), seen: 0, refused: 0, fastest: None }
    }

    pub(crate) fn see(&mut self, row: Row) {
        self.seen += 1;
        let rate = |row: &Row| row.answer.as_ref().map_or(0.0, |figures| figures.throughput.get());
        self.refused += u64::from(row.answer.is_err());
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
        if self.refused > 0 {
            notes.push(format!("{} refused.", several(self.refused, "point")));
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
            !shared && (!vague || own.contains('.'))
        };
        let parts = (1..8).find(clear).unwrap_or(8);
        if axis.key == "strategy.batch" { "batch".to_owned() } else { end(axis, parts) }
    };
    axes.iter().map(title).collect()
}

fn table(variants: &Variants<'_>, rows: &[Row], screen: &Screen) -> String {
    let titles = titles(variants.axes());
    let has = |figure: fn(&stepcast_study::sweep::Figures) -> bool| {
        rows.iter().any(|row| row.answer.as_ref().is_ok_and(figure))
    };
    let epochs = has(|figures| figures.epoch.is_some());
    let costs = has(|figures| figures.cost.is_some());
    let methods: Vec<&str> =
        rows.iter().filter_map(|row| row.answer.as_ref().ok().map(|figures| figures.method)).collect();
    let several_methods = methods.windows(2).any(|pair| pair[0] != pair[1]);
    let mut columns: Vec<Column<'_>> = titles.iter().map(|title| Column::Number(title)).collect();
    columns.extend([Column::Number("step time"), Column::Number("throughput"), Column::Number("scaling")]);
    if epochs {
        columns.push(Column::Number("epoch"));
    }
    if costs {
        columns.push(Column::Number("cost"));
    }
    if several_methods {
        columns.push(Column::Name("method"));
    }
    columns.push(Column::Words("bottleneck"));
    let mut table = Table::new(columns);
    for row in rows {
        let axes = variants.axes().iter().zip(&row.digits);
        let mut cells: Vec<String> = axes.map(|(axis, &digit)| super::name(&axis.value(digit))).collect();
        match &row.answer {
            Ok(figures) => {
                cells.extend([
                    figures.iteration.human(),
                    grouped(figures.throughput.human()),
                    percent(figures.scaling_factor),
                ]);
                if epochs {
                    cells.push(figures.epoch.map_or(String::new(), duration));
                }
                if costs {
                    cells.push(figures.cost.map_or(String::new(), money));
                }
                if several_methods {
                    cells.push(figures.method.to_owned());
                }
                cells.push(limit(figures.bottleneck).to_owned());
            }
            Err(why) => {
                let empty = 3 + usize::from(epochs) + usize::from(costs) + usize::from(several_methods);
                cells.extend(std::iter::repeat_n("–".to_owned(), empty));
                cells.push(why.refused.chars().filter(|c| !c.is_control()).collect());
            }
        }
        table.row(cells);
    }
    table.render(screen)
}
