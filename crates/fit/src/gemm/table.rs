//! The table of Oyama 2016, section 4.1: times measured on a grid of sizes, eight features between grid points.
//!
//! Between grid points it is interpolated as the method of the paper does ([`trilinear`]).

use super::{GemmError, MeasuredProduct, by_variant};
use std::collections::BTreeMap;
use stepcast_analytic::oyama2016::trilinear;
use stepcast_core::fitted::gemm::{Shape, Variant};
use stepcast_core::quantity::Seconds;

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
        let size = shape.sizes();
        let mut places = [[0; 2]; 3];
        let mut ends = [[0.0; 3]; 2];
        for (axis, sizes) in self.axes.iter().enumerate() {
            let at = |place: usize| f64::from(sizes[place]);
            let Some(last) = sizes.len().checked_sub(2) else {
                // One size: nothing is known about any other.
                if (at(0) - size[axis]).abs() > 0.0 {
                    return (Seconds::new(f64::NAN), false);
                }
                (ends[0][axis], ends[1][axis]) = (at(0), at(0) + 1.0);
                continue;
            };
            let above = sizes.partition_point(|value| f64::from(*value) <= size[axis]);
            let low = above.saturating_sub(1).min(last);
            places[axis] = [low, low + 1];
            (ends[0][axis], ends[1][axis]) = (at(low), at(low + 1));
        }
        let corners = std::array::from_fn(|corner| {
            let place = |axis: usize| places[axis][corner >> (2 - axis) & 1];
            let index = (place(0) * self.axes[1].len() + place(1)) * self.axes[2].len() + place(2);
            Seconds::new(self.times[index])
        });
        let [from, to] = ends;
        let inside = (0..3).all(|axis| (from[axis]..=to[axis]).contains(&size[axis]));
        (trilinear(from, to, corners, size), inside)
    }
}
