//! Fitted step times on measured steps.

#![allow(clippy::unwrap_used)] // helpers of tests stand outside of them

use rayon::prelude::*;
use std::path::PathBuf;
use std::sync::LazyLock;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::{Nominal, StepModel};
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;
use stepcast_fit::gemm;
use stepcast_fit::steps::PreparedSteps;
use stepcast_fit::steps::{Fold, LeftOutErrors, predictions, read, run, summary};
use stepcast_study::never_cancelled;
use stepcast_validation::sets::steps::{StepPredictions, is_bounded, predict};

fn data() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../validation/steps/steps_h200.jsonl.gz")
}

/// Every step, predicted without its own model.
static LEFT_OUT: LazyLock<StepPredictions> =
    LazyLock::new(|| predict(&data(), None, &never_cancelled).unwrap());

static PRODUCTS: LazyLock<GemmModel> = LazyLock::new(|| {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../validation/gemm/h200.csv.gz");
    stepcast_fit::gemm::fit(&gemm::read(&path, &never_cancelled).unwrap().fit, Some(132), &never_cancelled)
        .unwrap()
});

#[test]
fn models_that_were_left_out_are_predicted_within_bounds() {
    assert_eq!(LEFT_OUT.rows.len(), 38);
    assert!(LEFT_OUT.holds(), "{:#?}", LEFT_OUT.models);
}

#[test]
fn the_same_holds_with_fitted_products() {
    let steps = read(&data(), &never_cancelled).unwrap().steps;
    let rows = summary(&predictions(&steps, Fold::Model, Some(&PRODUCTS), &never_cancelled).unwrap());
    for row in rows.iter().filter(|row| is_bounded(row)) {
        assert!(LEFT_OUT.keeps(row), "{row:?}");
    }
    let mean =
        |rows: &[LeftOutErrors]| rows.iter().filter(|row| is_bounded(row)).map(|row| row.mean).sum::<f64>();
    assert!(mean(&rows) < mean(&LEFT_OUT.models), "{rows:#?}");
}

#[test]
fn an_artefact_read_again_predicts_the_same_and_is_written_the_same() {
    let [one, two] = [(); 2]
        .map(|()| run(&data(), None, None, "2026-01-01".to_owned(), &never_cancelled).unwrap().artefact);
    assert_eq!(one, two);
    let again = match Artefact::from_toml(&one).unwrap() {
        Artefact::Steps(model) => *model,
        other => unreachable!("{other:?}"),
    };
    let steps = read(&data(), &never_cancelled).unwrap().steps;
    let fitted = PreparedSteps::new(&steps, Nominal::h200(), None).fit(|_| true, &never_cancelled).unwrap();
    for step in &steps {
        let [a, b] = [&fitted, &again].map(|m| m.predict(&step.model, step.precision, step.batch).unwrap());
        assert!((a.iteration / b.iteration - 1.0).abs() < 1e-9, "{a:?} {b:?}");
    }
}

/// Small batches take at least the time of the host, and no time falls when the batch grows.
#[test]
fn times_never_fall_with_the_batch_and_have_a_floor() {
    let steps = read(&data(), &never_cancelled).unwrap().steps;
    for products in [None, Some(&*PRODUCTS)] {
        let fitted =
            PreparedSteps::new(&steps, Nominal::h200(), products).fit(|_| true, &never_cancelled).unwrap();
        never_fall(&fitted);
    }
}

fn never_fall(fitted: &StepModel) {
    let batches = [1, 2, 3, 8, 13, 32, 33, 64, 127, 200, 300, 512];
    let models: Vec<_> = zoo::entries().map(|entry| entry.build().unwrap()).collect();
    models.par_iter().for_each(|model| {
        for precision in [Precision::Fp32, Precision::Bf16] {
            let times = batches.map(|batch| fitted.predict(model, precision, batch).unwrap());
            for (pair, batch) in times.windows(2).zip(batches) {
                let grows = |small: Seconds, large: Seconds| large.get() >= small.get() * (1.0 - 1e-12);
                let all = grows(pair[0].forward, pair[1].forward)
                    && grows(pair[0].backward, pair[1].backward)
                    && grows(pair[0].iteration, pair[1].iteration);
                assert!(all, "{} {precision} from {batch} on: {pair:?}", model.name);
            }
            let kernels = model.layers().len() as f64;
            assert!(times[0].iteration.get() > 20e-6 * kernels, "{} {:?}", model.name, times[0]);
        }
    });
}
