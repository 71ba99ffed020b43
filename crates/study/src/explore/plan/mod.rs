//! The best plan of a transformer: every valid way to split it, on every number of machines that is asked for.
//!
//! [`plan`] is exact: it leaves out a plan only where a lower bound proves that it cannot win. Where the budget is too
//! small to try all plans, it reports how much better one of them could be.

mod answer;
mod families;
mod faults;
mod measure;
mod report;
mod search;
mod setup;
mod space;
mod stagewise;
mod training;
mod usual;

pub use measure::{COLLECTIVES, is_of_gpu};
pub use report::{
    CONFIRMED, Checkpoints, ClosePlans, Confirmation, Counts, EndlessTraining, Energy, Entry, FamilyReport,
    PlanReport, RecipeSetting, Restriction, StagesReport, Training,
};
pub(crate) use training::TrainingRates;
pub use training::energy;
pub use usual::{UsualPlan, usual_plan};

use crate::predict::budget;
use crate::request::launch::{adopted, adopted_precision};
use families::{BestPlan, Families};
use schemars::JsonSchema;
use search::{MemoryLimit, PartResult, Pruning, Search};
use serde::{Deserialize, Serialize};
use setup::Setup;
use space::PlanSpace;
use std::ops::ControlFlow;
use std::str::FromStr;
use stepcast_analytic::transformer::flops::{self, Work};
use stepcast_analytic::transformer::{Transformer as Method, on_machines};
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::scenario::{Planning, PlanningSection, Scenario};
use stepcast_core::strategy::{
    Division, Framework, Implementation, Mask, Plan, PlanChoice, PlanSection, Recipe, Recompute,
    usual_global_batch,
};

/// Largest cost of a search on a shared server, in the units of `cost`: about ten seconds of a core.
pub const SHARED: u64 = 100_000_000;

/// Most plans that the engine runs if it does not confirm the best one.
const FINALISTS: usize = 8;

/// The minimised figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Time of training, or of a step.
    #[default]
    Time,
    /// Cost of training, or of a step.
    Cost,
}

impl Aim {
    /// The minimised one of a time and a cost.
    fn value(self, time: f64, cost: Option<f64>) -> f64 {
        match self {
            Self::Time => time,
            Self::Cost => cost.unwrap_or(time),
        }
    }
}

stepcast_core::variant_names!(Aim { Time = "time", Cost = "cost", });

impl FromStr for Aim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text).ok_or_else(|| format!("\"{text}\" cannot be minimised; use time or cost"))
    }
}

/// Receives the number of plans judged so far, and may stop the search.
pub type Watch<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// A search with its inputs from a scenario.
#[derive(Clone)]
struct PlanQuestion<'a> {
    scenario: &'a Scenario,
    shape: Transformer,
    base: Plan,
    bounds: Planning,
    global_batch: u64,
    setups: Vec<Setup>,
    aim: Aim,
    /// Budget of the search.
    budget: u64,
    /// Whether the event engine runs the best plan.
    simulated: bool,
}

/// The best plan for the transformer of a scenario on its machines.
pub fn plan(scenario: &Scenario, aim: Aim, watch: &mut Watch<'_>) -> Result<PlanReport, Fault> {
    plan_within(budget::UNASKED, scenario, aim, watch)
}

/// The best plan within a budget such as [`SHARED`].
pub fn plan_within(
    budget: u64,
    scenario: &Scenario,
    aim: Aim,
    watch: &mut Watch<'_>,
) -> Result<PlanReport, Fault> {
    let question = PlanQuestion { budget, ..PlanQuestion::of(scenario, aim)? };
    question.check_number()?;
    question.answer(Pruning::Beaten, watch)
}

/// The best plan, evaluating every plan that fits regardless of its bound.
pub fn plan_exhaustively(scenario: &Scenario, aim: Aim, watch: &mut Watch<'_>) -> Result<PlanReport, Fault> {
    let question = PlanQuestion::of(scenario, aim)?;
    question.check_number()?;
    question.answer(Pruning::Nothing, watch)
}

/// All valid ways to split the transformer of a scenario on its machines, within its `[plan]`.
pub fn choices(scenario: &Scenario) -> Result<Vec<PlanChoice>, Fault> {
    let question = PlanQuestion::of(scenario, Aim::Time)?;
    let mut all = Vec::new();
    let space = question.space(scenario, &question.base, None);
    for ranks in space.ranks() {
        space.each(ranks, |alike| all.extend_from_slice(alike));
    }
    Ok(all)
}

/// The best plan by the closed form alone, for answers made of many searches.
pub(crate) fn plan_quickly(
    budget: u64,
    scenario: &Scenario,
    watch: &mut Watch<'_>,
) -> Result<PlanReport, Fault> {
    let question = PlanQuestion { budget, simulated: false, ..PlanQuestion::of(scenario, Aim::Time)? };
    question.check_replicas()?;
    question.answer(Pruning::Beaten, watch)
}

/// The result of a part of the search: small, and independent of where it is computed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Part {
    found: PartResult,
    interrupted: bool,
}

/// How many parts a search has: one for each kind and number of machines, way to offload, size of buckets, and with
/// weights gathered ahead or not.
pub fn parts(scenario: &Scenario, aim: Aim) -> Result<usize, Fault> {
    let question = PlanQuestion::of(scenario, aim)?;
    question.check_number()?;
    Ok(question.setups.len())
}

/// The part of a search at `place`.
pub fn part(scenario: &Scenario, aim: Aim, place: usize, watch: &mut Watch<'_>) -> Result<Part, Fault> {
    let question = PlanQuestion::of(scenario, aim)?;
    let Some(setup) = question.setups.get(place) else {
        let reason = format!("the search has {} parts, and none at {place}", question.setups.len());
        return Err(Fault::new(reason, "ask for one of them"));
    };
    question.part(setup, Pruning::Beaten, watch)
}

/// The scenario with a plan that was found, on its machines.
pub fn applied(scenario: &Scenario, entry: &Entry) -> Result<Scenario, Fault> {
    let offers = scenario.planning.as_ref().and_then(|bounds| bounds.offers.as_ref());
    let offer = offers.into_iter().flatten().find(|offer| Some(offer.label()) == entry.machine.as_deref());
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let mut to = match offer {
        Some(offer) => scenario.offered(offer, narrow(entry.nodes))?,
        None if scenario.cluster.workers() == entry.workers => scenario.clone(),
        None => scenario.on(scenario.cluster.resized(narrow(entry.workers))),
    };
    to.strategy.plan = Some(entry.plan.clone().resolve(&NoFiles)?);
    to.strategy.precision = entry.precision.unwrap_or(to.strategy.precision);
    Ok(to)
}

/// A share with its range.
type RangedShare = (f64, Option<[f64; 2]>);

/// The goodput of a transformer's training on its machines, and its range; none if it is no transformer.
pub(crate) fn goodput(scenario: &Scenario) -> Result<Option<RangedShare>, Fault> {
    if scenario.transformer_of_plan().is_err() {
        return Ok(None);
    }
    Ok(Some(PlanQuestion::of(scenario, Aim::Time)?.rates(scenario)?.goodput()))
}

/// The answer of [`plan`] from its parts, in order.
pub fn join(scenario: &Scenario, aim: Aim, parts: Vec<Part>) -> Result<PlanReport, Fault> {
    PlanQuestion::of(scenario, aim)?.joined(parts)
}

/// A step of `batch` sequences in which all devices compute at their peak rates.
fn least_step(scenario: &Scenario, shape: &Transformer, base: &Plan, batch: u64) -> f64 {
    let work = Work { sequence: shape.sequence, batch, mask: Mask::Causal };
    let flops = flops::step(shape, work, (Recompute::None.into(), []), base.attention_kind());
    let groups = scenario.cluster.groups.iter();
    let peaks = groups.map(|group| {
        let device = &group.device;
        let peak = device.peak(scenario.strategy.precision).unwrap_or_else(|| device.fp32_peak());
        let peak = device
            .float4
            .or(device.float8)
            .filter(|_| base.recipe != Recipe::None)
            .map_or(peak, |fast| fast.max(peak));
        peak.get() * f64::from(group.count) * group.speed.max(1.0)
    });
    flops.model as f64 / peaks.sum::<f64>()
}

impl<'a> PlanQuestion<'a> {
    fn of(scenario: &'a Scenario, aim: Aim) -> Result<Self, Fault> {
        let shape = scenario.transformer_of_plan()?;
        let base = match &scenario.strategy.plan {
            Some(plan) => plan.clone(),
            None => {
                let implementation = Implementation::usual(&shape);
                PlanSection { implementation, ..PlanSection::default() }.resolve(&NoFiles)?
            }
        };
        let bounds = match &scenario.planning {
            Some(bounds) => bounds.clone(),
            None => PlanningSection::default().resolve(&NoFiles)?,
        };
        let setups = Setup::all(scenario, &shape, &base, &bounds);
        let given = bounds.global_batch.or(base.global_batch);
        let global_batch = given.unwrap_or(1);
        let budget = budget::UNASKED;
        let mut question =
            Self { scenario, shape, base, bounds, global_batch, setups, aim, budget, simulated: true };
        if given.is_none() {
            question.global_batch = question.usual_global_batch()?;
        }
        question.check()?;
        Ok(question)
    }

    /// Sequences of a step that are usual on the most workers of all parts.
    fn usual_global_batch(&self) -> Result<u64, Fault> {
        let workers = |setup: &Setup| Ok(self.on(setup)?.cluster.workers());
        let workers: Vec<u64> = self.setups.iter().map(workers).collect::<Result<_, Fault>>()?;
        Ok(usual_global_batch(&self.shape, workers.into_iter().max().unwrap_or(1)))
    }

    fn space<'b>(
        &'b self,
        scenario: &Scenario,
        base: &'b Plan,
        framework: Option<Framework>,
    ) -> PlanSpace<'b> {
        PlanSpace {
            framework,
            shape: &self.shape,
            base,
            bounds: &self.bounds,
            workers: scenario.cluster.workers(),
            node: u64::from(scenario.cluster.workers_per_domain()),
            machine: u64::from(scenario.cluster.workers_per_node()),
            global_batch: self.global_batch,
        }
    }

    fn rates(&self, scenario: &Scenario) -> Result<TrainingRates, Fault> {
        TrainingRates::new(scenario, &self.shape, &self.base, self.bounds.tokens, self.global_batch)
    }

    /// The answer, with plans left out by their bounds or without.
    fn answer(&self, pruning: Pruning, watch: &mut Watch<'_>) -> Result<PlanReport, Fault> {
        let mut parts = Vec::new();
        let mut before = 0;
        for setup in &self.setups {
            let part = self.part(setup, pruning, &mut |plans| watch(before + plans))?;
            before += part.found.families.plans()[0];
            let interrupted = part.interrupted;
            parts.push(part);
            if interrupted {
                break;
            }
        }
        self.joined(parts)
    }

    /// The result of a part. It does not depend on the others, so that parts may be computed anywhere.
    fn part(&self, setup: &Setup, pruning: Pruning, watch: &mut Watch<'_>) -> Result<Part, Fault> {
        let (scenario, base) = (self.on(setup)?, self.base(setup));
        let room = MemoryLimit { capacity: scenario.cluster.smallest_memory(), may_fit: self.bounds.may_fit };
        let rates = self.rates(&scenario)?;
        let any = Division { data: 1, micro_batches: 1, global_batch: self.global_batch };
        let run = on_machines(&scenario, &self.shape, &base, any);
        let space = self.space(&scenario, &base, setup.framework);
        let precision = scenario.strategy.precision;
        let as_predicted = |own: &Framework| {
            adopted_precision(*own, precision) == precision && adopted(*own, &base, precision) == base
        };
        let search = Search {
            space,
            launchers: match setup.framework {
                Some(_) => Vec::new(),
                None => Framework::PRETRAINING.into_iter().filter(as_predicted).collect(),
            },
            setup: *setup,
            run,
            rates: &rates,
            room,
            aim: self.aim,
            pruning,
            budget: self.budget / self.setups.len() as u64,
            least_step: least_step(&scenario, &self.shape, &base, self.global_batch),
        };
        let mut found = PartResult::default();
        let interrupted = search.search(&mut found, watch)?.is_break();
        Ok(Part { found, interrupted })
    }

    /// The best plan of a part, without the comparisons of a report.
    fn best_on(&self, setup: &Setup) -> Result<Option<BestPlan>, Fault> {
        let part = self.part(setup, Pruning::NotTheBest, &mut |_| ControlFlow::Continue(()))?;
        Ok(part.found.families.best())
    }

    /// A lower bound of the objective on any of the machines.
    fn least_value(&self) -> Result<f64, Fault> {
        let mut least = f64::INFINITY;
        for setup in &self.setups {
            let scenario = self.on(setup)?;
            let step = least_step(&scenario, &self.shape, &self.base(setup), self.global_batch);
            let (time, cost) = self.rates(&scenario)?.training(step);
            least = least.min(self.aim.value(time, cost));
        }
        Ok(least)
    }

    /// The answer from all parts, in order.
    fn joined(&self, parts: Vec<Part>) -> Result<PlanReport, Fault> {
        let mut found = PartResult::default();
        let mut interrupted = false;
        let mut best_of_parts = Vec::new();
        for part in parts {
            best_of_parts.extend(part.found.families.best());
            found.join(part.found);
            interrupted |= part.interrupted;
        }
        let [plans, fitting] = found.families.plans();
        found.counts.plans = plans;
        found.counts.too_large = plans - fitting;
        let uniform = found.families.best();
        let apart = found.stagewise.as_ref().map(|stages| BestPlan {
            value: stages.value,
            step: stages.step,
            setup: stages.setup,
            choice: stages.choice,
        });
        let Some(best) = uniform.or(apart) else { return Err(self.nothing(found, interrupted)) };
        let (mut best, ranked) = self.ranked(&found.families, best)?;
        if ranked.is_none() && uniform.is_some() {
            best = answer::simplest(&found.families, best);
        }
        let report = self.report(found, (&best, ranked), interrupted)?;
        Ok(PlanReport { advice: self.advice(&best_of_parts)?, ..report })
    }

    /// The best plan. Where the engine does not confirm its step: the engine's best of the plans that win some family, and
    /// the number of plans that it ran.
    fn ranked(&self, families: &Families, best: BestPlan) -> Result<(BestPlan, Option<u64>), Fault> {
        let by_engine = |plan: &BestPlan| -> Result<Confirmation, Fault> {
            let mut scenario = self.on(&plan.setup)?;
            scenario.strategy.plan = Some(plan.choice.plan(&self.base(&plan.setup)));
            Ok(report::by_engine(&scenario, plan.step))
        };
        let longer = |it: &Confirmation| it.difference.map(|difference| 1.0 + difference);
        // The choice does not describe stages that differ.
        if families.best().is_none() || !self.simulated {
            return Ok((best, None));
        }
        let own = by_engine(&best)?;
        let Some(factor) = longer(&own).filter(|_| !own.confirmed) else { return Ok((best, None)) };
        let (mut chosen, mut least, mut run) = (best, best.value * factor, 1);
        for plan in families.finalists().iter().filter(|plan| **plan != best).take(FINALISTS) {
            if plan.value >= least {
                break;
            }
            run += 1;
            if let Some(value) = longer(&by_engine(plan)?).map(|factor| plan.value * factor)
                && value < least
            {
                (chosen, least) = (*plan, value);
            }
        }
        Ok((chosen, Some(run)))
    }
}
