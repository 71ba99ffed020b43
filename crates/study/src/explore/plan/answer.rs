//! The answer of a search: the best plan with its figures, its alternatives and their cost.
//!
//! Some plans are too close to rank; this module chooses among them. The logarithms of two steps are jointly normal: a
//! group of assumed constants with the spread σ moves both, by the slopes a and b, and each has an independent unexplained
//! deviation of spread r. The variance of their difference is
//!
//! Σ σ²·(a − b)² + 2·r²
//!
//! over all groups. Shared errors cancel, so the difference of close plans is known better than either plan.

use super::families::{BestPlan, FRAMEWORK, Families, Family, MACHINES, NODES, codes, compared};
use super::report::{self, ClosePlans};
use super::search::PartResult;
use super::setup::{Setup, machines, section, words};
use super::stagewise::Stages;
use super::{Confirmation, Entry, FamilyReport, Method, PlanQuestion, PlanReport, StagesReport};
use crate::predict::interval::assumed::slopes;
use crate::predict::interval::{Intervals, spreads};
use crate::request::launch::{Proposal, adopted, recipe_settings};
use stepcast_core::fault::Fault;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::{Offer, Scenario};
use stepcast_core::strategy::{
    Dimension, DimensionNames, Framework, Plan, PlanChoice, Recompute, ScheduleKind, Sharding, Shares,
};

/// A smaller gain does not justify stages that differ.
const WORTH: f64 = 0.0005;

impl PlanQuestion<'_> {
    pub(super) fn report(
        &self,
        found: PartResult,
        (best, ranked): (&BestPlan, Option<u64>),
        interrupted: bool,
    ) -> Result<PlanReport, Fault> {
        let PartResult { families, front, counts, stagewise, left_out, launchable } = found;
        let left_out = if interrupted { Some(self.least_value()?) } else { left_out };
        let (mut chosen, base) = (self.on(&best.setup)?, self.base(&best.setup));
        let apart = stagewise.as_ref().filter(|_| families.best().is_none());
        let plan = apart.map_or_else(|| best.choice.plan(&base), |stages| stages.plan(&base));
        chosen.strategy.plan = Some(plan.clone());
        let prediction = Method.predict(&chosen)?;
        let confirmation = match self.simulated {
            true => Confirmation { ranked, ..report::by_engine(&chosen, best.step) },
            false => Confirmation::default(),
        };
        let rates = self.rates(&chosen)?;
        let interval =
            Intervals::new(&chosen, &Method).interval(&chosen, &prediction, &Clone::clone, false)?;
        let half_width = interval.map_or(0.0, |(it, _)| it.inputs[0].max(it.inputs[1]).hypot(it.model));
        let price = self.offer(&best.setup).and_then(|offer| offer.assumed_price(self.scenario));
        let of_price = price.map_or([1.0; 2], |price| price.factors());
        let training = rates.report(&chosen, best.step, half_width, of_price)?;
        let endless = rates.endless(self.progressing(&chosen)?);
        let close = match apart {
            None if self.simulated => self.close(&families, best)?,
            _ => None,
        };
        // Where the engine ranks plans, its first need not be the fastest of the closed form.
        let fastest = families.best().filter(|_| ranked.is_none());
        let fastest = fastest.map_or(best.value, |fastest| fastest.value);
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
        let asked = best.setup.framework.filter(|own| own.has_recipes());
        let launchers = Framework::PRETRAINING.into_iter().chain(asked);
        let launches: Vec<Framework> = launchers.filter(|own| self.runs_on(*own, best, &chosen)).collect();
        let settings = best.setup.framework.map(|own| recipe_settings(self.scenario, &entry, own));
        let launchable = launchable.filter(|own| launches.is_empty() && own.choice != best.choice);
        let launchable = launchable.map(|own| self.launchable(&own)).transpose()?;
        let families = families.by_value();
        let families =
            families.iter().filter_map(|(place, family)| self.family(*place, family, best).transpose());
        Ok(PlanReport {
            model: self.scenario.name().to_owned(),
            objective: self.aim,
            counts,
            best: entry,
            framework: best.setup.framework,
            launches: if apart.is_some() { Vec::new() } else { launches },
            launchable,
            prediction,
            confirmation,
            stages,
            training,
            endless,
            close,
            forgone: (1.0 - fastest / best.value).max(0.0),
            front,
            families: families.collect::<Result<_, _>>()?,
            settings: settings.transpose()?.unwrap_or_default(),
            toml: self.section(&best.setup, &plan)?,
            currency: self.scenario.currency().to_owned(),
            assumed_prices: self.assumed_prices(),
            gap: left_out.map_or(0.0, |least| (1.0 - least / best.value).max(0.0)),
            interrupted,
            advice: None,
        })
    }

    /// Number of machines, found by halving, on which training makes progress.
    fn progressing(&self, scenario: &Scenario) -> Result<Option<u64>, Fault> {
        let node = u64::from(scenario.cluster.workers_per_node());
        let mut machines = scenario.cluster.workers() / node / 2;
        while machines > 0 {
            let workers = u32::try_from(machines * node).unwrap_or(u32::MAX);
            if self.rates(&scenario.on(scenario.cluster.resized(workers)))?.progresses() {
                return Ok(Some(machines));
            }
            machines /= 2;
        }
        Ok(None)
    }

    /// Whether a framework runs a plan, with its own kernels, states and overlap.
    fn runs_on(&self, framework: Framework, plan: &BestPlan, scenario: &Scenario) -> bool {
        let base = self.base(&plan.setup);
        // No framework supports unequal shares of a batch.
        if base.shares == Some(Shares::Proportional) {
            return false;
        }
        let base = adopted(framework, &base, scenario.strategy.precision);
        let node = scenario.cluster.workers_per_node().into();
        Proposal { shape: &self.shape, base: &base, choice: &plan.choice, node }.runs_on(framework)
    }

    /// The best plan that a framework runs as predicted.
    fn launchable(&self, plan: &BestPlan) -> Result<Entry, Fault> {
        let mut scenario = self.on(&plan.setup)?;
        scenario.strategy.plan = Some(plan.choice.plan(&self.base(&plan.setup)));
        let memory = Method.predict(&scenario)?.transformer.map_or(Bytes::ZERO, |report| report.memory.most);
        self.entry(&plan.setup, &plan.choice, plan.step, memory)
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
            None if place == NODES => (setup.nodes.to_string(), machines(setup.nodes)),
            None if place == FRAMEWORK => match setup.framework {
                Some(framework) => (framework.to_string(), framework.title().to_owned()),
                None => return Ok(None),
            },
            None => {
                let label = self.offer(&setup).map_or("", Offer::label).to_owned();
                (label.clone(), label)
            }
        };
        let property = dimension.map_or_else(|| MACHINES[place].to_owned(), Dimension::key);
        let is_tensor = dimension.is_some_and(|own| own.is(DimensionNames::ALL.tensor));
        if is_tensor && family.code > u64::from(self.on(&setup)?.cluster.workers_per_domain()) {
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

    /// A plan as a section of a scenario, preceded by its machines if these are chosen too.
    fn section(&self, setup: &Setup, plan: &Plan) -> Result<String, Fault> {
        let precision = self.on(setup)?.strategy.precision;
        let plan = match precision == self.scenario.strategy.precision {
            true => section(plan)?,
            false => format!("[strategy]\nprecision = \"{precision}\"\n\n{}", section(plan)?),
        };
        let Some(offer) = self.offer(setup) else { return Ok(plan) };
        let text = |value: &str| toml::Value::from(value);
        let network = offer.network.as_deref();
        let network = network.map_or(String::new(), |name| format!("network = {}\n", text(name)));
        let machine = text(&offer.machine);
        let beside = self.beside(offer).map_or(String::new(), |other| {
            let link =
                offer.link.map_or(String::new(), |link| format!("link = {}\n", text(&link.to_string())));
            let machine = text(&other.machine);
            format!("\n[cluster.beside]\nmachine = {machine}\nmachines = {}\n{link}", offer.beside_nodes)
        });
        Ok(format!("[cluster]\nmachine = {machine}\nmachines = {}\n{network}{beside}\n{plan}", setup.nodes))
    }

    /// The gain of stages that differ over the best plan with equal stages.
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

    /// A plan with equal stages, changed to stages that differ.
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

    pub(super) fn entry(
        &self,
        setup: &Setup,
        choice: &PlanChoice,
        step: f64,
        memory: Bytes,
    ) -> Result<Entry, Fault> {
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
            precision: Some(scenario.strategy.precision)
                .filter(|own| *own != self.scenario.strategy.precision),
            plan: choice.plan(&base).section(),
            words: words(setup, &base, choice),
            step: Seconds::new(step),
            tokens_per_s: tokens / step,
            memory,
            verdict: if fits { Verdict::Fits } else { Verdict::MayNotFit },
            training: rates.steps.filter(|_| rates.ends()).map(|_| Seconds::new(time)),
            cost: cost.filter(|_| rates.ends()),
        })
    }
}

/// A plan with more kinds of parallelism must be this much better to be chosen.
const SIMPLER: f64 = 0.005;

/// Most plans compared, the best of every value of every property first.
const LOOKED_AT: usize = 12;

/// Half-width of a 90 % interval, in standard deviations.
const HALF_WIDTH: f64 = 1.645;

/// How many kinds of parallelism, sharding and recomputation a plan has.
fn kinds(choice: &PlanChoice) -> u64 {
    let divided = [choice.tensor, choice.context, choice.pipeline, choice.virtual_stages, choice.expert];
    let divided = divided.iter().filter(|ranks| **ranks > 1).count() as u64;
    let sharding = match choice.sharding {
        Sharding::None => 0,
        Sharding::Hsdp => 2,
        _ => 1,
    };
    let usual = matches!(choice.schedule, ScheduleKind::OneFOneB | ScheduleKind::Interleaved);
    divided + sharding + u64::from(!usual) + u64::from(choice.recompute.what != Recompute::None)
}

/// The simplest of the plans that are nearly as good as the best.
pub(super) fn simplest(families: &Families, best: BestPlan) -> BestPlan {
    let near = families.finalists().into_iter().filter(|plan| plan.value <= best.value * (1.0 + SIMPLER));
    near.fold(best, |one, other| if kinds(&other.choice) < kinds(&one.choice) { other } else { one })
}

/// A plan with its forecast.
struct KnownPlan {
    plan: BestPlan,
    memory: Bytes,
    /// Effects of the groups of constants on the logarithm of its step, in standard deviations of each.
    effects: Vec<f64>,
}

impl PlanQuestion<'_> {
    fn known(&self, plan: &BestPlan) -> Result<KnownPlan, Fault> {
        let mut scenario = self.on(&plan.setup)?;
        scenario.strategy.plan = Some(plan.choice.plan(&self.base(&plan.setup)));
        let memory = Method.predict(&scenario)?.transformer.map_or(Bytes::ZERO, |report| report.memory.most);
        let slopes = slopes(&scenario, &Method)?;
        let effects = slopes.iter().zip(spreads(&scenario)).map(|(slope, spread)| slope * spread).collect();
        Ok(KnownPlan { plan: *plan, memory, effects })
    }

    /// Plans that cannot be told apart from the best one; none if it stands alone.
    pub(super) fn close(&self, families: &Families, best: &BestPlan) -> Result<Option<ClosePlans>, Fault> {
        let own = self.known(best)?;
        let unexplained = self.scenario.priors.residual.transformer.row;
        let apart = |other: &KnownPlan| {
            let groups = own.effects.iter().zip(&other.effects).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            HALF_WIDTH * (groups + 2.0 * unexplained.powi(2)).sqrt()
        };
        let mut close = Vec::new();
        let others = families.finalists().into_iter().filter(|plan| plan.choice != best.choice);
        for plan in others.take(LOOKED_AT) {
            let other = self.known(&plan)?;
            if (plan.value / best.value).ln().abs() < apart(&other) {
                close.push(other);
            }
        }
        if close.is_empty() {
            return Ok(None);
        }
        let separating = close.iter().min_by(|a, b| a.plan.value.total_cmp(&b.plan.value)).and_then(|next| {
            let effects = own.effects.iter().zip(&next.effects).map(|(a, b)| (a - b).abs());
            let groups = effects.zip(self.scenario.priors.groups.iter());
            let most = groups.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(effect, _)| *effect > unexplained);
            most.map(|(_, group)| group.name.clone())
        });
        close.push(own);
        // The longest step of the interval; the unexplained spread is the same for all plans.
        let worst = |it: &KnownPlan| {
            let variance = it.effects.iter().map(|effect| effect.powi(2)).sum::<f64>();
            it.plan.value.ln() + HALF_WIDTH * variance.sqrt()
        };
        let entry = |it: Option<&KnownPlan>| -> Result<Option<Entry>, Fault> {
            let chosen = it.filter(|it| it.plan.choice != best.choice || it.plan.setup != best.setup);
            chosen.map(|it| self.entry(&it.plan.setup, &it.plan.choice, it.plan.step, it.memory)).transpose()
        };
        let simplest = close.iter().min_by(|a, b| {
            let [a, b] = [a, b].map(|it| (kinds(&it.plan.choice), it.plan.value));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        Ok(Some(ClosePlans {
            plans: close.len() as u64,
            simplest: entry(simplest)?,
            smallest: entry(close.iter().min_by(|a, b| a.memory.get().total_cmp(&b.memory.get())))?,
            robust: entry(close.iter().min_by(|a, b| worst(a).total_cmp(&worst(b))))?,
            separated_by: separating,
        }))
    }
}
