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
    points: Vec<Option<Point>>,
}

/// What is drawn of a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Samples per second of the whole cluster.
    pub throughput: SamplesPerSec,
    /// Whether it fits into the memory of every device.
    pub fits: bool,
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
        Some(Self { first: key(first), second: second.map(key), grid, points: vec![None; points] })
    }

    /// Keeps a row.
    pub fn see(&mut self, row: &SweepRow) {
        if let Ok(index) = usize::try_from(row.index) {
            let point = row
                .answer
                .as_ref()
                .ok()
                .map(|point| Point { throughput: point.throughput, fits: point.fits });
            self.note(index, point);
        }
    }

    /// Keeps the point `index`; none where it was refused.
    pub fn note(&mut self, index: usize, point: Option<Point>) {
        if let Some(place) = self.points.get_mut(index) {
            *place = point;
        }
    }

    /// The fastest point that fits; of equal ones, the first.
    fn best(&self) -> Option<usize> {
        let fitting = self.points.iter().enumerate().filter_map(|(place, point)| {
            let point = (*point)?;
            point.fits.then_some((place, point.throughput))
        });
        fitting.reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(place, _)| place)
    }

    /// The drawing: a line or bars over one key, a heat map over two.
    pub fn svg(&self, name: &str) -> String {
        let title = format!("Throughput of {name}");
        let quantity = "throughput".to_owned();
        let best = self.best();
        let throughput = |place: usize| self.points[place].map(|point| point.throughput);
        let too_large = |place: usize| self.points[place].is_some_and(|point| !point.fits);
        let first = &self.first;
        match &self.second {
            None => {
                let (key, values) = first;
                let points = values.iter().cloned().zip((0..).map(throughput)).collect();
                let too_large = (0..values.len()).map(too_large).collect();
                Varied { title, key: key.clone(), quantity, points, too_large, best }.svg()
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
                    figures: order.iter().map(|&place| throughput(place)).collect(),
                    too_large: order.iter().map(|&place| too_large(place)).collect(),
                    best: best.and_then(|best| order.iter().position(|&place| place == best)),
                }
                .svg()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_point_is_the_fastest_that_fits() {
        let mut swept = Swept::new(&[Axis::parse("batch=16,32,64,128").unwrap()]).unwrap();
        let point = |rate, fits| Some(Point { throughput: SamplesPerSec::new(rate), fits });
        for (index, rate) in [10.0, 20.0, 20.0, 40.0].into_iter().enumerate() {
            swept.note(index, point(rate, rate < 30.0));
        }
        assert_eq!(swept.best(), Some(1));
        assert!(swept.svg("x").contains("best: 32") && swept.svg("x").contains("does not fit into memory"));
        swept.note(1, None);
        assert_eq!(swept.best(), Some(2));
        for index in 0..4 {
            swept.note(index, point(10.0, false));
        }
        assert_eq!(swept.best(), None);
    }
}
