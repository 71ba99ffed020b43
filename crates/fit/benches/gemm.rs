//! Speed of fitting and predicting matrix products: 11,859 products like those of a measured grid.

use divan::{Bencher, black_box};
use stepcast_core::fitted::gemm::{Shape, Transposition, Variant};
use stepcast_core::method::never_cancelled;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;
use stepcast_fit::gemm::{MeasuredProduct, fit as fit_products};

fn main() {
    divan::main();
}

/// Products on a grid with `per_doubling` sizes for every doubling from 16 to 8192, at made-up but plausible times.
fn grid(precision: Precision, transposition: Transposition, per_doubling: u32) -> Vec<MeasuredProduct> {
    let size = |index: u32| (16.0 * (f64::from(index) / f64::from(per_doubling)).exp2()).round() as u32;
    let indices = || 0..=9 * per_doubling;
    let mut samples = Vec::new();
    for (m, n) in indices().flat_map(|m| indices().map(move |n| (size(m), size(n)))) {
        for k in indices().map(size) {
            let shape = Shape { m, n, k };
            let padded = Shape { m: m.next_multiple_of(128), n: n.next_multiple_of(128), k };
            let time = (padded.flops().get() / 50e12 + 5e-6).max(18e-6);
            let variant = Variant { precision, transposition };
            samples.push(MeasuredProduct { variant, shape, time: Seconds::new(time) });
        }
    }
    samples
}

fn recording() -> Vec<MeasuredProduct> {
    let mut samples = grid(Precision::Fp32, Transposition::Nn, 2);
    samples.extend(grid(Precision::Fp32, Transposition::Tn, 1));
    samples.extend(grid(Precision::Fp32, Transposition::Nt, 1));
    for transposition in [Transposition::Nn, Transposition::Tn, Transposition::Nt] {
        samples.extend(grid(Precision::Bf16, transposition, 1));
    }
    samples
}

#[divan::bench(sample_count = 3, sample_size = 1)]
fn fit(bencher: Bencher<'_, '_>) {
    let samples = recording();
    bencher.bench(|| fit_products(black_box(&samples), None, &never_cancelled));
}

#[divan::bench]
fn predict(bencher: Bencher<'_, '_>) {
    let samples = grid(Precision::Fp32, Transposition::Nn, 1);
    let variant = samples[0].variant;
    let model = fit_products(&samples, Some(132), &never_cancelled);
    let shape = Shape { m: 300, n: 1000, k: 700 };
    bencher.bench(|| model.as_ref().ok().and_then(|model| model.predict(variant, black_box(shape))));
}
