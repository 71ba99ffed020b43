//! Smooth corrections of scattered errors.
//!
//! The log ratios f of measured to predicted times at the nodes of [`Corrections`] minimise
//!
//! ```text
//! Σ w (ln(measured/predicted) − f)² + SLOPE Σ |Δf|² + BEND Σ |Δ²f|² + LEVEL Σ f²
//! ```
//!
//! with differences Δ between neighbouring nodes along each size, so that single noisy products are not followed.
//! Outliers hardly count: w = 1/(1 + (error/TYPICAL)²), found by iteration. The three strengths were chosen on `fit`
//! rows of the H200 recording (`validation/gemm/h200.csv.gz`), each time without a fifth of the pairs (m, n).

use crate::FitError;
use stepcast_core::fitted::gemm::{Corners, Corrections, Shape, interpolate};
use stepcast_core::method::CancelCheck;

const SLOPE: f64 = 0.1;
const BEND: f64 = 0.1;
const LEVEL: f64 = 0.03;
const TYPICAL: f64 = 0.1;
const ROUNDS: usize = 6;
/// Steps of conjugate gradients in a round, and the relative residual that is small enough.
const STEPS: usize = 200;
const SMALL: f64 = 1e-4;

/// The equations of a round: weighted equations of the products, and equations of smoothness.
struct Equations<'a> {
    counts: [usize; 3],
    corners: &'a [Corners],
    weights: Vec<f64>,
}

/// The smooth version of scattered log ratios.
pub fn smooth(points: &[(Shape, f64)], wanted: &CancelCheck<'_>) -> Result<Corrections, FitError> {
    let extreme = |pick: fn(u32, u32) -> u32, axis: usize| {
        let size = |(Shape { m, n, k }, _): &(Shape, f64)| [*m, *n, *k][axis];
        points.iter().map(size).reduce(pick).unwrap_or(1)
    };
    let corrections = Corrections::none(
        std::array::from_fn(|axis| extreme(u32::min, axis)),
        std::array::from_fn(|axis| extreme(u32::max, axis)),
    );
    let counts = corrections.counts();
    let corners: Vec<Corners> = points.iter().map(|(shape, _)| corrections.corners(*shape)).collect();
    let mut solution = vec![0.0; counts.iter().product()];
    for _ in 0..ROUNDS {
        let weight = |(corners, (_, log_ratio)): (&Corners, &(Shape, f64))| {
            (1.0 + ((log_ratio - interpolate(corners, &solution)) / TYPICAL).powi(2)).recip()
        };
        let weights: Vec<f64> = corners.iter().zip(points).map(weight).collect();
        let mut target = vec![0.0; solution.len()];
        for ((corners, weight), (_, log_ratio)) in corners.iter().zip(&weights).zip(points) {
            corners.iter().for_each(|(node, share)| target[*node] += share * weight * log_ratio);
        }
        Equations { counts, corners: &corners, weights }.solve(&target, &mut solution, wanted)?;
    }
    Ok(corrections.with(solution.into_iter().map(rounded).collect()))
}

impl Equations<'_> {
    /// Conjugate gradients with the diagonal as preconditioner, from what `solution` holds.
    fn solve(&self, target: &[f64], solution: &mut [f64], wanted: &CancelCheck<'_>) -> Result<(), FitError> {
        let diagonal = self.diagonal();
        let mut residual = self.times(solution);
        residual.iter_mut().zip(target).for_each(|(residual, target)| *residual = target - *residual);
        let precondition =
            |residual: &[f64]| -> Vec<f64> { residual.iter().zip(&diagonal).map(|(r, d)| r / d).collect() };
        let mut step = precondition(&residual);
        let mut size = dot(&residual, &step);
        let enough = SMALL * SMALL * dot(target, target);
        for _ in 0..STEPS {
            if dot(&residual, &residual) <= enough {
                break;
            }
            if wanted().is_break() {
                return Err(FitError::Cancelled);
            }
            let image = self.times(&step);
            let length = size / dot(&step, &image);
            solution.iter_mut().zip(&step).for_each(|(value, step)| *value += length * step);
            residual.iter_mut().zip(&image).for_each(|(value, image)| *value -= length * image);
            let conditioned = precondition(&residual);
            let next = dot(&residual, &conditioned);
            let turn = next / size;
            size = next;
            step.iter_mut().zip(&conditioned).for_each(|(step, new)| *step = new + turn * *step);
        }
        Ok(())
    }

    fn times(&self, vector: &[f64]) -> Vec<f64> {
        let mut result: Vec<f64> = vector.iter().map(|value| LEVEL * value).collect();
        for (corners, weight) in self.corners.iter().zip(&self.weights) {
            let weighted = weight * interpolate(corners, vector);
            corners.iter().for_each(|(node, share)| result[*node] += share * weighted);
        }
        for (stride, count) in self.axes() {
            for node in 0..vector.len() {
                let along = node / stride % count;
                if along + 1 < count {
                    let slope = SLOPE * (vector[node + stride] - vector[node]);
                    result[node + stride] += slope;
                    result[node] -= slope;
                }
                if along + 2 < count {
                    let bend =
                        BEND * (vector[node] - 2.0 * vector[node + stride] + vector[node + 2 * stride]);
                    result[node] += bend;
                    result[node + stride] -= 2.0 * bend;
                    result[node + 2 * stride] += bend;
                }
            }
        }
        result
    }

    /// The approximate diagonal of the matrix, with the smoothness terms of nodes away from the edges.
    fn diagonal(&self) -> Vec<f64> {
        let smooth = LEVEL + 3.0 * (2.0 * SLOPE + 6.0 * BEND);
        let mut diagonal = vec![smooth; self.counts.iter().product()];
        for (corners, weight) in self.corners.iter().zip(&self.weights) {
            corners.iter().for_each(|(node, share)| diagonal[*node] += share * share * weight);
        }
        diagonal
    }

    /// For each size, the distance of neighbours among the nodes and their number.
    fn axes(&self) -> [(usize, usize); 3] {
        let [m, n, k] = self.counts;
        [(n * k, m), (k, n), (1, k)]
    }
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

/// To a hundredth of a percent, so that files stay short.
fn rounded(log_ratio: f64) -> f64 {
    (log_ratio * 1e4).round() / 1e4
}
