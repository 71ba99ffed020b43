//! The best configuration: what is to be small, what has to be kept, and all that may vary.
//!
//! Small spaces are searched exhaustively, large ones by branch and bound where the method has bounds, all others by a
//! seeded heuristic. Each says why it stopped and how far from the optimum it may be.

mod bound;
mod constraint;
mod exhaustive;
mod found;
mod heuristic;
mod ideal;
mod objective;
mod pareto;
mod report;

pub use constraint::{Constraint, Excluded};
pub use found::Aim;
pub use objective::Objective;
pub use report::{Entry, Report};

use crate::explore::sweep::{Variants, is_quick};
use crate::predict::MethodChoice;
use found::Found;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::ControlFlow;
use std::str::FromStr;
use stepcast_core::fault::Fault;

/// Configurations that are all tried: some ten seconds of closed forms.
const EXHAUSTIVE: u128 = 10_000_000;

/// The same for simulations, and for configurations that go through the document.
const EXHAUSTIVE_SLOWLY: u128 = 512;

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// Every configuration.
    Exhaustive,
    /// Boxes of them, the most promising first.
    Bound,
    /// From neighbour to neighbour.
    Heuristic,
}

/// Effort that may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// How to search; what suits the space if none is named.
    pub how: Option<How>,
    /// Predictions of searches that do not try everything; a usual number if none is named.
    pub budget: Option<u64>,
    /// Where random numbers begin.
    pub seed: u64,
}

/// What a search has seen so far.
pub struct Seen<'a> {
    /// Configurations that are done with.
    pub done: u64,
    variants: &'a Variants<'a>,
    found: &'a Found,
}

impl Seen<'_> {
    /// Those of which none is both faster and cheaper, the fastest first; without prices there are none.
    pub fn front(&self) -> Vec<Entry> {
        let candidates = self.found.front.clone().into_entries();
        candidates.map(|candidate| report::entry(self.variants, candidate)).collect()
    }
}

/// Is told what was seen, and may end the search.
pub type Watch<'a> = dyn FnMut(Seen<'_>) -> ControlFlow<()> + 'a;

/// How a search ended.
struct Ended {
    why: String,
    /// Whether nothing better can exist.
    complete: bool,
    /// What nothing can fall below, where that is known.
    least: Option<f64>,
}

impl Ended {
    fn interrupted(least: f64) -> Self {
        Self { why: "it was interrupted".to_owned(), complete: false, least: Some(least) }
    }
}

impl FromStr for How {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "exhaustive" => Ok(Self::Exhaustive),
            "bound" => Ok(Self::Bound),
            "heuristic" => Ok(Self::Heuristic),
            _ => Err(format!("\"{text}\" is no way to search; use exhaustive, bound or heuristic")),
        }
    }
}

/// Searches all that `variants` has.
pub fn search(
    variants: &Variants<'_>,
    asked: MethodChoice,
    aim: &Aim,
    effort: Effort,
    watch: &mut Watch<'_>,
) -> Result<Report, Fault> {
    let all = variants.grid().points();
    if all < 2 {
        let remedy = "add --vary KEY=VALUES, or --devices with prices";
        return Err(Fault::new("there is nothing to choose from", remedy));
    }
    let Ok(points) = u64::try_from(all) else {
        let reason = format!("{all:.0e} configurations cannot even be numbered", all = all as f64);
        return Err(Fault::new(reason, "vary fewer keys, or fewer values of each"));
    };
    Constraint::check_all(&aim.constraints)?;
    aim.objective.check(variants.first())?;
    check_constraints(variants, aim)?;
    let asked = settled(variants, asked);
    let quick = is_quick(variants, asked);
    let how = effort.how.unwrap_or_else(|| usual(variants, asked, quick));
    let budget = effort.budget.unwrap_or(if quick { 2_000_000 } else { 400 });
    let (found, ended) = match how {
        How::Exhaustive => exhaustive::search(variants, asked, aim, points, watch),
        How::Bound if !bound::applies(variants, asked) => {
            let reason = "there are bounds for closed forms of bulk-synchronous parameter servers only";
            let remedy = "use --method layerwise or zeng2023, or --how heuristic";
            return Err(Fault::new(reason, remedy));
        }
        How::Bound => bound::search(variants, asked, aim, budget, watch),
        How::Heuristic => heuristic::search(variants, asked, aim, (budget, effort.seed), watch),
    };
    report::report(variants, aim, how, points, found, ended)
}

fn usual(variants: &Variants<'_>, asked: MethodChoice, quick: bool) -> How {
    let points = variants.grid().points();
    if points <= EXHAUSTIVE_SLOWLY || quick && points <= EXHAUSTIVE && variants.resolutions() <= 100_000 {
        How::Exhaustive
    } else if bound::applies(variants, asked)
        && bound::categories(variants, asked) <= bound::MOST_CATEGORIES
        && variants.resolutions() <= 100_000
    {
        How::Bound
    } else {
        How::Heuristic
    }
}

/// The one method that answers everywhere, where no axis decides which one applies.
fn settled(variants: &Variants<'_>, asked: MethodChoice) -> MethodChoice {
    let decides = |key: &str| {
        ["model", "strategy.architecture", "strategy.synchronisation", "strategy.all-reduce", "methods"]
            .iter()
            .any(|section| key.starts_with(section))
    };
    match asked {
        MethodChoice::Auto if !variants.axes().iter().any(|axis| decides(&axis.key)) => {
            asked.method(variants.first()).map_or(asked, MethodChoice::One)
        }
        _ => asked,
    }
}

/// A constraint on a figure that no configuration has excludes everything: better said at once.
fn check_constraints(variants: &Variants<'_>, aim: &Aim) -> Result<(), Fault> {
    for constraint in &aim.constraints {
        let needs = match constraint.figure {
            constraint::Figure::Deadline => Objective::Time,
            constraint::Figure::Budget => Objective::Cost,
            _ => continue,
        };
        needs.check(variants.first()).map_err(|fault| {
            let reason = format!("{constraint} cannot be judged: {}", fault.reason);
            Fault::in_key(fault.key, reason, fault.remedy)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
