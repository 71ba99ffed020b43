//! The Cartesian product of all axes, never materialised: a point is an index, and its digits are positions on the
//! axes.

/// The lengths of the axes; the last axis changes fastest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    lengths: Vec<u64>,
}

impl Grid {
    /// A grid of axes with these lengths, none of them 0.
    pub fn new(lengths: Vec<u64>) -> Self {
        Self { lengths }
    }

    /// Number of points, saturating.
    pub fn points(&self) -> u128 {
        self.lengths.iter().fold(1, |points: u128, &length| points.saturating_mul(u128::from(length)))
    }

    /// Length of every axis.
    pub fn lengths(&self) -> &[u64] {
        &self.lengths
    }

    /// Positions on the axes of the point `index`.
    pub fn digits(&self, mut index: u64, digits: &mut Vec<u64>) {
        digits.clear();
        digits.resize(self.lengths.len(), 0);
        for (digit, length) in digits.iter_mut().zip(&self.lengths).rev() {
            *digit = index % length;
            index /= length;
        }
    }

    /// The index of the point at these positions.
    pub fn index(&self, digits: &[u64]) -> u64 {
        digits.iter().zip(&self.lengths).fold(0, |index, (digit, length)| index * length + digit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_index_are_inverse() {
        let grid = Grid::new(vec![3, 1, 4, 5]);
        assert_eq!(grid.points(), 60);
        let mut digits = Vec::new();
        let mut last = None;
        for index in 0..60 {
            grid.digits(index, &mut digits);
            assert_eq!(grid.index(&digits), index);
            assert!(last.as_ref() < Some(&digits), "{digits:?}");
            last = Some(digits.clone());
        }
        assert_eq!(Grid::new(vec![u64::MAX; 3]).points(), u128::MAX);
        assert_eq!(Grid::new(Vec::new()).points(), 1);
    }
}
