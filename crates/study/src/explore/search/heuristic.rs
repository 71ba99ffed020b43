//! Local search from many starting points, for simulations and for spaces without bounds that are too large to
//! enumerate.
//!
//! From each point the search moves to the best neighbour as long as it is better. Neighbours differ along one axis:
//! by one step, by an eighth of the axis, or by any value of a short axis. Then the search restarts from the best
//! point with some values changed, or from a random point. Neighbours are evaluated in parallel and compared in a
//! fixed order, so the path does not depend on the number of threads. Points that violate constraints may be visited:
//! fewer and smaller violations are better.

use super::tracker::{Goal, Tracker};
use super::{Ended, Follower, Progress, digits, ideal};
use crate::explore::sweep::{PointFigures, Refused, Variants};
use crate::predict::MethodChoice;
use rand_core::Rng;
use rand_pcg::Pcg64Mcg;
use rayon::prelude::*;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::ControlFlow;
use stepcast_core::method::CancelCheck;

/// Axes with at most this many values are tried value by value.
const SHORT: u64 = 8;

/// Restarts without an improvement after which the search stops.
const PATIENCE: u32 = 24;

/// How good a point is: whether it is refused, its constraint violation, its value, its index.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Score {
    excess: f64,
    value: f64,
    index: u64,
}

impl Score {
    fn of(goal: &Goal, index: u64, answer: &Result<PointFigures, Refused>) -> Self {
        let valued = answer.as_ref().ok().and_then(|figures| {
            let excess = goal.constraints.iter().map(|constraint| constraint.excess(figures)).sum();
            Some((excess, goal.objective.value(figures)?))
        });
        let (excess, value) = valued.unwrap_or((f64::INFINITY, f64::INFINITY));
        Self { excess, value, index }
    }

    fn order(&self, other: &Self) -> Ordering {
        let by_excess = self.excess.total_cmp(&other.excess);
        by_excess.then(self.value.total_cmp(&other.value)).then(self.index.cmp(&other.index))
    }

    fn is_better_than(&self, other: &Self) -> bool {
        self.excess < other.excess || (self.excess <= other.excess && self.value < other.value)
    }
}

struct Climb<'a> {
    variants: &'a Variants<'a>,
    choice: MethodChoice,
    goal: &'a Goal,
    wanted: &'a CancelCheck<'a>,
    known: HashMap<u64, Score>,
    found: Tracker,
}

impl Climb<'_> {
    /// Evaluates the new points, as long as they are wanted; returns the best of all that are known.
    fn best_of(&mut self, points: &[u64]) -> Option<Score> {
        let mut new: Vec<u64> =
            points.iter().copied().filter(|index| !self.known.contains_key(index)).collect();
        new.sort_unstable();
        new.dedup();
        let answers: Vec<(u64, Result<PointFigures, Refused>)> = new
            .into_par_iter()
            .filter_map(|index| {
                let digits = digits(self.variants, index);
                match self.variants.walker().figures(&digits, self.choice, self.wanted) {
                    ControlFlow::Continue(answer) => Some((index, answer)),
                    ControlFlow::Break(()) => None,
                }
            })
            .collect();
        for (index, answer) in answers {
            self.known.insert(index, Score::of(self.goal, index, &answer));
            self.found.see(self.goal, index, answer);
        }
        let scores = points.iter().filter_map(|index| self.known.get(index)).copied();
        scores.min_by(Score::order)
    }

    fn neighbours(&self, index: u64) -> Vec<u64> {
        let grid = self.variants.grid();
        let mut digits = digits(self.variants, index);
        let mut all = Vec::new();
        for (axis, &length) in grid.lengths().iter().enumerate() {
            let here = digits[axis];
            let places: Vec<u64> = match length {
                0..=SHORT => (0..length).collect(),
                _ => {
                    let far = (length / 8).max(2);
                    let down = [here.checked_sub(1), here.checked_sub(far)].into_iter().flatten();
                    down.chain([here + 1, here + far].into_iter().filter(|place| *place < length)).collect()
                }
            };
            for place in places.into_iter().filter(|place| *place != here) {
                digits[axis] = place;
                all.push(grid.index(&digits));
            }
            digits[axis] = here;
        }
        all
    }
}

pub(super) fn search(
    variants: &Variants<'_>,
    choice: MethodChoice,
    goal: &Goal,
    (budget, seed): (u64, u64),
    watch: &mut Follower<'_, '_>,
) -> (Tracker, Ended) {
    let points = u64::try_from(variants.grid().points()).unwrap_or(u64::MAX);
    let mut random = Pcg64Mcg::new(u128::from(seed) << 64 | 0x9e37_79b9_7f4a_7c15);
    let (known, found) = (HashMap::new(), Tracker::new(goal));
    let mut climb = Climb { variants, choice, goal, wanted: watch.wanted, known, found };
    let least = ideal::lowest(variants, choice, goal.objective);
    let mut best: Option<Score> = None;
    let mut idle = 0;
    let ended = |why: String| Ended { why, complete: false, least };
    loop {
        if climb.found.evaluated >= points {
            return (
                climb.found,
                Ended { complete: true, ..ended("every configuration was tried".to_owned()) },
            );
        }
        if idle >= PATIENCE {
            let why = format!("{PATIENCE} new beginnings in a row found nothing better");
            return (climb.found, ended(why));
        }
        let start = start(variants, &mut random, best.filter(|_| idle % 2 == 1), points);
        let Some(mut here) = climb.best_of(&[start]) else { return (climb.found, Ended::interrupted(least)) };
        loop {
            if climb.found.evaluated >= budget {
                return (climb.found, ended(format!("{budget} configurations were tried")));
            }
            let progress = Progress { done: climb.found.evaluated, variants, found: &climb.found };
            if watch.follow(progress).is_break() {
                return (climb.found, Ended::interrupted(least));
            }
            let neighbours = climb.neighbours(here.index);
            match climb.best_of(&neighbours).filter(|next| next.is_better_than(&here)) {
                Some(next) => here = next,
                None => break,
            }
        }
        idle += 1;
        if best.is_none_or(|best| here.is_better_than(&best)) {
            best = Some(here);
            idle = 0;
        }
    }
}

/// A random point, or the best point with about a third of its values changed.
fn start(variants: &Variants<'_>, random: &mut Pcg64Mcg, near: Option<Score>, points: u64) -> u64 {
    let Some(best) = near else { return random.next_u64() % points };
    let mut digits = digits(variants, best.index);
    for (digit, length) in digits.iter_mut().zip(variants.grid().lengths()) {
        if random.next_u64().is_multiple_of(3) {
            *digit = random.next_u64() % length;
        }
    }
    variants.grid().index(&digits)
}
