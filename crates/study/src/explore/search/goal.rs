//! The goal of a search: the figure that it minimises, and constraints on others.

use crate::explore::sweep::PointFigures;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use stepcast_core::fault::{Fault, Remedies, Remedy, RequestOption};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_core::suggest;

/// The figure that a constraint bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Minibatch,
    Staleness,
    Nodes,
    Workers,
    Throughput,
    Iteration,
    Deadline,
    Budget,
    Memory,
    Kinds,
}

const FIGURES: [(&str, Figure); 10] = [
    ("minibatch", Figure::Minibatch),
    ("staleness", Figure::Staleness),
    ("nodes", Figure::Nodes),
    ("workers", Figure::Workers),
    ("throughput", Figure::Throughput),
    ("iteration", Figure::Iteration),
    ("deadline", Figure::Deadline),
    ("budget", Figure::Budget),
    ("memory", Figure::Memory),
    ("kinds", Figure::Kinds),
];

/// The constraint that admits configurations which do not fit into memory.
const ANY_MEMORY: &str = "any-memory";

impl Figure {
    fn name(self) -> &'static str {
        FIGURES.iter().find(|(_, figure)| *figure == self).map_or("", |(name, _)| name)
    }

    fn is_time(self) -> bool {
        matches!(self, Self::Iteration | Self::Deadline)
    }

    /// The figure; for memory, 1 if it does not suffice.
    pub(super) fn of(self, figures: &PointFigures) -> Option<f64> {
        match self {
            Self::Minibatch => figures.minibatch,
            Self::Staleness => figures.staleness,
            Self::Nodes => Some(figures.nodes as f64),
            Self::Workers => Some(figures.workers as f64),
            Self::Throughput => Some(figures.throughput.get()),
            Self::Iteration => Some(figures.iteration.get()),
            Self::Deadline => figures.training.map(|time| time.get()),
            Self::Budget => figures.cost,
            Self::Memory => Some(if figures.fits { 0.0 } else { 1.0 }),
            Self::Kinds => Some(figures.kinds as f64),
        }
    }

    /// The value as text: "training time among them is 26.03 h".
    fn human(self, value: f64) -> String {
        match self {
            Self::Deadline if value >= 7200.0 => format!("{:.2} h", value / 3600.0),
            Self::Deadline if value >= 120.0 => format!("{:.1} min", value / 60.0),
            Self::Iteration | Self::Deadline => Seconds::new(value).human(),
            _ => format!("{}", (value * 100.0).round() / 100.0),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Deadline => "training time",
            Self::Budget => "cost",
            Self::Iteration => "step time",
            Self::Kinds => "number of kinds",
            _ => self.name(),
        }
    }
}

/// A bound on a figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Constraint {
    pub(super) figure: Figure,
    /// Whether this is a lower bound rather than an upper bound.
    pub at_least: bool,
    /// The bound, in base units.
    pub bound: f64,
    text: String,
}

impl Constraint {
    /// The constraint that configurations fit into the memory of their devices, unless [`ANY_MEMORY`] is given.
    pub(super) fn memory() -> Self {
        Self { figure: Figure::Memory, at_least: false, bound: 0.0, text: "memory".to_owned() }
    }

    /// Whether the constraint is about memory.
    pub fn is_of_memory(&self) -> bool {
        self.figure == Figure::Memory
    }

    /// Reads `minibatch<=1024`, `deadline<=2h`, `memory` or `any-memory`.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let like = "write minibatch<=1024, staleness<=4, deadline<=2h, budget<=500, nodes<=16, kinds<=1 or any-memory";
        let text = text.trim();
        if text.is_empty() {
            return refuse("the constraint is empty".to_owned(), like);
        }
        if text == ANY_MEMORY {
            return Ok(Self { bound: 1.0, text: text.to_owned(), ..Self::memory() });
        }
        let split = |sign: &str| text.split_once(sign).map(|(name, bound)| (name.trim(), bound.trim()));
        // Figures are hardly ever equal: `<` and `<=` mean the same.
        let below = split("<=").or_else(|| split("<"));
        let above = split(">=").or_else(|| split(">"));
        let (name, at_least, bound) = match (below, above) {
            (Some((name, bound)), _) => (name, false, bound),
            (None, Some((name, bound))) => (name, true, bound),
            (None, None) => (text, false, ""),
        };
        let Some(&(_, figure)) = FIGURES.iter().find(|(known, _)| *known == name) else {
            let names = FIGURES.map(|(name, _)| name);
            let remedy = suggest::remedy(name, names, format!("the figures are {}", names.join(", ")));
            return refuse(format!("\"{name}\" cannot be bounded"), remedy);
        };
        let constraint = |bound| Ok(Self { figure, at_least, bound, text: text.to_owned() });
        if figure == Figure::Memory {
            if !bound.is_empty() {
                return refuse(
                    "memory is bounded by the devices".to_owned(),
                    "write memory, without a number",
                );
            }
            return Ok(Self::memory());
        }
        if bound.is_empty() {
            return refuse(format!("{text} has no bound"), like);
        }
        let value = if figure.is_time() {
            match bound.parse::<Seconds>() {
                Ok(time) => time.get(),
                Err(error) => return refuse(error.reason, error.remedy),
            }
        } else {
            let (number, unit) = bound.split_once(' ').unwrap_or((bound, ""));
            let has_unit = match figure {
                Figure::Throughput => ["", "samples/s", "images/s", "img/s"].contains(&unit),
                Figure::Budget => unit.chars().all(|letter| letter.is_ascii_uppercase()),
                _ => unit.is_empty(),
            };
            match number.parse::<f64>().ok().filter(|_| has_unit) {
                Some(number) => number,
                None => return refuse(format!("\"{bound}\" is no number"), like),
            }
        };
        if !(value.is_finite() && value >= 0.0) {
            return refuse(format!("the bound must be zero or more, and is {bound}"), like);
        }
        constraint(value)
    }

    /// Refuses bounds that nothing can satisfy.
    pub fn check_all(constraints: &[Self]) -> Result<(), Fault> {
        for low in constraints.iter().filter(|constraint| constraint.at_least) {
            let contradicts =
                |high: &&Self| !high.at_least && high.figure == low.figure && high.bound < low.bound;
            if let Some(high) = constraints.iter().find(contradicts) {
                let reason = format!("{low} and {high} contradict each other: nothing keeps both");
                return Err(Fault::new(reason, "relax one of the two"));
            }
        }
        Ok(())
    }

    /// Whether the figures satisfy the constraint; unknown figures do not.
    pub(super) fn holds(&self, figures: &PointFigures) -> bool {
        self.figure.of(figures).is_some_and(|value| self.admits(value))
    }

    pub(super) fn admits(&self, value: f64) -> bool {
        if self.at_least { value >= self.bound } else { value <= self.bound }
    }

    /// Relative violation of the bound; 0 if the figures satisfy it.
    pub(super) fn excess(&self, figures: &PointFigures) -> f64 {
        match self.figure.of(figures) {
            Some(value) if self.admits(value) => 0.0,
            Some(value) => (value - self.bound).abs() / self.bound.max(1e-9),
            None => f64::INFINITY,
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The configurations that one constraint excludes.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Excluded {
    /// The constraint as it was written.
    pub constraint: String,
    /// Configurations that violate it.
    pub excluded: u64,
    /// Configurations that violate only this constraint.
    pub alone: u64,
    /// The figure closest to the bound among the excluded configurations, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
}

/// Counts for one constraint.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tally {
    pub(super) excluded: u64,
    pub(super) alone: u64,
    nearest: Option<f64>,
    /// Whether some configurations were excluded without a prediction: one of them may be closer to the bound.
    unseen: bool,
}

impl Tally {
    /// Counts configurations that a bound has shown to violate the constraint.
    pub(super) fn exclude_unseen(&mut self, points: u64) {
        self.excluded = self.excluded.saturating_add(points);
        self.unseen = true;
    }

    pub(super) fn exclude(&mut self, constraint: &Constraint, figures: &PointFigures, alone: bool) {
        self.excluded += 1;
        self.alone += u64::from(alone);
        if let Some(value) = constraint.figure.of(figures) {
            self.nearer(constraint, value);
        }
    }

    fn nearer(&mut self, constraint: &Constraint, value: f64) {
        let old = self.nearest.unwrap_or(value);
        self.nearest = Some(if constraint.at_least { old.max(value) } else { old.min(value) });
    }

    pub(super) fn merge(&mut self, constraint: &Constraint, other: Self) {
        self.excluded += other.excluded;
        self.alone += other.alone;
        self.unseen |= other.unseen;
        if let Some(value) = other.nearest {
            self.nearer(constraint, value);
        }
    }

    pub(super) fn report(&self, constraint: &Constraint) -> Excluded {
        let figure = constraint.figure;
        let near = |value: f64| {
            let end = if constraint.at_least { "largest" } else { "smallest" };
            format!("the {end} {} among them is {}", figure.words(), figure.human(value))
        };
        Excluded {
            constraint: constraint.to_string(),
            excluded: self.excluded,
            alone: self.alone,
            nearest: self.nearest.filter(|_| figure != Figure::Memory && !self.unseen).map(near),
        }
    }
}

fn refuse<T>(reason: String, remedy: impl Into<Remedies>) -> Result<T, Fault> {
    Err(Fault::new(reason, remedy))
}

/// The figure that a search minimises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Objective {
    /// Time of one step.
    Iteration,
    /// Time of one pass over the data.
    Epoch,
    /// Time of all passes.
    Time,
    /// Cost of all passes.
    Cost,
    /// Cost of all passes times their time.
    CostTime,
}

stepcast_core::variant_names!(Objective {
    Iteration = "iteration",
    Epoch = "epoch",
    Time = "time",
    Cost = "cost",
    CostTime = "cost-time",
});

impl Objective {
    /// Whether it depends on prices.
    pub(super) fn is_about_cost(self) -> bool {
        matches!(self, Self::Cost | Self::CostTime)
    }

    /// The value of the objective, in seconds and units of currency.
    pub(super) fn value(self, figures: &PointFigures) -> Option<f64> {
        let hours = figures.training.map(|time| time.get());
        match self {
            Self::Iteration => Some(figures.iteration.get()),
            Self::Epoch => figures.epoch.map(|time| time.get()),
            Self::Time => hours,
            Self::Cost => figures.cost,
            Self::CostTime => figures.cost.zip(hours).map(|(cost, time)| cost * time),
        }
    }

    /// Checks that the scenario has the inputs that the objective needs, such as a data set or prices.
    pub(super) fn check(self, scenario: &Scenario) -> Result<(), Fault> {
        if self != Self::Iteration && scenario.data.is_none() {
            let reason = format!("minimising {} needs a data set, and the scenario has none", self.name());
            let remedy = "add `[data]` with `samples`, or minimise `iteration`, the time of a step";
            return Err(Fault::in_key("data", reason, remedy));
        }
        if self.is_about_cost() && scenario.hourly_cost().is_none() {
            let unpriced = scenario.cluster.groups.iter().find(|group| group.price.is_none());
            let device = unpriced.map_or("worker", |group| &group.device.name);
            let reason =
                format!("minimising {} needs prices, and there is none for the {device}", self.name());
            let advice = Remedy::advice("add `[price]` with `worker-hour`, or a `price` to every group");
            let remedy = [advice, Remedy::option(RequestOption::Price, "DEVICE=2.5")];
            return Err(Fault::in_key("price", reason, remedy));
        }
        Ok(())
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text.trim()).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|own| own.name()).collect();
            let list = format!("use {}", names.join(", "));
            format!("there is no objective \"{text}\"; {}", suggest::remedy(text, names, list))
        })
    }
}
