//! Residuals of the kernel model, as a smooth function of the logarithms of the sizes.
//!
//! The nodes are half a doubling apart over the measured range, and a query interpolates between the eight nodes
//! around it. Outside the range, the value at the nearest face is used.

use super::Shape;
use serde::{Deserialize, Serialize};

const NODES_PER_DOUBLING: f64 = 2.0;
/// Largest number of nodes along one size; a 32-bit size cannot span more doublings.
const MOST_NODES: usize = 65;

/// Logarithms of measured over predicted times at the nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Corrections {
    /// Smallest measured m, n and k.
    least: [u32; 3],
    /// Largest measured m, n and k.
    most: [u32; 3],
    /// ln(measured/predicted) at every node; k varies fastest, then n.
    log_ratios: Vec<f64>,
}

/// Position of a query along one size.
struct AxisPosition {
    low: usize,
    share_of_next: f64,
}

/// The nodes around a product and their weights.
pub type Corners = [(usize, f64); 8];

impl Corrections {
    /// Zero corrections for products between two corners of sizes.
    pub fn none(least: [u32; 3], most: [u32; 3]) -> Self {
        let mut corrections = Self { least, most, log_ratios: Vec::new() };
        corrections.log_ratios = vec![0.0; corrections.counts().iter().product()];
        corrections
    }

    /// These nodes with other values, one per node.
    #[must_use]
    pub fn with(self, log_ratios: Vec<f64>) -> Self {
        Self { log_ratios, ..self }
    }

    /// Number of nodes along m, n and k.
    pub fn counts(&self) -> [usize; 3] {
        std::array::from_fn(|axis| self.nodes(axis))
    }

    /// Expected ln(measured/predicted) of `shape`.
    pub fn log_ratio(&self, shape: Shape) -> f64 {
        interpolate(&self.corners(shape), &self.log_ratios)
    }

    pub fn covers(&self, shape: Shape) -> bool {
        let sizes = sizes(shape);
        (0..3).all(|axis| (self.least[axis]..=self.most[axis]).contains(&sizes[axis]))
    }

    /// Whether there is a log ratio for every node.
    pub fn is_whole(&self) -> bool {
        (0..3).all(|axis| 1 <= self.least[axis] && self.least[axis] <= self.most[axis])
            && self.log_ratios.len() == self.counts().iter().product::<usize>()
            && self.log_ratios.iter().all(|value| value.is_finite())
    }

    fn nodes(&self, axis: usize) -> usize {
        let doublings = (f64::from(self.most[axis]) / f64::from(self.least[axis])).log2();
        ((doublings * NODES_PER_DOUBLING).ceil() as usize + 1).min(MOST_NODES)
    }

    /// The nodes around `shape`.
    pub fn corners(&self, shape: Shape) -> Corners {
        let [m, n, k] = [self.position(0, shape.m), self.position(1, shape.n), self.position(2, shape.k)];
        let (across, deep) = (self.nodes(1), self.nodes(2));
        std::array::from_fn(|corner| {
            let [(i, by_m), (j, by_n), (l, by_k)] =
                [m.side(corner >> 2 & 1), n.side(corner >> 1 & 1), k.side(corner & 1)];
            ((i * across + j) * deep + l, by_m * by_n * by_k)
        })
    }

    fn position(&self, axis: usize, size: u32) -> AxisPosition {
        let last = self.nodes(axis) - 1;
        let doublings = (f64::from(size.max(1)) / f64::from(self.least[axis])).log2();
        let position = (doublings * NODES_PER_DOUBLING).clamp(0.0, last as f64);
        let low = (position as usize).min(last.saturating_sub(1));
        AxisPosition { low, share_of_next: (position - low as f64).min(last as f64) }
    }
}

fn sizes(shape: Shape) -> [u32; 3] {
    [shape.m, shape.n, shape.k]
}

pub fn interpolate(corners: &Corners, nodes: &[f64]) -> f64 {
    corners.iter().map(|(node, share)| share * nodes.get(*node).copied().unwrap_or(0.0)).sum()
}

impl AxisPosition {
    /// Index and weight of one of the two nodes around the position; with a single node, both are that node.
    fn side(&self, second: usize) -> (usize, f64) {
        match second {
            0 => (self.low, 1.0 - self.share_of_next),
            _ if self.share_of_next > 0.0 => (self.low + 1, self.share_of_next),
            _ => (self.low, 0.0),
        }
    }
}
