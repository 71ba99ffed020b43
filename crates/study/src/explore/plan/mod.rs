//! The best plan of a transformer: every valid way to split it, on every number of machines that is asked for.
//!
//! [`plan`] is exact: it leaves out a plan only where a lower bound proves that it cannot win. Where there are more plans
//! than it may cost to try, it says how much better one of them could be.

mod families;
mod faults;
mod report;
mod search;
mod setup;
mod space;
mod stagewise;
#[cfg(test)]
mod tests;
mod training;
mod usual;

pub use report::{
    CONFIRMED, Checkpoints, Confirmation, Counts, Energy, Entry, FamilyReport, PlanReport, Restriction,
    StagesReport, Training,
};
pub use usual::{UsualPlan, usual_global_batch, usual_plan};

use crate::cost;
use families::{BestPlan, Families, Family, MACHINES, codes, compared};
use schemars::JsonSchema;
use search::{MemoryLimit, PartResult, Search};
use serde::{Deserialize, Serialize};
use setup::{Setup, machines, section, words};
use space::PlanSpace;
use stagewise::Stages;
use std::ops::ControlFlow;
use std::str::FromStr;
use stepcast_analytic::transformer::flops::{self, Work};
use stepcast_analytic::transformer::{Transformer as Method, on_machines};
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::method::Method as _;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::prediction::Verdict;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::{Offer, Planning, PlanningSection, Scenario};
use stepcast_core::strategy::{Dimension, Division, Mask, Plan, PlanChoice, PlanSection, Recompute};
use training::TrainingRates;

/// What a search costs at most where many wait for answers, in the units of `cost`: about ten seconds of a core.
pub const SHARED: u64 = 100_000_000;

/// A smaller gain is not worth stages of their own.
const WORTH: f64 = 0.0005;

/// Plans that the engine runs at most where it does not confirm the best one.
const FINALISTS: usize = 8;

/// What is minimised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Aim {
    /// Time of training, or of a step.
    #[default]
    Time,
    /// Its cost.
    Cost,
}

impl Aim {
    /// What is minimised, of a time and a cost.
    fn value(self, time: f64, cost: Option<f64>) -> f64 {
        match self {
            Self::Time => time,
            Self::Cost => cost.unwrap_or(time),
        }
    }
}

impl FromStr for Aim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "time" => Ok(Self::Time),
            "cost" => Ok(Self::Cost),
            _ => Err(format!("\"{text}\" cannot be minimised; use time or cost")),
        }
    }
}

/// Receives the number of plans that have been looked at, and may stop the search.
pub type Watch<'a> = dyn FnMut(u64) -> ControlFlow<()> + 'a;

/// A search, with all that it needs of its scenario.
struct PlanQuestion<'a> {
    scenario: &'a Scenario,
    shape: Transformer,
    base: Plan,
    bounds: Planning,
    global_batch: u64,
    setups: Vec<Setup>,
    aim: Aim,
    /// What the search may cost.
    budget: u64,
}

/// The best plan for the transformer of a scenario on its machines.
pub fn plan(scenario: &Scenario, aim: Aim, watch: &mut Watch<'_>) -> Result<PlanReport, Fault> {
    plan_within(cost::UNASKED, scenario, aim, watch)
}

/// The best plan that is found at this cost, such as [`SHARED`].
pub fn plan_within(
    budget: u64,
    scenario: &Scenario,
    aim: Aim,
    watch: &mut Watch<'_>,
) -> Result<PlanReport, Fault> {
    let question = PlanQuestion { budget, ..PlanQuestion::of(scenario, aim)? };
    question.check_number()?;
    question.answer(true, watch)
}

/// The result of a part of the search: small, and the same wherever it is computed.
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
    question.part(setup, true, watch)
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
    Ok(to)
}

/// The answer of [`plan`] from its parts, in order.
pub fn join(scenario: &Scenario, aim: Aim, parts: Vec<Part>) -> Result<PlanReport, Fault> {
    PlanQuestion::of(scenario, aim)?.joined(parts)
}

impl<'a> PlanQuestion<'a> {
    fn of(scenario: &'a Scenario, aim: Aim) -> Result<Self, Fault> {
        let shape = scenario.transformer_of_plan()?;
        let base = match &scenario.strategy.plan {
            Some(plan) => plan.clone(),
            None => PlanSection::default().resolve(&NoFiles)?,
        };
        let bounds = match &scenario.planning {
            Some(bounds) => bounds.clone(),
            None => PlanningSection::default().resolve(&NoFiles)?,
        };
        let setups = Setup::all(scenario, &base, &bounds);
        let given = bounds.global_batch.or(base.global_batch);
        let global_batch = given.unwrap_or(1);
        let budget = cost::UNASKED;
        let mut question = Self { scenario, shape, base, bounds, global_batch, setups, aim, budget };
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

    fn space<'b>(&'b self, scenario: &Scenario, base: &'b Plan) -> PlanSpace<'b> {
        PlanSpace {
            shape: &self.shape,
            base,
            bounds: &self.bounds,
            workers: scenario.cluster.workers(),
            node: u64::from(scenario.cluster.workers_per_domain()),
            global_batch: self.global_batch,
        }
    }

    fn rates(&self, scenario: &Scenario) -> Result<TrainingRates, Fault> {
        TrainingRates::of(scenario, &self.shape, &self.base, &self.bounds, self.global_batch)
    }

    /// The answer, with plans left out by their bounds or without.
    fn answer(&self, pruned: bool, watch: &mut Watch<'_>) -> Result<PlanReport, Fault> {
        let mut parts = Vec::new();
        let mut before = 0;
        for setup in &self.setups {
            let part = self.part(setup, pruned, &mut |plans| watch(before + plans))?;
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
    fn part(&self, setup: &Setup, pruned: bool, watch: &mut Watch<'_>) -> Result<Part, Fault> {
        let (scenario, base) = (self.on(setup)?, self.base(setup));
        let room = MemoryLimit { capacity: scenario.cluster.smallest_memory(), may_fit: self.bounds.may_fit };
        let rates = self.rates(&scenario)?;
        let any = Division { data: 1, micro_batches: 1, global_batch: self.global_batch };
        let run = on_machines(&scenario, &self.shape, &base, any);
        let space = self.space(&scenario, &base);
        let search = Search {
            space,
            setup: *setup,
            run,
            rates: &rates,
            room,
            aim: self.aim,
            pruned,
            budget: self.budget / self.setups.len() as u64,
            least_step: self.least_step(&scenario, &base),
        };
        let mut found = PartResult::default();
        let interrupted = search.search(&mut found, watch)?.is_break();
        Ok(Part { found, interrupted })
    }

    /// A step in which all devices compute at their peak rates.
    fn least_step(&self, scenario: &Scenario, base: &Plan) -> f64 {
        let work = Work { sequence: self.shape.sequence, batch: self.global_batch, mask: Mask::Causal };
        let flops = flops::step(&self.shape, work, (Recompute::None, []), base.attention_kind());
        let groups = scenario.cluster.groups.iter();
        let peaks = groups.map(|group| {
            let device = &group.device;
            let peak = device.peak(scenario.strategy.precision).unwrap_or_else(|| device.fp32_peak());
            let peak = device.float8.filter(|_| base.float8).map_or(peak, |fast| fast.max(peak));
            peak.get() * f64::from(group.count) * group.speed.max(1.0)
        });
        flops.model as f64 / peaks.sum::<f64>()
    }

    /// No plan is better than this on any of the machines.
    fn least_value(&self) -> Result<f64, Fault> {
        let mut least = f64::INFINITY;
        for setup in &self.setups {
            let scenario = self.on(setup)?;
            let (time, cost) = self.rates(&scenario)?.training(self.least_step(&scenario, &self.base(setup)));
            least = least.min(self.aim.value(time, cost));
        }
        Ok(least)
    }

    /// The answer from all parts, in order.
    fn joined(&self, parts: Vec<Part>) -> Result<PlanReport, Fault> {
        let mut found = PartResult::default();
        let mut interrupted = false;
        for part in parts {
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
        let (best, ranked) = self.ranked(&found.families, best)?;
        self.report(found, (&best, ranked), interrupted)
    }

    /// The best plan; where the engine does not confirm its step, the best by the engine of those that win somewhere, and
    /// how many it ran.
    fn ranked(&self, families: &Families, best: BestPlan) -> Result<(BestPlan, Option<u64>), Fault> {
        let by_engine = |plan: &BestPlan| -> Result<Confirmation, Fault> {
            let mut scenario = self.on(&plan.setup)?;
            scenario.strategy.plan = Some(plan.choice.plan(&self.base(&plan.setup)));
            Ok(report::by_engine(&scenario, plan.step))
        };
        let longer = |it: &Confirmation| it.difference.map(|difference| 1.0 + difference);
        // Stages of their own are another plan than that of the choice.
        if families.best().is_none() {
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

    fn report(
        &self,
        found: PartResult,
        (best, ranked): (&BestPlan, Option<u64>),
        interrupted: bool,
    ) -> Result<PlanReport, Fault> {
        let PartResult { families, front, counts, stagewise, left_out } = found;
        let left_out = if interrupted { Some(self.least_value()?) } else { left_out };
        let (mut chosen, base) = (self.on(&best.setup)?, self.base(&best.setup));
        let apart = stagewise.as_ref().filter(|_| families.best().is_none());
        let plan = apart.map_or_else(|| best.choice.plan(&base), |stages| stages.plan(&base));
        chosen.strategy.plan = Some(plan.clone());
        let prediction = Method.predict(&chosen)?;
        let confirmation = Confirmation { ranked, ..report::by_engine(&chosen, best.step) };
        let training = self.rates(&chosen)?.report(&chosen, best.step)?;
        let front = front.sorted().into_iter().map(|point| {
            let memory = Bytes::new(point.memory);
            self.entry(&point.setup, &point.choice, point.step, memory)
        });
        let front: Vec<Entry> = front.collect::<Result<_, _>>()?;
        let of_best = prediction.transformer.as_ref().map(|report| report.memory.most);
        let entry = self.entry(&best.setup, &best.choice, best.step, of_best.unwrap_or(Bytes::ZERO))?;
        let entry = match apart {
            Some(stages) => self.differing(stages, entry),
            None => entry,
        };
        let gains = |stages: &&Stages| stages.value < best.value * (1.0 - WORTH);
        let stages = stagewise.as_ref().filter(|stages| apart.is_none() && gains(stages));
        let stages = stages.map(|stages| self.stages_report(stages, best)).transpose()?;
        let families = families.by_value();
        let families =
            families.iter().filter_map(|(place, family)| self.family(*place, family, best).transpose());
        Ok(PlanReport {
            model: self.scenario.name().to_owned(),
            objective: self.aim,
            counts,
            best: entry,
            prediction,
            confirmation,
            stages,
            training,
            front,
            families: families.collect::<Result<_, _>>()?,
            toml: self.section(&best.setup, &plan)?,
            currency: self.scenario.currency().to_owned(),
            gap: left_out.map_or(0.0, |least| (1.0 - least / best.value).max(0.0)),
            interrupted,
        })
    }

    /// A family in the dimension at `place`.
    fn family(&self, place: usize, family: &Family, best: &BestPlan) -> Result<Option<FamilyReport>, Fault> {
        let (least, setup, choice) = family.least;
        let (setup, choice) = family.best.map_or((setup, choice), |best| (best.setup, best.choice));
        let base = self.base(&setup);
        let dimension = place.checked_sub(MACHINES.len()).and_then(|place| compared().nth(place));
        let (value, mut phrase) = match dimension {
            Some(dimension) => {
                let value = match dimension.listed {
                    None => choice.written()[place - MACHINES.len()].clone(),
                    Some(value) => (value.written)(&base),
                };
                let phrase = dimension.phrase(family.code, &value);
                // The base leaves the value open.
                if phrase.is_empty() {
                    return Ok(None);
                }
                (value, phrase)
            }
            None if MACHINES[place] == "nodes" => (setup.nodes.to_string(), machines(setup.nodes)),
            None => {
                let label = self.offer(&setup).map_or("", Offer::label).to_owned();
                (label.clone(), label)
            }
        };
        let property = dimension.map_or_else(|| MACHINES[place].to_owned(), Dimension::key);
        if property == "tensor" && family.code > u64::from(self.on(&setup)?.cluster.workers_per_domain()) {
            phrase += ", across machines";
        }
        Ok(Some(FamilyReport {
            property,
            value,
            words: phrase,
            plans: family.plans,
            fitting: family.fitting,
            chosen: family.code == codes(&best.setup, &best.choice)[place],
            more: family.best.map(|own| own.value / best.value - 1.0),
            plan: words(&setup, &base, &choice),
            memory: Bytes::new(least),
        }))
    }

    /// A plan as a section of a scenario, below its machines where these are chosen too.
    fn section(&self, setup: &Setup, plan: &Plan) -> Result<String, Fault> {
        let plan = section(plan)?;
        let Some(offer) = self.offer(setup) else { return Ok(plan) };
        let text = |value: &str| toml::Value::from(value);
        let network = offer.network.as_deref();
        let network = network.map_or(String::new(), |name| format!("network = {}\n", text(name)));
        let machine = text(&offer.machine);
        Ok(format!("[cluster]\nmachine = {machine}\nmachines = {}\n{network}\n{plan}", setup.nodes))
    }

    /// The gain of stages of their own over the best plan with equal ones.
    fn stages_report(&self, stages: &Stages, best: &BestPlan) -> Result<StagesReport, Fault> {
        let entry = self.entry(&stages.setup, &stages.choice, stages.step, Bytes::new(stages.memory))?;
        let mut chosen = self.on(&stages.setup)?;
        let plan = stages.plan(&self.base(&stages.setup));
        chosen.strategy.plan = Some(plan.clone());
        Ok(StagesReport {
            entry: self.differing(stages, entry),
            gain: 1.0 - stages.value / best.value,
            least: Seconds::new(stages.least),
            confirmation: report::by_engine(&chosen, stages.step),
            toml: self.section(&stages.setup, &plan)?,
        })
    }

    /// A plan with equal stages as one with its own.
    fn differing(&self, stages: &Stages, entry: Entry) -> Entry {
        let whole = PlanChoice { recompute: Recompute::None.into(), ..stages.choice };
        let mut words = vec![words(&stages.setup, &self.base(&stages.setup), &whole)];
        let listed = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let plan = stages.plan(&self.base(&stages.setup));
        words.extend(plan.stage_layers.as_ref().map(|layers| format!("layers {}", listed(layers))));
        words.extend(
            plan.stage_recompute.as_ref().map(|again| format!("recomputing {} of them", listed(again))),
        );
        Entry { plan: plan.section(), words: words.join(", "), ..entry }
    }

    fn entry(&self, setup: &Setup, choice: &PlanChoice, step: f64, memory: Bytes) -> Result<Entry, Fault> {
        let scenario = self.on(setup)?;
        let rates = self.rates(&scenario)?;
        let (time, cost) = rates.training(step);
        let tokens = (self.global_batch * self.shape.sequence) as f64;
        let fits = memory <= scenario.cluster.smallest_memory();
        let base = self.base(setup);
        Ok(Entry {
            machine: self.offer(setup).map(|offer| offer.label().to_owned()),
            machines: self.machines(setup),
            nodes: setup.nodes,
            workers: scenario.cluster.workers(),
            data: choice.data,
            micro_batches: choice.micro_batches,
            plan: choice.plan(&base).section(),
            words: words(setup, &base, choice),
            step: Seconds::new(step),
            tokens_per_s: tokens / step,
            memory,
            verdict: if fits { Verdict::Fits } else { Verdict::MayNotFit },
            training: rates.steps.map(|_| Seconds::new(time)),
            cost,
        })
    }
}
