//! Which machines to take: every kind and number on offer, each with its best plan, time, cost and risk.

use super::plan::{PlanReport, Training, plan_quickly};
use crate::predict::interval::of_product;
use crate::predict::interval::{self, Basis};
use crate::predict::{methods, training};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::{serde_as, skip_serializing_none};
use std::ops::ControlFlow;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::method::Method;
use stepcast_core::prediction::{Part, Prediction, Verdict};
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_core::scenario::{AssumedPrice, Offer, Planning, PlanningSection, Scenario};
use stepcast_core::strategy::{ScheduleKind, usual_global_batch};
use stepcast_stats::{NORMAL_95, normal_share};

/// Largest probability that a recommended option misses the deadline, if some option stays below it.
pub const LATE: f64 = 0.05;

/// The machines to choose from, and which of them to take.
#[serde_as]
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Decision {
    /// The model.
    pub model: String,
    /// The currency of all costs.
    pub currency: String,
    /// Longest time of training, if one is given.
    #[serde(rename = "deadline_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub deadline: Option<Seconds>,
    /// Highest cost of training, if one is given.
    pub budget: Option<f64>,
    /// Every kind and number of machines, in the order of the offers.
    pub options: Vec<MachineOption>,
    /// The cheapest option that meets the deadline, otherwise the fastest; none if the model fits on none.
    pub recommended: Option<usize>,
}

/// One kind and number of machines.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MachineOption {
    /// The name of the offer.
    pub offer: String,
    /// Machines.
    pub nodes: u64,
    /// Workers.
    pub workers: u64,
    /// The price that is assumed, if none is given.
    pub price: Option<AssumedPrice>,
    /// Its figures.
    pub figures: Option<OptionFigures>,
    /// Why it has no figures.
    pub refusal: Option<String>,
}

/// Time, cost and risk of training on some machines; intervals hold 90 % of what may be measured.
#[skip_serializing_none]
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct OptionFigures {
    /// The best plan in few words; empty for a model that is not split.
    pub words: String,
    /// Time of a step.
    #[serde(rename = "step_s", with = "InBaseUnits")]
    pub step: Seconds,
    /// Its interval.
    #[serde_as(as = "[InBaseUnits; 2]")]
    pub step_interval_s: [Seconds; 2],
    /// Time of training, if its amount is given: tokens, or samples and epochs.
    #[serde(rename = "time_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub time: Option<Seconds>,
    /// Its interval, from the interval of the step and the range of the rate of interruptions.
    #[serde_as(as = "Option<[InBaseUnits; 2]>")]
    pub time_interval_s: Option<[Seconds; 2]>,
    /// Cost of training, if prices are given or assumed.
    pub cost: Option<f64>,
    /// Its interval, from the interval of the time and the range of an assumed price.
    pub cost_interval: Option<[f64; 2]>,
    /// Probability of missing the deadline.
    pub late: Option<f64>,
    /// Memory that the fullest device needs.
    #[serde(with = "InBaseUnits")]
    pub memory: Bytes,
    /// Memory that it has.
    #[serde(with = "InBaseUnits")]
    pub capacity: Bytes,
    /// Whether that fits.
    pub verdict: Verdict,
    /// Breakdown of the time of a step.
    pub breakdown: Vec<Part>,
    /// Interruptions, checkpoints and spares of a long run.
    pub training: Option<Training>,
    /// The evidence for the interval of the step.
    pub basis: Option<Basis>,
    /// Whether no other option is both faster and cheaper.
    pub is_on_front: bool,
    /// The machines and the plan as sections of a scenario.
    pub toml: String,
}

/// The options of `scenario`, whose `[plan]` names offers; searches of plans cost `budget` together. `watch` is told the numbers of finished
/// options and of all, and may stop.
pub fn decide(
    budget: u64,
    scenario: &Scenario,
    watch: &mut dyn FnMut(usize, usize) -> ControlFlow<()>,
) -> Result<Decision, Fault> {
    let bounds = match &scenario.planning {
        Some(bounds) => bounds.clone(),
        None => PlanningSection::default().resolve(&NoFiles)?,
    };
    let pairs = pairs(scenario, &bounds)?;
    let shape = scenario.source.transformer();
    let most = pairs.iter().map(|(.., offered)| offered.cluster.workers()).max().unwrap_or(1);
    let given = bounds.global_batch.or(scenario.strategy.plan.as_ref().and_then(|plan| plan.global_batch));
    let open = Planning {
        deadline: None,
        budget: None,
        global_batch: given.or(shape.as_ref().map(|shape| usual_global_batch(shape, most))),
        schedule: bounds.schedule.clone().or_else(|| Some(vec![ScheduleKind::OneFOneB])),
        ..bounds.clone()
    };
    let mut options = Vec::new();
    let of = pairs.len();
    for (offer, nodes, offered) in &pairs {
        if watch(options.len(), of).is_break() {
            break;
        }
        let price = offer.assumed_price(scenario);
        let figures = match shape {
            Some(_) => {
                let alone = Offer { nodes: Some(vec![*nodes]), ..(*offer).clone() };
                let mut asked = scenario.clone();
                asked.planning = Some(Planning { offers: Some(vec![alone]), ..open.clone() });
                let done = options.len();
                let report = plan_quickly(budget / of as u64, &asked, &mut |_| watch(done, of));
                report.and_then(|report| of_plan(offered, report))
            }
            None => unsplit(offered, &offer.machine, *nodes),
        };
        let figures = figures.map(|figures| figures.priced(price.as_ref()).against(bounds.deadline));
        options.push(MachineOption {
            offer: offer.label().to_owned(),
            nodes: *nodes,
            workers: offered.cluster.workers(),
            price,
            refusal: figures.as_ref().err().map(|fault| fault.reason.clone()),
            figures: figures.ok(),
        });
    }
    mark_front(&mut options);
    Ok(Decision {
        model: scenario.name().to_owned(),
        currency: scenario.currency().to_owned(),
        deadline: bounds.deadline,
        budget: bounds.budget,
        recommended: recommended(&options, &bounds),
        options,
    })
}

fn pairs<'a>(scenario: &Scenario, bounds: &'a Planning) -> Result<Vec<(&'a Offer, u64, Scenario)>, Fault> {
    let Some(offers) = bounds.offers.as_ref().filter(|offers| !offers.is_empty()) else {
        let reason = "there are no machines to choose from";
        return Err(Fault::in_key("plan.offers", reason, "add one, such as `machine = \"dgx-h100\"`"));
    };
    let mut pairs = Vec::new();
    for (place, offer) in offers.iter().enumerate() {
        for nodes in offer.nodes.as_ref().or(bounds.nodes.as_ref()).unwrap_or(&vec![1]) {
            let machines = u32::try_from(*nodes).unwrap_or(u32::MAX);
            let at = KeyPath::of("plan.offers").index(place);
            pairs.push((offer, *nodes, scenario.offered(offer, machines).map_err(|fault| fault.below(at))?));
        }
    }
    Ok(pairs)
}

fn factors(value: f64, ends: [f64; 2]) -> [f64; 2] {
    ends.map(|end| if value > 0.0 && end > 0.0 { end / value } else { 1.0 })
}

fn steps(
    scenario: &Scenario,
    method: &dyn Method,
    prediction: &Prediction,
) -> Result<([Seconds; 2], Option<Basis>), Fault> {
    let found = interval::of(scenario, method, prediction)?;
    Ok(match found {
        Some(found) => (found.iteration_s, Some(found.basis)),
        None => ([prediction.iteration; 2], None),
    })
}

fn of_plan(offered: &Scenario, report: PlanReport) -> Result<OptionFigures, Fault> {
    let mut scenario = offered.clone();
    scenario.strategy.plan = Some(report.best.plan.clone().resolve(&NoFiles)?);
    let method = methods::named(report.prediction.method)?;
    let (step_interval_s, basis) = steps(&scenario, method, &report.prediction)?;
    let step = report.best.step;
    let time_interval_s =
        report.training.as_ref().map(|training| training.time_range.unwrap_or([training.time; 2]));
    let memory =
        report.prediction.transformer.as_ref().map(|split| (split.memory.most, split.memory.capacity));
    let (memory, capacity) = memory.unwrap_or((report.best.memory, Bytes::ZERO));
    Ok(OptionFigures {
        words: report.best.words,
        step,
        step_interval_s,
        time: report.best.training,
        time_interval_s,
        cost: report.best.cost.filter(|_| report.best.training.is_some()),
        cost_interval: None,
        late: None,
        memory,
        capacity,
        verdict: report.best.verdict,
        breakdown: report.prediction.breakdown,
        training: report.training,
        basis,
        is_on_front: false,
        toml: report.toml,
    })
}

/// A model that every worker holds as a whole.
fn unsplit(scenario: &Scenario, machine: &str, nodes: u64) -> Result<OptionFigures, Fault> {
    let method = methods::choose(scenario)?;
    let prediction = method.predict(scenario)?;
    let (step_interval_s, basis) = steps(scenario, method, &prediction)?;
    let step = prediction.iteration;
    let all = training::all_epochs(scenario, &prediction);
    let time = all.as_ref().map(|all| all.time);
    let of_step = factors(step.get(), step_interval_s.map(Seconds::get));
    let capacity = scenario.cluster.smallest_memory();
    let memory = capacity * training::fullest(scenario);
    Ok(OptionFigures {
        words: String::new(),
        step,
        step_interval_s,
        time,
        time_interval_s: time.map(|time| of_product(time.get(), &[of_step]).map(Seconds::new)),
        cost: all.and_then(|all| all.cost),
        cost_interval: None,
        late: None,
        memory,
        capacity,
        verdict: if memory <= capacity { Verdict::Fits } else { Verdict::DoesNotFit },
        breakdown: prediction.breakdown,
        training: None,
        basis,
        is_on_front: false,
        toml: format!("[cluster]\nmachine = {}\nmachines = {nodes}\n", toml::Value::from(machine)),
    })
}

impl OptionFigures {
    /// Adds the interval of the cost.
    fn priced(mut self, price: Option<&AssumedPrice>) -> Self {
        let of_price = price.map_or([1.0; 2], AssumedPrice::factors);
        let of_time = self.time.zip(self.time_interval_s);
        self.cost_interval = self.cost.zip(of_time).map(|(cost, (time, ends))| {
            of_product(cost, &[factors(time.get(), ends.map(Seconds::get)), of_price])
        });
        self
    }

    /// Adds the probability of missing a deadline: logarithms of times are taken to be normal.
    fn against(mut self, deadline: Option<Seconds>) -> Self {
        self.late =
            deadline.zip(self.time).zip(self.time_interval_s).map(|((deadline, time), [low, high])| {
                let room = (deadline / time).ln();
                let width = if room > 0.0 { (high / time).ln() } else { (time / low).ln() };
                if width > 0.0 { 1.0 - normal_share(NORMAL_95 * room / width) } else { f64::from(room < 0.0) }
            });
        self
    }

    fn fits(&self) -> bool {
        self.verdict == Verdict::Fits
    }
}

fn mark_front(options: &mut [MachineOption]) {
    let point = |figures: &OptionFigures| Some((figures.time.unwrap_or(figures.step).get(), figures.cost?));
    let points: Vec<Option<(f64, f64)>> =
        options.iter().map(|option| option.figures.as_ref().and_then(point)).collect();
    for (option, own) in options.iter_mut().zip(&points) {
        let (Some(figures), Some((time, cost))) = (option.figures.as_mut(), own) else { continue };
        let beats = |&(t, c): &(f64, f64)| t <= *time && c <= *cost && (t, c) != (*time, *cost);
        figures.is_on_front = !points.iter().flatten().any(beats);
    }
}

/// The cheapest option that meets the deadline with certainty; failing that, probably; failing that, the fastest.
fn recommended(options: &[MachineOption], bounds: &Planning) -> Option<usize> {
    let all =
        || options.iter().enumerate().filter_map(|(place, option)| Some((place, option.figures.as_ref()?)));
    let affordable =
        |figures: &OptionFigures| bounds.budget.zip(figures.cost).is_none_or(|(budget, cost)| cost <= budget);
    let cheapest = |late: f64| {
        let meets = |(_, figures): &(usize, &OptionFigures)| {
            figures.fits() && affordable(figures) && figures.late.is_none_or(|own| own <= late)
        };
        let value =
            |figures: &OptionFigures| figures.cost.unwrap_or(figures.time.unwrap_or(figures.step).get());
        all().filter(meets).min_by(|(_, a), (_, b)| value(a).total_cmp(&value(b)))
    };
    let time = |figures: &OptionFigures| figures.time.unwrap_or(figures.step).get();
    let fastest = || {
        let order = |figures: &OptionFigures| (!figures.fits(), time(figures));
        all().min_by(|(_, a), (_, b)| {
            let ((a_bad, a), (b_bad, b)) = (order(a), order(b));
            a_bad.cmp(&b_bad).then(a.total_cmp(&b))
        })
    };
    cheapest(LATE).or_else(|| cheapest(0.5)).or_else(fastest).map(|(place, _)| place)
}
