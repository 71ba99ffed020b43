//! Whole training steps, measured layer by layer, and the coefficients of [`StepModel`] from them.
//!
//! Classes of layers are fitted to the layers' own times. The costs of launches, and the ratio of whole phases to the sum
//! of their layers, are fitted to whole steps: descent along one coordinate at a time on the mean logarithmic error of
//! forward, backward and step. The same data give the same model.

mod classes;
mod comparison;
mod prepared;
mod read;

pub use comparison::{
    Fold, LeftOutErrors, LeftOutPrediction, StepComparison, StepGroup, StepPart, groups, predictions, summary,
};
pub use read::{MeasuredSteps, parse, read};

use crate::FitError;
use crate::report::{FitErrorRow, FitErrors, FitReport, artefact};
use classes::{ClassCoefficients, CoefficientTable};
use prepared::PreparedStep;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::fitted::artefact::{Artefact, ArtefactKind};
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::{
    Class, Coefficients, Lanes, LaunchCosts, Nominal, Phase, PhaseModel, PrecisionModel, StepModel, lacks,
    lanes,
};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::model::Model;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;

#[derive(Debug, Clone)]
pub struct MeasuredStep {
    pub model: Arc<Model>,
    pub precision: Precision,
    pub batch: u32,
    pub forward: Seconds,
    pub backward: Seconds,
    pub iteration: Seconds,
    /// Forward times of layers that were timed one by one, by name.
    pub leaves: BTreeMap<String, Seconds>,
    /// When gradients were ready, counted from the start of the backward pass, in order, with their layers' names.
    pub ready: Vec<(String, Seconds)>,
}

pub struct PreparedSteps<'a> {
    nominal: Nominal,
    products: Option<&'a GemmModel>,
    rows: Vec<PreparedStep<'a>>,
}

impl<'a> PreparedSteps<'a> {
    /// A problem of these steps; features are in units of `nominal`, or of the times of matrix products if these have a separate
    /// fit.
    pub fn new(steps: &'a [MeasuredStep], nominal: Nominal, products: Option<&'a GemmModel>) -> Self {
        Self {
            nominal,
            products,
            rows: steps.iter().map(|step| PreparedStep::new(step, &nominal, products)).collect(),
        }
    }

    pub fn fit(
        &self,
        keep: impl Fn(&MeasuredStep) -> bool,
        wanted: &CancelCheck<'_>,
    ) -> Result<StepModel, FitError> {
        let rows: Vec<&PreparedStep<'_>> = self.rows.iter().filter(|row| keep(row.step)).collect();
        let table = CoefficientTable::fit(&rows, self.products.is_some(), wanted)?;
        let host = Host::fit(&rows, &table, &self.nominal, wanted)?;
        let measured: BTreeSet<Precision> = rows.iter().map(|row| row.step.precision).collect();
        let of = |precision| {
            let [forward, backward] = host.factors(precision);
            let forward = phase_model(&table, precision, Phase::Forward, forward);
            let batches = rows.iter().filter(|row| row.step.precision == precision).map(|row| row.step.batch);
            PrecisionModel {
                batches: [batches.clone().min().unwrap_or(0), batches.max().unwrap_or(0)],
                forward,
                backward: phase_model(&table, precision, Phase::Backward, backward),
            }
        };
        Ok(StepModel {
            nominal: self.nominal,
            launch: host.costs(),
            precision: measured.into_iter().map(|precision| (precision, of(precision))).collect(),
            products: self.products.cloned(),
        })
    }
}

fn phase_model(table: &CoefficientTable, precision: Precision, phase: Phase, factor: f64) -> PhaseModel {
    let coefficients = |class: Class| {
        let ClassCoefficients { values, clean } = table.get(class, precision, phase);
        let per = class.features(precision, phase, table.products()).iter().copied().zip(values).collect();
        (class, Coefficients { samples: clean, per })
    };
    PhaseModel { factor, class: Class::FITTED.into_iter().map(coefficients).collect() }
}

/// Fits the steps of `data`; the steps of `test`, if given, are held out. `gemm` is an artefact of matrix products.
///
/// The fit can be cancelled.
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
    let errors = |moment: &StepPart| {
        let fit = StepComparison::quality(&on_fit, *moment)?;
        Some((*moment, FitErrors { fit, held: StepComparison::quality(&on_held, *moment) }))
    };
    let errors: BTreeMap<StepPart, FitErrors> = StepPart::ALL.iter().filter_map(errors).collect();
    if errors.is_empty() {
        return Err(ended(FitError::TooFew { rows: 0, columns: 1 }));
    }
    let rows = errors.iter().flat_map(|(moment, errors)| FitErrorRow::rows(moment.name(), errors)).collect();
    let left_out = summary(&predictions(&steps, Fold::Model, products, wanted).map_err(ended)?);
    notes.extend(model_notes(&model));
    let artefact = artefact(ArtefactKind::Steps, data, steps.len(), &date, &errors, &model)?;
    Ok(FitReport { rows, left_out, notes, artefact })
}

/// The matrix products of an artefact, in every precision that was measured.
pub fn products(path: &Path, steps: &[MeasuredStep]) -> Result<GemmModel, Fault> {
    let wrong = |reason: String| {
        let remedy = Remedy::NameArtefact { fits: vec!["gemm".to_owned()] };
        Fault::in_file(path.display().to_string(), reason, remedy)
    };
    let text = String::from_utf8(stepcast_trace::unpacked(path)?)
        .map_err(|_| wrong("it is not UTF-8 text".to_owned()))?;
    let model = match Artefact::from_toml(&text).map_err(wrong)? {
        Artefact::Gemm(model) => *model,
        other => return Err(wrong(format!("it is a fit of `{}`", other.kind()))),
    };
    match steps.iter().find_map(|step| lacks(&model, step.precision)) {
        Some(missing) => Err(wrong(format!("it has no products {missing}, and steps were measured in that"))),
        None => Ok(model),
    }
}

/// Checks that there are several models, so that each can be held out.
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

/// The fault or cancellation that ended a fit to the steps of `data`.
pub fn stopped(data: &Path, error: &FitError) -> Stopped {
    match error {
        FitError::Cancelled => Stopped::Cancelled,
        error => fit_fault(data, error).into(),
    }
}

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

/// Launches in µs as profilers of PyTorch show them, and factors of 1: a phase takes as long as its layers. Guesses
/// from which the fit starts.
const START: [f64; 9] = [38.0, 35.0, 15.0, 30.0, 20.0, 1.0, 1.0, 1.0, 1.0];
/// Strength of the pull towards these guesses (assumed).
const PULL: f64 = 0.002;
const FIRST_STEP: f64 = 1.3;
const LAST_STEP: f64 = 1.03;
/// Smallest gain that counts.
const GAIN: f64 = 1e-6;

#[derive(Debug, Clone, Copy)]
struct Host([f64; 9]);

impl Host {
    fn costs(&self) -> LaunchCosts {
        let [forward, backward, gradient, forward_cast, backward_cast, ..] =
            self.0.map(|cost| Seconds::new(cost * 1e-6));
        LaunchCosts { forward, backward, gradient, forward_cast, backward_cast }
    }

    /// Forward and backward.
    fn factors(&self, precision: Precision) -> [f64; 2] {
        let [.., forward, backward, half_forward, half_backward] = self.0;
        if precision == Precision::Fp32 { [forward, backward] } else { [half_forward, half_backward] }
    }

    fn fit(
        rows: &[&PreparedStep<'_>],
        table: &CoefficientTable,
        nominal: &Nominal,
        wanted: &CancelCheck<'_>,
    ) -> Result<Self, FitError> {
        let steps: Vec<(&PreparedStep<'_>, Lanes)> =
            rows.iter().filter_map(|row| Some((*row, timed(row, table, nominal)?))).collect();
        let mut best = Self(START);
        let mut least = best.loss(&steps);
        let mut step = FIRST_STEP;
        while step > LAST_STEP {
            let mut gained = false;
            for coordinate in 0..START.len() {
                for factor in [step, step.recip()] {
                    if wanted().is_break() {
                        return Err(FitError::Cancelled);
                    }
                    let mut tried = best;
                    tried.0[coordinate] *= factor;
                    let loss = tried.loss(&steps);
                    if loss < least - GAIN {
                        (best, least, gained) = (tried, loss, true);
                    }
                }
            }
            if !gained {
                step = step.sqrt();
            }
        }
        Ok(best)
    }

    fn loss(&self, steps: &[(&PreparedStep<'_>, Lanes)]) -> f64 {
        let costs = self.costs();
        let error = |(row, lanes): &(&PreparedStep<'_>, Lanes)| {
            let times = lanes.times(&costs, self.factors(row.step.precision));
            let one = |predicted: Seconds, measured: Seconds| (predicted / measured).ln().abs();
            one(times.forward, row.step.forward)
                + one(times.backward, row.step.backward)
                + one(times.iteration, row.step.iteration)
        };
        let mean = steps.iter().map(error).sum::<f64>() / (3 * steps.len().max(1)) as f64;
        let pull: f64 = self.0.iter().zip(START).map(|(value, start)| (value / start).ln().powi(2)).sum();
        mean + PULL * pull
    }
}

fn timed(row: &PreparedStep<'_>, table: &CoefficientTable, nominal: &Nominal) -> Option<Lanes> {
    let device = |place: usize, phase: Phase| Some(Seconds::new(table.time(row, place, phase)));
    lanes(&row.ops, &row.step.model, (row.step.precision, row.step.batch), nominal, device)
}
