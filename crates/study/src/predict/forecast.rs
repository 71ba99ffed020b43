//! A forecast: the prediction with the scenario, its reasons and the scaling curve.

use crate::predict::advice::{self, Advice};
use crate::predict::allowance::Granted;
use crate::predict::interval::{Interval, Intervals};
use crate::predict::scaling::{self, ScalingPoint};
use crate::predict::slack;
use crate::predict::{budget, training};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::method::{Method, Progress, Stopped, Watch};
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::strategy::Architecture;

/// Time and cost of training on the whole data set.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Training {
    /// One pass over the data.
    #[serde(rename = "epoch_s")]
    #[serde_as(as = "InBaseUnits")]
    pub epoch: Seconds,
    /// All passes.
    #[serde(rename = "total_s")]
    #[serde_as(as = "InBaseUnits")]
    pub total: Seconds,
    /// Cost of all passes, where prices are given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Currency of the cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
}

/// A prediction with its scenario and its reasons.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Forecast {
    /// The scenario, every default filled in.
    pub scenario: ScenarioFile,
    /// The prediction.
    pub prediction: Prediction,
    /// The interval in which measurements should lie.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The bottleneck of the step and the changes that would help.
    pub advice: Advice,
    /// Predictions for other numbers of workers.
    pub scaling: Vec<ScalingPoint>,
    /// The number of workers beyond which more of them are not worth it; none if it was not reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturates_at: Option<u32>,
    /// The gain in throughput above which more workers are worth it: 0.05 is 5 %.
    pub worth: f64,
    /// Epoch time and cost, where a data set is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub training: Option<Training>,
}

impl Forecast {
    /// Predicts `scenario` by `method`, for its own cluster and for every number of `workers`; more workers are worth
    /// it if they gain at least `worth` in throughput.
    pub fn new(
        scenario: &Scenario,
        method: &dyn Method,
        workers: &[u32],
        worth: f64,
        watch: &Watch<'_>,
    ) -> Result<Self, Stopped> {
        Self::in_parts(scenario, method, workers, worth, watch, &|_| ())
    }

    /// The same; `part` receives the forecast as soon as the prediction is known, and again with the scaling curve, both
    /// times without the changes that would help.
    pub fn in_parts(
        scenario: &Scenario,
        method: &dyn Method,
        workers: &[u32],
        worth: f64,
        watch: &Watch<'_>,
        part: &dyn Fn(&Self),
    ) -> Result<Self, Stopped> {
        let given = scenario;
        budget::check_scaling(given, method, workers.len())?;
        let mut prediction = method.predict_watched(&budget::headline(given), watch)?;
        let intervals = Intervals::new(scenario, method);
        let granted = Granted::of(scenario, method, &intervals, workers.len());
        prediction.warnings.extend(granted.warning());
        if granted.slack {
            slack::fill(scenario, method, &mut prediction)?;
        }
        let found = training::warnings(scenario, &prediction);
        prediction.warnings.extend(found);
        let interval = match granted.interval {
            true => intervals.interval(scenario, &prediction, &Scenario::clone, true)?,
            false => None,
        };
        let interval = interval.map(|(interval, warnings)| {
            prediction.warnings.extend(warnings);
            interval
        });
        let mut forecast = Self {
            scenario: given.to_file(),
            interval,
            advice: advice::explain(scenario, method, &prediction, granted.balance, &|| {
                watch(Progress::Working)
            }),
            scaling: Vec::new(),
            saturates_at: None,
            worth,
            training: of_data(scenario, &prediction),
            prediction,
        };
        part(&forecast);
        if scenario.strategy.architecture != Architecture::StandAlone && granted.scaling {
            let brief = budget::scaling(given, workers.len());
            let intervals = granted.intervals.then_some(&intervals);
            forecast.scaling = scaling::scaling(&brief, method, intervals, workers, &forecast.prediction)?;
        }
        if granted.saturation {
            forecast.saturates_at = scaling::saturation(scenario, method, &forecast.scaling, worth);
        }
        part(&forecast);
        if granted.what_if {
            forecast.advice.try_changes(scenario, method, &forecast.prediction);
        }
        Ok(forecast)
    }
}

fn of_data(scenario: &Scenario, prediction: &Prediction) -> Option<Training> {
    let data = scenario.data?;
    let epoch = training::epoch(scenario, prediction)?;
    let total = epoch * data.epochs as f64;
    let cost = scenario.hourly_cost().map(|hourly| hourly * (total / Seconds::new(3600.0)));
    Some(Training { epoch, total, cost, currency: cost.map(|_| scenario.currency().to_owned()) })
}
