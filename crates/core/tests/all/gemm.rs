//! Fitted times of matrix products.

use proptest::prelude::*;
use stepcast_core::fitted::gemm::costs::{ALONE, COUNT, Costs, LAUNCH, Product, SPLIT, START, TILE};
use stepcast_core::fitted::gemm::{Alignment, Corrections, Machine, Shape, Transposition, Variant};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Flops;

#[test]
fn rows_decide() {
    let of = |precision, transposition, m, n, k| {
        Alignment::of_rows(Variant { precision, transposition }, Shape { m, n, k })
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
fn outside_the_nearest_face_counts() {
    let nodes = Corrections::none([16, 16, 16], [256, 256, 256]);
    let [m, n, k] = nodes.counts();
    let by_m = (0..m * n * k).map(|node| (node / (n * k)) as f64).collect();
    let corrections = nodes.with(by_m);
    assert!(corrections.is_whole());
    let ratio = |m| corrections.log_ratio(Shape { m, n: 64, k: 64 });
    for (m, expected) in [(1, 0.0), (16, 0.0), (64, 4.0), (256, 8.0), (1 << 20, 8.0)] {
        assert!((ratio(m) - expected).abs() < 1e-12, "{m}");
    }
    assert!(!corrections.covers(Shape { m: 257, n: 64, k: 64 }));
}

#[test]
fn queues_share_a_budget() {
    let machine = Machine { multiprocessors: 132, budget: Some(Flops::new(2e9)) };
    for (flops, calls) in [(1e3, 20.0), (2.7e8, 7.0), (5.4e8, 3.0), (1.1e9, 1.0), (1e12, 1.0)] {
        assert!((machine.first_share(Flops::new(flops)) * calls - 1.0).abs() < 1e-12, "{flops}");
    }
    let endless = Machine { budget: None, ..machine };
    assert!(endless.first_share(Flops::new(1e12)).abs() < 1e-12);
}

const TENSOR: Variant = Variant { precision: Precision::Bf16, transposition: Transposition::Nn };
const ORDINARY: Variant = Variant { precision: Precision::Fp32, transposition: Transposition::Nn };
const HALF: Variant = Variant { precision: Precision::Fp16, transposition: Transposition::Nt };
const SIZES: std::ops::Range<u32> = 1..9000;

fn costs(values: &[f64]) -> Costs {
    Costs(std::array::from_fn(|index| values[index]))
}

proptest! {
    /// Euler: Σ θᵢ ∂t/∂θᵢ = t.
    #[test]
    fn features_and_coefficients_give_the_time(
        (m, n, k) in (SIZES, SIZES, SIZES),
        values in prop::collection::vec(1e-12..1e-5f64, COUNT),
        (first_share, host) in (0.0..=1.0f64, 0.5..2.0f64),
    ) {
        let costs = costs(&values);
        let product = Product::new(Shape { m, n, k }, TENSOR, 132, first_share).with_host(host);
        let kernel = product.kernel(&costs);
        let time = product.time(&costs, &kernel).get();
        let features = product.features(&costs, &kernel);
        let linear: f64 = features.iter().zip(&costs.0).map(|(feature, cost)| feature * cost).sum();
        prop_assert!((linear / time - 1.0).abs() < 1e-9, "{linear} {time}");
    }

    /// A larger product never needs fewer tiles.
    #[test]
    fn larger_kernels_never_take_less(
        (m, n, k) in (SIZES, SIZES, SIZES),
        values in prop::collection::vec(1e-12..1e-5f64, COUNT),
    ) {
        let costs = costs(&values);
        let time = |m, n, k| Product::new(Shape { m, n, k }, HALF, 108, 0.0).kernel(&costs).time.get();
        let base = time(8 * m, 8 * n, 8 * k) * (1.0 - 1e-12);
        prop_assert!(time(8 * m + 8, 8 * n, 8 * k) >= base);
        prop_assert!(time(8 * m, 8 * n + 8, 8 * k) >= base && time(8 * m, 8 * n, 8 * k + 8) >= base);
    }
}

/// One wave of one 128×128 tile with k = 64: 2·128·128·64 operations, all other costs zero.
#[test]
fn one_block_is_counted_by_hand() {
    let mut values = [0.0; COUNT];
    values[TILE..].fill(1.0);
    values[TILE + 6] = 1e-9;
    values[SPLIT] = 1.0;
    let product = Product::new(Shape { m: 100, n: 128, k: 64 }, ORDINARY, 4, 1.0);
    let kernel = product.kernel(&Costs(values));
    assert!((kernel.time.get() - 2.0 * 128.0 * 128.0 * 64.0 * 1e-9).abs() < 1e-15, "{kernel:?}");
}

/// Four queued calls of 10 µs with 2 µs of host time each: 4·10 µs plus the extra cost of the first call.
#[test]
fn the_first_call_of_a_queue_hides_nothing() {
    let mut values = [0.0; COUNT];
    (values[LAUNCH], values[ALONE], values[START]) = (2e-6, 6e-6, 10e-6);
    let shape = Shape { m: 8, n: 8, k: 8 };
    let time = |first_share| {
        let product = Product::new(shape, ORDINARY, 4, first_share);
        product.time(&Costs(values), &product.kernel(&Costs(values))).get()
    };
    assert!((4.0 * time(0.25) - 46e-6).abs() < 0.1e-6, "{}", time(0.25));
    assert!((time(1.0) - 16e-6).abs() < 1e-12, "{}", time(1.0));
}
