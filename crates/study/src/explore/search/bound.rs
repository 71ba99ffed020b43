//! Branch and bound over boxes of the grid, for the closed forms of bulk-synchronous parameter servers.
//!
//! Monotonicity gives the bound: in `zeng2023` and `layerwise` a step never becomes shorter with more workers, more
//! samples, less bandwidth, more latency or slower devices. Both are queues that are served in order of arrival, and
//! such a queue empties at the maximum, over all times t, of t plus the work that arrives from t on: later arrivals
//! and more work never make it smaller. Within a box, therefore, no step is shorter than the one with the fewest
//! workers and samples, the widest links and the fastest devices, no step has more samples than the one with the most
//! of both, and no hour costs less than with the fewest machines. More servers never make a step longer in `zeng2023`
//! (the fullest of n + 1 holds no more than the fullest of n: by induction over the layers, the i-th fullest of the
//! larger set holds no more than that of the smaller one); in `layerwise` that is not proven, and numbers of servers
//! are tried one by one.
//!
//! The box with the lowest bound is split first, until no open box can contain one of the ten best points.

use super::goal::{Figure, Objective};
use super::tracker::{Goal, Tracker};
use super::{Ended, Follower, Progress};
use crate::explore::sweep::{Refused, Setting, Variants, Walker};
use crate::predict::MethodChoice;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use stepcast_core::keys::Effect;
use stepcast_core::method::CancelCheck;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

/// Largest number of points of a box that is enumerated.
const SMALL: u128 = 16;

/// Most dives into promising boxes if the search ends before it has found any admissible point.
const DIVES: usize = 100;

/// Most combinations of unordered values: each combination starts as a separate box.
pub(super) const MOST_CATEGORIES: u128 = 100_000;

/// Bounds are computed in another order than steps: allowance for rounding.
const ROUNDING: f64 = 1e-12;

/// Whether bounds are known. They are not for fitted step times, which need not grow with the batch.
pub(super) fn applies(variants: &Variants<'_>, choice: MethodChoice) -> bool {
    let fitted = variants.may_be_fitted();
    let unknown = (0..variants.axes().len()).any(|axis| {
        variants.axes()[axis].key.starts_with("cluster.workers") && variants.setting(axis, 0).is_none()
    });
    let known =
        matches!(choice, MethodChoice::One(method) if ["zeng2023", "layerwise"].contains(&method.name()));
    known && !fitted && !unknown
}

/// Number of combinations of unordered values.
pub(super) fn categories(variants: &Variants<'_>, choice: MethodChoice) -> u128 {
    let MethodChoice::One(method) = choice else { return u128::MAX };
    let axes = (0..variants.axes().len()).map(|axis| ordered(variants, method.name(), axis));
    let lengths = axes.zip(variants.grid().lengths()).filter(|(axis, _)| axis.kind == AxisTrend::Category);
    lengths.fold(1, |product: u128, (_, &length)| product.saturating_mul(u128::from(length)))
}

/// A box of the grid: ranks from `low` to `high` on every axis, counted from the smallest value.
#[derive(Debug, Clone, PartialEq)]
struct Cell {
    bound: f64,
    /// Breaks ties between equal bounds: earlier boxes first.
    number: u64,
    low: Vec<u64>,
    high: Vec<u64>,
}

impl Eq for Cell {}

impl Ord for Cell {
    fn cmp(&self, other: &Self) -> Ordering {
        other.bound.total_cmp(&self.bound).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Cell {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Cell {
    fn points(&self) -> u128 {
        let lengths = self.low.iter().zip(&self.high).map(|(low, high)| u128::from(high - low + 1));
        lengths.fold(1, u128::saturating_mul)
    }
}

/// Extreme values over all points of a box.
struct Extremes {
    iteration: Seconds,
    /// Samples per step.
    fewest: f64,
    most: f64,
    /// Hourly cost of all machines; `None` if prices are missing.
    hourly: Option<f64>,
    /// Lowest hourly price per sample of a step over all groups.
    hourly_per_sample: Option<f64>,
    nodes: f64,
    workers: (f64, f64),
    fits: bool,
}

struct Bounds<'a> {
    variants: &'a Variants<'a>,
    choice: MethodChoice,
    goal: &'a Goal,
    wanted: &'a CancelCheck<'a>,
    axes: Vec<SortedAxis>,
    walker: Walker<'a>,
    digits: Vec<u64>,
}

impl Bounds<'_> {
    fn place(&self, axis: usize, rank: u64) -> u64 {
        self.axes[axis].places.as_ref().map_or(rank, |places| places[rank as usize])
    }

    /// Evaluates `look` at the corner of the box that `high` selects for each kind of axis.
    fn at_corner<T>(
        &mut self,
        cell: &Cell,
        high: impl Fn(AxisTrend) -> bool,
        look: impl FnOnce(&Scenario) -> T,
    ) -> Option<T> {
        let mut digits = std::mem::take(&mut self.digits);
        digits.clear();
        for axis in 0..self.axes.len() {
            let ends = if high(self.axes[axis].kind) { &cell.high } else { &cell.low };
            digits.push(self.place(axis, ends[axis]));
        }
        let seen = self.walker.look(&digits, look).ok();
        self.digits = digits;
        seen
    }

    /// The extremes of a box; `None` if no bound is known. An error is a refusal that holds for the whole box.
    fn extremes(&mut self, cell: &Cell) -> Result<Option<Extremes>, Refused> {
        let (choice, wanted) = (self.choice, self.wanted);
        let fast = |kind| matches!(kind, AxisTrend::Faster | AxisTrend::Servers);
        let quickest = self.at_corner(cell, fast, |scenario| choice.figures(scenario, wanted));
        let Some(ControlFlow::Continue(quickest)) = quickest else { return Ok(None) };
        let iteration = quickest?.iteration;
        let most = self.at_corner(
            cell,
            |kind| kind != AxisTrend::Slower,
            |scenario| {
                let dearest = (0..scenario.cluster.groups.len()).map(|group| {
                    let group_of = &scenario.cluster.groups[group];
                    let price = group_of.price.or(scenario.price.as_ref().map(|price| price.worker_hour));
                    price.map(|price| price / f64::from(scenario.samples(group)))
                });
                let cheapest = dearest.reduce(|a, b| a.zip(b).map(|(a, b)| a.min(b))).flatten();
                (samples(scenario), scenario.cluster.workers() as f64, cheapest)
            },
        );
        let least = self.at_corner(
            cell,
            |_| false,
            |scenario| {
                let nodes = crate::explore::sweep::nodes(scenario) as f64;
                let fits = crate::predict::training::fits(scenario);
                (samples(scenario), scenario.cluster.workers() as f64, scenario.hourly_cost(), nodes, fits)
            },
        );
        let (Some((most, workers_most, hourly_per_sample)), Some((fewest, workers, hourly, nodes, fits))) =
            (most, least)
        else {
            return Ok(None);
        };
        let workers = (workers, workers_most);
        Ok(Some(Extremes { iteration, fewest, most, hourly, hourly_per_sample, nodes, workers, fits }))
    }

    fn bound(&self, extremes: &Extremes) -> Lowest {
        let first = self.variants.first();
        let (data, samples) = (first.data, first.epoch_samples());
        let steps_time = |samples: u64| extremes.iteration.get() * samples as f64 / extremes.most;
        let epoch = samples.map_or(0.0, steps_time);
        let epochs = data.map_or(0.0, |data| data.epochs as f64);
        let all_samples = samples.map_or(0.0, |samples| samples as f64) * epochs;
        let time = epoch * epochs;
        let by_hour = extremes.hourly.map_or(0.0, |hourly| hourly * time / 3600.0);
        // Each worker is paid for its own samples, so the cheapest group bounds the cost per sample.
        let by_sample = extremes
            .hourly_per_sample
            .map_or(0.0, |hourly| hourly * extremes.iteration.get() * all_samples / 3600.0);
        let cost = by_hour.max(by_sample);
        let value = match self.goal.objective {
            Objective::Iteration => extremes.iteration.get(),
            Objective::Epoch => epoch,
            Objective::Time => time,
            Objective::Cost => cost,
            Objective::CostTime => cost * time,
        };
        Lowest { value: value * (1.0 - ROUNDING), time, cost }
    }

    /// The first constraint that every point of the box violates.
    fn excluding(&self, extremes: &Extremes, lowest: &Lowest) -> Option<usize> {
        let slack = 1.0 - ROUNDING;
        self.goal.constraints.iter().position(|constraint| {
            let (low, high) = match constraint.figure {
                Figure::Minibatch => (extremes.fewest, extremes.most),
                Figure::Nodes => (extremes.nodes, f64::INFINITY),
                Figure::Workers => extremes.workers,
                Figure::Throughput => (0.0, extremes.most / (extremes.iteration.get() * slack)),
                Figure::Iteration => (extremes.iteration.get() * slack, f64::INFINITY),
                Figure::Deadline => (lowest.time * slack, f64::INFINITY),
                Figure::Budget => (lowest.cost * slack, f64::INFINITY),
                Figure::Memory => (if extremes.fits { 0.0 } else { 1.0 }, 1.0),
                Figure::Staleness | Figure::Kinds => (0.0, f64::INFINITY),
            };
            if constraint.at_least { high < constraint.bound } else { low > constraint.bound }
        })
    }

    /// Follows the half with the lower bound down to a small box and tries its points. The boxes with the lowest
    /// bounds are large ones, so a search that ends early may not have tried a single point.
    fn dive(&mut self, mut cell: Cell, found: &mut Tracker) {
        while cell.points() > SMALL {
            let mut best: Option<Cell> = None;
            for mut part in cut(&cell, &self.axes) {
                part.bound = match self.extremes(&part) {
                    Err(_) => continue,
                    Ok(None) => cell.bound,
                    Ok(Some(extremes)) => {
                        let lowest = self.bound(&extremes);
                        if self.excluding(&extremes, &lowest).is_some() {
                            continue;
                        }
                        lowest.value
                    }
                };
                if best.as_ref().is_none_or(|best| part.bound < best.bound) {
                    best = Some(part);
                }
            }
            let Some(part) = best else { return };
            cell = part;
        }
        self.try_all(&cell, found);
    }

    fn try_all(&mut self, cell: &Cell, found: &mut Tracker) {
        let mut ranks = cell.low.clone();
        loop {
            let digits: Vec<u64> = (0..ranks.len()).map(|axis| self.place(axis, ranks[axis])).collect();
            let ControlFlow::Continue(answer) = self.walker.figures(&digits, self.choice, self.wanted) else {
                return;
            };
            found.see(self.goal, self.variants.grid().index(&digits), answer);
            let Some(axis) = (0..ranks.len()).rev().find(|&axis| ranks[axis] < cell.high[axis]) else {
                return;
            };
            ranks[axis] += 1;
            ranks[axis + 1..].copy_from_slice(&cell.low[axis + 1..]);
        }
    }
}

/// Lower bounds of a box.
struct Lowest {
    value: f64,
    time: f64,
    cost: f64,
}

fn samples(scenario: &Scenario) -> f64 {
    let groups = scenario.cluster.groups.iter().enumerate();
    groups.map(|(index, group)| f64::from(group.count) * f64::from(scenario.samples(index))).sum()
}

/// Searches until no better point can exist, or until `budget` predictions were made.
pub(super) fn search(
    variants: &Variants<'_>,
    choice: MethodChoice,
    goal: &Goal,
    budget: u64,
    watch: &mut Follower<'_, '_>,
) -> (Tracker, Ended) {
    let MethodChoice::One(method) = choice else { return (Tracker::new(goal), Ended::interrupted(None)) };
    let lengths = variants.grid().lengths();
    let axes: Vec<SortedAxis> =
        (0..lengths.len()).map(|axis| ordered(variants, method.name(), axis)).collect();
    let (walker, digits) = (variants.walker(), Vec::new());
    let mut bounds = Bounds { variants, choice, goal, wanted: watch.wanted, axes, walker, digits };
    let mut found = Tracker::new(goal);
    let (mut asked_for, mut number) = (0_u64, 0_u64);
    let whole = Cell {
        bound: 0.0,
        number: 0,
        low: vec![0; lengths.len()],
        high: lengths.iter().map(|length| length - 1).collect(),
    };
    let mut open = BinaryHeap::from([whole]);
    while let Some(cell) = open.pop() {
        if cell.bound > found.threshold() {
            let why = "no other configuration can be among the best ten".to_owned();
            return (found, Ended { why, complete: true, least: None });
        }
        if asked_for >= budget {
            let why = format!("{budget} predictions were made");
            let least = Some(cell.bound);
            let mut next = Some(cell);
            for _ in 0..DIVES {
                let Some(cell) = next.filter(|_| found.best.is_empty()) else { break };
                bounds.dive(cell, &mut found);
                next = open.pop();
            }
            return (found, Ended { why, complete: false, least });
        }
        if watch.follow(Progress { done: asked_for, variants, found: &found }).is_break() {
            return (found, Ended::interrupted(Some(cell.bound)));
        }
        for mut part in cut(&cell, &bounds.axes) {
            number += 1;
            part.number = number;
            let unordered = (0..part.low.len()).any(|axis| {
                bounds.axes[axis].kind == AxisTrend::Category && part.low[axis] < part.high[axis]
            });
            if unordered {
                open.push(part);
                continue;
            }
            if part.points() <= SMALL {
                asked_for += part.points() as u64;
                bounds.try_all(&part, &mut found);
                continue;
            }
            asked_for += 1;
            match bounds.extremes(&part) {
                Err(why) => found.refuse_all(part.points(), why.refused),
                Ok(None) => {
                    part.bound = cell.bound;
                    open.push(part);
                }
                Ok(Some(extremes)) => {
                    let lowest = bounds.bound(&extremes);
                    if let Some(constraint) = bounds.excluding(&extremes, &lowest) {
                        found.exclude_all(constraint, part.points());
                    } else if lowest.value <= found.threshold() {
                        part.bound = lowest.value.max(cell.bound);
                        open.push(part);
                    }
                }
            }
        }
    }
    let why = "no other configuration can be among the best ten".to_owned();
    (found, Ended { why, complete: true, least: None })
}

/// Splits a box: along an unordered axis into its first value and the others, otherwise across the longest axis.
fn cut(cell: &Cell, axes: &[SortedAxis]) -> Vec<Cell> {
    let length = |axis: usize| cell.high[axis] - cell.low[axis];
    let unordered = (0..axes.len()).find(|&axis| axes[axis].kind == AxisTrend::Category && length(axis) > 0);
    let longest = (0..axes.len()).rev().max_by_key(|&axis| length(axis)).unwrap_or(0);
    let axis = unordered.unwrap_or(longest);
    if axes.is_empty() || length(axis) == 0 {
        return vec![cell.clone()];
    }
    let middle = if unordered.is_some() { cell.low[axis] } else { cell.low[axis] + length(axis) / 2 };
    let (mut first, mut second) = (cell.clone(), cell.clone());
    first.high[axis] = middle;
    second.low[axis] = middle + 1;
    vec![first, second]
}

/// How the step time depends on the values of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AxisTrend {
    /// Longer with larger values, which also mean more samples.
    Load,
    /// Longer with larger values.
    Slower,
    /// Shorter with larger values.
    Faster,
    /// Shorter with larger values, but more expensive.
    Servers,
    /// Values without an order.
    Category,
}

/// An axis with its values sorted in ascending order.
pub(super) struct SortedAxis {
    pub(super) kind: AxisTrend,
    /// Position of the n-th smallest value on the axis; `None` if the axis is already sorted.
    pub(super) places: Option<Vec<u64>>,
}

fn kind(method: &str, setting: &Setting) -> (AxisTrend, f64) {
    let Some(number) = setting.number() else { return (AxisTrend::Category, 0.0) };
    match setting.effect() {
        Effect::Load => (AxisTrend::Load, number),
        Effect::Delay => (AxisTrend::Slower, number),
        Effect::Computing | Effect::Transfer => (AxisTrend::Faster, number),
        Effect::Servers if method == "zeng2023" => (AxisTrend::Servers, number),
        Effect::Servers | Effect::Choice | Effect::Exchange | Effect::Resolved => (AxisTrend::Category, 0.0),
    }
}

fn ordered(variants: &Variants<'_>, method: &str, axis: usize) -> SortedAxis {
    let category = SortedAxis { kind: AxisTrend::Category, places: None };
    let Some(first) = variants.setting(axis, 0) else { return category };
    let (kind_of_first, _) = kind(method, &first);
    let length = variants.grid().lengths()[axis];
    if variants.axes()[axis].values.number(0).is_some() || kind_of_first == AxisTrend::Category {
        return SortedAxis { kind: kind_of_first, places: None };
    }
    let sized: Option<Vec<(f64, u64)>> = (0..length)
        .map(|place| {
            let (kind, size) = kind(method, &variants.setting(axis, place)?);
            (kind == kind_of_first).then_some((size, place))
        })
        .collect();
    let Some(mut sized) = sized else { return category };
    sized.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    SortedAxis { kind: kind_of_first, places: Some(sized.into_iter().map(|(_, place)| place).collect()) }
}
