//! Least squares by Householder reflections, and singular values by one-sided Jacobi rotations (Golub and Van Loan 2013, sections
//! 5.2 and 8.6); systems of equations with a symmetric, positive definite matrix.

/// Rotations end when columns are orthogonal to this.
const ORTHOGONAL: f64 = 1e-15;
/// Far more sweeps than quadratic convergence needs.
const SWEEPS: usize = 60;

/// min |A·x − b| with A upper triangular and as many rows as columns, if it had at least as many before.
#[derive(Debug, Clone, PartialEq)]
pub struct Triangular {
    columns: Vec<Vec<f64>>,
    target: Vec<f64>,
}

impl Triangular {
    /// Without rows yet.
    pub fn new(columns: usize) -> Self {
        Self { columns: vec![Vec::new(); columns], target: Vec::new() }
    }

    pub fn columns(&self) -> &[Vec<f64>] {
        &self.columns
    }

    pub fn target(&self) -> &[f64] {
        &self.target
    }

    /// With further rows, given column by column.
    #[must_use]
    pub fn with<'a>(mut self, rows: impl IntoIterator<Item = &'a [f64]>, target: &[f64]) -> Self {
        for (column, more) in self.columns.iter_mut().zip(rows) {
            column.extend_from_slice(more);
        }
        self.target.extend_from_slice(target);
        for place in 0..self.columns.len().min(self.target.len()) {
            self.reflect(place);
        }
        let kept = self.columns.len().min(self.target.len());
        self.columns.iter_mut().for_each(|column| column.truncate(kept));
        self.target.truncate(kept);
        self
    }

    /// Zeroes a column below the diagonal.
    fn reflect(&mut self, place: usize) {
        let mut normal = self.columns[place][place..].to_vec();
        let length = product(&normal, &normal).sqrt();
        if length <= 0.0 {
            return;
        }
        let diagonal = -length.copysign(normal[0]);
        normal[0] -= diagonal;
        let half = -diagonal * normal[0];
        for other in self.columns[place + 1..].iter_mut().chain([&mut self.target]) {
            let other = &mut other[place..];
            let along = product(&normal, other) / half;
            other.iter_mut().zip(&normal).for_each(|(value, normal)| *value -= along * normal);
        }
        self.columns[place][place] = diagonal;
        self.columns[place][place + 1..].fill(0.0);
    }

    /// The least squares; none if columns depend on each other or have too few rows.
    pub fn solve(&self) -> Option<Vec<f64>> {
        let mut solution = self.target.clone();
        for (place, column) in self.columns.iter().enumerate().rev() {
            let diagonal = *column.get(place)?;
            if diagonal == 0.0 {
                return None;
            }
            solution[place] /= diagonal;
            let found = solution[place];
            solution[..place].iter_mut().zip(column).for_each(|(value, above)| *value -= found * above);
        }
        Some(solution)
    }
}

/// The singular values of a matrix, each with its right singular vector.
pub fn singular_values(columns: &[Vec<f64>]) -> Vec<(f64, Vec<f64>)> {
    let size = columns.len();
    // Every column, with its coefficients as a combination of the matrix's columns.
    let unit = |place: usize| (0..size).map(|other| if other == place { 1.0 } else { 0.0 }).collect();
    let mut rotated: Vec<[Vec<f64>; 2]> =
        columns.iter().enumerate().map(|(place, column)| [column.clone(), unit(place)]).collect();
    for _ in 0..SWEEPS {
        let mut is_done = true;
        for second in 1..size {
            let (before, from) = rotated.split_at_mut(second);
            for first in before {
                is_done &= !rotate(first, &mut from[0]);
            }
        }
        if is_done {
            break;
        }
    }
    rotated.into_iter().map(|[column, vector]| (product(&column, &column).sqrt(), vector)).collect()
}

/// Makes two columns orthogonal, and says whether they were not.
fn rotate(one: &mut [Vec<f64>; 2], other: &mut [Vec<f64>; 2]) -> bool {
    let [a, b] = [product(&one[0], &one[0]), product(&other[0], &other[0])];
    let both = product(&one[0], &other[0]);
    if both.abs() <= ORTHOGONAL * (a * b).sqrt() {
        return false;
    }
    let cotangent = (b - a) / (2.0 * both);
    let tangent = 1f64.copysign(cotangent) / (cotangent.abs() + cotangent.hypot(1.0));
    let cosine = tangent.hypot(1.0).recip();
    let sine = cosine * tangent;
    for (one, other) in one.iter_mut().zip(other).flat_map(|(one, other)| one.iter_mut().zip(other)) {
        (*one, *other) = (cosine * *one - sine * *other, sine * *one + cosine * *other);
    }
    true
}

fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Sums of products of every two columns under weights: a symmetric matrix, row by row.
pub fn products(columns: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let size = columns.len();
    let mut matrix = vec![0.0; size * size];
    for (i, column) in columns.iter().enumerate() {
        let weighted: Vec<f64> = weights.iter().zip(column).map(|(w, a)| w * a).collect();
        for (j, other) in columns[..=i].iter().enumerate() {
            let sum: f64 = weighted.iter().zip(other).map(|(a, b)| a * b).sum();
            matrix[i * size + j] = sum;
            matrix[j * size + i] = sum;
        }
    }
    matrix
}

/// The lower triangle whose square is the matrix, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

impl Cholesky {
    /// Factorises a square matrix, given row by row; none if it is not definite.
    pub fn new(size: usize, matrix: &[f64]) -> Option<Self> {
        let mut lower = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                let sum: f64 = (0..j).map(|k| lower[i * size + k] * lower[j * size + k]).sum();
                let rest = matrix[i * size + j] - sum;
                lower[i * size + j] = match i == j {
                    true if rest > 0.0 => rest.sqrt(),
                    true => return None,
                    false => rest / lower[j * size + j],
                };
            }
        }
        Some(Self { size, lower })
    }

    /// The vector that the lower triangle turns into `right`.
    fn forward(&self, right: &[f64]) -> Vec<f64> {
        let mut solution = right.to_vec();
        for i in 0..self.size {
            let sum: f64 = (0..i).map(|k| self.lower[i * self.size + k] * solution[k]).sum();
            solution[i] = (solution[i] - sum) / self.lower[i * self.size + i];
        }
        solution
    }

    /// The lower triangle times a vector: of independent standard normal numbers it makes numbers with the matrix as covariance.
    pub fn times(&self, vector: &[f64]) -> Vec<f64> {
        let rows = self.lower.chunks_exact(self.size.max(1));
        rows.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
    }

    /// The vector that the matrix turns into `right`.
    pub fn solve(&self, right: &[f64]) -> Vec<f64> {
        let size = self.size;
        let mut solution = self.forward(right);
        for i in (0..size).rev() {
            let sum: f64 = (i + 1..size).map(|k| self.lower[k * size + i] * solution[k]).sum();
            solution[i] = (solution[i] - sum) / self.lower[i * size + i];
        }
        solution
    }

    /// A vector times the inverse of the matrix times the vector.
    pub fn square(&self, vector: &[f64]) -> f64 {
        self.forward(vector).iter().map(|value| value.powi(2)).sum()
    }

    /// The inverse of the matrix, row by row.
    pub fn inverse(&self) -> Vec<f64> {
        let unit = |place: usize| {
            let mut unit = vec![0.0; self.size];
            unit[place] = 1.0;
            unit
        };
        (0..self.size).flat_map(|place| self.solve(&unit(place))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cholesky, products};

    /// Columns of a few frequencies.
    fn columns(rows: usize) -> Vec<Vec<f64>> {
        let column = |k: usize| (0..rows).map(|row| ((k + 1) as f64 * (row as f64 + 0.3)).sin()).collect();
        (0..4).map(column).collect()
    }

    #[test]
    fn normal_equations_have_the_same_solution_however_rows_come() {
        let columns = columns(50);
        let target: Vec<f64> = (0..50).map(|row| f64::from(row).sqrt()).collect();
        let weights = [1.0; 50];
        let right: Vec<f64> = columns.iter().map(|column| product(column, &target)).collect();
        let expected = Cholesky::new(4, &products(&columns, &weights)).unwrap().solve(&right);
        for block in [1, 3, 7, 50] {
            let mut reduced = Triangular::new(4);
            for (place, some) in target.chunks(block).enumerate() {
                let rows = place * block..place * block + some.len();
                reduced = reduced.with(columns.iter().map(|column| &column[rows.clone()]), some);
            }
            for (found, expected) in reduced.solve().unwrap().iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-12, "{block}: {found} {expected}");
            }
        }
    }

    #[test]
    fn too_few_rows_have_no_solution() {
        let columns = columns(3);
        let reduced = Triangular::new(4).with(columns.iter().map(Vec::as_slice), &[1.0, 2.0, 3.0]);
        assert_eq!(reduced.solve(), None);
    }

    /// The squares of singular values add up to the sum of squares of the matrix; their product is the square of its determinant.
    #[test]
    fn singular_values_are_lengths_of_images() {
        let columns = columns(4);
        let found = singular_values(&columns);
        for (value, vector) in &found {
            assert!((product(vector, vector) - 1.0).abs() < 1e-12);
            let image =
                (0..4).map(|row| (0..4).map(|place| vector[place] * columns[place][row]).sum::<f64>());
            let length = image.map(|value| value.powi(2)).sum::<f64>().sqrt();
            assert!((length - value).abs() < 1e-12, "{length} {value}");
        }
        let all: f64 = columns.iter().map(|column| product(column, column)).sum();
        assert!((found.iter().map(|(value, _)| value.powi(2)).sum::<f64>() - all).abs() < 1e-12);
        let reduced = Triangular::new(4).with(columns.iter().map(Vec::as_slice), &[0.0; 4]);
        let determinant: f64 = (0..4).map(|place| reduced.columns()[place][place].abs()).product();
        assert!((found.iter().map(|(value, _)| value).product::<f64>() / determinant - 1.0).abs() < 1e-9);
    }

    #[test]
    fn systems_are_solved() {
        let matrix = [4.0, 2.0, 0.0, 2.0, 5.0, 1.0, 0.0, 1.0, 3.0];
        let right = [2.0, 4.0, 7.0];
        let factors = Cholesky::new(3, &matrix).unwrap();
        let (solution, inverse) = (factors.solve(&right), factors.inverse());
        for row in 0..3 {
            let product: f64 = (0..3).map(|k| matrix[row * 3 + k] * solution[k]).sum();
            assert!((product - right[row]).abs() < 1e-12);
            let one: f64 = (0..3).map(|k| matrix[row * 3 + k] * inverse[k * 3 + row]).sum();
            assert!((one - 1.0).abs() < 1e-12);
        }
        let square: f64 = right.iter().zip(&solution).map(|(a, b)| a * b).sum();
        assert!((factors.square(&right) - square).abs() < 1e-12);
        assert_eq!(Cholesky::new(2, &[1.0, 2.0, 2.0, 1.0]), None);
    }
}
