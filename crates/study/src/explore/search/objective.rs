//! The objective of a search.

use crate::explore::sweep::PointFigures;
use schemars::JsonSchema;
use serde::Serialize;
use std::str::FromStr;
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::scenario::Scenario;
use stepcast_core::suggest;

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

impl Objective {
    const ALL: [(&'static str, Self); 5] = [
        ("iteration", Self::Iteration),
        ("epoch", Self::Epoch),
        ("time", Self::Time),
        ("cost", Self::Cost),
        ("cost-time", Self::CostTime),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, objective)| *objective == self).map_or("", |(name, _)| name)
    }

    /// Whether it depends on prices.
    pub fn is_about_cost(self) -> bool {
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
            return Err(Fault::in_key("data", reason, "add `[data]` with `samples`"));
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
        let found = Self::ALL.iter().find(|(name, _)| *name == text.trim());
        found.map(|(_, objective)| *objective).ok_or_else(|| {
            let names = Self::ALL.map(|(name, _)| name);
            let list = format!("use {}", names.join(", "));
            format!("there is no objective \"{text}\"; {}", suggest::remedy(text, names, list))
        })
    }
}
