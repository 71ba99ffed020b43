//! What kernels leave unexplained, smooth over the logarithms of the sizes.
//!
//! Nodes stand half a doubling apart over the measured range. A node holds the mean log ratio of measured to
//! predicted times around it, weighted by distance; a query interpolates between the eight nodes around it, and
//! outside the range the nearest face counts.

use super::Shape;
use serde::{Deserialize, Serialize};

const NODES_PER_DOUBLING: f64 = 2.0;
/// Standard deviation of the weights around a node, in doublings.
const REACH: f64 = 0.5;
/// Weights further away than this many standard deviations are nothing.
const CUT: f64 = 3.0;
/// Weight of no correction at all.
const PRIOR_WEIGHT: f64 = 0.05;
/// Most nodes along one size; a size of 32 bits has no more doublings.
const MOST_NODES: usize = 65;

/// Log ratios at nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Corrections {
    /// Smallest measured m, n and k.
    least: [u32; 3],
    /// Largest measured m, n and k.
    most: [u32; 3],
    /// ln(measured/predicted), k fastest, then n.
    log_ratios: Vec<f64>,
}

/// Where a query lies along one size.
struct Place {
    low: usize,
    share_of_next: f64,
}

impl Corrections {
    /// The smooth version of scattered log ratios.
    pub(super) fn smooth(points: &[(Shape, f64)]) -> Self {
        let sizes = |shape: Shape| [shape.m, shape.n, shape.k];
        let extreme = |pick: fn(u32, u32) -> u32, axis: usize| {
            points.iter().map(|(shape, _)| sizes(*shape)[axis]).reduce(pick).unwrap_or(1)
        };
        let mut corrections = Self {
            least: std::array::from_fn(|axis| extreme(u32::min, axis)),
            most: std::array::from_fn(|axis| extreme(u32::max, axis)),
            log_ratios: Vec::new(),
        };
        let counts: [usize; 3] = std::array::from_fn(|axis| corrections.nodes(axis));
        let all = counts.iter().product();
        let (mut sums, mut weights) = (vec![0.0; all], vec![PRIOR_WEIGHT; all]);
        for (shape, log_ratio) in points {
            let near: [Vec<(usize, f64)>; 3] =
                std::array::from_fn(|axis| corrections.near(axis, sizes(*shape)[axis]));
            for (i, by_m) in &near[0] {
                for (j, by_n) in &near[1] {
                    for (l, by_k) in &near[2] {
                        let node = (i * counts[1] + j) * counts[2] + l;
                        let weight = by_m * by_n * by_k;
                        sums[node] += weight * log_ratio;
                        weights[node] += weight;
                    }
                }
            }
        }
        corrections.log_ratios =
            sums.iter().zip(&weights).map(|(sum, weight)| rounded(sum / weight)).collect();
        corrections
    }

    /// ln(measured/predicted) to be expected of `shape`.
    pub(super) fn log_ratio(&self, shape: Shape) -> f64 {
        let [m, n, k] = [self.place(0, shape.m), self.place(1, shape.n), self.place(2, shape.k)];
        let (across, deep) = (self.nodes(1), self.nodes(2));
        let mut sum = 0.0;
        for (i, by_m) in m.corners() {
            for (j, by_n) in n.corners() {
                for (l, by_k) in k.corners() {
                    let node = (i * across + j) * deep + l;
                    sum += by_m * by_n * by_k * self.log_ratios.get(node).copied().unwrap_or(0.0);
                }
            }
        }
        sum
    }

    /// Whether `shape` lies within the measured range.
    pub(super) fn covers(&self, shape: Shape) -> bool {
        let sizes = [shape.m, shape.n, shape.k];
        (0..3).all(|axis| (self.least[axis]..=self.most[axis]).contains(&sizes[axis]))
    }

    /// Whether there is a log ratio for every node.
    pub(super) fn is_whole(&self) -> bool {
        (0..3).all(|axis| 1 <= self.least[axis] && self.least[axis] <= self.most[axis])
            && self.log_ratios.len() == (0..3).map(|axis| self.nodes(axis)).product()
            && self.log_ratios.iter().all(|value| value.is_finite())
    }

    fn nodes(&self, axis: usize) -> usize {
        let doublings = (f64::from(self.most[axis]) / f64::from(self.least[axis])).log2();
        ((doublings * NODES_PER_DOUBLING).ceil() as usize + 1).min(MOST_NODES)
    }

    /// Position among the nodes.
    fn position(&self, axis: usize, size: u32) -> f64 {
        (f64::from(size) / f64::from(self.least[axis])).log2() * NODES_PER_DOUBLING
    }

    fn place(&self, axis: usize, size: u32) -> Place {
        let last = self.nodes(axis) - 1;
        let position = self.position(axis, size.max(1)).clamp(0.0, last as f64);
        let low = (position as usize).min(last.saturating_sub(1));
        Place { low, share_of_next: (position - low as f64).min(last as f64) }
    }

    /// The nodes around a size, and their weights.
    fn near(&self, axis: usize, size: u32) -> Vec<(usize, f64)> {
        let position = self.position(axis, size);
        let weight = |node: usize| {
            let distance = (node as f64 - position) / (NODES_PER_DOUBLING * REACH);
            (distance.abs() <= CUT).then(|| (node, (-0.5 * distance * distance).exp()))
        };
        (0..self.nodes(axis)).filter_map(weight).collect()
    }
}

/// To a hundredth of a percent, so that files stay short.
fn rounded(log_ratio: f64) -> f64 {
    (log_ratio * 1e4).round() / 1e4
}

impl Place {
    /// The two nodes around the place; the second has no weight where there is only one.
    fn corners(&self) -> [(usize, f64); 2] {
        [(self.low, 1.0 - self.share_of_next), (self.low + 1, self.share_of_next)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(value: impl Fn(Shape) -> f64) -> Vec<(Shape, f64)> {
        let sizes = || [16, 64, 256, 1024];
        let all = sizes().into_iter().flat_map(|m| sizes().into_iter().map(move |n| (m, n)));
        let shapes = all.flat_map(|(m, n)| sizes().into_iter().map(move |k| Shape { m, n, k }));
        shapes.map(|shape| (shape, value(shape))).collect()
    }

    #[test]
    fn what_is_the_same_everywhere_stays() {
        let corrections = Corrections::smooth(&grid(|_| 0.3));
        assert!(corrections.is_whole());
        for shape in [Shape { m: 16, n: 16, k: 16 }, Shape { m: 1024, n: 64, k: 1024 }] {
            assert!((corrections.log_ratio(shape) - 0.3).abs() < 0.02, "{}", corrections.log_ratio(shape));
            assert!(corrections.covers(shape));
        }
    }

    #[test]
    fn outside_the_nearest_face_counts() {
        let corrections = Corrections::smooth(&grid(|shape| f64::from(shape.m).log2() / 10.0));
        let (edge, beyond) = (Shape { m: 1024, n: 64, k: 64 }, Shape { m: 1 << 20, n: 64, k: 64 });
        assert!(!corrections.covers(beyond));
        assert!((corrections.log_ratio(edge) - corrections.log_ratio(beyond)).abs() < 1e-12);
    }

    #[test]
    fn a_single_size_is_enough() {
        let corrections = Corrections::smooth(&[(Shape { m: 8, n: 8, k: 8 }, 0.1)]);
        assert!(corrections.is_whole());
        assert!((corrections.log_ratio(Shape { m: 8, n: 8, k: 8 }) - 0.1 / 1.05).abs() < 1e-4);
    }
}
