//! A running job against its forecast: whether it is inside the interval, which assumption is most likely off, and the
//! updated forecast of the rest of the run.

mod log;
pub mod ranks;

pub use log::{ProgressLine, Reading, RunningForecast, follow, read_progress, read_steps};
pub use ranks::{Slowness, StepDistribution};

use crate::contract::{Acceptance, Terms};
use crate::predict::budget;
use crate::predict::calibrate::{self, MeasuredRun};
use crate::predict::interval::Interval;
use crate::predict::interval::assumed::{closed_form, slopes};
use crate::predict::{Forecast, ForecastOptions, MethodChoice, Observer, Stopped, Training, Watch, forecast};
use crate::request::{Request, Source};
use ranks::RankRecording;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::{serde_as, skip_serializing_none};
use std::sync::Arc;
use stepcast_core::fault::{Fault, Remedies};
use stepcast_core::method::Method;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_core::scenario::Scenario;

/// Share of the steps at the beginning that are left out while libraries are loaded and kernels chosen.
const WARM_UP: f64 = 0.1;
/// Most steps that are left out.
const LONGEST_WARM_UP: usize = 50;

/// Position of measured steps relative to the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Inside the interval of the forecast.
    AsForecast,
    /// Longer than the longest step of the interval.
    Slower,
    /// Shorter than the shortest step of the interval.
    Faster,
}

/// An assumption that may be off.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Suspect {
    /// The assumption.
    pub name: String,
    /// Probability that it is the cause: its share of the variance of the forecast. Shares add up to one.
    pub share: f64,
    /// Factor on its figures that would explain the whole difference; none if no reasonable one would.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// How to replace it.
    #[serde(flatten)]
    pub remedy: Remedies,
}

/// The rest of a run.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Rest {
    /// Steps that are left.
    pub steps: u64,
    /// Their time.
    #[serde(rename = "time_s", with = "InBaseUnits")]
    pub time: Seconds,
}

/// A job against its forecast.
#[skip_serializing_none]
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Check {
    /// Position of the measured steps relative to the interval.
    pub verdict: Verdict,
    /// Measured steps, without the warm-up.
    pub steps: usize,
    /// Steps at the beginning that were left out.
    pub left_out: usize,
    /// Their median.
    #[serde(rename = "measured_s", with = "InBaseUnits")]
    pub measured: Seconds,
    /// The forecast of a step.
    #[serde(rename = "forecast_s", with = "InBaseUnits")]
    pub forecast: Seconds,
    /// Its 90 % interval.
    #[serde(rename = "interval_s")]
    #[serde_as(as = "Option<[InBaseUnits; 2]>")]
    pub interval: Option<[Seconds; 2]>,
    /// Measured over forecast.
    pub ratio: f64,
    /// Assumptions that may be off, the most likely first.
    pub suspects: Vec<Suspect>,
    /// The forecast after the correction.
    #[serde(rename = "corrected_s", with = "InBaseUnits")]
    pub corrected: Seconds,
    /// Distribution of the times of the steps.
    pub distribution: StepDistribution,
    /// Slow ranks and other causes, if several ranks were recorded.
    pub slowness: Option<Slowness>,
    /// The end of the run, if it is followed.
    pub running: Option<RunningForecast>,
    /// Whether a contract is kept, if there is one.
    pub acceptance: Option<Acceptance>,
    /// The rest of the run, if its number of steps is known.
    pub rest: Option<Rest>,
}

/// Largest plausible factor on a figure.
const LARGEST_FACTOR: f64 = 20.0;

/// Further information about a running job.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// Steps still to come; by default from the data set and epochs of the scenario.
    pub steps_left: Option<u64>,
    /// A contract that the steps should keep.
    pub contract: Option<&'a Terms>,
    /// Steps of several ranks.
    pub ranks: Option<&'a RankRecording>,
    /// Lines of a log that is followed, and the deadline, which counts from the first of them.
    pub followed: Option<(&'a [ProgressLine], Option<Seconds>)>,
}

pub(crate) fn warm_up(steps: usize) -> usize {
    ((steps as f64 * WARM_UP) as usize).min(LONGEST_WARM_UP)
}

/// Compares measured steps with the forecast of a request.
pub fn check<F: Source>(
    request: &Request<F>,
    method: &'static dyn Method,
    readings: &[Reading],
    known: Known<'_>,
    watch: &Watch<'_>,
) -> Result<Check, Stopped> {
    let scenario = request.scenario()?;
    let options = ForecastOptions::unscaled(MethodChoice::One(method));
    let forecast = forecast(request, &options, &Observer::watching(watch))?;
    let left_out = warm_up(readings.len());
    let kept = readings[left_out..].iter();
    let mut times: Vec<Seconds> =
        kept.map(|reading| step_time(reading, &forecast)).collect::<Result<_, Fault>>()?;
    let acceptance = known.contract.map(|terms| terms.test(&times));
    let distribution = ranks::distribution(&times.iter().map(|time| time.get()).collect::<Vec<_>>());
    times.sort_by(|a, b| a.get().total_cmp(&b.get()));
    let measured = times[times.len() / 2];
    let iteration = forecast.prediction.iteration;
    let interval = forecast.interval.as_ref().map(|interval| interval.iteration_s);
    let verdict = match interval.unwrap_or([iteration; 2]) {
        [shortest, _] if measured < shortest => Verdict::Faster,
        [_, longest] if measured > longest => Verdict::Slower,
        _ => Verdict::AsForecast,
    };
    let run = MeasuredRun::from_step(measured);
    let runs = [(Arc::clone(&scenario), &run)];
    let priors = calibrate::calibrate_by(&scenario, options.method, &runs)?.priors;
    let corrected = Scenario { priors, ..scenario.as_ref().clone() };
    let corrected = method.predict_watched(&budget::headline(&corrected), watch)?.iteration;
    let epochs = scenario.data.map_or(1, |data| data.epochs) as f64;
    let in_all = |training: &Training| (training.epoch * epochs / iteration).ceil() as u64;
    let total = forecast.training.as_ref().map(in_all);
    let steps = known.steps_left.or(total.map(|total| total.saturating_sub(readings.len() as u64)));
    let running = known.followed.map(|(lines, deadline)| {
        let asked = known.steps_left.zip(lines.last()).map(|(left, last)| last.step + left);
        follow(&scenario, lines, &|reading| step_time(reading, &forecast), asked.or(total), deadline)
    });
    Ok(Check {
        verdict,
        steps: times.len(),
        left_out,
        measured,
        forecast: iteration,
        interval,
        ratio: measured / iteration,
        suspects: suspects(&scenario, method, forecast.interval.as_ref(), (measured / iteration).ln())?,
        corrected,
        // Measured steps predict the rest better than any model.
        acceptance,
        distribution,
        slowness: known.ranks.map(ranks::find),
        running: running.transpose()?,
        rest: steps.map(|steps| Rest { steps, time: measured * steps as f64 }),
    })
}

fn step_time(reading: &Reading, forecast: &Forecast) -> Result<Seconds, Fault> {
    let prediction = &forecast.prediction;
    match reading {
        Reading::Step(time) => Ok(*time),
        Reading::Throughput(rate) => Ok(rate.time_for(prediction.samples as f64)),
        Reading::TokensPerDevice(rate) => {
            let split = prediction.transformer.as_ref().ok_or_else(|| {
                let reason = "the log counts tokens, but the scenario is no transformer that a plan splits";
                Fault::new(reason, "add `[strategy.plan]`, or give step times")
            })?;
            Ok(prediction.iteration * (split.tokens_per_s_per_device / rate))
        }
    }
}

/// The causes of the forecast's uncertainty, in its order, and the factors that would explain `difference`, a logarithm.
fn suspects(
    scenario: &Scenario,
    method: &'static dyn Method,
    interval: Option<&Interval>,
    difference: f64,
) -> Result<Vec<Suspect>, Stopped> {
    let (Some(interval), Some(twin)) = (interval, closed_form(scenario, method)) else {
        return Ok(Vec::new());
    };
    let slopes = slopes(scenario, twin)?;
    // The unexplained deviation acts on the step itself.
    let slope = |cause: &str| {
        let mut groups = scenario.priors.groups.iter().zip(&slopes);
        groups.find(|(group, slope)| group.name == cause && **slope != 0.0).map_or(1.0, |(_, slope)| *slope)
    };
    let suspects = interval.by_assumption.iter().map(|cause| {
        let factor = (difference / slope(&cause.name)).exp();
        Suspect {
            name: cause.name.clone(),
            share: cause.share,
            factor: (1.0 / LARGEST_FACTOR..LARGEST_FACTOR).contains(&factor).then_some(factor),
            remedy: cause.remedy.clone(),
        }
    });
    Ok(suspects.collect())
}
