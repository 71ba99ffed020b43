//! Linear least squares, with and without the bound that no coefficient is negative.
//!
//! Columns are scaled to unit length first, so that coefficients may differ by many orders of magnitude
//! (seconds per operation beside seconds per transfer). One QR decomposition then reduces the measurements to as
//! many rows as there are coefficients; the cost of the rest is negligible.

use crate::FitError;
use nalgebra::{DMatrix, DVector};
use stepcast_core::method::{CancelCheck, never_cancelled};

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
    /// Number of independent columns; a fit is only made where that is all of them.
    pub rank: usize,
    /// Ratio of the largest to the smallest singular value of the scaled columns.
    pub condition: f64,
}

/// min |R·x − b| with R upper triangular: what is left of the measurements.
struct Reduced {
    r: DMatrix<f64>,
    b: DVector<f64>,
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
        let mut a = DMatrix::from_fn(rows.len(), columns, |row, column| rows[row][column]);
        let lengths: Vec<f64> = a.column_iter().map(|column| column.norm()).collect();
        for (column, length) in lengths.iter().enumerate() {
            if *length > 0.0 {
                a.column_mut(column).unscale_mut(*length);
            }
        }
        let (r, b) = triangular(&a, &target[..rows.len()], BLOCK, wanted)?;
        let condition = condition(&r)?;
        Ok(Self { r, b, lengths, condition })
    }

    fn fit(&self, rows: &[Vec<f64>], target: &[f64], scaled: &DVector<f64>) -> Fit {
        let coefficients: Vec<f64> =
            scaled.iter().zip(&self.lengths).map(|(value, length)| value / length).collect();
        let fitted = |row: &[f64]| row.iter().zip(&coefficients).map(|(a, x)| a * x).sum::<f64>();
        let residuals = rows.iter().zip(target).map(|(row, value)| value - fitted(row)).collect();
        Fit { residuals, coefficients, rank: self.lengths.len(), condition: self.condition }
    }
}

/// R and Qᵀb of a = QR, `block` rows after another: the R of some rows stands for them beside the next ones.
fn triangular(
    a: &DMatrix<f64>,
    b: &[f64],
    block: usize,
    wanted: &CancelCheck<'_>,
) -> Result<(DMatrix<f64>, DVector<f64>), FitError> {
    let columns = a.ncols();
    let (mut r, mut left) = (DMatrix::zeros(0, columns), DVector::zeros(0));
    for (place, some) in b.chunks(block).enumerate() {
        if wanted().is_break() {
            return Err(FitError::Cancelled);
        }
        let kept = r.nrows();
        let mut rows = r.resize_vertically(kept + some.len(), 0.0);
        rows.rows_mut(kept, some.len()).copy_from(&a.rows(place * block, some.len()));
        left = left.resize_vertically(kept + some.len(), 0.0);
        left.rows_mut(kept, some.len()).copy_from_slice(some);
        let decomposition = rows.qr();
        decomposition.q_tr_mul(&mut left);
        r = decomposition.unpack_r();
        left = left.rows(0, r.nrows()).into_owned();
    }
    Ok((r, left))
}

/// The condition of a matrix of full rank; otherwise which columns depend on each other.
fn condition(r: &DMatrix<f64>) -> Result<f64, FitError> {
    let columns = r.ncols();
    let decomposition = r.clone().svd(false, true);
    let singular = &decomposition.singular_values;
    let (largest, smallest) = (singular.max(), singular.min());
    let is_null = |index: &usize| singular[*index] <= largest * RANK_TOLERANCE;
    let null: Vec<usize> = (0..columns).filter(is_null).collect();
    if null.is_empty() {
        return Ok(largest / smallest);
    }
    let takes_part = |column: &usize| {
        let vectors = decomposition.v_t.as_ref();
        vectors.is_none_or(|v| null.iter().any(|&row| v[(row, *column)].abs() > NULL_SHARE))
    };
    let undetermined = (0..columns).filter(takes_part).collect();
    Err(FitError::Collinear { rank: columns - null.len(), columns, undetermined })
}

/// Minimises |A·x − b|, where `rows` are the rows of A.
pub fn least_squares(rows: &[Vec<f64>], target: &[f64]) -> Result<Fit, FitError> {
    let reduced = Reduced::new(rows, target, &never_cancelled)?;
    let solution = reduced.r.solve_upper_triangular(&reduced.b);
    // R is invertible: its rank was checked.
    let scaled = solution.ok_or(FitError::TooFew { rows: rows.len(), columns: reduced.lengths.len() })?;
    Ok(reduced.fit(rows, target, &scaled))
}

/// Minimises |A·x − b| over x ≥ 0, where `rows` are the rows of A: the active-set method of Lawson and Hanson (1974,
/// chapter 23).
pub fn nnls(rows: &[Vec<f64>], target: &[f64]) -> Result<Fit, FitError> {
    nnls_while(rows, target, &never_cancelled)
}

/// As [`nnls`], as long as it is wanted.
pub fn nnls_while(rows: &[Vec<f64>], target: &[f64], wanted: &CancelCheck<'_>) -> Result<Fit, FitError> {
    let reduced = Reduced::new(rows, target, wanted)?;
    let scaled = active_set(&reduced.r, &reduced.b);
    Ok(reduced.fit(rows, target, &scaled))
}

fn active_set(a: &DMatrix<f64>, b: &DVector<f64>) -> DVector<f64> {
    let columns = a.ncols();
    let mut x = DVector::zeros(columns);
    let mut free = vec![false; columns];
    let scale = b.norm().max(f64::MIN_POSITIVE);
    // Each pass frees one column; the bound is far above what finite termination needs.
    for _ in 0..3 * columns + 10 {
        let gradient = a.transpose() * (b - a * &x);
        let steepest = (0..columns)
            .filter(|&column| !free[column] && gradient[column] > TOLERANCE * scale)
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
            x += (trial - &x) * step;
            for column in 0..columns {
                if free[column] && x[column] <= TOLERANCE * scale {
                    free[column] = false;
                    x[column] = 0.0;
                }
            }
        }
    }
    x
}

/// The unconstrained solution over the free columns, zero elsewhere.
fn over_free(a: &DMatrix<f64>, b: &DVector<f64>, free: &[bool]) -> DVector<f64> {
    let chosen: Vec<usize> = (0..a.ncols()).filter(|&column| free[column]).collect();
    let part = a.select_columns(&chosen);
    let decomposition = part.qr();
    let solution = decomposition.r().solve_upper_triangular(&(decomposition.q().transpose() * b));
    let mut x = DVector::zeros(a.ncols());
    for (position, &column) in chosen.iter().enumerate() {
        // Columns are independent (checked by the caller), so R is invertible.
        x[column] = solution.as_ref().map_or(0.0, |solution| solution[position]);
    }
    x
}
