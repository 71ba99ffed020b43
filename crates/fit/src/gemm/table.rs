//! The table of Oyama 2016, section 4.1: times measured on a grid of sizes, eight features between grid points.
//!
//! The paper fits {mnk, mn, mk, nk, m, n, k, 1} to the eight corners of the grid cell around a query. Eight unknowns on
//! the corners of a box have one solution: trilinear interpolation in m, n and k themselves.

use super::{GemmError, MeasuredProduct, by_variant};
use std::collections::BTreeMap;
use stepcast_core::fitted::gemm::{Shape, Variant};
use stepcast_core::quantity::Seconds;

/// Measured times on grids of sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct GemmTable {
    grids: BTreeMap<Variant, Grid>,
}

#[derive(Debug, Clone, PartialEq)]
struct Grid {
    /// Measured m, n and k, ascending.
    axes: [Vec<u32>; 3],
    /// k fastest, then n.
    times: Vec<f64>,
}

impl GemmTable {
    /// A table of measured products; every combination of their sizes must be there.
    pub fn new(samples: &[MeasuredProduct]) -> Result<Self, GemmError> {
        let mut grids = BTreeMap::new();
        for (variant, own) in by_variant(samples) {
            grids.insert(variant, Grid::new(variant, &own)?);
        }
        Ok(Self { grids })
    }

    /// The time of a product, and whether its sizes lie within the grid; outside, the nearest cell is extrapolated. None
    /// where the variant was not measured.
    pub fn predict(&self, variant: Variant, shape: Shape) -> Option<(Seconds, bool)> {
        self.grids.get(&variant).map(|grid| grid.predict(shape))
    }
}

impl Grid {
    fn new(variant: Variant, samples: &[MeasuredProduct]) -> Result<Self, GemmError> {
        let mut times = BTreeMap::new();
        for sample in samples {
            if times.insert(sample.shape, sample.time.get()).is_some() {
                return Err(GemmError::Twice { variant, shape: sample.shape });
            }
        }
        let axis = |size: fn(&Shape) -> u32| {
            let mut sizes: Vec<u32> = times.keys().map(size).collect();
            sizes.sort_unstable();
            sizes.dedup();
            sizes
        };
        let axes = [axis(|shape| shape.m), axis(|shape| shape.n), axis(|shape| shape.k)];
        for &m in &axes[0] {
            for &n in &axes[1] {
                for &k in &axes[2] {
                    let shape = Shape { m, n, k };
                    if !times.contains_key(&shape) {
                        return Err(GemmError::Hole { variant, shape });
                    }
                }
            }
        }
        Ok(Self { axes, times: times.into_values().collect() })
    }

    fn predict(&self, shape: Shape) -> (Seconds, bool) {
        let corners = [(0, shape.m), (1, shape.n), (2, shape.k)].map(|(axis, size)| self.corners(axis, size));
        let mut time = 0.0;
        for (i, by_m) in corners[0] {
            for (j, by_n) in corners[1] {
                for (l, by_k) in corners[2] {
                    let place = (i * self.axes[1].len() + j) * self.axes[2].len() + l;
                    time += by_m * by_n * by_k * self.times[place];
                }
            }
        }
        let inside = corners.iter().flatten().all(|(_, weight)| (0.0..=1.0).contains(weight));
        (Seconds::new(time), inside)
    }

    /// The two sizes around `size`, with the weights of linear interpolation.
    fn corners(&self, axis: usize, size: u32) -> [(usize, f64); 2] {
        let sizes = &self.axes[axis];
        let Some(last) = sizes.len().checked_sub(2) else {
            // One size: nothing is known of any other.
            return [(0, if size == sizes[0] { 1.0 } else { f64::NAN }), (0, 0.0)];
        };
        let low = sizes.partition_point(|value| *value <= size).saturating_sub(1).min(last);
        let [from, to, at] = [sizes[low], sizes[low + 1], size].map(f64::from);
        let share = (at - from) / (to - from);
        [(low, 1.0 - share), (low + 1, share)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::least_squares;
    use proptest::prelude::*;
    use stepcast_core::fitted::gemm::Transposition;
    use stepcast_core::precision::Precision;

    const VARIANT: Variant = Variant { precision: Precision::Fp32, transposition: Transposition::Nn };

    fn sample(m: u32, n: u32, k: u32, time: f64) -> MeasuredProduct {
        MeasuredProduct { variant: VARIANT, shape: Shape { m, n, k }, time: Seconds::new(time) }
    }

    /// Corners of a box, in the order of the bits of an index.
    fn cell(times: &[f64]) -> Vec<MeasuredProduct> {
        let pick = |corner: usize, bit: usize, pair: [u32; 2]| pair[corner >> bit & 1];
        let corner = |corner| {
            let (m, n, k) = (pick(corner, 2, [16, 23]), pick(corner, 1, [32, 45]), pick(corner, 0, [64, 91]));
            sample(m, n, k, times[corner])
        };
        (0..8).map(corner).collect()
    }

    fn features(m: f64, n: f64, k: f64) -> Vec<f64> {
        vec![m * n * k, m * n, m * k, n * k, m, n, k, 1.0]
    }

    proptest! {
        /// Slow twin: the paper's eight features, fitted to the eight corners.
        #[test]
        fn interpolation_is_the_fit_of_the_paper(
            times in prop::collection::vec(1.0..9.0f64, 8),
            (m, n, k) in (16..=23u32, 32..=45u32, 64..=91u32),
        ) {
            let corners = cell(&times);
            let rows: Vec<Vec<f64>> = corners
                .iter()
                .map(|corner| {
                    let [m, n, k] = corner.shape.sizes();
                    features(m, n, k)
                })
                .collect();
            let fit = least_squares(&rows, &times).unwrap();
            let query = features(f64::from(m), f64::from(n), f64::from(k));
            let fitted: f64 = query.iter().zip(&fit.coefficients).map(|(feature, x)| feature * x).sum();
            let table = GemmTable::new(&corners).unwrap();
            let (time, inside) = table.predict(VARIANT, Shape { m, n, k }).unwrap();
            prop_assert!(inside);
            prop_assert!((time.get() - fitted).abs() < 1e-6, "{time} {fitted}");
        }
    }

    #[test]
    fn queries_outside_are_flagged() {
        let table = GemmTable::new(&cell(&[1.0; 8])).unwrap();
        let inside = |m, n, k| table.predict(VARIANT, Shape { m, n, k }).unwrap().1;
        assert!(inside(16, 32, 64) && inside(23, 45, 91));
        assert!(!inside(15, 32, 64) && !inside(23, 46, 91));
    }

    #[test]
    fn holes_and_doubles_are_refused() {
        let mut corners = cell(&[1.0; 8]);
        corners.push(corners[0]);
        assert!(matches!(GemmTable::new(&corners), Err(GemmError::Twice { .. })));
        corners.truncate(7);
        assert!(matches!(GemmTable::new(&corners), Err(GemmError::Hole { .. })));
    }
}
