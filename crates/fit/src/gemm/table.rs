//! The table of Oyama 2016, section 4.1: times measured on a grid of sizes, eight features between grid points.
//!
//! Between grid points it is interpolated as the method of the paper does ([`on_grid`]).

use super::{GemmError, MeasuredProduct, by_variant};
use std::collections::BTreeMap;
use stepcast_analytic::oyama2016::{Estimate, on_grid};
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

    /// The time of a product; outside of the grid, the nearest cell is extrapolated. None where the variant was not
    /// measured.
    pub fn predict(&self, variant: Variant, shape: Shape) -> Option<Estimate> {
        let Grid { axes: [m, n, k], times } = self.grids.get(&variant)?;
        Some(on_grid([m, n, k], |place| Seconds::new(times[place]), shape.sizes()))
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
}
