//! Passes and all-reduces logged by other projects: predictions from them are finite and ordered plausibly.
//!
//! The logs are not part of this repository; without them these tests print a note and pass.

use std::fs;
use std::path::PathBuf;
use stepcast_analytic::collectives::{Fabric, ring_update};
use stepcast_analytic::liu2022::{Buffer, Layer, Pass, Schedule, csf, optimum, osf};
use stepcast_core::fitted::transfer::{Curve, Measured};
use stepcast_core::quantity::{Bytes, BytesPerSec, FlopsPerSec, Seconds};
use stepcast_core::strategy::{HOROVOD_CYCLE, HOROVOD_THRESHOLD, PYTORCH_CAP, PYTORCH_FIRST};

fn log(name: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/external").join(name);
    let text = fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("skipped: there is no {}", path.display());
    }
    text
}

fn rules(update: &Curve) -> Vec<Schedule> {
    let overhead = update.startup();
    let mut rules = vec![
        Schedule::PerLayer,
        Schedule::AtEnd,
        Schedule::Adaptive { timeout: None },
        Schedule::MgWfbp { overhead },
        Schedule::Pytorch { first: PYTORCH_FIRST, cap: PYTORCH_CAP },
        Schedule::Horovod { threshold: HOROVOD_THRESHOLD, cycle: HOROVOD_CYCLE, negotiation: overhead },
    ];
    rules.extend([1e5, 1e6, 1e7].map(|size| Schedule::Fused(Buffer::new(Bytes::new(size)))));
    rules
}

/// No rule beats the best plan, no step is shorter than its computing, and every rule finishes in finite time.
fn check(pass: &Pass, update: &Curve, what: &str) {
    let best = osf(pass, update, &Schedule::Buckets(optimum(pass, update).into()));
    assert!(best.iteration() >= pass.computing(), "{what}");
    for rule in rules(update) {
        let found = osf(pass, update, &rule);
        assert!(found.iteration().get().is_finite(), "{what} {rule:?}");
        assert!(found.factor() > 0.0 && found.factor() <= 1.0, "{what} {rule:?}");
        let slack = 1e-12 * found.iteration().get();
        assert!(best.iteration().get() <= found.iteration().get() + slack, "{what} {rule:?}");
    }
    let at_end = osf(pass, update, &Schedule::AtEnd).factor();
    assert!((at_end - csf(pass, update)).abs() < 1e-12, "{what}");
}

/// One V100 with a batch of 32: microseconds since the previous gradient, and bytes, in backward order.
#[test]
fn passes_logged_by_netx() {
    for (name, batch_time, tensors, parameters) in [
        ("resnet50", 0.128_086, 161, 25_557_032.0),
        ("resnet101", 0.192_006, 314, 44_549_160.0),
        ("vgg16", 0.194_524, 58, 138_365_992.0),
    ] {
        let Some(text) = log(&format!("netx_bk_time_logs/{name}.bk.log")) else { return };
        let layer = |line: &str| {
            let (wait, bytes) = line.split_once(',').unwrap();
            let micros: f64 = wait.trim().parse().unwrap();
            Layer {
                backward: Seconds::new(micros * 1e-6),
                gradients: Bytes::new(bytes.trim().parse().unwrap()),
            }
        };
        let layers: Vec<Layer> = text.lines().skip(3).map(layer).collect();
        let mut pass = Pass::new(layers);
        let backward = pass.computing() - pass.forward;
        pass.forward = Seconds::new(batch_time) - backward;
        assert!(pass.forward > Seconds::ZERO, "{name}");
        assert_eq!(pass.tensors(), tensors, "{name}");
        assert_eq!(pass.gradients(), Bytes::new(4.0 * parameters), "{name}");
        let mut before = 1.0;
        for workers in [1, 2, 8, 64] {
            let fabric = Fabric {
                step: Seconds::new(20e-6),
                bandwidth: BytesPerSec::new(1.177e9),
                reduce: FlopsPerSec::new(15.7e12),
                element: Bytes::new(4.0),
            };
            let steps = 2.0 * (f64::from(workers) - 1.0);
            let update = ring_update(&fabric, workers, fabric.step * steps);
            check(&pass, &update, name);
            let factor = osf(&pass, &update, &Schedule::PerLayer).factor();
            assert!(factor <= before, "{name}: more workers scale better");
            before = factor;
        }
    }
}

/// Rows of "[index, elements, backward µs, all-reduce µs, …]" from the last block in a file.
fn caffe(text: &str) -> Vec<Vec<f64>> {
    let numbers = |line: &str| -> Vec<f64> {
        let (_, rest) = line.rsplit_once('[').unwrap();
        rest.trim_end().trim_end_matches(']').split(',').map(|cell| cell.trim().parse().unwrap()).collect()
    };
    let rows: Vec<Vec<f64>> = text.lines().map(numbers).collect();
    let last = rows.iter().rposition(|row| row[0] == 0.0).unwrap();
    rows[last..].to_vec()
}

/// OSU's all-reduce latencies at powers of two only, because closer sizes differ by less than the noise; the curve is
/// extrapolated beyond the last size.
fn osu(text: &str) -> Curve {
    let point = |line: &str| {
        let (size, micros) = line.trim().split_once(char::is_whitespace)?;
        let size: f64 = size.rsplit(',').next()?.parse().ok()?;
        let micros: f64 = micros.trim().parse().ok()?;
        size.log2().fract().eq(&0.0).then(|| (Bytes::new(size), Seconds::new(micros * 1e-6)))
    };
    let points: Vec<(Bytes, Seconds)> = text.lines().filter_map(point).collect();
    Curve::Measured(Measured::new(&points).unwrap())
}

/// GoogLeNet on 2, 4 and 8 nodes: communication predicted from all-reduce benchmarks against the training logs.
#[test]
fn communication_logged_by_b_caffe() {
    for (nodes, name) in [(2, "tmp2comm"), (4, "tmp4comm"), (8, "tmp8comm")] {
        let Some(text) = log(&format!("bcaffe/{name}.log")) else { return };
        let Some(latencies) = log(&format!("bcaffe/allreduce{nodes}.log")) else { return };
        let (rows, update) = (caffe(&text), osu(&latencies));
        assert_eq!(rows.len(), 128);
        // Weight and bias of a layer share one backward time, which is logged twice; logs are in forward order.
        let layers = rows.chunks(2).rev().map(|pair| Layer {
            backward: Seconds::new(pair[0][2] * 1e-6),
            gradients: Bytes::new(4.0 * (pair[0][1] + pair[1][1])),
        });
        let pass = Pass::new(layers.collect());
        assert_eq!(pass.gradients(), Bytes::new(4.0 * 13_379_136.0));
        check(&pass, &update, name);
        let logged: f64 = rows.iter().map(|row| row[3] * 1e-6).sum();
        let predicted: Seconds = pass.layers.iter().map(|layer| update.time(layer.gradients)).sum();
        let share = predicted.get() / logged;
        eprintln!("{nodes} nodes: {predicted} predicted, {logged:.4} s logged, {share:.2}");
        assert!((0.3..=1.2).contains(&share), "{nodes} nodes: {share}");
    }
}
