//! Non-negative least squares by the active-set method of Lawson and Hanson (1974, chapter 23).

use super::{Fit, Reduced};
use crate::FitError;
use nalgebra::{DMatrix, DVector};
use stepcast_core::method::{CancelCheck, never_cancelled};

/// Gradients below this are noise, with columns and target of unit length.
const TOLERANCE: f64 = 1e-12;

/// Minimises |A·x − b| over x ≥ 0, where `rows` are the rows of A.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Slow twin: try every set of free columns, keep the best feasible one.
    fn by_enumeration(rows: &[Vec<f64>], target: &[f64]) -> f64 {
        let columns = rows[0].len();
        let a = DMatrix::from_fn(rows.len(), columns, |row, column| rows[row][column]);
        let b = DVector::from_column_slice(target);
        let mut best = b.norm();
        for mask in 1..(1u32 << columns) {
            let free: Vec<bool> = (0..columns).map(|column| mask >> column & 1 == 1).collect();
            let x = over_free(&a, &b, &free);
            if x.iter().all(|value| *value >= 0.0) {
                best = best.min((&b - &a * x).norm());
            }
        }
        best
    }

    #[test]
    fn recovers_coefficients_of_very_different_size() {
        let rows: Vec<Vec<f64>> = (1..20u32).map(|i| vec![f64::from(i) * 1e12, f64::from(i * i)]).collect();
        let target: Vec<f64> = rows.iter().map(|row| 3e-13 * row[0] + 0.5 * row[1]).collect();
        let fit = nnls(&rows, &target).unwrap();
        assert!((fit.coefficients[0] / 3e-13 - 1.0).abs() < 1e-9, "{fit:?}");
        assert!((fit.coefficients[1] / 0.5 - 1.0).abs() < 1e-9, "{fit:?}");
        assert!(fit.condition > 1.0);
    }

    #[test]
    fn names_undetermined_coefficients() {
        assert_eq!(nnls(&[vec![1.0, 2.0]], &[1.0]), Err(FitError::TooFew { rows: 1, columns: 2 }));
        let same = [vec![1.0, 2.0], vec![2.0, 4.0], vec![3.0, 6.0]];
        assert_eq!(
            nnls(&same, &[1.0, 2.0, 3.0]),
            Err(FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0, 1] })
        );
        assert_eq!(nnls(&[vec![f64::NAN]], &[1.0]), Err(FitError::BadRow { row: 0 }));
        assert_eq!(nnls(&[], &[]), Err(FitError::TooFew { rows: 0, columns: 0 }));
    }

    /// The gradient Aᵀ(b − Ax) is zero where x is positive and not positive where x is zero (Karush, Kuhn, Tucker).
    fn meets_the_optimality_conditions(rows: &[Vec<f64>], fit: &Fit) -> bool {
        (0..rows[0].len()).all(|column| {
            let gradient: f64 = rows.iter().zip(&fit.residuals).map(|(row, r)| row[column] * r).sum();
            if fit.coefficients[column] > 0.0 { gradient.abs() < 1e-9 } else { gradient < 1e-9 }
        })
    }

    proptest! {
        #[test]
        fn is_as_good_as_enumeration(
            rows in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 4), 6..12),
            target in prop::collection::vec(-1.0..1.0f64, 12),
        ) {
            let target = &target[..rows.len()];
            if let Ok(fit) = nnls(&rows, target) {
                prop_assert!(fit.coefficients.iter().all(|value| *value >= 0.0));
                let norm = fit.residuals.iter().map(|r| r * r).sum::<f64>().sqrt();
                prop_assert!(meets_the_optimality_conditions(&rows, &fit));
                prop_assert!(norm <= by_enumeration(&rows, target) + 1e-9);
            }
        }
    }
}
