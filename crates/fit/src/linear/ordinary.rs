//! Least squares without bounds.

use super::{Fit, Reduced};
use crate::FitError;
use stepcast_core::method::never_cancelled;

/// Minimises |A·x − b|, where `rows` are the rows of A.
pub fn least_squares(rows: &[Vec<f64>], target: &[f64]) -> Result<Fit, FitError> {
    let reduced = Reduced::new(rows, target, &never_cancelled)?;
    let solution = reduced.r.solve_upper_triangular(&reduced.b);
    // R is invertible: its rank was checked.
    let scaled = solution.ok_or(FitError::TooFew { rows: rows.len(), columns: reduced.lengths.len() })?;
    Ok(reduced.fit(rows, target, &scaled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nalgebra::{DMatrix, DVector};
    use proptest::prelude::*;

    /// t = 2 + 3x through (0, 2), (1, 5), (2, 8) exactly; through (0, 0), (1, 1), (2, 1) by hand: 1/6 + x/2.
    #[test]
    fn agrees_with_lines_computed_by_hand() {
        let rows: Vec<Vec<f64>> = [0.0, 1.0, 2.0].iter().map(|x| vec![1.0, *x]).collect();
        let exact = least_squares(&rows, &[2.0, 5.0, 8.0]).unwrap();
        assert!((exact.coefficients[0] - 2.0).abs() < 1e-12 && (exact.coefficients[1] - 3.0).abs() < 1e-12);
        assert!(exact.residuals.iter().all(|residual| residual.abs() < 1e-12));
        let near = least_squares(&rows, &[0.0, 1.0, 1.0]).unwrap();
        assert!(
            (near.coefficients[0] - 1.0 / 6.0).abs() < 1e-12 && (near.coefficients[1] - 0.5).abs() < 1e-12
        );
        assert_eq!(near.rank, 2);
    }

    #[test]
    fn names_the_columns_that_depend_on_each_other() {
        let rows: Vec<Vec<f64>> = (1..9u32).map(f64::from).map(|x| vec![1.0, x, x * x, 3.0 * x]).collect();
        let target = vec![1.0; rows.len()];
        let expected = FitError::Collinear { rank: 3, columns: 4, undetermined: vec![1, 3] };
        assert_eq!(least_squares(&rows, &target), Err(expected));
    }

    proptest! {
        /// Slow twin: (AᵀA)⁻¹Aᵀb.
        #[test]
        fn agrees_with_the_normal_equations(
            rows in prop::collection::vec(prop::collection::vec(-1.0..1.0f64, 3), 6..12),
            target in prop::collection::vec(-1.0..1.0f64, 12),
        ) {
            let target = &target[..rows.len()];
            if let Ok(fit) = least_squares(&rows, target) && fit.condition < 1e3 {
                let a = DMatrix::from_fn(rows.len(), 3, |row, column| rows[row][column]);
                let b = DVector::from_column_slice(target);
                let normal = (a.transpose() * &a).try_inverse().unwrap() * a.transpose() * b;
                for (one, other) in fit.coefficients.iter().zip(normal.iter()) {
                    prop_assert!((one - other).abs() < 1e-8 * (1.0 + other.abs()), "{one} {other}");
                }
            }
        }
    }
}
