//! Solvers against slow twins, closed forms and cases by hand; quantiles of errors, and dates.

use super::ends_when_unwanted;
use proptest::prelude::*;
use stepcast_fit::{FitError, Problem, Quality, civil, golden_section, least_squares, nnls, nnls_while};

/// Aᵀ(b − Ax), which is zero at the solution of the normal equations; for x ≥ 0, not positive where x is zero (Karush, Kuhn,
/// Tucker).
fn gradient(rows: &[Vec<f64>], target: &[f64], x: &[f64]) -> Vec<f64> {
    let mut gradient = vec![0.0; x.len()];
    for (row, b) in rows.iter().zip(target) {
        let residual = b - row.iter().zip(x).map(|(a, x)| a * x).sum::<f64>();
        gradient.iter_mut().zip(row).for_each(|(gradient, a)| *gradient += a * residual);
    }
    gradient
}

fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// Rows are reduced a block at a time: whatever is left over, the solution is that of all.
#[test]
fn blocks_of_rows_do_not_matter() {
    let value = |row: usize, column: usize| (((column + 1) * row) as f64 + 0.5).sin();
    let block = 1 << 16;
    for count in [block, block + 1, block + 3, 5 * block / 2] {
        let rows: Vec<Vec<f64>> =
            (0..count).map(|row| (0..4).map(|column| value(row, column)).collect()).collect();
        let target: Vec<f64> = (0..count).map(|row| value(row, 9)).collect();
        let x = least_squares(&rows, &target).unwrap().coefficients;
        assert!(norm(&gradient(&rows, &target, &x)) < 1e-12 * count as f64, "{count} {x:?}");
        ends_when_unwanted(|wanted| nnls_while(&rows, &target, wanted), &FitError::Cancelled);
    }
}

/// Slow twin: try every set of free columns, keep the best feasible one.
fn by_enumeration(rows: &[Vec<f64>], target: &[f64]) -> f64 {
    let columns = rows[0].len();
    let mut best = norm(target);
    for mask in 1..(1_u32 << columns) {
        let chosen = |row: &Vec<f64>| -> Vec<f64> {
            (0..columns).filter(|column| mask >> column & 1 == 1).map(|column| row[column]).collect()
        };
        let part: Vec<Vec<f64>> = rows.iter().map(chosen).collect();
        if let Ok(fit) = least_squares(&part, target)
            && fit.coefficients.iter().all(|value| *value >= 0.0)
        {
            best = best.min(norm(&fit.residuals));
        }
    }
    best
}

fn problems(columns: usize) -> impl Strategy<Value = (Vec<Vec<f64>>, Vec<f64>)> {
    let row = prop::collection::vec(-1.0..1.0_f64, columns);
    prop::collection::vec((row, -1.0..1.0_f64), 6..12).prop_map(|rows| rows.into_iter().unzip())
}

proptest! {
    #[test]
    fn is_as_good_as_enumeration((rows, target) in problems(4)) {
        if let Ok(fit) = nnls(&rows, &target) {
            for (value, gradient) in fit.coefficients.iter().zip(gradient(&rows, &target, &fit.coefficients)) {
                let optimal = if *value > 0.0 { gradient.abs() < 1e-9 } else { gradient < 1e-9 };
                prop_assert!(*value >= 0.0 && optimal);
            }
            prop_assert!(norm(&fit.residuals) <= by_enumeration(&rows, &target) + 1e-9);
        }
    }

    #[test]
    fn the_normal_equations_hold((rows, target) in problems(3)) {
        if let Ok(fit) = least_squares(&rows, &target) {
            let left = gradient(&rows, &target, &fit.coefficients);
            prop_assert!(norm(&left) < 1e-9 * (1.0 + norm(&fit.coefficients)), "{:?}", left);
        }
    }
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

/// t = 2 + 3x through (0, 2), (1, 5), (2, 8) exactly; through (0, 0), (1, 1), (2, 1) by hand: 1/6 + x/2.
#[test]
fn agrees_with_lines_computed_by_hand() {
    let rows: Vec<Vec<f64>> = [0.0, 1.0, 2.0].iter().map(|x| vec![1.0, *x]).collect();
    let exact = least_squares(&rows, &[2.0, 5.0, 8.0]).unwrap();
    assert!((exact.coefficients[0] - 2.0).abs() < 1e-12 && (exact.coefficients[1] - 3.0).abs() < 1e-12);
    assert!(exact.residuals.iter().all(|residual| residual.abs() < 1e-12));
    let near = least_squares(&rows, &[0.0, 1.0, 1.0]).unwrap();
    assert!((near.coefficients[0] - 1.0 / 6.0).abs() < 1e-12 && (near.coefficients[1] - 0.5).abs() < 1e-12);
}

#[test]
fn names_the_columns_that_depend_on_each_other() {
    let rows: Vec<Vec<f64>> = (1..9u32).map(f64::from).map(|x| vec![1.0, x, x * x, 3.0 * x]).collect();
    let target = vec![1.0; rows.len()];
    let expected = FitError::Collinear { rank: 3, columns: 4, undetermined: vec![1, 3] };
    assert_eq!(least_squares(&rows, &target), Err(expected));
}

fn solved(residuals: &dyn Fn(&[f64]) -> Vec<f64>, weights: &[f64], start: &[f64], scale: f64) -> Vec<f64> {
    let hold = vec![1e-6; start.len()];
    Problem { residuals, weights, start, hold: &hold, scale }.solve().unwrap()
}

/// The line through points by linear least squares.
fn line(points: &[(f64, f64)]) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = points.iter().map(|(at, _)| vec![1.0, *at]).collect();
    let target: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    least_squares(&rows, &target).unwrap().coefficients
}

const POINTS: [(f64, f64); 5] = [(0.0, 0.1), (1.0, 0.9), (2.0, 2.2), (3.0, 2.9), (4.0, 4.3)];

fn off_the_line(x: &[f64]) -> Vec<f64> {
    POINTS.iter().map(|(at, value)| x[0] + x[1] * at - value).collect()
}

#[test]
fn lines_are_those_of_linear_least_squares() {
    let found = solved(&off_the_line, &[1.0; 5], &[0.0, 0.0], 1e3);
    for (found, exact) in found.iter().zip(line(&POINTS)) {
        assert!((found - exact).abs() < 1e-4, "{found} {exact}");
    }
}

#[test]
fn what_is_left_out_is_predicted_by_a_fit_of_the_rest() {
    let problem = Problem {
        residuals: &off_the_line,
        weights: &[1.0; 5],
        start: &[0.0, 1.0],
        hold: &[1e-6; 2],
        scale: 1e3,
    };
    let folds = [vec![0, 4], vec![2]];
    let found = problem.left_out(&problem.solve().unwrap(), &folds).unwrap();
    for (out, found) in folds.iter().zip(found) {
        let kept: Vec<_> = (0..5).filter(|index| !out.contains(index)).map(|index| POINTS[index]).collect();
        let without = off_the_line(&line(&kept));
        for (index, residual) in out.iter().zip(found) {
            assert!((residual - without[*index]).abs() < 1e-5, "{residual} {}", without[*index]);
        }
    }
}

#[test]
fn the_bottom_of_a_bent_valley_is_found() {
    let residuals = |x: &[f64]| vec![10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]];
    let found = solved(&residuals, &[1.0; 2], &[-1.2, 1.0], 1e3);
    assert!((found[0] - 1.0).abs() < 1e-2 && (found[1] - 1.0).abs() < 2e-2, "{found:?}");
}

#[test]
fn one_outlier_moves_a_mean_little_and_what_is_held_stays() {
    let values = [1.0, 1.01, 0.99, 1.0, 3.0];
    let residuals = |x: &[f64]| values.iter().map(|value| x[0] - value).collect::<Vec<_>>();
    let found = solved(&residuals, &[1.0; 5], &[0.5], 0.02)[0];
    assert!((found - 1.0).abs() < 0.02, "{found}");
    let held =
        Problem { residuals: &residuals, weights: &[1.0; 5], start: &[0.5], hold: &[100.0], scale: 0.02 };
    assert!((held.solve().unwrap()[0] - 0.5).abs() < 0.01);
}

#[test]
fn finds_the_bottom_of_a_parabola() {
    for bottom in [-3.0, 0.1, 2.0, 4.9] {
        let found = golden_section(|x| (x - bottom).powi(2), -5.0, 5.0, 60);
        assert!((found - bottom).abs() < 1e-6, "{found}");
    }
}

#[test]
fn ends_at_an_end_where_the_function_only_falls() {
    assert!((golden_section(|x| -x, 0.0, 1.0, 60) - 1.0).abs() < 1e-6);
}

#[test]
fn quantiles_lie_between_ranks() {
    let quality = Quality::from_pairs((0..=4).map(|i| (1.0 + f64::from(i) / 10.0, 1.0))).unwrap();
    assert_eq!(quality.points, 5);
    for (value, expected) in [
        (quality.median, 0.2),
        (quality.third_quartile, 0.3),
        (quality.percentile_95, 0.38),
        (quality.worst, 0.4),
    ] {
        assert!((value - expected).abs() < 1e-12, "{quality:?}");
    }
    assert_eq!(Quality::from_pairs::<f64>([]), None);
}

#[test]
fn days_are_dates() {
    assert_eq!(civil(0), (1970, 1, 1));
    assert_eq!(civil(11_016), (2000, 2, 29));
    assert_eq!(civil(20_454), (2026, 1, 1));
}
