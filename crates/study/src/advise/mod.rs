//! What to measure before taking one of several offers: the experiment that most lowers the expected loss by a wrong choice,
//! less its price. The answer may be that nothing is worth measuring.

mod decision;

pub use decision::{
    ChoiceAfter, Decision, DecisionOption, ExperimentValue, Lateness, UncertainFigure, joint,
};

use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::prior::REPEATS;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_stats::NORMAL_95;

/// Choices after an experiment with a lower probability are left out.
const NOTICED: f64 = 0.005;

/// An experiment that can be made before the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExperimentKind {
    /// The kit on one GPU.
    Gpu,
    /// Collectives between two machines.
    Collectives,
    /// Steps on two machines.
    TwoMachines,
    /// Steps on an eighth of the machines.
    Eighth,
}

/// An offer with its best plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Number and kind of machines in words.
    pub machines: String,
    /// The logarithm of its step.
    pub figure: UncertainFigure,
    /// Its time and price.
    pub option: DecisionOption,
}

/// An experiment and its readings.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Kind of experiment.
    pub kind: ExperimentKind,
    /// Number and kind of machines in words.
    pub machines: String,
    /// The time for which they are rented.
    pub time: Seconds,
    /// The rent.
    pub price: f64,
    /// Figures that it reads, each as precisely as repeats of a run agree.
    pub readings: Vec<UncertainFigure>,
    /// Command that starts it.
    pub command: String,
}

/// Expected cost of an offer.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct CandidateReport {
    /// Number and kind of machines in words.
    pub machines: String,
    /// Median of the time of training.
    #[serde(rename = "time_s", with = "InBaseUnits")]
    pub time: Seconds,
    /// Its expected cost, including lateness.
    pub cost: f64,
    /// Half-width of the 90 % interval of the logarithm of its time.
    pub half_width: f64,
    /// The probability that it is the cheapest of all.
    pub cheapest: f64,
    /// The probability that it meets the deadline, if being late has a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_time: Option<f64>,
}

/// A choice after an experiment.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ChoiceReport {
    /// The offer that is taken.
    pub machines: String,
    /// Probability of this choice.
    pub chance: f64,
    /// The mean factor by which the experiment then lengthens the forecast of the currently best offer.
    pub factor: f64,
    /// Its saving over the currently best offer.
    pub saving: f64,
}

/// Value of an experiment.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ExperimentReport {
    /// Kind of experiment.
    pub kind: ExperimentKind,
    /// Number and kind of machines in words.
    pub machines: String,
    /// The time for which they are rented.
    #[serde(rename = "time_s", with = "InBaseUnits")]
    pub time: Seconds,
    /// What that costs.
    pub price: f64,
    /// Mean reduction of the loss by choosing after it.
    pub value: f64,
    /// Half-width of the 95 % confidence interval of the value.
    pub error: f64,
    /// How it is started.
    pub command: String,
    /// Offers that would be chosen after it, the most likely first.
    pub choices: Vec<ChoiceReport>,
}

impl ExperimentReport {
    /// The value less the price.
    pub fn gain(&self) -> f64 {
        self.value - self.price
    }
}

/// Advice on what to measure before taking one of several offers.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct MeasurementAdvice {
    /// The offers, cheapest expected cost first.
    pub candidates: Vec<CandidateReport>,
    /// The mean loss by taking the first of them instead of the one that turns out the cheapest.
    pub regret: f64,
    /// Experiments, the one with the largest gain first.
    pub experiments: Vec<ExperimentReport>,
    /// The currency of all costs.
    pub currency: String,
}

impl MeasurementAdvice {
    /// The advice for a choice among candidates; none if their figures are not finite.
    pub fn new(
        candidates: &[Candidate],
        experiments: &[Experiment],
        lateness: Option<Lateness>,
        currency: &str,
    ) -> Option<Self> {
        let steps = candidates.iter().map(|candidate| &candidate.figure);
        let readings = experiments.iter().flat_map(|experiment| &experiment.readings);
        let figures: Vec<_> = steps.chain(readings).map(|figure| (figure, REPEATS)).collect();
        let options = candidates.iter().map(|candidate| candidate.option).collect();
        let covariance = joint(&figures);
        let spread = |place: usize| covariance[place * (figures.len() + 1)].sqrt();
        let spreads: Vec<f64> = (0..candidates.len()).map(spread).collect();
        let decision = Decision::new(options, lateness, covariance);
        let worlds = decision.worlds()?;
        let known = decision.perfect(&worlds);
        let cheapest = |place: usize| known.choices.iter().find(|choice| choice.option == place);
        let losses = decision.losses();
        let mut order: Vec<usize> = (0..candidates.len()).collect();
        order.sort_by(|&a, &b| losses[a].total_cmp(&losses[b]));
        let candidate = |&place: &usize| CandidateReport {
            machines: candidates[place].machines.clone(),
            time: Seconds::new(candidates[place].option.time),
            cost: losses[place],
            half_width: NORMAL_95 * spreads[place],
            cheapest: cheapest(place).map_or(0.0, |choice| choice.chance),
            in_time: decision.in_time(place),
        };
        let choice = |choice: &ChoiceAfter| ChoiceReport {
            machines: candidates[choice.option].machines.clone(),
            chance: choice.chance,
            factor: choice.shift.exp(),
            saving: choice.saving,
        };
        let mut first = candidates.len();
        let mut reports = Vec::new();
        for experiment in experiments {
            let places: Vec<usize> = (first..first + experiment.readings.len()).collect();
            first += experiment.readings.len();
            let ExperimentValue { value, error, choices } = decision.value(&places, &worlds)?;
            reports.push(ExperimentReport {
                kind: experiment.kind,
                machines: experiment.machines.clone(),
                time: experiment.time,
                price: experiment.price,
                value,
                error,
                command: experiment.command.clone(),
                choices: choices.iter().filter(|choice| choice.chance >= NOTICED).map(choice).collect(),
            });
        }
        reports.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
        Some(Self {
            candidates: order.iter().map(candidate).collect(),
            regret: known.value,
            experiments: reports,
            currency: currency.to_owned(),
        })
    }

    /// The experiment with the largest gain; none if none is worth its price.
    pub fn best(&self) -> Option<&ExperimentReport> {
        self.experiments.first().filter(|experiment| experiment.gain() > experiment.error)
    }
}
