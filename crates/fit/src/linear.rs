//! Linear least squares, with and without the bound that no coefficient is negative.
//!
//! Columns are scaled to unit length first, so that coefficients may differ by many orders of magnitude
//! (seconds per operation beside seconds per transfer). One QR decomposition then reduces the measurements to as
//! many rows as there are coefficients; the cost of the rest is negligible.

use crate::FitError;
use stepcast_core::fitted::LinearKernel;
use stepcast_core::method::{CancelCheck, never_cancelled};
use stepcast_core::quantity::Seconds;
use stepcast_stats::{Triangular, singular_values};

/// Singular values below this share of the largest are zero.
const RANK_TOLERANCE: f64 = 1e-10;
/// Rows that are reduced at once: some ten milliseconds of work.
const BLOCK: usize = 1 << 16;
/// A coefficient is undetermined when its share of a null vector is at least this.
const NULL_SHARE: f64 = 1e-6;

/// Gradients below this are noise, with columns and target of unit length.
const TOLERANCE: f64 = 1e-12;

#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    pub coefficients: Vec<f64>,
    /// Measured minus fitted, by row.
    pub residuals: Vec<f64>,
    /// Ratio of the largest to the smallest singular value of the scaled columns.
    pub condition: f64,
}

/// The measurements after reduction.
struct Reduced {
    triangular: Triangular,
    /// Lengths of the columns before scaling.
    lengths: Vec<f64>,
    condition: f64,
}

impl Reduced {
    fn new(rows: &[Vec<f64>], target: &[f64], wanted: &CancelCheck<'_>) -> Result<Self, FitError> {
        let columns = rows.first().map_or(0, Vec::len);
        if rows.len() < columns || columns == 0 {
            return Err(FitError::TooFew { rows: rows.len(), columns });
        }
        for (row, values) in rows.iter().enumerate() {
            let whole = values.len() == columns && values.iter().all(|value| value.is_finite());
            if !whole || !target.get(row).is_some_and(|value| value.is_finite()) {
                return Err(FitError::BadRow { row });
            }
        }
        let length = |column: usize| rows.iter().map(|row| row[column].powi(2)).sum::<f64>().sqrt();
        let lengths: Vec<f64> = (0..columns).map(length).collect();
        let mut triangular = Triangular::new(columns);
        for (rows, target) in rows.chunks(BLOCK).zip(target.chunks(BLOCK)) {
            if wanted().is_break() {
                return Err(FitError::Cancelled);
            }
            let scaled = |(column, length): (usize, &f64)| {
                let scale = if *length > 0.0 { length.recip() } else { 0.0 };
                rows.iter().map(|row| row[column] * scale).collect()
            };
            let scaled: Vec<Vec<f64>> = lengths.iter().enumerate().map(scaled).collect();
            triangular = triangular.with(scaled.iter().map(Vec::as_slice), &target[..rows.len()]);
        }
        let condition = condition(&triangular)?;
        Ok(Self { triangular, lengths, condition })
    }

    fn fit(&self, rows: &[Vec<f64>], target: &[f64], scaled: &[f64]) -> Fit {
        let coefficients: Vec<f64> =
            scaled.iter().zip(&self.lengths).map(|(value, length)| value / length).collect();
        let fitted = |row: &[f64]| product(row, &coefficients);
        let residuals = rows.iter().zip(target).map(|(row, value)| value - fitted(row)).collect();
        Fit { residuals, coefficients, condition: self.condition }
    }
}

/// The condition of a matrix of full rank; otherwise which columns depend on each other.
fn condition(matrix: &Triangular) -> Result<f64, FitError> {
    let columns = matrix.columns().len();
    let singular = singular_values(matrix.columns());
    let values = || singular.iter().map(|(value, _)| *value);
    let (largest, smallest) = (values().fold(0.0, f64::max), values().fold(f64::INFINITY, f64::min));
    let null: Vec<&Vec<f64>> = singular
        .iter()
        .filter_map(|(value, vector)| (*value <= largest * RANK_TOLERANCE).then_some(vector))
        .collect();
    if null.is_empty() {
        return Ok(largest / smallest);
    }
    let takes_part = |column: &usize| null.iter().any(|vector| vector[*column].abs() > NULL_SHARE);
    let undetermined = (0..columns).filter(takes_part).collect();
    Err(FitError::Collinear { rank: columns - null.len(), columns, undetermined })
}

/// Minimises |A·x − b|, where `rows` are the rows of A.
pub fn least_squares(rows: &[Vec<f64>], target: &[f64]) -> Result<Fit, FitError> {
    let reduced = Reduced::new(rows, target, &never_cancelled)?;
    // Its rank was checked.
    let few = FitError::TooFew { rows: rows.len(), columns: reduced.lengths.len() };
    let scaled = reduced.triangular.solve().ok_or(few)?;
    Ok(reduced.fit(rows, target, &scaled))
}

/// The kernel whose times, in seconds, are nearest to `target`: by relative errors, with its amounts times coefficients.
pub(crate) fn linear_kernel(
    rows: &[(Vec<f64>, f64)],
    target: &[f64],
    wanted: &CancelCheck<'_>,
) -> Result<LinearKernel, FitError> {
    let relative = |(amounts, time): &(Vec<f64>, f64)| amounts.iter().map(|amount| amount / time).collect();
    let fit = nnls_while(&rows.iter().map(relative).collect::<Vec<_>>(), target, wanted)?;
    let extreme = |pick: fn(f64, f64) -> f64| rows.iter().map(|(amounts, _)| amounts[0]).reduce(pick);
    Ok(LinearKernel {
        per_element: Seconds::new(fit.coefficients[0]),
        start: Seconds::new(fit.coefficients.get(1).copied().unwrap_or(0.0)),
        least: extreme(f64::min).unwrap_or(0.0),
        most: extreme(f64::max).unwrap_or(0.0),
    })
}

/// Minimises |A·x − b| over x ≥ 0, where `rows` are the rows of A: the active-set method of Lawson and Hanson (1974,
/// chapter 23).
pub fn nnls(rows: &[Vec<f64>], target: &[f64]) -> Result<Fit, FitError> {
    nnls_while(rows, target, &never_cancelled)
}

/// As [`nnls`], with cancellation.
pub fn nnls_while(rows: &[Vec<f64>], target: &[f64], wanted: &CancelCheck<'_>) -> Result<Fit, FitError> {
    let reduced = Reduced::new(rows, target, wanted)?;
    let scaled = active_set(reduced.triangular.columns(), reduced.triangular.target());
    Ok(reduced.fit(rows, target, &scaled))
}

fn active_set(a: &[Vec<f64>], b: &[f64]) -> Vec<f64> {
    let columns = a.len();
    let mut x = vec![0.0; columns];
    let mut free = vec![false; columns];
    let tolerance = TOLERANCE * product(b, b).sqrt().max(f64::MIN_POSITIVE);
    // Each pass frees one column; the bound is far above what finite termination needs.
    for _ in 0..3 * columns + 10 {
        let mut residual = b.to_vec();
        for (column, x) in a.iter().zip(&x) {
            residual.iter_mut().zip(column).for_each(|(left, value)| *left -= value * x);
        }
        let gradient: Vec<f64> = a.iter().map(|column| product(column, &residual)).collect();
        let steepest = (0..columns)
            .filter(|&column| !free[column] && gradient[column] > tolerance)
            .max_by(|&p, &q| gradient[p].total_cmp(&gradient[q]));
        let Some(entering) = steepest else { break };
        free[entering] = true;
        loop {
            let trial = over_free(a, b, &free);
            let blocked = (0..columns).filter(|&column| free[column] && trial[column] <= 0.0);
            let step = blocked.map(|column| x[column] / (x[column] - trial[column])).reduce(f64::min);
            let Some(step) = step else {
                x = trial;
                break;
            };
            x.iter_mut().zip(&trial).for_each(|(x, trial)| *x += (trial - *x) * step);
            for column in 0..columns {
                if free[column] && x[column] <= tolerance {
                    free[column] = false;
                    x[column] = 0.0;
                }
            }
        }
    }
    x
}

/// The unconstrained solution over the free columns, zero elsewhere.
fn over_free(a: &[Vec<f64>], b: &[f64], free: &[bool]) -> Vec<f64> {
    let chosen: Vec<usize> = (0..a.len()).filter(|&column| free[column]).collect();
    let part = Triangular::new(chosen.len()).with(chosen.iter().map(|&column| a[column].as_slice()), b);
    // Columns are independent (checked by the caller), so that there is a solution.
    let solution = part.solve().unwrap_or_default();
    let mut x = vec![0.0; a.len()];
    for (&column, value) in chosen.iter().zip(solution) {
        x[column] = value;
    }
    x
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
