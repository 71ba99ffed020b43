//! Restrictions of a search over plans, and its answer, with the event engine's run of the chosen plan.

use crate::advise::MeasurementAdvice;
use crate::simulate::Simulate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::{serde_as, skip_serializing_none};
use stepcast_core::method::Method;
use stepcast_core::precision::Precision;
use stepcast_core::prediction::{Prediction, Verdict};
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_core::scenario::{AssumedPrice, Scenario};
use stepcast_core::strategy::{Framework, PlanSection};

/// The best plan, its alternatives, and the cost of every value of a dimension.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct PlanReport {
    /// The model.
    pub model: String,
    /// The minimised figure.
    pub objective: super::Aim,
    /// Numbers of plans.
    pub counts: Counts,
    /// The best plan.
    pub best: Entry,
    /// The framework for which it was searched.
    pub framework: Option<Framework>,
    /// Frameworks that run it, each with its own kernels, states and overlap.
    pub launches: Vec<Framework>,
    /// The best plan that a framework runs as predicted, if none runs the best of all.
    pub launchable: Option<Entry>,
    /// Its prediction.
    pub prediction: Prediction,
    /// The event engine's run of it.
    pub confirmation: Confirmation,
    /// Layers and recomputation chosen for each stage, if better than the best plan with equal stages.
    pub stages: Option<StagesReport>,
    /// Its training, if tokens are given.
    pub training: Option<Training>,
    /// Why training would never end.
    pub endless: Option<EndlessTraining>,
    /// Plans that cannot be told apart from the best.
    pub close: Option<ClosePlans>,
    /// Gain of the best plan with more kinds of parallelism, as a share, which was too small to choose it.
    pub forgone: f64,
    /// Plans of which none is better in time, cost and memory at once, the fastest first.
    pub front: Vec<Entry>,
    /// The cost of every value of every property.
    pub families: Vec<FamilyReport>,
    /// Settings that it determines in the recipe of the framework for which it was searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub settings: Vec<RecipeSetting>,
    /// The plan as a section of a scenario.
    pub toml: String,
    /// The currency of all costs.
    pub currency: String,
    /// Assumed prices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub assumed_prices: Vec<AssumedPrice>,
    /// Upper limit of the gain of an untried plan, as a share; 0 if none can be better.
    pub gap: f64,
    /// Whether the search was stopped before its end.
    pub interrupted: bool,
    /// Advice on what to measure before taking one of the offers, if they are compared by cost.
    pub advice: Option<MeasurementAdvice>,
}

/// A setting of a fine-tuning recipe.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RecipeSetting {
    /// Its name in the framework.
    pub name: String,
    /// Its value in the plan of the scenario.
    pub scenario: Option<serde_json::Value>,
    /// Its value in the best plan; none if it is to be removed.
    pub best: Option<serde_json::Value>,
}

/// A plan whose stages differ.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct StagesReport {
    /// The plan.
    pub entry: Entry,
    /// Its saving of time or cost over the best plan with equal stages, as a share.
    pub gain: f64,
    /// No other division of the layers over these stages has a shorter step than this.
    #[serde(rename = "least_s", with = "InBaseUnits")]
    pub least: Seconds,
    /// The event engine's run of it.
    pub confirmation: Confirmation,
    /// The plan as a section of a scenario.
    pub toml: String,
}

/// Plans that cannot be distinguished from the best at 90 %.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ClosePlans {
    /// Number of such plans among the best of every value of a property, including the best one.
    pub plans: u64,
    /// The plan with the fewest kinds of parallelism, unless that is the best.
    pub simplest: Option<Entry>,
    /// The plan that needs least memory, unless that is the best.
    pub smallest: Option<Entry>,
    /// The best in the worst case of its interval, unless that is the best.
    pub robust: Option<Entry>,
    /// What to measure to separate the first two, if an assumed figure separates them.
    pub separated_by: Option<String>,
}

/// A run that makes no progress: interruptions leave less than a hundredth of the time.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct EndlessTraining {
    /// Mean time between interruptions.
    #[serde(rename = "between_interruptions_s", with = "InBaseUnits")]
    pub between_interruptions: Seconds,
    /// From an interruption until work goes on.
    #[serde(rename = "restart_s", with = "InBaseUnits")]
    pub restart: Seconds,
    /// Machines that wait for others to fail.
    pub spares: u32,
    /// Spares with which it would end, if they are what is missing.
    pub enough_spares: Option<u32>,
    /// Machines on which at least half of the time is progress, other settings unchanged.
    pub machines: Option<u64>,
}

/// Numbers of plans by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Valid plans.
    pub plans: u64,
    /// Plans that do not fit into memory.
    pub too_large: u64,
    /// Plans that take longer than the deadline.
    pub too_slow: u64,
    /// Plans that cost more than the budget.
    pub too_dear: u64,
    /// Plans that a lower bound of their step proves to win in no family.
    pub bounded: u64,
    /// Plans whose step was computed.
    pub evaluated: u64,
}

impl Counts {
    /// Adds the counts of another part.
    pub(super) fn add(&mut self, other: &Self) {
        self.plans += other.plans;
        self.too_large += other.too_large;
        self.too_slow += other.too_slow;
        self.too_dear += other.too_dear;
        self.bounded += other.bounded;
        self.evaluated += other.evaluated;
    }
}

/// A plan with its figures.
#[serde_as]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// The offer whose machines these are, if the scenario has any.
    pub machine: Option<String>,
    /// Number and kind of machines in words.
    #[serde(skip)]
    pub machines: String,
    /// Machines.
    pub nodes: u64,
    /// Workers.
    pub workers: u64,
    /// Replicas.
    pub data: u64,
    /// Micro-batches of a replica.
    pub micro_batches: u64,
    /// The number format for which it was found, if not the scenario's: a framework's.
    pub precision: Option<Precision>,
    /// The plan.
    pub plan: PlanSection,
    /// The plan in few words.
    pub words: String,
    /// Time of a step.
    #[serde(rename = "step_s", with = "InBaseUnits")]
    pub step: Seconds,
    /// Tokens of all devices in a second.
    pub tokens_per_s: f64,
    /// Memory that the fullest device needs, with fragmentation.
    #[serde(with = "InBaseUnits")]
    pub memory: Bytes,
    /// Whether it fits.
    pub verdict: Verdict,
    /// Time of training, if tokens are given.
    #[serde(rename = "training_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub training: Option<Seconds>,
    /// Cost of training, or of a step.
    pub cost: Option<f64>,
}

/// All plans that share a property.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FamilyReport {
    /// The dimension that they share: `machine`, `nodes` or a key of `[plan]`.
    pub property: String,
    /// Its value.
    pub value: String,
    /// Both, in words.
    pub words: String,
    /// Plans with it.
    pub plans: u64,
    /// Number of these plans that fit into memory.
    pub fitting: u64,
    /// Whether the best plan has it.
    pub chosen: bool,
    /// Additional time or cost of its best plan over the best of all, as a share; none if no plan with it is admissible.
    pub more: Option<f64>,
    /// The best plan with it, in few words; if none is admissible, the plan that needs least memory.
    pub plan: String,
    /// Memory that this plan needs, with fragmentation.
    #[serde(with = "InBaseUnits")]
    pub memory: Bytes,
}

/// A whole training run.
#[serde_as]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Training {
    /// Steps.
    pub steps: f64,
    /// Time of all steps.
    #[serde(rename = "without_interruptions_s", with = "InBaseUnits")]
    pub without_interruptions: Seconds,
    /// Time with checkpoints, interruptions and their losses.
    #[serde(rename = "time_s", with = "InBaseUnits")]
    pub time: Seconds,
    /// Share of the time spent in steps that are kept.
    pub goodput: f64,
    /// Interruptions.
    pub interruptions: f64,
    /// Interruptions over the range that the source of their rate leaves open.
    pub interruptions_range: Option<[f64; 2]>,
    /// Time over that range, and with the interval of a step.
    #[serde(rename = "time_range_s")]
    #[serde_as(as = "Option<[InBaseUnits; 2]>")]
    pub time_range: Option<[Seconds; 2]>,
    /// Goodput over that range, the least first.
    pub goodput_range: Option<[f64; 2]>,
    /// Mean time of a step that waits for slow machines, relative to a step without, if there are any.
    pub slow_machines: Option<f64>,
    /// Slow machines that are replaced, where that takes less time than to wait for them.
    pub slow_replaced: Option<f64>,
    /// Mean time between them, if there are any.
    #[serde(rename = "between_interruptions_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub between_interruptions: Option<Seconds>,
    /// From an interruption until work goes on.
    #[serde(rename = "restart_s", with = "InBaseUnits")]
    pub restart: Seconds,
    /// The checkpoints; none if nothing interrupts the run.
    pub checkpoints: Option<Checkpoints>,
    /// Machines that wait for others to fail.
    pub spares: u32,
    /// Share of the time in which they suffice, if repairs take time.
    pub spares_suffice: Option<f64>,
    /// Machines that would suffice for 99 % of the time.
    pub recommended_spares: Option<u32>,
    /// Cost of all machines.
    pub cost: Option<f64>,
    /// Cost over the range of the time.
    pub cost_range: Option<[f64; 2]>,
    /// Energy, if the power of the devices is known.
    pub energy: Option<Energy>,
}

/// Checkpoints of a run.
#[serde_as]
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Checkpoints {
    /// Weights and optimiser states.
    #[serde(with = "InBaseUnits")]
    pub size: Bytes,
    /// Work between two of them: as given, or the best.
    #[serde(rename = "interval_s", with = "InBaseUnits")]
    pub interval: Seconds,
    /// The best by Young 1974.
    #[serde(rename = "young_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub young: Option<Seconds>,
    /// The best by Daly 2006.
    #[serde(rename = "daly_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub daly: Option<Seconds>,
    /// Time that training stands still for one.
    #[serde(rename = "standstill_s", with = "InBaseUnits")]
    pub standstill: Seconds,
    /// Time to write one.
    #[serde(rename = "writing_s", with = "InBaseUnits")]
    pub writing: Seconds,
}

/// Energy of a run.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Energy {
    /// Kilowatt-hours of the building.
    pub kwh: f64,
    /// Kilowatt-hours over the range of the time.
    pub kwh_range: Option<[f64; 2]>,
    /// Energy of the building relative to its machines.
    pub pue: f64,
    /// Kilograms of carbon dioxide.
    pub carbon_kg: Option<f64>,
}

/// Largest difference at which the engine confirms a step.
pub const CONFIRMED: f64 = 0.03;

/// The event engine's check of a step predicted by a closed form.
#[serde_as]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, JsonSchema)]
pub struct Confirmation {
    /// Its step, without variation; none if it does not run the plan.
    #[serde(rename = "step_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub step: Option<Seconds>,
    /// Its excess over the closed form's step, as a share.
    pub difference: Option<f64>,
    /// Whether both agree within 3 %.
    pub confirmed: bool,
    /// Plans that the engine ran because it did not confirm the closed form's best; this plan is the fastest of them.
    pub ranked: Option<u64>,
    /// Why the engine does not run the plan.
    pub refused: Option<String>,
}

/// One step of `scenario` by the engine, compared with `step` seconds.
pub(super) fn by_engine(scenario: &Scenario, step: f64) -> Confirmation {
    let mut steady = scenario.clone();
    steady.methods.simulate.jitter = Some(0.0);
    match Simulate.predict(&steady) {
        Ok(simulated) => {
            let difference = simulated.iteration.get() / step - 1.0;
            Confirmation {
                step: Some(simulated.iteration),
                difference: Some(difference),
                confirmed: difference.abs() <= CONFIRMED,
                ranked: None,
                refused: None,
            }
        }
        Err(fault) => {
            let refused = Some(fault.reason);
            Confirmation { step: None, difference: None, confirmed: false, ranked: None, refused }
        }
    }
}

/// Keys of `[plan]` given with the question.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Restriction {
    /// Machines of the catalog to choose from.
    pub offers: Option<Vec<String>>,
    /// Numbers of machines.
    pub nodes: Option<Vec<u32>>,
    /// Frameworks to choose from; all if empty.
    pub frameworks: Option<Vec<Framework>>,
    /// Sequences of a step.
    pub global_batch: Option<u64>,
    /// Tokens to train on.
    pub tokens: Option<f64>,
    /// Longest time of training.
    pub deadline: Option<String>,
    /// Highest cost of training.
    pub budget: Option<f64>,
    /// Whether to include plans that fit only with low memory fragmentation.
    pub may_fit: bool,
}

impl Restriction {
    /// The restriction as changes of the scenario, in the notation of `--set`.
    pub fn changes(&self) -> Vec<String> {
        let named = |key: &str, value: Option<String>| value.map(|value| format!("plan.{key}={value}"));
        let offer = |machine: &String| format!("{{ machine = {} }}", toml::Value::from(machine.as_str()));
        let offers =
            self.offers.as_ref().map(|offers| offers.iter().map(offer).collect::<Vec<_>>().join(", "));
        let all = [
            named("offers", offers.map(|offers| format!("[{offers}]"))),
            named("nodes", self.nodes.as_ref().map(|nodes| format!("{nodes:?}"))),
            named(
                "frameworks",
                self.frameworks.as_ref().map(|list| {
                    let names: Vec<String> = list.iter().map(|own| format!("\"{own}\"")).collect();
                    format!("[{}]", names.join(", "))
                }),
            ),
            named("global-batch", self.global_batch.map(|batch| batch.to_string())),
            named("tokens", self.tokens.map(|tokens| format!("{tokens:e}"))),
            named("deadline", self.deadline.clone()),
            named("budget", self.budget.map(|budget| format!("{budget:e}"))),
            named("may-fit", self.may_fit.then(|| "true".to_owned())),
        ];
        all.into_iter().flatten().collect()
    }
}
