use super::*;
use crate::{FitError, Quality};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::fitted::gemm::Transposition;
use stepcast_core::method::never_cancelled;
use stepcast_core::quantity::Flops;

const VARIANT: Variant = Variant { precision: Precision::Fp32, transposition: Transposition::Nn };

/// Products of a made-up device with 108 multiprocessors, timed in queues of 2 GFLOP with at most 20 calls.
fn recording() -> Vec<MeasuredProduct> {
    let sizes = || (0..=14u32).map(|index| (32.0 * (f64::from(index) / 2.0).exp2()).round() as u32);
    let mut samples = Vec::new();
    for (m, n) in sizes().flat_map(|m| sizes().map(move |n| (m, n))) {
        for k in sizes() {
            let shape = Shape { m, n, k };
            let blocks = f64::from(m.div_ceil(128)) * f64::from(n.div_ceil(128));
            let kernel = 4e-6 + (blocks / 108.0).ceil() * 2.0 * 128.0 * 128.0 * f64::from(k) / 0.15e12;
            let calls = (Flops::new(2e9) / shape.flops()).floor().clamp(1.0, 20.0);
            // While this block of sizes was measured, the host was faster.
            let host = if (250..=400).contains(&m) { 0.7 } else { 1.0 };
            let queued = kernel.max(16e-6 * host);
            let time = queued + (12e-6 * host + kernel - queued) / calls;
            samples.push(MeasuredProduct { variant: VARIANT, shape, time: Seconds::new(time) });
        }
    }
    samples
}

fn quality(model: &GemmModel, samples: &[MeasuredProduct]) -> Quality {
    let pair =
        |sample: &MeasuredProduct| (model.predict(sample.variant, sample.shape).unwrap().time, sample.time);
    Quality::from_pairs(samples.iter().map(pair)).unwrap()
}

#[test]
fn a_made_up_device_is_explained() {
    let samples = recording();
    let model = fit(&samples, Some(108), &never_cancelled).unwrap();
    let found = quality(&model, &samples);
    assert!(found.median < 0.05 && found.third_quartile < 0.12, "{found:?}");
}

#[test]
fn an_artefact_read_again_predicts_the_same() {
    let samples = recording();
    let model = fit(&samples, Some(108), &never_cancelled).unwrap();
    let errors =
        BTreeMap::from([(VARIANT.to_string(), FitErrors { fit: quality(&model, &samples), held: None })]);
    let text =
        artefact(ArtefactKind::Gemm, "made-up.csv".as_ref(), 9, "2026-01-01", &errors, &model).unwrap();
    let Artefact::Gemm(again) = Artefact::from_toml(&text).unwrap() else { unreachable!("{text}") };
    for sample in samples.iter().step_by(17) {
        let [one, other] =
            [&model, again.as_ref()].map(|model| model.predict(VARIANT, sample.shape).unwrap());
        assert!((one.time / other.time - 1.0).abs() < 1e-9, "{one:?} {other:?}");
    }
}

#[test]
fn what_was_not_measured_is_flagged() {
    let model = fit(&recording(), Some(108), &never_cancelled).unwrap();
    let coverage = |m| model.predict(VARIANT, Shape { m, n: 64, k: 64 }).unwrap().coverage;
    assert_eq!(coverage(64), Coverage::Measured);
    assert_eq!(coverage(1 << 20), Coverage::OutsideSizes);
    let other = Variant { precision: Precision::Bf16, ..VARIANT };
    assert_eq!(model.predict(other, Shape { m: 64, n: 64, k: 64 }), None);
    let far = model.predict(VARIANT, Shape { m: u32::MAX, n: u32::MAX, k: u32::MAX }).unwrap();
    assert!(far.time.is_finite());
}

/// A fit ends at the first check of its cancellation that says so, whichever check that is.
#[test]
fn what_is_no_longer_wanted_ends() {
    let samples: Vec<MeasuredProduct> = recording().into_iter().step_by(20).collect();
    let asked = AtomicU32::new(0);
    fit(&samples, Some(108), &|| {
        asked.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    })
    .unwrap();
    let all = asked.into_inner();
    for last in [0, all / 2, all - 1] {
        let asked = AtomicU32::new(0);
        let stopped = fit(&samples, Some(108), &|| match asked.fetch_add(1, Ordering::Relaxed) < last {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        assert_eq!(stopped, Err(GemmError::Linear(FitError::Cancelled)));
        assert_eq!(asked.into_inner(), last + 1, "of {all}");
    }
}
