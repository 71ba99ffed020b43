//! Systems of linear equations with a symmetric, positive definite matrix.

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
