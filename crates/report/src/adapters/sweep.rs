//! The plot of a sweep over one or two keys.

use crate::plots::varied::Varied;
use crate::plots::varied_pair::VariedPair;
use stepcast_core::quantity::SamplesPerSec;
use stepcast_study::explore::sweep::{Axis, Grid, SweepRow};

/// Values of a single key that a line can show.
pub const MOST_ACROSS: u64 = 20_000;
/// Values of each of two keys that a heat map can show.
pub const MOST_CELLS: u64 = 512;

/// Throughput at the points of a sweep, collected until the plot is drawn.
#[derive(Debug, Clone)]
pub struct Swept {
    /// Keys with their values.
    first: (String, Vec<String>),
    second: Option<(String, Vec<String>)>,
    grid: Grid,
    throughput: Vec<Option<SamplesPerSec>>,
}

impl Swept {
    /// A sweep over these axes; none if they are not one or two, or have too many values.
    pub fn new(axes: &[Axis]) -> Option<Self> {
        let (first, second, most) = match axes {
            [only] => (only, None, MOST_ACROSS),
            [first, second] => (first, Some(second), MOST_CELLS),
            _ => return None,
        };
        if axes.iter().any(|axis| axis.values.len() > most) {
            return None;
        }
        let grid = Grid::new(axes.iter().map(|axis| axis.values.len()).collect());
        let points = usize::try_from(grid.points()).ok()?;
        let key =
            |axis: &Axis| (axis.key.clone(), (0..axis.values.len()).map(|place| axis.value(place)).collect());
        Some(Self { first: key(first), second: second.map(key), grid, throughput: vec![None; points] })
    }

    /// Keeps the throughput of a row.
    pub fn see(&mut self, row: &SweepRow) {
        if let Ok(index) = usize::try_from(row.index) {
            self.note(index, row.answer.as_ref().ok().map(|figures| figures.throughput));
        }
    }

    /// Keeps the throughput of the point `index`; none where it was refused.
    pub fn note(&mut self, index: usize, throughput: Option<SamplesPerSec>) {
        if let Some(place) = self.throughput.get_mut(index) {
            *place = throughput;
        }
    }

    /// The drawing: a line or bars over one key, a heat map over two.
    pub fn svg(&self, name: &str) -> String {
        let title = format!("Throughput of {name}");
        let quantity = "throughput".to_owned();
        let known = self.throughput.iter().enumerate().filter_map(|(place, rate)| Some((place, (*rate)?)));
        // Of equal values, the first.
        let best =
            known.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(place, _)| place);
        let first = &self.first;
        match &self.second {
            None => {
                let (key, values) = first;
                let points = values.iter().cloned().zip(self.throughput.iter().copied()).collect();
                Varied { title, key: key.clone(), quantity, points, best }.svg()
            }
            Some(second) => {
                // The longer axis goes across, where there is more room.
                let turned = second.1.len() > first.1.len();
                let (across, upwards) = if turned { (second, first) } else { (first, second) };
                let place = |column: usize, row: usize| {
                    let (first, second) = if turned { (row, column) } else { (column, row) };
                    self.grid.index(&[first as u64, second as u64]) as usize
                };
                let cells =
                    (0..across.1.len()).flat_map(|column| (0..upwards.1.len()).map(move |row| (column, row)));
                let order: Vec<usize> = cells.map(|(column, row)| place(column, row)).collect();
                VariedPair {
                    title,
                    quantity,
                    across: across.clone(),
                    upwards: upwards.clone(),
                    figures: order.iter().map(|&place| self.throughput[place]).collect(),
                    best: best.and_then(|best| order.iter().position(|&place| place == best)),
                }
                .svg()
            }
        }
    }
}
