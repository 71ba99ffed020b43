//! All methods on one scenario: predictions side by side, the effects by which they differ, and refusals.

use crate::predict::Watched;
use crate::predict::advice::{with_bandwidth, with_startup};
use crate::predict::budget::COMPARED;
use crate::predict::budget::pass;
use crate::predict::{budget, methods};
use crate::simulate::BUDGET;
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::fault::{Fault, Remedies};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::ServerSoftware;
use stepcast_core::method::{Method, Stopped, Watch};
use stepcast_core::prediction::{Bottleneck, Prediction};
use stepcast_core::quantity::{BytesPerSec, InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::strategy::Architecture;

/// Factor that makes links so fast that they no longer matter.
const FAST: f64 = 1e6;

/// Steps that differ by less than this share count as equal.
const AGREE: f64 = 0.01;

/// One scenario, predicted by all methods.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    /// The scenario, every default filled in.
    pub scenario: ScenarioFile,
    /// The method that `auto` selects; none if no method applies.
    pub chosen: Option<&'static str>,
    /// The methods, in order of preference.
    pub rows: Vec<MethodRow>,
    /// How the other methods differ from the selected one, in words.
    pub differences: Vec<String>,
}

/// The result of one method.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct MethodRow {
    /// The method's name.
    pub method: &'static str,
    /// Its prediction or refusal.
    #[serde(flatten)]
    pub answer: Answer,
}

/// A prediction, or a refusal.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The method applies.
    Predicted(MethodFigures),
    /// The method does not apply.
    Refused(Refusal),
}

/// The figures that are compared.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct MethodFigures {
    /// Time of one step.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
    pub iteration: Seconds,
    /// Samples per second of the whole cluster.
    #[serde(rename = "throughput_samples_per_s", with = "InBaseUnits")]
    pub throughput: SamplesPerSec,
    /// Throughput relative to the sum of the throughputs of all workers alone.
    pub scaling_factor: f64,
    /// The bottleneck of the step.
    pub bottleneck: Bottleneck,
    /// The parts of the step according to this method; none if its prediction does not depend on the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<Effects>,
}

/// A step by the effects that methods model differently, found by predicting it again without them. They sum up to
/// the step.
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct Effects {
    /// The step if neither transfers nor their software take time.
    #[serde(rename = "computing_s", with = "InBaseUnits")]
    pub computing: Seconds,
    /// Additional time by the software of servers (serialising, copying, updating) or of all-reduces.
    #[serde(rename = "serving_s", with = "InBaseUnits")]
    pub serving: Seconds,
    /// Transfers of the smallest cluster that do not overlap with computing.
    #[serde(rename = "not_overlapped_s", with = "InBaseUnits")]
    pub not_overlapped: Seconds,
    /// Additional time with more workers: sharing links, waiting for each other.
    #[serde(rename = "contention_s", with = "InBaseUnits")]
    pub contention: Seconds,
    /// Costs of transfers that do not depend on their size.
    #[serde(rename = "startup_s", with = "InBaseUnits")]
    pub startup: Seconds,
}

impl Effects {
    /// Predicts the scenario without start-up costs and with links that take no time, each also for the smallest cluster
    /// that communicates; and with software that takes no time.
    fn find(scenario: &Scenario, method: &dyn Method, step: Seconds) -> Option<Self> {
        let smallest = match scenario.strategy.architecture {
            Architecture::ParameterServer => 1,
            Architecture::AllReduce => 2,
            Architecture::StandAlone => return None,
        };
        if scenario.strategy.exchange.curve.is_some() {
            return None;
        }
        let smooth = scenario.on(with_startup(&scenario.cluster, 0.0));
        let ask = |scenario: &Scenario| Some(method.predict(scenario).ok()?.iteration);
        let both = |scenario: &Scenario| {
            Some((ask(scenario)?, ask(&scenario.on(with_bandwidth(&scenario.cluster, FAST)))?))
        };
        let (without_startup, without_links) = both(&smooth)?;
        let mut cluster = with_bandwidth(&smooth.cluster, FAST);
        cluster.servers.software = Some(ServerSoftware::None);
        let mut free = smooth.on(cluster);
        let bandwidth = BytesPerSec::new(f64::MAX);
        free.strategy.exchange.curve = Some(Curve::AlphaBeta { startup: Seconds::ZERO, bandwidth });
        let computing = ask(&free)?;
        let (small, small_computing) = both(&smooth.on(smooth.cluster.resized(smallest)))?;
        let not_overlapped = small - small_computing;
        Some(Self {
            computing,
            serving: without_links - computing,
            not_overlapped,
            contention: without_startup - without_links - not_overlapped,
            startup: step - without_startup,
        })
    }

    /// The effects with their names.
    pub fn named(&self) -> [(&'static str, Seconds); 5] {
        [
            ("computing", self.computing),
            ("software of transfers", self.serving),
            ("transfers that are not overlapped", self.not_overlapped),
            ("contention", self.contention),
            ("start-up", self.startup),
        ]
    }
}

/// Why a method does not apply.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Refusal {
    /// The key of the scenario that the method does not model.
    pub key: String,
    /// The reason.
    pub reason: String,
    /// Changes that would make it apply.
    #[serde(flatten)]
    pub remedy: Remedies,
}

impl MethodFigures {
    fn from_prediction(prediction: &Prediction, effects: Option<Effects>) -> Self {
        Self {
            iteration: prediction.iteration,
            throughput: prediction.throughput,
            scaling_factor: prediction.scaling_factor,
            bottleneck: prediction.bottleneck,
            effects,
        }
    }
}

impl From<Fault> for Refusal {
    fn from(why: Fault) -> Self {
        Self { key: why.key.to_string(), reason: why.reason, remedy: why.remedy }
    }
}

impl MethodRow {
    fn predict(scenario: &Scenario, method: &dyn Method, explained: bool) -> Self {
        let answer = match method.predict(scenario) {
            Ok(prediction) => {
                let effects =
                    explained.then(|| Effects::find(scenario, method, prediction.iteration)).flatten();
                Answer::Predicted(MethodFigures::from_prediction(&prediction, effects))
            }
            Err(why) => Answer::Refused(why.into()),
        };
        Self { method: method.name(), answer }
    }
}

impl Comparison {
    /// Predicts the scenario with every method; all simulations share its budget.
    pub fn new(scenario: &Scenario) -> Self {
        let (brief, explained) = (budget::compared(scenario), explained(scenario));
        let row = |method: &&'static dyn Method| MethodRow::predict(&brief, *method, explained);
        Self::from_rows(scenario, methods::all().iter().map(row).collect())
    }

    /// Predicts the scenario with every method; `part` receives the rows so far after each method, the quick ones first, and
    /// `watch` may cancel.
    pub fn watched(
        scenario: &Scenario,
        watch: &Watch<'_>,
        part: &mut dyn FnMut(&Self),
    ) -> Result<Self, Stopped> {
        let (brief, explained) = (budget::compared(scenario), explained(scenario));
        let mut done: Vec<Option<MethodRow>> = vec![None; methods::all().len()];
        let mut order: Vec<usize> = (0..done.len()).collect();
        order.sort_by_key(|place| !methods::all()[*place].is_quick());
        for place in order {
            let method = Watched::new(methods::all()[place], watch);
            let row = MethodRow::predict(&brief, &method, explained);
            if method.is_cancelled() {
                return Err(Stopped::Cancelled);
            }
            done[place] = Some(row);
            part(&Self::from_rows(scenario, done.iter().flatten().cloned().collect()));
        }
        Ok(Self::from_rows(scenario, done.into_iter().flatten().collect()))
    }

    fn from_rows(scenario: &Scenario, rows: Vec<MethodRow>) -> Self {
        let chosen = methods::choose(scenario).ok().map(|method| method.name());
        let mut differences = differences(&rows, chosen);
        if !explained(scenario) {
            let why = "too many layers and groups for the budget";
            differences.push(format!("By what they differ is left out, {why}; use a larger `{BUDGET}`."));
        }
        Self { scenario: scenario.to_file(), chosen, differences, rows }
    }
}

/// Whether the budget pays for finding out by which effects all methods differ.
fn explained(scenario: &Scenario) -> bool {
    let predictions = (COMPARED * methods::all().len()) as u64;
    pass(scenario).saturating_mul(predictions) <= scenario.methods.simulate.budget
}

/// One sentence for each method whose prediction differs from that of the selected one.
fn differences(rows: &[MethodRow], chosen: Option<&str>) -> Vec<String> {
    let predicted = |row: &MethodRow| match &row.answer {
        Answer::Predicted(figures) => Some((row.method, figures.clone())),
        Answer::Refused(_) => None,
    };
    let answers: Vec<(&str, MethodFigures)> = rows.iter().filter_map(predicted).collect();
    let Some((reference, own)) = answers.iter().find(|(method, _)| Some(*method) == chosen) else {
        return Vec::new();
    };
    let others = answers.iter().filter(|(method, _)| method != reference);
    others.map(|(method, other)| difference((reference, own), (method, other))).collect()
}

fn difference((reference, own): (&str, &MethodFigures), (method, other): (&str, &MethodFigures)) -> String {
    let ratio = other.iteration / own.iteration - 1.0;
    if ratio.abs() < AGREE {
        return format!("{method} agrees with {reference}.");
    }
    let how = if ratio > 0.0 { "longer" } else { "shorter" };
    let step = format!("{method}: a step {:.0} % {how} than by {reference}", 100.0 * ratio.abs());
    let (Some(own), Some(other)) = (&own.effects, &other.effects) else { return step + "." };
    let pairs = other.named().into_iter().zip(own.named());
    let most = pairs.max_by(|(a, b), (c, d)| (a.1 - b.1).get().abs().total_cmp(&(c.1 - d.1).get().abs()));
    most.map_or(step.clone(), |((effect, theirs), (_, ours))| {
        format!("{step}, mostly by {effect}: {} instead of {}.", theirs.human(), ours.human())
    })
}
