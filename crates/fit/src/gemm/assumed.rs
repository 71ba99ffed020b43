//! What kernels for unaligned rows are assumed to cost where none was measured.

use stepcast_core::fitted::gemm::Alignment;
use stepcast_core::fitted::gemm::costs::{Costs, LAUNCH};

/// Coefficients fitted to bf16 products on an H200 with cuBLAS 13 (`validation/gemm/alignment_h200.csv.gz`, all
/// transpositions together), in the order of [`Costs`]; `LAUNCH_THERE` is the launch of an aligned product in that
/// recording.
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

/// What kernels of a family are assumed to cost beside aligned ones that were measured: those of an H200, with the host
/// as fast as the measured one and the device by its best rate in operations per second.
pub(super) fn assumed_costs(family: Alignment, aligned: &Costs, best_rate: f64) -> Option<Costs> {
    let there = match family {
        Alignment::Bulk => return None,
        Alignment::Word => WORD,
        Alignment::Element => ELEMENT,
    };
    Some(there.with_host(aligned.0[LAUNCH] / LAUNCH_THERE).with_device(BEST_RATE_THERE / best_rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kernels_follow_the_host_and_the_device() {
        let aligned = WORD.with_host(2.0);
        let there = assumed_costs(Alignment::Word, &aligned, BEST_RATE_THERE).unwrap();
        let slower = assumed_costs(Alignment::Word, &aligned, BEST_RATE_THERE / 2.0).unwrap();
        assert!((there.0[LAUNCH] / aligned.0[LAUNCH] - WORD.0[LAUNCH] / LAUNCH_THERE).abs() < 1e-12);
        assert!((slower.0[LAUNCH] / there.0[LAUNCH] - 1.0).abs() < 1e-12);
        let last = slower.0.len() - 1;
        assert!((slower.0[last] / there.0[last] - 2.0).abs() < 1e-12);
        assert_eq!(assumed_costs(Alignment::Bulk, &aligned, 1.0), None);
    }
}
