//! The report of a search: the best configurations, the Pareto front, excluded configurations, and explanations.

use super::goal::{Excluded, Objective};
use super::tracker::{Candidate, Goal, Tracker};
use super::{Ended, SearchStrategy, digits};
use crate::explore::sweep::{PointFigures, Variants, Walker, devices};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use stepcast_core::fault::Fault;
use stepcast_core::scenario::Scenario;

/// One configuration.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Entry {
    /// Its index in the grid.
    pub index: u64,
    /// The varied keys and their values.
    #[serde(serialize_with = "as_map")]
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub values: Vec<(String, String)>,
    /// Value of the objective, in seconds and units of currency.
    pub value: f64,
    /// The devices of its workers, each kind once, with their number; none for a profile.
    #[serde(skip)]
    pub devices: Vec<(String, u64)>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: PointFigures,
}

fn as_map<S: Serializer>(pairs: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SearchReport {
    /// The objective that was minimised.
    pub objective: Objective,
    /// The currency of costs.
    pub currency: String,
    /// The methods that predict configurations: one, unless no method models all of them.
    pub methods: Vec<&'static str>,
    /// The search strategy.
    pub how: SearchStrategy,
    /// Why the search stopped.
    pub stopped: String,
    /// Largest distance of the best from the optimum, as a share of its value: 0 if no better configuration exists, none
    /// if unknown.
    pub gap: Option<f64>,
    /// Number of configurations in the space.
    pub configurations: u64,
    /// Configurations that were predicted.
    pub evaluated: u64,
    /// Predicted configurations that satisfy all constraints.
    pub admitted: u64,
    /// Configurations that no method models or whose values are inconsistent.
    pub refused: u64,
    /// Why the first of them was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The configurations that each constraint excludes.
    pub constraints: Vec<Excluded>,
    /// The best configurations, in order.
    pub best: Vec<Entry>,
    /// The Pareto front of time and cost, the fastest first; empty without prices.
    pub front: Vec<Entry>,
    /// Why the second-best configuration is worse than the best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner_up: Option<String>,
    /// How much better the best would be without constraints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub without_constraints: Option<String>,
    /// Note that kinds of machines are compared at one price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_price: Option<String>,
    /// Note that prices are the catalog's because none were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catalog_prices: Option<String>,
}

impl SearchReport {
    /// Explanations of the figures.
    pub fn reasons(&self) -> impl Iterator<Item = &String> {
        let prices = self.one_price.iter().chain(&self.catalog_prices);
        self.runner_up.iter().chain(&self.without_constraints).chain(prices)
    }
}

/// The note if devices or machines are varied and all of them have the price of the scenario.
fn one_price(variants: &Variants<'_>) -> Option<String> {
    let is_kind = |key: &str| key.ends_with("device") || key == "cluster.machine";
    let axis = variants.axes().iter().find(|axis| is_kind(&axis.key))?;
    let scenario = variants.first();
    let one = scenario.price.is_some() && scenario.cluster.groups.iter().all(|group| group.price.is_none());
    one.then(|| {
        format!(
            "`{}` varies, but `[price]` is the same for every kind: costs differ by time alone.",
            axis.key
        )
    })
}

pub(super) fn report(
    variants: &Variants<'_>,
    goal: &Goal,
    how: SearchStrategy,
    points: u64,
    found: Tracker,
    ended: Ended,
) -> Result<SearchReport, Fault> {
    let Some(best) = found.best.first() else {
        return Err(nothing(variants.first(), goal, &found, points, &ended));
    };
    let gap = match (ended.complete, ended.least) {
        (true, _) => Some(0.0),
        (false, Some(least)) => Some(((best.value - least) / best.value).max(0.0)),
        (false, None) => None,
    };
    let runner_up = found.best.get(1).map(|second| runner_up(variants, goal.objective, best, second));
    let unbound = found.unbound.as_ref().filter(|unbound| unbound.value < best.value);
    let without_constraints = unbound.map(|unbound| without(variants, goal, best, unbound));
    let tallies = goal.constraints.iter().zip(&found.tallies);
    let mut walker = variants.walker();
    let mut entry = |candidate| entry(variants, &mut walker, candidate);
    Ok(SearchReport {
        objective: goal.objective,
        currency: variants.first().currency().to_owned(),
        methods: Vec::new(),
        how,
        stopped: ended.why,
        gap,
        configurations: points,
        evaluated: found.evaluated,
        admitted: found.admitted,
        refused: found.refused,
        refusal: found.refusal.map(|(_, reason)| reason),
        constraints: tallies.map(|(constraint, tally)| tally.report(constraint)).collect(),
        runner_up,
        without_constraints,
        one_price: one_price(variants),
        catalog_prices: None,
        best: found.best.into_iter().map(&mut entry).collect(),
        front: found.front.into_entries().map(&mut entry).collect(),
    })
}

pub(super) fn entry(variants: &Variants<'_>, walker: &mut Walker<'_>, candidate: Candidate) -> Entry {
    let Candidate { index, value, figures } = candidate;
    let owned = |(device, count): (&str, u64)| (device.to_owned(), count);
    let named = |scenario: &Scenario| match scenario.profile() {
        Some(_) => Vec::new(),
        None => devices(scenario).into_iter().map(owned).collect(),
    };
    let devices = walker.look(&digits(variants, index), named).unwrap_or_default();
    Entry { index, values: values(variants, index), value, devices, figures }
}

fn values(variants: &Variants<'_>, index: u64) -> Vec<(String, String)> {
    let axes = variants.axes().iter().zip(digits(variants, index));
    axes.map(|(axis, digit)| (axis.key.clone(), axis.value(digit))).collect()
}

/// "12 % more", "as much".
fn compared(new: f64, old: f64) -> String {
    let percent = 100.0 * (new / old - 1.0);
    let size = match percent.abs() {
        small if small < 0.05 => return "as much".to_owned(),
        small if small < 9.95 => format!("{small:.1} %"),
        large => format!("{large:.0} %"),
    };
    format!("{size} {}", if percent > 0.0 { "more" } else { "less" })
}

/// The values that differ: "strategy.batch is 64 instead of 32".
fn differences(variants: &Variants<'_>, of: u64, from: u64) -> String {
    let pairs = values(variants, of).into_iter().zip(values(variants, from));
    let differ = pairs.filter(|(new, old)| new != old);
    let words: Vec<String> =
        differ.map(|((key, new), (_, old))| format!("{key} is {new} instead of {old}")).collect();
    words.join(", ")
}

fn runner_up(variants: &Variants<'_>, objective: Objective, best: &Candidate, second: &Candidate) -> String {
    let differs = differences(variants, second.index, best.index);
    if second.value <= best.value {
        return format!("The runner-up is as good and only comes later: {differs}.");
    }
    let (new, old) = (&second.figures, &best.figures);
    let ratio = |of: fn(&PointFigures) -> f64| compared(of(new), of(old));
    let step = ratio(|figures| figures.iteration.get());
    let samples = ratio(|figures| figures.throughput.get() * figures.iteration.get());
    let steps = format!("a step takes {step} time and has {samples} samples");
    let because = match objective {
        Objective::Iteration => format!("where {} was", limit(old)),
        Objective::Epoch | Objective::Time => steps,
        Objective::Cost | Objective::CostTime => {
            let time = ratio(|figures| figures.throughput.get().recip());
            let hourly = ratio(|figures| {
                figures.cost.unwrap_or(0.0) / figures.training.map_or(1.0, |time| time.get())
            });
            format!("training takes {time} time ({steps}), and an hour costs {hourly}")
        }
    };
    let more = compared(second.value, best.value);
    format!(
        "The runner-up has {more} {}: {because}. Its limit is {}. There, {differs}.",
        what(objective),
        limit(new)
    )
}

fn what(objective: Objective) -> &'static str {
    match objective {
        Objective::Iteration => "step time",
        Objective::Epoch => "epoch time",
        Objective::Time => "training time",
        Objective::Cost => "cost",
        Objective::CostTime => "cost times time",
    }
}

fn limit(figures: &PointFigures) -> &'static str {
    use stepcast_core::prediction::Bottleneck;
    match figures.bottleneck {
        Bottleneck::Compute => "computing",
        Bottleneck::ServerLink => "the servers' links",
        Bottleneck::WorkerLink => "the workers' links",
        Bottleneck::FixedCost => "start-up and latency",
        Bottleneck::HostCopy => "copying on the hosts",
        Bottleneck::Server => "updating at the servers",
    }
}

fn without(variants: &Variants<'_>, goal: &Goal, best: &Candidate, unbound: &Candidate) -> String {
    let broken = goal.constraints.iter().filter(|constraint| !constraint.holds(&unbound.figures));
    let broken: Vec<String> = broken.map(ToString::to_string).collect();
    format!(
        "Without {} there would be {} {}: {}.",
        broken.join(" and "),
        compared(unbound.value, best.value),
        what(goal.objective),
        differences(variants, unbound.index, best.index)
    )
}

/// The error when no configuration satisfies all constraints: what each constraint excludes.
fn nothing(scenario: &Scenario, goal: &Goal, found: &Tracker, points: u64, ended: &Ended) -> Fault {
    let tried = if ended.complete { points } else { found.evaluated };
    if tried == 0 {
        let reason = format!("nothing was found: the search ended because {}", ended.why);
        return Fault::new(reason, "let it go on, or vary fewer values");
    }
    if found.refused >= tried {
        let why = found.refusal.as_ref().map_or("", |(_, reason)| reason);
        let reason = format!("all {tried} configurations are refused, the first because {why}");
        return Fault::new(reason, "vary other values, or choose another method");
    }
    let mut excluded: Vec<Excluded> = goal
        .constraints
        .iter()
        .zip(&found.tallies)
        .map(|(constraint, tally)| tally.report(constraint))
        .collect();
    excluded.sort_by_key(|excluded| std::cmp::Reverse(excluded.excluded));
    let words: Vec<String> = excluded
        .iter()
        .filter(|excluded| excluded.excluded > 0)
        .map(|Excluded { constraint, excluded, nearest, .. }| {
            let nearest = nearest.as_ref().map_or(String::new(), |nearest| format!(" ({nearest})"));
            format!("{constraint} excludes {excluded}{nearest}")
        })
        .collect();
    let refused = match found.refused {
        0 => String::new(),
        refused => format!("; {refused} are refused"),
    };
    let reason =
        format!("none of {tried} configurations keeps to all constraints: {}{refused}", words.join(", "));
    let remedy = match excluded.first() {
        _ if scenario.source.transformer().is_some() && scenario.strategy.plan.is_none() => {
            "give the transformer a plan, or one kind of device, or choose machines for it with `plan`"
                .to_owned()
        }
        Some(first) => format!("relax {}, or vary other values", first.constraint),
        None => "vary other values".to_owned(),
    };
    Fault::new(reason, remedy)
}
