//! The rows of a sweep.

use crate::format::{bare_interval_of_rates, duration, grouped, limit, money, name, percent};
use crate::table::{Column, Table};
use stepcast_core::quantity::SamplesPerSec;
use stepcast_study::explore::sweep::{Axis, PointFigures, SweepRow};

/// "batch 32, workers.count 4".
pub fn values(axes: &[Axis], digits: &[u64]) -> String {
    let titles = titles_of(axes);
    let pairs = axes.iter().zip(digits).zip(&titles);
    let words: Vec<String> =
        pairs.map(|((axis, &digit), title)| format!("{title} {}", name(&axis.value(digit)))).collect();
    words.join(", ")
}

/// The shortest suffix of each key that differs from those of the others and says what it is.
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

/// Which columns to leave out first where there is no room for all.
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

/// The values and figures of some points with the intervals of their throughputs, in at most `width` characters where one
/// is given.
pub fn points(
    axes: &[Axis],
    rows: &[SweepRow],
    intervals: &[Option<[SamplesPerSec; 2]>],
    width: Option<usize>,
) -> Table {
    let figure = |show: &dyn Fn(&PointFigures) -> Option<String>| -> Vec<String> {
        let cell = |row: &SweepRow| row.answer.as_ref().map_or(Some("–".to_owned()), show);
        rows.iter().map(|row| cell(row).unwrap_or_default()).collect()
    };
    let mut columns: Vec<Ranked> = Vec::new();
    for (place, (axis, title)) in axes.iter().zip(titles_of(axes)).enumerate() {
        let cells = rows.iter().map(|row| name(&axis.value(row.digits[place]))).collect();
        columns.push(Ranked { column: Column::numbers(title), rank: Rank::Needed, cells });
    }
    let mut add = |column, rank, cells: Vec<String>| columns.push(Ranked { column, rank, cells });
    add(Column::numbers("step time"), Rank::Needed, figure(&|point| Some(point.iteration.human())));
    add(
        Column::numbers("throughput"),
        Rank::Needed,
        figure(&|point| Some(grouped(point.throughput.human()))),
    );
    let interval = |ends: &Option<[SamplesPerSec; 2]>| ends.map_or(String::new(), bare_interval_of_rates);
    let cells = (0..rows.len()).map(|place| intervals.get(place).map_or(String::new(), interval));
    add(Column::numbers("90 % interval"), Rank::Interval, cells.collect());
    add(Column::numbers("scaling"), Rank::Scaling, figure(&|point| Some(percent(point.scaling_factor))));
    add(Column::numbers("epoch"), Rank::Epoch, figure(&|point| point.epoch.map(duration)));
    add(Column::numbers("cost"), Rank::Cost, figure(&|point| point.cost.map(money)));
    let all_fit = rows.iter().all(|row| row.answer.as_ref().map_or(true, |point| point.fits));
    let planned = |point: &PointFigures| point.method == "transformer";
    let verdict = |point: &PointFigures| {
        (!all_fit || planned(point)).then(|| if point.fits { "fits" } else { "too little" }.to_owned())
    };
    add(Column::names("memory"), Rank::Memory, figure(&verdict));
    add(Column::names("method"), Rank::Method, figure(&|point| Some(point.method.to_owned())));
    add(
        Column::names("bottleneck"),
        Rank::Bottleneck,
        figure(&|point| Some(limit(point.bottleneck).to_owned())),
    );
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
