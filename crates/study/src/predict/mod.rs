//! The forecast of one scenario: the choice of a method, the prediction, its reasons, its uncertainty and the scaling curve;
//! [`forecast`] makes it.

mod advice;
pub(crate) mod budget;
pub mod calibrate;
pub mod compare;
pub mod interval;
pub mod layout;
pub mod methods;
mod scaling;
pub(crate) mod training;

pub use advice::{Advice, Alone, Change, CriticalPath, Share, WhatIf, changes, explain};
pub use methods::MethodChoice;
pub use scaling::{ScalingPoint, WORTH, enough_workers, usual_workers};
pub use stepcast_core::method::{CancelCheck, Progress, Stopped, Watch, never_cancelled, unwatched};
pub use training::{fits, memory_verdict};

use crate::request::{Assumed, AssumedRent, Request, Source};
use budget::Granted;
use interval::{Interval, Intervals, of_product};
use scaling::Planned;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::{serde_as, skip_serializing_none};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::method::{Method, MethodAbout};
use stepcast_core::prediction::{Prediction, Verdict};
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::strategy::{Architecture, Implementation};
use training::AllEpochs;

/// Time and cost of training on the whole data set.
#[skip_serializing_none]
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Training {
    /// One pass over the data.
    #[serde(rename = "epoch_s", with = "InBaseUnits")]
    pub epoch: Seconds,
    /// All passes, with evaluations; of a transformer with a plan, with interruptions and checkpoints.
    #[serde(rename = "total_s", with = "InBaseUnits")]
    pub total: Seconds,
    /// Total time at the ends of the interval of a step.
    #[serde_as(as = "Option<[InBaseUnits; 2]>")]
    pub total_interval_s: Option<[Seconds; 2]>,
    /// Share of that time left by interruptions and checkpoints.
    pub goodput: Option<f64>,
    /// Cost of all passes, where prices are given.
    pub cost: Option<f64>,
    /// Cost at the ends of the interval of a step.
    pub cost_interval: Option<[f64; 2]>,
    /// Currency of the cost.
    pub currency: Option<String>,
    /// Whether its prices are those of the catalog.
    pub is_price_assumed: bool,
}

/// A prediction with its scenario and its reasons.
#[skip_serializing_none]
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Forecast {
    /// The scenario, every default filled in.
    pub scenario: ScenarioFile,
    /// Its assumed parts.
    pub assumed: Assumed,
    /// The prediction.
    pub prediction: Prediction,
    /// Workers on which some usual plan of a transformer fits, if this one does not; none if more would not help.
    pub fits_with: Option<u32>,
    /// Change that would make some usual plan fit on the same workers, if this one does not.
    pub fits_after: Option<Remedy>,
    /// A step with the kernels of Hugging Face, if PyTorch's own are assumed.
    #[serde_as(as = "Option<InBaseUnits>")]
    pub with_hugging_face_s: Option<Seconds>,
    /// The interval in which measurements should lie.
    pub interval: Option<Interval>,
    /// The bottleneck of the step and the changes that would help.
    pub advice: Advice,
    /// Predictions for other numbers of workers.
    pub scaling: Vec<ScalingPoint>,
    /// The number of workers beyond which more are not worth it; none if it was not reached.
    pub saturates_at: Option<u32>,
    /// The gain in throughput above which more workers are worth it: 0.05 is 5 %.
    pub worth: f64,
    /// Epoch time and cost, where a data set is given.
    pub training: Option<Training>,
}

/// Options of a forecast.
#[derive(Clone)]
pub struct ForecastOptions {
    /// The method.
    pub method: MethodChoice,
    /// Numbers of workers of the scaling table; the [usual ones](usual_workers) where none are given.
    pub workers: Option<Vec<u32>>,
    /// The gain in throughput above which more workers are worth it.
    pub worth: f64,
}

impl ForecastOptions {
    /// A forecast by a method, without a scaling table.
    pub fn unscaled(method: MethodChoice) -> Self {
        Self { method, workers: Some(Vec::new()), ..Self::default() }
    }
}

impl Default for ForecastOptions {
    fn default() -> Self {
        Self { method: MethodChoice::Auto, workers: None, worth: WORTH }
    }
}

/// Receives progress and partial results of a forecast.
#[derive(Clone, Copy)]
pub struct Observer<'a> {
    /// Is told of every prediction, and may cancel the work.
    pub progress: &'a Watch<'a>,
    /// Receives the forecast from every estimate of a simulation, as soon as the prediction is known, then with its interval, and
    /// then with the scaling curve: without the changes that would help.
    pub part: &'a (dyn Fn(&Forecast) + Sync),
}

impl<'a> Observer<'a> {
    /// An observer of predictions only.
    pub fn watching(progress: &'a Watch<'a>) -> Self {
        Self { progress, part: &|_| () }
    }

    /// An observer that ignores everything.
    pub fn none() -> Self {
        Self::watching(&unwatched)
    }
}

/// Answers a request: resolves its scenario, chooses the method and makes the forecast.
pub fn forecast<F: Source>(
    request: &Request<F>,
    options: &ForecastOptions,
    observer: &Observer<'_>,
) -> Result<Forecast, Stopped> {
    let scenario = request.scenario()?;
    let method = request.method(options.method)?;
    let watched = Watched::new(method, observer.progress);
    let workers = options.workers.clone().unwrap_or_else(|| usual_workers(&scenario, method));
    let assumed = *request.assumed()?;
    // The default plan depends on the number of workers.
    let planned = |number: u32| request.usual_plan(number);
    let planned: Planned<'_> = (assumed.plan && options.workers.is_some()).then_some(&planned);
    let forecast = Forecast::new(&scenario, assumed, &watched, &workers, planned, options.worth, observer);
    match forecast {
        _ if watched.is_cancelled() => Err(Stopped::Cancelled),
        Err(Stopped::Fault(refusal)) => Err(Stopped::Fault(request.refused(refusal))),
        Ok(forecast) => {
            let report = forecast.prediction.transformer.as_ref();
            let advised = assumed.plan && report.is_some_and(|report| report.memory.verdict != Verdict::Fits);
            let fits_after = if advised { request.fits_after(&scenario) } else { None };
            Ok(Forecast { fits_after, ..forecast })
        }
        refused => refused,
    }
}

impl Forecast {
    /// Predicts `scenario` by `method`, for its own cluster and for every number of `workers`.
    fn new(
        scenario: &Scenario,
        assumed: Assumed,
        method: &dyn Method,
        workers: &[u32],
        planned: Planned<'_>,
        worth: f64,
        observer: &Observer<'_>,
    ) -> Result<Self, Stopped> {
        let watch = observer.progress;
        budget::check_scaling(scenario, method, workers.len())?;
        let begun = |prediction: Prediction| Self {
            scenario: scenario.to_file(),
            assumed,
            fits_with: training::fits_with(scenario, &prediction),
            fits_after: None,
            with_hugging_face_s: None,
            advice: advice::explain(scenario, method, &prediction),
            scaling: Vec::new(),
            saturates_at: None,
            worth,
            training: Training::new(scenario, &prediction, None, assumed.price),
            interval: None,
            prediction,
        };
        let estimated = |progress: Progress<'_>| {
            if let Progress::Estimate(estimate) = progress {
                (observer.part)(&begun(estimate.clone()));
            }
            watch(progress)
        };
        let mut forecast = begun(method.predict_watched(&budget::headline(scenario), &estimated)?);
        forecast.with_hugging_face_s = assumed.kernels.then(|| with_hugging_face(scenario, method)).flatten();
        (observer.part)(&forecast);
        let intervals = Intervals::new(scenario, method);
        let granted = Granted::affordable(scenario, method, &intervals, workers.len());
        forecast.prediction.warnings.extend(granted.warning());
        if granted.slack {
            scaling::fill_slack(scenario, method, &mut forecast.prediction);
        }
        let found = training::warnings(scenario, &forecast.prediction);
        forecast.prediction.warnings.extend(found);
        if granted.interval
            && let Some((interval, warnings)) =
                intervals.interval(scenario, &forecast.prediction, &Scenario::clone, true)?
        {
            forecast.prediction.warnings.extend(warnings);
            forecast.training = Training::new(scenario, &forecast.prediction, Some(&interval), assumed.price);
            forecast.interval = Some(interval);
        }
        if granted.balance {
            forecast.advice.find_balance(scenario, method);
        }
        forecast.advice.find_path(scenario, &forecast.prediction, &|| watch(Progress::Working));
        (observer.part)(&forecast);
        if scenario.strategy.architecture != Architecture::StandAlone && granted.scaling {
            let brief = budget::scaling(scenario, workers.len());
            let intervals = granted.intervals.then_some(&intervals);
            forecast.scaling =
                scaling::scaling(&brief, method, intervals, workers, &forecast.prediction, planned)?;
        }
        if granted.saturation {
            forecast.saturates_at = scaling::saturation(scenario, method, &forecast.scaling, worth);
        }
        (observer.part)(&forecast);
        if granted.what_if {
            forecast.advice.try_changes(scenario, method, &forecast.prediction);
        }
        Ok(forecast)
    }
}

/// A step with the kernels of Hugging Face instead of PyTorch's own.
fn with_hugging_face(scenario: &Scenario, method: &dyn Method) -> Option<Seconds> {
    let mut scenario = budget::headline(scenario);
    let plan =
        scenario.strategy.plan.as_mut().filter(|plan| plan.implemented_by() == Implementation::Pytorch)?;
    plan.implementation = Some(Implementation::HuggingFace);
    Some(method.predict(&scenario).ok()?.iteration)
}

impl Training {
    fn new(
        scenario: &Scenario,
        prediction: &Prediction,
        interval: Option<&Interval>,
        assumed: Option<AssumedRent>,
    ) -> Option<Self> {
        let epoch = training::epoch(scenario, prediction)?;
        let AllEpochs { time: total, goodput, cost } = training::all_epochs(scenario, prediction)?;
        let ends = interval.map(|ends| ends.iteration_s.map(|end| end / prediction.iteration));
        let assumed = assumed.filter(|_| cost.is_none());
        let cost = cost.or(assumed.map(|rent| rent.hour * (total / Seconds::new(3600.0))));
        let of_price = assumed.map_or([1.0; 2], |rent| rent.range.map(|end| end / rent.hour));
        Some(Self {
            epoch,
            total,
            total_interval_s: ends.map(|ends| ends.map(|end| total * end)),
            goodput,
            cost,
            cost_interval: cost.zip(ends).map(|(cost, of_time)| of_product(cost, &[of_time, of_price])),
            currency: cost.map(|_| scenario.currency().to_owned()),
            is_price_assumed: assumed.is_some(),
        })
    }
}

/// A method that reports every prediction and stops once it is cancelled.
pub(crate) struct Watched<'a> {
    method: &'static dyn Method,
    watch: &'a Watch<'a>,
    cancelled: AtomicBool,
}

impl<'a> Watched<'a> {
    pub(crate) fn new(method: &'static dyn Method, watch: &'a Watch<'a>) -> Self {
        Self { method, watch, cancelled: AtomicBool::new(false) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

impl Method for Watched<'_> {
    fn about(&self) -> MethodAbout {
        self.method.about()
    }

    fn is_quick(&self) -> bool {
        self.method.is_quick()
    }

    fn beyond_paper(&self, scenario: &Scenario) -> Vec<&'static str> {
        self.method.beyond_paper(scenario)
    }

    fn applies(&self, scenario: &Scenario) -> Result<(), Fault> {
        self.method.applies(scenario)
    }

    fn predict(&self, scenario: &Scenario) -> Result<Prediction, Fault> {
        // Only the main figure is worth showing before it is final.
        let quietly = |progress: Progress<'_>| match progress {
            Progress::Estimate(_) => (self.watch)(Progress::Working),
            _ => (self.watch)(progress),
        };
        self.predict_watched(scenario, &quietly).map_err(Fault::from)
    }

    fn predict_watched(&self, scenario: &Scenario, watch: &Watch<'_>) -> Result<Prediction, Stopped> {
        let watch = |progress: Progress<'_>| {
            let flow =
                if self.cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { watch(progress) };
            if flow.is_break() {
                self.cancelled.store(true, Ordering::Relaxed);
            }
            flow
        };
        let prediction = self.method.predict_watched(scenario, &watch)?;
        match watch(Progress::Predicted(&prediction)) {
            ControlFlow::Continue(()) => Ok(prediction),
            ControlFlow::Break(()) => Err(Stopped::Cancelled),
        }
    }
}
