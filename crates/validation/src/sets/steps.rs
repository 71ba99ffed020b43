//! Fitted step times: every model is predicted by coefficients fitted on the other models, and on the other families.

use crate::report::Findings;
use crate::set::Run;
use crate::{ErrorBounds, Evidence, Progress, ValidationError};
use serde_json::{Value, json};
use stepcast_core::model::zoo;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::strategy::Architecture;
use stepcast_fit::steps::{
    Fold, LeftOutErrors, LeftOutPrediction, MeasuredSteps, predictions, products, read, several_models,
    stopped, summary,
};
use stepcast_fit::steps::{StepGroup, StepPart};
use stepcast_study::predict::interval::{Case, FITTED_STEPS, Limit, Machines, Pace, Regime};

/// Predicts every step of the file by a fit of the other models' steps; `--gemm` is an artefact of fitted matrix products.
pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let bounds: ErrorBounds = run.bounds()?;
    let (path, cancelled) = (run.data()?, || (run.observer)(Progress::Working));
    let MeasuredSteps { steps, notes } = read(path, &cancelled)?;
    several_models(path, &steps)?;
    let products = run.options.gemm.map(|gemm| products(gemm, &steps)).transpose()?;
    let fold = |fold| {
        predictions(&steps, fold, products.as_ref(), &cancelled).map_err(|error| stopped(path, &error))
    };
    let predicted = fold(Fold::Model)?;
    let (models, families) = (summary(&predicted), summary(&fold(Fold::Family)?));
    let verdict = |row: &LeftOutErrors| match keeps(bounds, row) {
        _ if !is_bounded(row) => "",
        true => "ok",
        false => "MISSED",
    };
    let figures = json!({
        "rows": predicted.iter().map(step_row).collect::<Vec<_>>(),
        "models": models,
        "families": families,
        "bounds": bounds,
        "notes": notes,
        "_models": models.iter().map(|row| error_row(row, verdict(row))).collect::<Vec<_>>(),
        "_families": families.iter().map(|row| error_row(row, "")).collect::<Vec<_>>(),
        "_bounded": bounds.to_string(),
        "_notes": notes.iter().map(|note| json!({ "text": note })).collect::<Vec<_>>(),
    });
    let evidence = Evidence::Measured {
        cases: predicted.iter().map(|step| case(run.set, step)).collect(),
        other_cases: Vec::new(),
        bounds,
        bounded_by_group: true,
    };
    let holds = models.iter().filter(|row| is_bounded(row)).all(|row| keeps(bounds, row));
    Ok(Findings { holds, ..Findings::new(figures, evidence) })
}

/// Whether the bounds apply to a group of steps. Small batches in 16 bits are limited by the host and vary too much.
fn is_bounded(row: &LeftOutErrors) -> bool {
    row.group != StepGroup::Bf16Small
}

fn keeps(bounds: ErrorBounds, row: &LeftOutErrors) -> bool {
    100.0 * row.mean <= bounds.mean && 100.0 * row.worst <= bounds.worst
}

fn error_row(row: &LeftOutErrors, verdict: &str) -> Value {
    json!({
        "group": row.group.to_string(),
        "steps": row.steps,
        "of": row.moment.to_string(),
        "mean": row.mean,
        "worst": row.worst,
        "verdict": verdict,
    })
}

/// Predicted without its own model, and measured on the device.
fn times(step: &LeftOutPrediction, part: StepPart) -> [Seconds; 2] {
    let (predicted, measured) = step.judged.pair(part);
    [predicted, measured]
}

fn step_row(step: &LeftOutPrediction) -> Value {
    let times = |part| {
        let [predicted, measured] = times(step, part).map(Seconds::get);
        json!({ "predicted_s": predicted, "measured_s": measured })
    };
    json!({
        "model": step.model,
        "precision": step.precision,
        "batch": step.batch,
        "forward": times(StepPart::Forward),
        "backward": times(StepPart::Backward),
        "iteration": times(StepPart::Iteration),
    })
}

fn case(set: &'static str, step: &LeftOutPrediction) -> Case {
    let [predicted, measured] =
        times(step, StepPart::Iteration).map(|time| SamplesPerSec::from_time(f64::from(step.batch), time));
    Case {
        set,
        group: step.model.clone(),
        method: FITTED_STEPS.to_owned(),
        regime: Regime {
            architecture: Architecture::StandAlone,
            pace: Pace::Synchronous,
            limit: Limit::Computing,
            machines: Machines::One,
        },
        workers: 1,
        bandwidth: None,
        parameters: zoo::build(&step.model).ok().map(|model| model.parameters()),
        predicted,
        measured,
        run_spread: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::set::test_reports::{figures, folder, report};
    use rayon::prelude::*;
    use std::path::PathBuf;
    use std::sync::LazyLock;
    use stepcast_core::fitted::artefact::Artefact;
    use stepcast_core::fitted::gemm::GemmModel;
    use stepcast_core::fitted::steps::{Nominal, StepModel};
    use stepcast_core::precision::Precision;
    use stepcast_fit::gemm;
    use stepcast_fit::steps::PreparedSteps;
    use stepcast_fit::steps::run as fit_steps;
    use stepcast_study::never_cancelled;

    fn data() -> PathBuf {
        folder().join("steps/steps_h200.jsonl.gz")
    }

    /// Fitted without products.
    static FITTED: LazyLock<StepModel> = LazyLock::new(|| {
        let steps = read(&data(), &never_cancelled).unwrap().steps;
        PreparedSteps::new(&steps, Nominal::h200(), None).fit(|_| true, &never_cancelled).unwrap()
    });

    static PRODUCTS: LazyLock<GemmModel> = LazyLock::new(|| {
        let path = folder().join("gemm/h200.csv.gz");
        stepcast_fit::gemm::fit(
            &gemm::read(&path, &never_cancelled).unwrap().fit,
            Some(132),
            &never_cancelled,
        )
        .unwrap()
    });

    #[test]
    fn the_same_holds_with_fitted_products() {
        let steps = read(&data(), &never_cancelled).unwrap().steps;
        let rows = summary(&predictions(&steps, Fold::Model, Some(&PRODUCTS), &never_cancelled).unwrap());
        let Evidence::Measured { bounds, .. } = &report("steps").evidence else {
            panic!("nothing is measured")
        };
        let bounded: Vec<&LeftOutErrors> = rows.iter().filter(|row| is_bounded(row)).collect();
        assert!(bounded.iter().all(|row| keeps(*bounds, row)), "{rows:#?}");
        let without: f64 = figures("steps")["models"]
            .as_array()
            .unwrap()
            .iter()
            .zip(&rows)
            .filter(|(_, row)| is_bounded(row))
            .map(|(row, _)| row["mean"].as_f64().unwrap())
            .sum();
        assert!(bounded.iter().map(|row| row.mean).sum::<f64>() < without, "{rows:#?}");
    }

    #[test]
    fn an_artefact_read_again_predicts_the_same_and_is_written_the_same() {
        let [one, two] = [(); 2].map(|()| {
            fit_steps(&data(), None, None, "2026-01-01".to_owned(), &never_cancelled).unwrap().artefact
        });
        assert_eq!(one, two);
        let again = match Artefact::from_toml(&one).unwrap() {
            Artefact::Steps(model) => *model,
            other => unreachable!("{other:?}"),
        };
        let steps = read(&data(), &never_cancelled).unwrap().steps;
        for step in &steps {
            let [a, b] =
                [&FITTED, &again].map(|m| m.predict(&step.model, step.precision, step.batch).unwrap());
            assert!((a.iteration / b.iteration - 1.0).abs() < 1e-9, "{a:?} {b:?}");
        }
    }

    /// Small batches take at least the time of the host, and no time falls when the batch grows.
    #[test]
    fn times_never_fall_with_the_batch_and_have_a_floor() {
        let steps = read(&data(), &never_cancelled).unwrap().steps;
        let prepared = PreparedSteps::new(&steps, Nominal::h200(), Some(&PRODUCTS));
        never_fall(&prepared.fit(|_| true, &never_cancelled).unwrap());
        never_fall(&FITTED);
    }

    fn never_fall(fitted: &StepModel) {
        let batches = [1, 2, 3, 8, 13, 32, 33, 64, 127, 200, 300, 512];
        // Every fourth model is of another family.
        let every = if std::env::var_os("STEPCAST_FULL_TESTS").is_some() { 1 } else { 4 };
        let models: Vec<_> = zoo::entries().step_by(every).map(|entry| entry.build().unwrap()).collect();
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
}
