//! Ranks of a plan as a grid of blocks: pipeline stages from top to bottom, replicas from left to right, and in every block
//! the ranks that divide the layers of one stage of one replica. Colours and numbers show one role of every rank.

use crate::draw::{EDGE, Head, Mark, SERIES, Svg, WIDTH, nothing, series, width};
use crate::format::several;
use stepcast_study::predict::layout::{Layout, Rank, Role};

/// The largest and the smallest tile.
const TILE: (f64, f64) = (22.0, 4.0);
/// Gaps between blocks, and in place of omitted blocks.
const GAPS: (f64, f64) = (6.0, 18.0);
/// Height of the names of columns.
const NAMES: f64 = 16.0;
const WIDEST: f64 = 70.0;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RankGrid {
    pub title: String,
    /// Explanation of rows, columns and blocks.
    pub note: String,
    pub values: Vec<String>,
    /// Names of the columns of blocks; none where some are left out.
    pub columns: Vec<Option<String>>,
    /// Names of the rows of blocks; none where some are left out.
    pub rows: Vec<Option<String>>,
    /// Tiles of a block, side by side.
    pub across: usize,
    /// Tiles of a block, one above the other.
    pub down: usize,
    /// The blocks that are not left out, row by row, each with its tiles, row by row.
    pub blocks: Vec<Vec<Tile>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tile {
    pub value: u64,
    pub words: String,
}

/// Positions of rows or columns, and where the last one ends.
fn places(names: &[Option<String>], from: f64, size: f64) -> (Vec<f64>, f64) {
    let mut at = from;
    let step = |name: &Option<String>| {
        let here = at;
        at += if name.is_some() { size + GAPS.0 } else { GAPS.1 };
        here
    };
    (names.iter().map(step).collect(), at)
}

impl RankGrid {
    pub fn svg(&self) -> String {
        self.svg_of(WIDTH)
    }

    pub fn svg_of(&self, drawing: f64) -> String {
        let shown = |names: &[Option<String>]| names.iter().flatten().count();
        let blocks = shown(&self.columns) * shown(&self.rows);
        if blocks == 0 || self.across == 0 || self.down == 0 || self.blocks.len() != blocks {
            return nothing(&self.title, "There is nothing to show: there are no ranks.");
        }
        let head = Head { title: self.title.clone(), note: self.note.clone(), legend: self.legend() };
        let names = self.rows.iter().flatten().map(|name| width(name, "small")).fold(0.0, f64::max);
        let left = EDGE + names.min(WIDEST) + 8.0;
        let gaps = self.columns.iter().filter(|name| name.is_none()).count() as f64;
        let room = drawing - left - EDGE - gaps * GAPS.1 - shown(&self.columns) as f64 * GAPS.0;
        let tiles = (shown(&self.columns) * self.across) as f64;
        let wide = (room / tiles).clamp(TILE.1, TILE.0);
        let high = wide.max(10.0);
        let top = head.height(drawing) + NAMES;
        let (xs, right) = places(&self.columns, left, wide * self.across as f64);
        let (ys, bottom) = places(&self.rows, top, high * self.down as f64);
        let drawing = drawing.max(right + EDGE);
        let mut svg = Svg::new(drawing, bottom + EDGE, &self.title, &self.description());
        head.draw(&mut svg, drawing);
        for (x, name) in xs.iter().zip(&self.columns) {
            let (size, words) = match name {
                Some(name) => (wide * self.across as f64, name.as_str()),
                None => (GAPS.1 - GAPS.0, "…"),
            };
            svg.words_within(x + size / 2.0, top - 5.0, "small middle muted", words, size + GAPS.0 - 2.0);
        }
        for (y, name) in ys.iter().zip(&self.rows) {
            let (middle, words) = match name {
                Some(name) => (y + high * self.down as f64 / 2.0 + 3.5, name.as_str()),
                None => (y + (GAPS.1 - GAPS.0) / 2.0 + 2.0, "…"),
            };
            svg.words_within(left - 8.0, middle, "small end muted", words, WIDEST);
        }
        let mut blocks = self.blocks.iter();
        for (y, _) in ys.iter().zip(&self.rows).filter(|(_, name)| name.is_some()) {
            for (x, _) in xs.iter().zip(&self.columns).filter(|(_, name)| name.is_some()) {
                for (place, tile) in blocks.next().into_iter().flatten().enumerate() {
                    let (column, row) = (place % self.across, place / self.across);
                    let at = [x + column as f64 * wide, y + row as f64 * high, wide, high];
                    tile.draw(&mut svg, at);
                }
            }
        }
        svg.finish()
    }

    /// A colour for every value while colours do not repeat; beyond that, only numbers distinguish values.
    fn legend(&self) -> Vec<(Mark, String)> {
        let values = self.values.iter().enumerate().filter(|_| self.values.len() <= SERIES);
        values.map(|(value, name)| (Mark::Plain(value), name.clone())).collect()
    }

    fn description(&self) -> String {
        let ranks: usize = self.blocks.iter().map(Vec::len).sum();
        let blocks = several(self.blocks.len() as u64, "block");
        format!("A grid of {} in {blocks}. {}.", several(ranks as u64, "rank"), self.note)
    }
}

impl Tile {
    fn draw(&self, svg: &mut Svg, [x, y, wide, high]: [f64; 4]) {
        svg.titled(&self.words, |svg| {
            let class = format!("{} fill", series((self.value % SERIES as u64) as usize));
            svg.rect([x, y, (wide - 1.0).max(1.0), high - 1.0], &class, "");
            let number = self.value.to_string();
            if width(&number, "small") + 4.0 <= wide {
                svg.words(x + wide / 2.0 - 0.5, y + high / 2.0 + 3.0, "small middle on-series", &number);
            }
        });
    }
}

/// Most tensor-parallel and context-parallel ranks of a block.
const BLOCK: (u64, u64) = (16, 4);
/// Most tiles side by side, and most rows of tiles.
const MOST: (u64, u64) = (24, 16);

pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Pipeline => "stage",
        Role::Tensor => "tensor",
        Role::Context => "context",
        Role::Data => "replica",
        Role::Expert => "experts",
        Role::Node => "machine",
    }
}

/// The first and the last of `all`; `None` stands for those in between.
fn folded(all: u64, most: u64) -> Vec<Option<u64>> {
    match most.max(1) {
        most if all <= most => (0..all).map(Some).collect(),
        1 => vec![Some(0), None],
        most => (0..most - 1).map(Some).chain([None, Some(all - 1)]).collect(),
    }
}

impl RankGrid {
    /// All ranks, coloured by `role`; ranks that do not fit are left out in the middle.
    pub fn from_layout(layout: &Layout, role: Role, name: &str) -> Self {
        let (across, down) = (layout.tensor.min(BLOCK.0), layout.context.min(BLOCK.1));
        let columns = folded(layout.data, MOST.0 / across);
        let rows = folded(layout.pipeline, MOST.1 / down);
        let mut blocks = Vec::new();
        for &stage in rows.iter().flatten() {
            for &replica in columns.iter().flatten() {
                let places = (0..down).flat_map(|context| (0..across).map(move |tensor| (tensor, context)));
                let tile =
                    |(tensor, context)| tile(layout, &layout.rank([tensor, context, replica, stage]), role);
                blocks.push(places.map(tile).collect());
            }
        }
        let values = (0..layout.count(role).min(64)).map(|value| format!("{} {value}", role_name(role)));
        let names = |places: &[Option<u64>], prefix: &str| {
            places.iter().map(|place| place.map(|place| format!("{prefix}{place}"))).collect()
        };
        Self {
            title: format!("Ranks of {name}, by {}", role_name(role)),
            note: note(layout),
            values: values.collect(),
            columns: names(&columns, ""),
            rows: names(&rows, "stage "),
            across: across as usize,
            down: down as usize,
            blocks,
        }
    }
}

fn note(layout: &Layout) -> String {
    let mut words = vec!["Rows: stages".to_owned(), "columns: replicas".to_owned()];
    let mut within = |all: u64, shown: u64, what: &str| match all {
        1 => {}
        all if all > shown => words.push(format!("{shown} of {all} {what}")),
        all => words.push(format!("{all} {what}")),
    };
    within(layout.tensor, BLOCK.0, "tensor ranks across");
    within(layout.context, BLOCK.1, "context ranks down");
    words.join("; ")
}

fn tile(layout: &Layout, rank: &Rank, role: Role) -> Tile {
    let roles = [Role::Pipeline, Role::Data, Role::Tensor, Role::Context, Role::Expert, Role::Node];
    let places = roles.iter().filter(|role| layout.count(**role) > 1);
    let words: Vec<String> = places.map(|role| format!("{} {}", role_name(*role), rank.of(*role))).collect();
    Tile { value: rank.of(role), words: format!("rank {}: {}", rank.number, words.join(", ")) }
}
