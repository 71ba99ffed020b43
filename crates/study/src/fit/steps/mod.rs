//! Whole training steps, measured layer by layer.

mod read;

pub use super::left_out::{Fold, LeftOutErrors, LeftOutPrediction, predictions, summary};
pub use read::{MeasuredSteps, parse, read};

use super::fault::unprintable;
use super::report::{FitErrorRow, FitReport, source};
use std::collections::BTreeSet;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::artefact::Artefact;
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::{Class, Nominal, Phase, StepModel, lacks};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_fit::FitError;
use stepcast_fit::artefact::FitErrors;
use stepcast_fit::steps::{MeasuredStep, PreparedSteps, StepComparison, StepErrors, StepPart, to_toml};

/// Fits the steps of `data`; those of `test`, if given, are tested with. `gemm` is an artefact of matrix products.
///
/// The fit goes on as long as it is wanted.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    gemm: Option<&Path>,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let MeasuredSteps { steps, mut notes } = read(data, wanted)?;
    several_models(data, &steps)?;
    let products = gemm.map(|path| products(path, &steps)).transpose()?;
    let products = products.as_ref();
    let held = test.map(|test| read(test, wanted)).transpose()?.unwrap_or_default();
    notes.extend(held.notes);
    let ended = |error: FitError| stopped(data, &error);
    let model = PreparedSteps::new(&steps, Nominal::h200(), products).fit(|_| true, wanted).map_err(ended)?;
    let judge = |steps: &[MeasuredStep]| -> Vec<StepComparison> {
        steps.iter().filter_map(|step| StepComparison::new(&model, step)).collect()
    };
    let (on_fit, on_held) = (judge(&steps), judge(&held.steps));
    if on_held.len() < held.steps.len() {
        let unknown = held.steps.len() - on_held.len();
        notes.push(format!("{unknown} held steps are in a precision that was not fitted: left out."));
    }
    let errors = |moment: StepPart| {
        let fit = StepComparison::quality(&on_fit, moment)?;
        Some(FitErrors { fit, held: StepComparison::quality(&on_held, moment) })
    };
    let (Some(forward), Some(backward), Some(iteration)) =
        (errors(StepPart::Forward), errors(StepPart::Backward), errors(StepPart::Iteration))
    else {
        return Err(ended(FitError::TooFew { rows: 0, columns: 1 }));
    };
    let rows = StepPart::ALL.into_iter().zip([forward, backward, iteration]);
    let rows =
        rows.flat_map(|(moment, errors)| FitErrorRow::rows(&moment.to_string(), &errors).collect::<Vec<_>>());
    let left_out = summary(&predictions(&steps, Fold::Model, products, wanted).map_err(ended)?);
    notes.extend(model_notes(&model));
    let rows = rows.collect();
    let artefact =
        to_toml(&model, StepErrors { forward, backward, iteration }, source(data, steps.len()), date)
            .map_err(|error| unprintable(data, &error))?;
    Ok(FitReport { rows, left_out, notes, artefact })
}

/// The matrix products of an artefact, in every precision that was measured.
pub fn products(path: &Path, steps: &[MeasuredStep]) -> Result<GemmModel, Fault> {
    let wrong = |reason: String| {
        let remedy = "name a file that `stepcast fit gemm` has written";
        Fault::in_file(path.display().to_string(), reason, remedy)
    };
    let text = String::from_utf8(stepcast_trace::unpacked(path)?)
        .map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
    let model = match Artefact::from_toml(&text).map_err(wrong)? {
        Artefact::Gemm(model) => *model,
        other => return Err(wrong(format!("it was written by `stepcast fit {}`", other.kind()))),
    };
    match steps.iter().find_map(|step| lacks(&model, step.precision)) {
        Some(missing) => Err(wrong(format!("it has no products {missing}, and steps were measured in that"))),
        None => Ok(model),
    }
}

/// Leaving a model out needs another one.
pub fn several_models(data: &Path, steps: &[MeasuredStep]) -> Result<(), Fault> {
    let models: BTreeSet<&str> = steps.iter().map(|step| step.model.name.as_str()).collect();
    match models.first() {
        Some(only) if models.len() == 1 => {
            let reason = format!("{only} is its only model: predictions of other models cannot be tested");
            Err(Fault::in_file(data.display().to_string(), reason, "measure steps of two models or more"))
        }
        _ => Ok(()),
    }
}

/// Why a fit to the steps of `data` ended.
pub fn stopped(data: &Path, error: &FitError) -> Stopped {
    match error {
        FitError::Cancelled => Stopped::Cancelled,
        error => fit_fault(data, error).into(),
    }
}

/// The fault of a fit that did not succeed.
pub fn fit_fault(data: &Path, error: &FitError) -> Fault {
    Fault::in_file(data.display().to_string(), error.to_string(), "check the times of its layers")
}

fn model_notes(model: &StepModel) -> Vec<String> {
    let launch = &model.launch;
    let mut notes = vec![format!(
        "The host takes {} for a kernel forward, {} backward.",
        launch.forward.human(),
        launch.backward.human()
    )];
    let mut guessed = Vec::new();
    for (precision, own) in &model.precision {
        let unmeasured = |class: &&Class| {
            Phase::ALL.iter().all(|phase| own.phase(*phase).class.get(class).is_none_or(|c| c.samples == 0))
        };
        let classes = Class::FITTED.iter().filter(unmeasured);
        guessed.extend(classes.map(|class| format!("{class:?} in {precision}").to_lowercase()));
    }
    if !guessed.is_empty() {
        notes.push(format!("No clean measurement, coefficients guessed: {}.", guessed.join(", ")));
    }
    notes
}
