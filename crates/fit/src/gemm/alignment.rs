//! How rows of the operands lie in memory, and what that costs on tensor units.
//!
//! Matrices are stored row by row. Rows whose length is a multiple of 16 bytes can be copied in bulk; rows of a multiple
//! of 4 bytes only word by word, others only element by element, and libraries have other, slower kernels for
//! them. Measured on an H200 with cuBLAS 13 for bf16 (`validation/gemm/alignment_h200.csv.gz`); ordinary fp32 units
//! showed no difference.

use super::{Shape, Transposition, Variant};
use serde::{Deserialize, Serialize};
use stepcast_core::device::Precision;

/// Largest unit in which every row of every operand can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alignment {
    /// 16 bytes.
    Bulk,
    /// 4 bytes.
    Word,
    /// One element.
    Element,
}

impl Alignment {
    /// That of a product.
    pub fn of(variant: Variant, shape: Shape) -> Self {
        let element = match variant.precision {
            Precision::Fp32 => return Self::Bulk,
            Precision::Tf32 => 4,
            Precision::Fp16 | Precision::Bf16 => 2,
        };
        let Shape { m, n, k } = shape;
        let (row_of_a, row_of_b) = match variant.transposition {
            Transposition::Nn => (k, n),
            Transposition::Nt => (k, k),
            Transposition::Tn => (m, n),
            Transposition::Tt => (m, k),
        };
        let multiple_of = |bytes: u64| {
            [row_of_a, row_of_b, n].iter().all(|row| (u64::from(*row) * element).is_multiple_of(bytes))
        };
        match (multiple_of(16), multiple_of(4)) {
            (true, _) => Self::Bulk,
            (false, true) => Self::Word,
            (false, false) => Self::Element,
        }
    }

    /// Time to launch and start a kernel, relative to [`Bulk`](Self::Bulk): descriptors of bulk copies cost something, a
    /// second kernel that adds partial sums costs more.
    pub(super) fn host_ratio(self) -> f64 {
        match self {
            Self::Bulk => 1.0,
            Self::Word => 0.83,
            Self::Element => 1.13,
        }
    }

    /// Time of an operation, relative to [`Bulk`](Self::Bulk).
    pub(super) fn device_ratio(self) -> f64 {
        match self {
            Self::Bulk => 1.0,
            Self::Word => 4.5,
            Self::Element => 7.3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_decide() {
        let of = |transposition, m, n, k| {
            Alignment::of(Variant { precision: Precision::Bf16, transposition }, Shape { m, n, k })
        };
        assert_eq!(of(Transposition::Nn, 333, 320, 320), Alignment::Bulk);
        assert_eq!(of(Transposition::Nn, 320, 333, 320), Alignment::Element);
        assert_eq!(of(Transposition::Tn, 320, 320, 333), Alignment::Bulk);
        assert_eq!(of(Transposition::Nt, 320, 320, 666), Alignment::Word);
        assert_eq!(of(Transposition::Tt, 84, 320, 320), Alignment::Word);
        let fp32 = Variant { precision: Precision::Fp32, transposition: Transposition::Nn };
        assert_eq!(Alignment::of(fp32, Shape { m: 1, n: 1, k: 1 }), Alignment::Bulk);
    }
}
