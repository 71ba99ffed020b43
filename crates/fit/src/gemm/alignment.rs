//! How rows of the operands lie in memory, and what that costs.
//!
//! Matrices are stored row by row. Rows whose length is a multiple of 16 bytes can be copied in bulk; rows of a multiple
//! of 4 bytes only word by word, others only element by element. For tensor units libraries have other kernels for
//! each, with coefficients of their own ([`Alignment::family`]). Ordinary units have one kind of kernel for all: on an H200
//! 360 fp32 products with sizes just below powers of two took the time of these within 1 % in the median, aligned or not
//! (`validation/gemm/alignment_fp32_h200.csv.gz`).

use super::costs::{Costs, LAUNCH};
use super::{Shape, Transposition, Variant};
use serde::{Deserialize, Serialize};
use stepcast_core::device::Precision;

/// C with at most so many elements makes kernels for single elements launch a second one (see [`ELEMENT`]).
const SMALL_RESULT: f64 = 48e3;

/// What was measured for bf16 on an H200 with cuBLAS 13 (`validation/gemm/alignment_h200.csv.gz`, all transpositions
/// together), in the order of [`Costs`]; `LAUNCH_THERE` is the launch of an aligned product in that recording.
const WORD: Costs = Costs([
    8.74e-6, 3.58e-6, 1.19e-5, 1.36e-6, 8.53e-9, 3.33e-13, 4.81e-13, 2.20e-6, 3.21e-13, //
    0.591e-12, 1.203e-12, 1.203e-12, 1.003e-12, 0.860e-12, 0.860e-12, 0.446e-12, 0.752e-12, 0.752e-12,
]);
const ELEMENT: Costs = Costs([
    8.86e-6, 3.73e-6, 8.37e-6, 1.76e-6, 1.71e-8, 8.32e-13, 6.43e-13, 1.12e-6, 4.07e-13, //
    2.646e-12, 1.520e-12, 1.812e-12, 1.506e-12, 1.112e-12, 1.188e-12, 0.890e-12, 1.130e-12, 1.130e-12,
]);
const LAUNCH_THERE: f64 = 10.5e-6;
/// Operations per second of the fastest aligned bf16 products of an H200 (`validation/gemm/h200.csv.gz`).
const BEST_RATE_THERE: f64 = 787e12;

/// Largest unit in which every row of every operand can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
            Precision::Fp32 | Precision::Tf32 => 4,
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

    /// The alignments whose kernels differ; ordinary units have one kind for all.
    pub(super) fn families(precision: Precision) -> &'static [Self] {
        match precision {
            Precision::Fp32 => &[Self::Bulk],
            Precision::Tf32 => &[Self::Bulk, Self::Word],
            Precision::Fp16 | Precision::Bf16 => &[Self::Bulk, Self::Word, Self::Element],
        }
    }

    /// The alignment whose kernels a product takes.
    pub(super) fn family(variant: Variant, shape: Shape) -> Self {
        match variant.precision {
            Precision::Fp32 => Self::Bulk,
            _ => Self::of(variant, shape),
        }
    }

    /// Whether kernels launch a second one although k is not split.
    pub(super) fn always_second(self, precision: Precision, elements: f64) -> bool {
        self == Self::Element && precision != Precision::Fp32 && elements <= SMALL_RESULT
    }

    /// What kernels of this family are assumed to cost beside aligned ones that were measured: those of an H200, with the
    /// host as fast as the measured one and the device by its best rate in operations per second.
    pub(super) fn assumed(self, aligned: &Costs, best_rate: f64) -> Option<Costs> {
        let there = match self {
            Self::Bulk => return None,
            Self::Word => WORD,
            Self::Element => ELEMENT,
        };
        Some(there.with_host(aligned.0[LAUNCH] / LAUNCH_THERE).with_device(BEST_RATE_THERE / best_rate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_decide() {
        let of = |precision, transposition, m, n, k| {
            Alignment::of(Variant { precision, transposition }, Shape { m, n, k })
        };
        let bf16 = |transposition, m, n, k| of(Precision::Bf16, transposition, m, n, k);
        assert_eq!(bf16(Transposition::Nn, 333, 320, 320), Alignment::Bulk);
        assert_eq!(bf16(Transposition::Nn, 320, 333, 320), Alignment::Element);
        assert_eq!(bf16(Transposition::Tn, 320, 320, 333), Alignment::Bulk);
        assert_eq!(bf16(Transposition::Nt, 320, 320, 666), Alignment::Word);
        assert_eq!(bf16(Transposition::Tt, 84, 320, 320), Alignment::Word);
        assert_eq!(of(Precision::Fp32, Transposition::Nn, 1, 1, 1), Alignment::Word);
        assert_eq!(of(Precision::Fp32, Transposition::Tn, 320, 320, 333), Alignment::Bulk);
    }

    #[test]
    fn other_kernels_follow_the_host_and_the_device() {
        let aligned = WORD.with_host(2.0);
        let there = Alignment::Word.assumed(&aligned, BEST_RATE_THERE).unwrap();
        let slower = Alignment::Word.assumed(&aligned, BEST_RATE_THERE / 2.0).unwrap();
        assert!((there.0[LAUNCH] / aligned.0[LAUNCH] - WORD.0[LAUNCH] / LAUNCH_THERE).abs() < 1e-12);
        assert!((slower.0[LAUNCH] / there.0[LAUNCH] - 1.0).abs() < 1e-12);
        let last = slower.0.len() - 1;
        assert!((slower.0[last] / there.0[last] - 2.0).abs() < 1e-12);
        assert_eq!(Alignment::Bulk.assumed(&aligned, 1.0), None);
    }
}
