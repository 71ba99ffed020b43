//! The best configuration for an objective, constraints and a grid of varied keys.
//!
//! Small spaces are searched exhaustively, large ones by branch and bound if the method has bounds, all others by a
//! seeded heuristic. Each search reports why it stopped and how far from the optimum its best configuration may be.

mod bound;
mod goal;
mod heuristic;
mod ideal;
mod report;
mod tracker;

pub use goal::{Constraint, Excluded, Objective};
pub use report::{Entry, SearchReport};
pub use tracker::{Front, Goal};

use crate::explore::sweep::{Agreement, Variants, Walker, blocks, interval_at, is_quick};
use crate::predict::MethodChoice;
use crate::predict::budget;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::{ControlFlow, Range};
use std::str::FromStr;
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::method::CancelCheck;
use tracker::Tracker;

/// Share of the largest cost of a study up to which every configuration is tried although bounds exist.
const EXHAUSTIVE: f64 = 0.1;

/// Largest space of simulations, or of points that require resolving the document again, that is searched exhaustively.
const EXHAUSTIVE_SLOWLY: u128 = 512;

/// Most predictions of a search that is not exhaustive.
const MOST_PREDICTIONS: (u64, u64) = (2_000_000, 400);

/// Search strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchStrategy {
    /// Every configuration.
    Exhaustive,
    /// Branch and bound over boxes of configurations.
    Bound,
    /// Local search from neighbour to neighbour.
    Heuristic,
}

/// Options of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// The strategy; by default one that suits the space.
    pub how: Option<SearchStrategy>,
    /// Largest number of predictions of a search that is not exhaustive; by default chosen by method.
    pub budget: Option<u64>,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Progress of a search.
pub struct Progress<'a> {
    /// Configurations that are evaluated or excluded.
    pub done: u64,
    variants: &'a Variants<'a>,
    found: &'a Tracker,
}

impl Progress<'_> {
    /// The Pareto front of time and cost, the fastest first; empty without prices.
    pub fn front(&self) -> Vec<Entry> {
        let candidates = self.found.front.clone().into_entries();
        let mut walker = self.variants.walker();
        candidates.map(|candidate| report::entry(self.variants, &mut walker, candidate)).collect()
    }
}

/// Sentence about a search whose scenario has no prices.
const CATALOG_PRICES: &str = "Nothing has a price: the prices are those of the catalog.";

/// Receives the progress.
pub type Tell<'a> = dyn FnMut(Progress<'_>) + 'a;

/// The cancellation of a search, and the callback that gets its progress.
struct Follower<'a, 'b> {
    wanted: &'a CancelCheck<'b>,
    tell: &'a mut Tell<'b>,
}

impl Follower<'_, '_> {
    /// Reports progress; breaks off if the search is cancelled.
    fn follow(&mut self, progress: Progress<'_>) -> ControlFlow<()> {
        (self.tell)(progress);
        (self.wanted)()
    }
}

struct Ended {
    why: String,
    /// Whether no better configuration can exist.
    complete: bool,
    /// A lower bound of the objective, if known.
    least: Option<f64>,
}

impl Ended {
    fn interrupted(least: Option<f64>) -> Self {
        Self { why: "it was interrupted".to_owned(), complete: false, least }
    }
}

stepcast_core::variant_names!(SearchStrategy { Exhaustive = "exhaustive", Bound = "bound", Heuristic = "heuristic", });

impl FromStr for SearchStrategy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::named(text)
            .ok_or_else(|| format!("\"{text}\" is no way to search; use exhaustive, bound or heuristic"))
    }
}

/// Searches all configurations of `variants`; a cancelled search reports its results so far as incomplete.
pub fn search(
    asked: &Variants<'_>,
    choice: MethodChoice,
    goal: &Goal,
    effort: Effort,
    wanted: &CancelCheck<'_>,
    tell: &mut Tell<'_>,
) -> Result<SearchReport, Fault> {
    let priced = if goal.is_about_cost() { asked.priced_by_catalog() } else { None };
    let variants = priced.as_ref().unwrap_or(asked);
    let all = variants.grid().points();
    if all < 2 {
        let devices = Remedy::option_to(RequestOption::Devices, "with prices");
        let remedy = [Remedy::option(RequestOption::Vary, "KEY=VALUES"), devices];
        return Err(Fault::new("there is nothing to choose from", remedy));
    }
    let Ok(points) = u64::try_from(all) else {
        let reason = format!("{all:.0e} configurations cannot even be numbered", all = all as f64);
        return Err(Fault::new(reason, "vary fewer keys, or fewer values of each"));
    };
    Constraint::check_all(&goal.constraints)?;
    let mut goal = goal.clone();
    let implied = !goal.constraints.iter().any(Constraint::is_of_memory);
    if implied {
        goal.constraints.push(Constraint::memory());
    }
    let goal = &goal;
    goal.objective.check(variants.first())?;
    check_constraints(variants, goal)?;
    let agreement = Agreement::of(variants, choice);
    let choice = agreement.choice();
    let quick = is_quick(variants, choice);
    let share = |predictions: u128| cost_share(variants, choice, predictions);
    let how = effort.how.unwrap_or_else(|| usual(variants, choice, quick, share(all)));
    let (most, fewest) = MOST_PREDICTIONS;
    let affordable = if quick { (1.0 / share(1)) as u64 } else { fewest };
    let budget = effort.budget.unwrap_or(affordable.clamp(fewest, most));
    if how == SearchStrategy::Exhaustive && share(all) > 1.0 && effort.budget.is_none_or(|most| most < points)
    {
        let long = budget::duration(share(all) * budget::UNASKED as f64).human();
        let reason = format!("to try all {points} configurations would take a core about {long}");
        let all = Remedy::GiveOption {
            option: RequestOption::Budget,
            value: Some(points.to_string()),
            purpose: "to try them all the same".to_owned(),
        };
        let [bound, heuristic] = ["bound", "heuristic"].map(|how| Remedy::option(RequestOption::How, how));
        let remedy = [bound, heuristic, all];
        return Err(Fault::new(reason, remedy));
    }
    let mut follower = Follower { wanted, tell };
    let watch = &mut follower;
    let (found, ended) = match how {
        SearchStrategy::Exhaustive => exhaustive(variants, choice, goal, points, watch),
        SearchStrategy::Bound if !bound::applies(variants, choice) => {
            let reason = "there are bounds for closed forms of bulk-synchronous parameter servers only";
            let heuristic = Remedy::option(RequestOption::How, "heuristic");
            let remedy = [Remedy::method("layerwise"), Remedy::method("zeng2023"), heuristic];
            return Err(Fault::new(reason, remedy));
        }
        SearchStrategy::Bound => bound::search(variants, choice, goal, budget, watch),
        SearchStrategy::Heuristic => heuristic::search(variants, choice, goal, (budget, effort.seed), watch),
    };
    let mut report = report::report(variants, goal, how, points, found, ended)?;
    if implied && report.constraints.last().is_some_and(|memory| memory.excluded == 0) {
        report.constraints.pop();
    }
    // An interrupted search skips intervals.
    if wanted().is_continue() {
        let mut walker = variants.walker();
        for entry in report.best.iter_mut().chain(&mut report.front) {
            entry.figures.interval = interval_at(&mut walker, &digits(variants, entry.index), choice);
        }
    }
    let catalog_prices = priced.is_some().then(|| CATALOG_PRICES.to_owned());
    Ok(SearchReport { methods: agreement.methods().to_vec(), catalog_prices, ..report })
}

fn digits(variants: &Variants<'_>, index: u64) -> Vec<u64> {
    let mut digits = Vec::new();
    variants.grid().digits(index, &mut digits);
    digits
}

/// Cost of this many predictions, as a share of the largest cost of a study.
fn cost_share(variants: &Variants<'_>, choice: MethodChoice, predictions: u128) -> f64 {
    let method = choice.method(variants.first());
    let each = method.map_or(1, |method| budget::prediction(variants.first(), method));
    predictions as f64 * each as f64 / budget::UNASKED as f64
}

/// The strategy for a space whose configurations together cost this `share` of the largest cost of a study.
fn usual(variants: &Variants<'_>, choice: MethodChoice, quick: bool, share: f64) -> SearchStrategy {
    let few_resolutions = variants.resolutions() <= 100_000;
    let has_bounds = few_resolutions
        && bound::applies(variants, choice)
        && bound::categories(variants, choice) <= bound::MOST_CATEGORIES;
    let most = if has_bounds { EXHAUSTIVE } else { 1.0 };
    if share <= 1.0 && variants.grid().points() <= EXHAUSTIVE_SLOWLY
        || quick && share <= most && few_resolutions
    {
        SearchStrategy::Exhaustive
    } else if has_bounds {
        SearchStrategy::Bound
    } else {
        SearchStrategy::Heuristic
    }
}

/// Refuses constraints on figures that no configuration has, since they would exclude everything.
fn check_constraints(variants: &Variants<'_>, goal: &Goal) -> Result<(), Fault> {
    for constraint in &goal.constraints {
        let needs = match constraint.figure {
            goal::Figure::Deadline => Objective::Time,
            goal::Figure::Budget => Objective::Cost,
            _ => continue,
        };
        needs.check(variants.first()).map_err(|fault| {
            let reason = format!("{constraint} cannot be judged: {}", fault.reason);
            Fault::in_key(fault.key, reason, fault.remedy)
        })?;
    }
    Ok(())
}

/// Tries every configuration, on all cores.
fn exhaustive(
    variants: &Variants<'_>,
    choice: MethodChoice,
    goal: &Goal,
    points: u64,
    watch: &mut Follower<'_, '_>,
) -> (Tracker, Ended) {
    let grid = variants.grid();
    let wanted = watch.wanted;
    let block = |walker: &mut Walker<'_>, range: Range<u64>| {
        let mut found = Tracker::new(goal);
        let mut digits = Vec::new();
        for index in range {
            grid.digits(index, &mut digits);
            let ControlFlow::Continue(answer) = walker.figures(&digits, choice, wanted) else { break };
            found.see(goal, index, answer);
        }
        found
    };
    let mut all = Tracker::new(goal);
    let ended = blocks(variants, is_quick(variants, choice), 0..points, block, |range, found| {
        all.merge(goal, found);
        watch.follow(Progress { done: range.end, variants, found: &all })
    });
    match ended {
        ControlFlow::Continue(()) => {
            (all, Ended { why: "every configuration was tried".to_owned(), complete: true, least: None })
        }
        ControlFlow::Break(()) => (all, Ended::interrupted(None)),
    }
}
