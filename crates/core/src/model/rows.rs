//! Tables of which a batch touches some rows: the gradient of such a table consists of these rows and their indices.

use super::op::Op;
use super::{Layer, Model};
use crate::quantity::Bytes;

/// Bytes of the index of a row.
const INDEX: f64 = 8.0;

/// The rows of a table with a sparse gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// Rows of the table.
    pub count: u64,
    /// Elements of a row.
    pub width: u64,
    /// Rows that each sample looks up, the same one more than once included.
    pub lookups: u64,
}

impl Rows {
    /// Expected number of different rows that `samples` look up, if each of the n rows is as likely as any other:
    ///
    /// ```text
    /// n (1 − (1 − 1/n)^k)        for k lookups
    /// ```
    ///
    /// The most that is expected under any distribution: where some rows are more likely than others, fewer are touched.
    pub fn touched(&self, samples: f64) -> f64 {
        let (rows, lookups) = (self.count as f64, self.lookups as f64 * samples);
        if lookups <= 0.0 {
            return 0.0;
        }
        // The logarithm keeps its digits for millions of rows, of which 1 − 1/n has lost most.
        -rows * (lookups * (-1.0 / rows).ln_1p()).exp_m1()
    }

    /// Elements of the rows that `samples` touch.
    pub fn elements(&self, samples: f64) -> f64 {
        self.touched(samples) * self.width as f64
    }

    /// Size of the gradient of `samples` with elements of so many bytes: the touched rows with their indices, or the
    /// whole table where that is smaller.
    pub fn bytes(&self, samples: f64, element: f64) -> Bytes {
        let dense = (self.count as f64) * (self.width as f64) * element;
        let row = self.width as f64 * element + INDEX;
        Bytes::new(dense.min(self.touched(samples) * row))
    }
}

impl Layer {
    /// The rows of its table, if the gradient of that is sparse.
    pub fn rows(&self) -> Option<Rows> {
        match self.op {
            Op::Embedding { count, width, sparse: true } => {
                Some(Rows { count, width, lookups: self.output.elements() / width.max(1) })
            }
            _ => None,
        }
    }

    /// Parameters that a step with so many samples updates: all of them, or those in the touched rows.
    pub fn updated(&self, samples: f64) -> f64 {
        let weights = self.rows().map_or(self.cost.weights as f64, |rows| rows.elements(samples));
        weights + self.cost.biases as f64
    }

    /// Size of its gradients after a backward pass of so many samples, with elements of so many bytes.
    pub(crate) fn gradient_bytes(&self, samples: f64, element: f64) -> f64 {
        let weights = self.cost.weights as f64 * element;
        let weights = self.rows().map_or(weights, |rows| rows.bytes(samples, element).get());
        weights + self.cost.biases as f64 * element
    }
}

impl Model {
    /// Parameters that a step with so many samples updates.
    pub fn updated(&self, samples: f64) -> f64 {
        self.layers().iter().map(|layer| layer.updated(samples)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The probability that a row is missed, one lookup after the other.
    fn slow(rows: u64, lookups: u64) -> f64 {
        let missed = (0..lookups).fold(1.0, |missed, _| missed * (1.0 - 1.0 / rows as f64));
        rows as f64 * (1.0 - missed)
    }

    #[test]
    fn touched_rows_are_those_that_are_not_missed() {
        for (count, lookups, samples) in [(1, 1, 5), (3, 1, 2), (10, 4, 25), (1000, 1, 128), (305, 2, 2048)] {
            let rows = Rows { count, width: 16, lookups };
            let (fast, slow) = (rows.touched(f64::from(samples)), slow(count, lookups * samples as u64));
            assert!((fast / slow - 1.0).abs() < 1e-9, "{count} rows: {fast} {slow}");
        }
        // Three rows, two lookups: 3 of 9 pairs are one row, 6 are two.
        let three = Rows { count: 3, width: 1, lookups: 1 };
        assert!((three.touched(2.0) - 15.0 / 9.0).abs() < 1e-12);
    }

    /// All sequences of lookups, each row with its own probability.
    #[test]
    fn skewed_access_touches_fewer_rows() {
        let expected = |likely: [f64; 3]| -> f64 {
            let mut sum = 0.0;
            for sequence in 0..81 {
                let rows = [sequence % 3, sequence / 3 % 3, sequence / 9 % 3, sequence / 27 % 3];
                let different = (0..3).filter(|row| rows.contains(row)).count();
                sum += rows.iter().map(|row| likely[*row]).product::<f64>() * different as f64;
            }
            sum
        };
        let uniform = Rows { count: 3, width: 1, lookups: 2 }.touched(2.0);
        assert!((expected([1.0 / 3.0; 3]) - uniform).abs() < 1e-12);
        assert!(expected([0.6, 0.3, 0.1]) < uniform);
    }

    #[test]
    fn a_gradient_is_never_larger_than_the_table() {
        let rows = Rows { count: 100, width: 4, lookups: 1 };
        assert_eq!(rows.bytes(1.0, 4.0), Bytes::new(24.0));
        assert_eq!(rows.bytes(1e6, 4.0), Bytes::new(1600.0));
        // Indices stay what they are in 16 bits.
        assert_eq!(rows.bytes(1.0, 2.0), Bytes::new(16.0));
        let millions = Rows { count: 10_131_227, width: 16, lookups: 1 };
        assert!((millions.touched(2048.0) - 2047.793).abs() < 1e-3, "{}", millions.touched(2048.0));
    }
}
