//! Cases of four layers in four readings.

use super::data::{FusionCase, Solution};
use super::printed;
use crate::ExactCheck;
use crate::embedded::Fraction;
use stepcast_analytic::liu2022::{Buffer, Flush, Layer, Pass, Plan, Reading, Schedule, plan};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// One check for each reading.
pub(super) fn check(cases: &[FusionCase], tolerance: f64) -> Vec<ExactCheck> {
    let mut plain = ExactCheck::new("fusion off (eqs. 8-11)", tolerance);
    let mut serial = ExactCheck::new("fusion, corrected (eqs. 12-16, errata 1-4)", tolerance);
    let mut concurrent = ExactCheck::new("fusion, waits concurrent (erratum 5)", tolerance);
    let mut literal = ExactCheck::new("fusion as printed (eqs. 12-16)", tolerance);
    for case in cases {
        let fused = |reading| {
            let buffer = Buffer::new(Bytes::new(case.buffer.get())).timeout(Seconds::new(case.timeout.get()));
            Schedule::Fused(buffer.reading(reading))
        };
        compare(&mut plain, case, &Schedule::PerLayer, &case.plain);
        compare(&mut serial, case, &fused(Reading::Serial), &case.fusion_corrected);
        compare(&mut concurrent, case, &fused(Reading::Concurrent), &case.fusion_concurrent_wait);
        compare_printed(&mut literal, case);
    }
    vec![plain, serial, concurrent, literal]
}

fn pass(case: &FusionCase) -> Pass {
    let layers = case.t_backward_layer1_to_n.iter().zip(&case.sizes).rev();
    let layer = |(backward, size): (&Fraction, &Fraction)| Layer {
        backward: Seconds::new(backward.get()),
        gradients: Bytes::new(size.get()),
    };
    Pass::new(layers.map(layer).collect())
}

fn compare(check: &mut ExactCheck, case: &FusionCase, schedule: &Schedule, expected: &Solution) {
    let pass = pass(case);
    let curve = Curve::AlphaBeta {
        startup: Seconds::new(case.delta.get()),
        bandwidth: BytesPerSec::new(1.0 / case.sec_per_byte.get()),
    };
    let plan = plan(&pass, &curve, schedule);
    let layers = pass.layers.len();
    check.cases += 1;
    check.figure(plan.outcome.update.get(), expected.update.get());
    check.figure(plan.outcome.computing.get(), expected.computing.get());
    check.figure(plan.outcome.overlap.get(), expected.overlap.get());
    check.figure(plan.outcome.factor(), expected.factor.get());
    let lists = [
        (&expected.flushed, by_layer(&plan, layers, |flush| flush.size.get())),
        (&expected.t_wait, by_layer(&plan, layers, |flush| flush.wait.get())),
        (&expected.start, by_layer(&plan, layers, |flush| flush.start.get())),
    ];
    for (expected, found) in lists {
        for (expected, found) in expected.iter().flatten().zip(found) {
            check.figure(found, expected.0.unwrap_or(0.0));
        }
    }
}

/// A figure of each message at the last of its layers, from the input on; 0 where none is sent.
fn by_layer(plan: &Plan, layers: usize, figure: impl Fn(&Flush) -> f64) -> Vec<f64> {
    let mut figures = vec![0.0; layers];
    for flush in &plan.flushes {
        figures[layers - 1 - flush.last] = figure(flush);
    }
    figures
}

fn compare_printed(check: &mut ExactCheck, case: &FusionCase) {
    let (found, expected) = (printed::solve(case), &case.fusion_printed);
    let pass = pass(case);
    let computing = pass.computing().get();
    check.cases += 1;
    check.figure(found.update, expected.update.get());
    check.figure(computing / (computing + found.update - pass.overlap().get()), expected.factor.get());
    let lists = [
        (&expected.buffered, found.buffered),
        (&expected.flushed, found.flushed),
        (&expected.t_wait, found.wait),
        (&expected.tau, found.tau),
    ];
    for (expected, found) in lists {
        for (expected, found) in expected.iter().flatten().zip(found) {
            check.figure(found, expected.get());
        }
    }
}
