//! Memory alignment of the operands' rows and its cost.
//!
//! Matrices are stored row by row. Rows whose length is a multiple of 16 bytes can be copied in bulk, rows of a
//! multiple of 4 bytes only word by word, and others only element by element. Libraries have separate tensor-core
//! kernels for each case, with their own coefficients ([`Alignment::family`]). Without tensor cores, one kind of
//! kernel serves all cases: on an H200, 360 fp32 products with sizes just below powers of two took the same time as
//! those powers of two within 1 % in the median, aligned or not (`validation/gemm/alignment_fp32_h200.csv.gz`).

use super::{Shape, Transposition, Variant};
use crate::precision::Precision;
use serde::{Deserialize, Serialize};

/// Largest C, in elements, for which kernels that copy single elements launch a second kernel; estimated from
/// `validation/gemm/alignment_h200.csv.gz` (docs/methods/gemm.md, Alignment).
const SMALL_RESULT: f64 = 48e3;

/// Largest unit in which every row of every operand can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Alignment {
    /// 16 bytes.
    Bulk,
    /// 4 bytes.
    Word,
    Element,
}

impl Alignment {
    pub fn of_rows(variant: Variant, shape: Shape) -> Self {
        let element = u64::from(variant.precision.width());
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

    /// The alignments that have their own kernels; without tensor cores, one kind serves all.
    pub fn families(precision: Precision) -> &'static [Self] {
        match precision {
            Precision::Fp32 => &[Self::Bulk],
            Precision::Tf32 => &[Self::Bulk, Self::Word],
            Precision::Fp16 | Precision::Bf16 | Precision::AmpFp16 | Precision::AmpBf16 => {
                &[Self::Bulk, Self::Word, Self::Element]
            }
        }
    }

    /// The alignment whose kernels compute a product.
    pub fn family(variant: Variant, shape: Shape) -> Self {
        match variant.precision {
            Precision::Fp32 => Self::Bulk,
            _ => Self::of_rows(variant, shape),
        }
    }

    /// Whether a second kernel is launched even if k is not split.
    pub(super) fn always_second(self, precision: Precision, elements: f64) -> bool {
        self == Self::Element && precision != Precision::Fp32 && elements <= SMALL_RESULT
    }
}
