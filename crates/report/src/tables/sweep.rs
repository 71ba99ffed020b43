//! The rows of a sweep that are shown, and notes about all of them.

use crate::format::{
    bare_interval_of_rates, count, duration, grouped, limit, money, name, percent, plain, several,
};
use crate::sentences;
use crate::table::{Column, Table};
use crate::table::{Hint, Wording};
use std::collections::BTreeMap;
use stepcast_study::explore::sweep::{Agreement, Axis, PointFigures, SweepRow, Variants};

/// "batch 32, workers.count 4".
pub fn values(axes: &[Axis], digits: &[u64]) -> String {
    let titles = titles_of(axes);
    let pairs = axes.iter().zip(digits).zip(&titles);
    let words: Vec<String> =
        pairs.map(|((axis, &digit), title)| format!("{title} {}", name(&axis.value(digit)))).collect();
    words.join(", ")
}

/// The shortest distinguishing and meaningful suffix of each key.
pub(super) fn titles(keys: &[&str]) -> Vec<String> {
    let end = |key: &str, parts: usize| {
        let all: Vec<&str> = key.split('.').collect();
        all[all.len().saturating_sub(parts)..].join(".")
    };
    let title = |key: &&str| {
        let clear = |parts: &usize| {
            let own = end(key, *parts);
            let vague = matches!(own.as_str(), "count" | "efficiency" | "bandwidth" | "workers" | "batch");
            let shared = keys.iter().any(|other| other != key && end(other, *parts) == own);
            let nameless = own.starts_with(|c: char| c.is_ascii_digit());
            !shared && !vague && !nameless
        };
        let parts = (1..8).find(clear).unwrap_or(8);
        if *key == "strategy.batch" { "batch".to_owned() } else { end(key, parts) }
    };
    keys.iter().map(title).collect()
}

fn titles_of(axes: &[Axis]) -> Vec<String> {
    titles(&axes.iter().map(|axis| axis.key.as_str()).collect::<Vec<_>>())
}

/// Order in which columns are left out if there is not enough room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Needed,
    Memory,
    Method,
    Interval,
    Cost,
    Epoch,
    Scaling,
    Bottleneck,
}

/// A column with its cells, which may be left out.
struct Ranked {
    column: Column,
    rank: Rank,
    cells: Vec<String>,
}

impl Ranked {
    fn width(&self) -> usize {
        let title = &self.column.title;
        let longest = self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
        longest.max(title.chars().count()) + 2
    }

    fn known(&self) -> impl Iterator<Item = &String> {
        self.cells.iter().filter(|cell| !cell.is_empty() && *cell != "–")
    }

    fn varies(&self) -> bool {
        let mut known = self.known();
        known.next().is_some_and(|first| known.any(|cell| cell != first))
    }
}

/// The values and figures of some points, in at most `width` characters where one is given.
pub fn points(axes: &[Axis], rows: &[SweepRow], width: Option<usize>) -> Table {
    let figure = |show: &dyn Fn(&PointFigures) -> Option<String>| -> Vec<String> {
        let cell = |row: &SweepRow| row.answer.as_ref().map_or(Some("–".to_owned()), show);
        rows.iter().map(|row| cell(row).unwrap_or_default()).collect()
    };
    let mut columns: Vec<Ranked> = Vec::new();
    for (place, (axis, title)) in axes.iter().zip(titles_of(axes)).enumerate() {
        let cells = rows.iter().map(|row| name(&axis.value(row.digits[place]))).collect();
        columns.push(Ranked { column: Column::numbers(title), rank: Rank::Needed, cells });
    }
    let mut add =
        |column: &str, rank, cells: Vec<String>| columns.push(Ranked { column: column.into(), rank, cells });
    add("#step time", Rank::Needed, figure(&|point| Some(point.iteration.human())));
    add("#throughput", Rank::Needed, figure(&|point| Some(grouped(point.throughput.human()))));
    add("#90 % interval", Rank::Interval, figure(&|point| point.interval.map(bare_interval_of_rates)));
    add("#scaling", Rank::Scaling, figure(&|point| Some(percent(point.scaling_factor))));
    add("#epoch", Rank::Epoch, figure(&|point| point.epoch.map(duration)));
    add("#cost", Rank::Cost, figure(&|point| point.cost.map(money)));
    let all_fit = rows.iter().all(|row| row.answer.as_ref().map_or(true, |point| point.fits));
    let planned = |point: &PointFigures| point.method == "transformer";
    let verdict = |point: &PointFigures| {
        (!all_fit || planned(point)).then(|| if point.fits { "fits" } else { "too little" }.to_owned())
    };
    add("memory", Rank::Memory, figure(&verdict));
    add("method", Rank::Method, figure(&|point| Some(point.method.to_owned())));
    add("bottleneck", Rank::Bottleneck, figure(&|point| Some(limit(point.bottleneck).to_owned())));
    columns.retain(|ranked| match ranked.rank {
        Rank::Needed => true,
        Rank::Method => ranked.varies(),
        _ => ranked.known().next().is_some(),
    });
    let most = width.unwrap_or(usize::MAX);
    while columns.iter().map(Ranked::width).sum::<usize>() > most {
        let Some(last) = columns.iter().map(|ranked| ranked.rank).max().filter(|rank| *rank > Rank::Needed)
        else {
            break;
        };
        columns.retain(|ranked| ranked.rank < last);
    }
    let mut table = Table::new("", columns.iter().map(|ranked| ranked.column.clone()).collect::<Vec<_>>());
    for place in 0..rows.len() {
        table.row(columns.iter().map(|ranked| ranked.cells[place].clone()));
    }
    table
}

const SHOWN: usize = 40;

/// The first rows of a sweep, and statistics of all rows.
#[derive(Debug, Clone)]
pub struct FirstRows {
    points: u64,
    rows: Vec<SweepRow>,
    seen: u64,
    refused: u64,
    /// Points that do not fit into memory.
    too_large: u64,
    warnings: BTreeMap<&'static str, u64>,
    /// Why the first of the refused points was refused.
    refusal: Option<String>,
    /// The row with the most samples per second.
    fastest: Option<SweepRow>,
}

impl FirstRows {
    /// An empty summary of a sweep with this many points.
    pub fn new(points: u64) -> Self {
        Self {
            points,
            rows: Vec::new(),
            seen: 0,
            refused: 0,
            too_large: 0,
            warnings: BTreeMap::new(),
            refusal: None,
            fastest: None,
        }
    }

    pub fn see(&mut self, row: SweepRow) {
        self.seen += 1;
        let rate = |row: &SweepRow| row.answer.as_ref().map_or(0.0, |figures| figures.throughput.get());
        if let Err(why) = &row.answer {
            self.refused += 1;
            self.refusal.get_or_insert_with(|| why.refused.clone());
        }
        if let Ok(figures) = &row.answer {
            self.too_large += u64::from(!figures.fits);
            for code in &figures.warnings {
                *self.warnings.entry(code).or_default() += 1;
            }
        }
        // Points that do not fit into memory are listed, but not recommended.
        let possible = row.answer.as_ref().is_ok_and(|figures| figures.fits);
        if possible && self.fastest.as_ref().is_none_or(|fastest| rate(&row) > rate(fastest)) {
            self.fastest = Some(row.clone());
        }
        if self.rows.len() < SHOWN {
            self.rows.push(row);
        }
    }

    pub fn rows(&self) -> &[SweepRow] {
        &self.rows
    }

    pub fn predicted(&self) -> u64 {
        self.seen - self.refused
    }

    /// The rows, in at most `width` characters where one is given.
    pub fn table(&self, variants: &Variants<'_>, width: Option<usize>) -> Table {
        points(variants.axes(), &self.rows, width)
    }

    /// Notes about rows not shown, the fastest point, and points that could not be predicted.
    pub fn notes(&self, variants: &Variants<'_>, agreement: &Agreement, words: Wording) -> Vec<String> {
        let mut notes = Vec::new();
        if self.seen > self.rows.len() as u64 {
            let rest = count(self.seen - self.rows.len() as u64);
            notes.push(format!("{rest} more rows are not shown."));
            notes.push(words.hint(&Hint::RowsInFile));
        }
        if self.seen < self.points {
            let points = several(self.points, "point");
            notes.push(format!("Interrupted after {} of {points}.", count(self.seen)));
        }
        if let Some(fastest) = self.fastest.as_ref().filter(|_| self.seen > 1) {
            let rate = fastest.answer.as_ref().map_or(String::new(), |figures| figures.throughput.human());
            let values = values(variants.axes(), &fastest.digits);
            let fitting = if self.too_large > 0 { " of those that fit into memory" } else { "" };
            notes.push(format!("Fastest{fitting}: {values} with {}.", grouped(rate)));
        }
        if !self.warnings.is_empty() {
            let warnings =
                self.warnings.iter().map(|(code, points)| format!("{code} at {}", several(*points, "point")));
            let warnings: Vec<String> = warnings.collect();
            notes.push(format!("Warnings: {}.", warnings.join(", ")));
            notes.push(words.hint(&Hint::Warnings));
        }
        notes.extend(sentences::mixed(agreement.methods()));
        if let Some(why) = &self.refusal {
            let refused = several(self.refused, "point");
            notes.push(format!("{refused} could not be predicted, the first because {}.", plain(why)));
        }
        notes
    }
}
