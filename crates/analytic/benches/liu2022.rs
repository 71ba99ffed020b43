//! Speed of the overlap model on 161 tensors, the number of gradients of ResNet-50.

#![allow(clippy::expect_used)]

use divan::{Bencher, black_box};
use stepcast_analytic::collectives::{AllReduce, Fabric};
use stepcast_analytic::liu2022::{Buffer, Layer, Liu2022, Pass, Schedule, optimum, osf, plan};
use stepcast_core::fitted::transfer::{Curve, LogLinear};
use stepcast_core::method::Method;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::scenario::Document;
use stepcast_core::strategy::PYTORCH_CAP;

fn main() {
    divan::main();
}

/// The gradients of ResNet-50, each with its own backward time.
fn tensors() -> Pass {
    let model = zoo::build("resnet50").expect("the zoo has it");
    let layers = model.gradients().into_iter().enumerate().map(|(index, gradient)| Layer {
        backward: Seconds::new(1e-4 * (1 + index % 7) as f64),
        gradients: Bytes::new(4.0 * gradient.elements as f64),
    });
    let pass = Pass::new(layers.collect());
    assert_eq!(pass.layers.len(), 161);
    pass
}

fn fabric() -> Fabric {
    Fabric {
        step: Seconds::new(2e-5),
        bandwidth: BytesPerSec::new(3.125e9),
        reduce: FlopsPerSec::new(13.45e12),
        element: Bytes::new(4.0),
    }
}

fn ring() -> Curve {
    let size = Bytes::new(1e6);
    AllReduce::Ring.cost(&fabric(), 32, size).line(size)
}

#[divan::bench]
fn osf_161(bencher: Bencher<'_, '_>) {
    let (pass, ring) = (tensors(), ring());
    bencher.bench_local(|| osf(black_box(&pass), black_box(&ring), &Schedule::PerLayer));
}

#[divan::bench]
fn fused_161(bencher: Bencher<'_, '_>) {
    let (pass, ring) = (tensors(), ring());
    let schedule = Schedule::Fused(Buffer::new(PYTORCH_CAP));
    bencher.bench_local(|| osf(black_box(&pass), black_box(&ring), black_box(&schedule)));
}

#[divan::bench]
fn adaptive_161(bencher: Bencher<'_, '_>) {
    let pass = tensors();
    let curve = Curve::Piecewise(LogLinear::continuous(
        LogLinear::PAPER_THRESHOLD,
        Seconds::new(3e-6),
        BytesPerSec::new(1.6e9),
        Seconds::new(1e-3),
    ));
    let schedule = Schedule::Adaptive { timeout: None };
    bencher.bench_local(|| osf(black_box(&pass), black_box(&curve), black_box(&schedule)));
}

#[divan::bench]
fn plan_161(bencher: Bencher<'_, '_>) {
    let (pass, ring) = (tensors(), ring());
    bencher.bench_local(|| plan(black_box(&pass), black_box(&ring), &Schedule::PerLayer));
}

/// ResNet-152 has 467 gradients.
#[divan::bench]
fn optimum_467(bencher: Bencher<'_, '_>) {
    let mut pass = tensors();
    let more: Vec<Layer> = pass.layers.iter().copied().cycle().take(467).collect();
    pass.layers = more;
    let ring = ring();
    bencher.bench_local(|| optimum(black_box(&pass), black_box(&ring)));
}

#[divan::bench]
fn predict(bencher: Bencher<'_, '_>) {
    let text = "[model]\nzoo = \"resnet50\"\n[strategy]\narchitecture = \"all-reduce\"\n[[cluster.workers]]\n\
                count = 32\ndevice = \"quadro-rtx-4000\"\n";
    let scenario = Document::new("bench", text).scenario(&[]).expect("the scenario is valid");
    bencher.bench_local(|| Liu2022.predict(black_box(&scenario)));
}
