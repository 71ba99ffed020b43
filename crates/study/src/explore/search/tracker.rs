//! Bookkeeping of a search: the best configurations, the Pareto front, and exclusions by constraint.

use super::goal::{Constraint, Figure, Objective, Tally};
use crate::explore::sweep::{PointFigures, Refused};

const SHOWN: usize = 10;

/// The objective and the constraints of a search.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The figure to minimise.
    pub objective: Objective,
    /// The constraints to satisfy.
    pub constraints: Vec<Constraint>,
}

impl Goal {
    /// Whether it depends on prices.
    pub fn is_about_cost(&self) -> bool {
        self.objective.is_about_cost() || self.constraints.iter().any(|own| own.figure == Figure::Budget)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    pub(super) index: u64,
    pub(super) value: f64,
    pub(super) figures: PointFigures,
}

/// Results of all evaluated configurations; independent of the order and the batches in which they are added.
#[derive(Debug, Clone)]
pub(super) struct Tracker {
    /// Ascending, ties by index; at most [`SHOWN`].
    pub(super) best: Vec<Candidate>,
    /// Pareto front of training time and cost over all evaluated configurations that satisfy the constraints.
    pub(super) front: Front<Candidate>,
    /// The best configuration if there were no constraints.
    pub(super) unbound: Option<Candidate>,
    pub(super) evaluated: u64,
    pub(super) admitted: u64,
    pub(super) refused: u64,
    pub(super) refusal: Option<(u64, String)>,
    pub(super) tallies: Vec<Tally>,
}

fn before(a: &Candidate, b: &Candidate) -> bool {
    a.value.total_cmp(&b.value).then(a.index.cmp(&b.index)).is_lt()
}

impl Tracker {
    pub(super) fn new(goal: &Goal) -> Self {
        Self {
            best: Vec::new(),
            front: Front::new(),
            unbound: None,
            evaluated: 0,
            admitted: 0,
            refused: 0,
            refusal: None,
            tallies: vec![Tally::default(); goal.constraints.len()],
        }
    }

    /// The value that a configuration must beat to be reported.
    pub(super) fn threshold(&self) -> f64 {
        self.best.get(SHOWN - 1).map_or(f64::INFINITY, |worst| worst.value)
    }

    pub(super) fn see(&mut self, goal: &Goal, index: u64, answer: Result<PointFigures, Refused>) {
        self.evaluated += 1;
        let valued = answer.map(|figures| goal.objective.value(&figures).map(|value| (value, figures)));
        let (value, figures) = match valued {
            Ok(Some(valued)) => valued,
            Ok(None) => return self.refuse(index, "it has no such figure".to_owned()),
            Err(why) => return self.refuse(index, why.refused),
        };
        let broken = goal.constraints.iter().filter(|constraint| !constraint.holds(&figures)).count();
        if broken > 0 {
            for (constraint, tally) in goal.constraints.iter().zip(&mut self.tallies) {
                if !constraint.holds(&figures) {
                    tally.exclude(constraint, &figures, broken == 1);
                }
            }
            self.offer_unbound(index, value, &figures);
            return;
        }
        self.admitted += 1;
        self.offer_unbound(index, value, &figures);
        if let (Some(time), Some(cost)) = (figures.training, figures.cost) {
            let candidate = || Candidate { index, value, figures: figures.clone() };
            self.front.add(time.get(), cost, index, candidate);
        }
        if value <= self.threshold() {
            self.offer(Candidate { index, value, figures });
        }
    }

    /// Counts configurations that a bound has shown to be refused.
    pub(super) fn refuse_all(&mut self, points: u128, reason: String) {
        self.refused = self.refused.saturating_add(u64::try_from(points).unwrap_or(u64::MAX));
        self.refusal.get_or_insert((u64::MAX, reason));
    }

    /// Counts configurations that a bound has shown to violate a constraint.
    pub(super) fn exclude_all(&mut self, constraint: usize, points: u128) {
        self.tallies[constraint].exclude_unseen(u64::try_from(points).unwrap_or(u64::MAX));
    }

    fn refuse(&mut self, index: u64, reason: String) {
        self.refused += 1;
        if self.refusal.as_ref().is_none_or(|(first, _)| index < *first) {
            self.refusal = Some((index, reason));
        }
    }

    fn offer_unbound(&mut self, index: u64, value: f64, figures: &PointFigures) {
        let better = |old: &Candidate| value < old.value || (value <= old.value && index < old.index);
        if self.unbound.as_ref().is_none_or(better) {
            self.unbound = Some(Candidate { index, value, figures: figures.clone() });
        }
    }

    fn offer(&mut self, candidate: Candidate) {
        let place = self.best.partition_point(|other| before(other, &candidate));
        // A heuristic search may visit the same point twice.
        if place < SHOWN && self.best.get(place).is_none_or(|other| other.index != candidate.index) {
            self.best.insert(place, candidate);
            self.best.truncate(SHOWN);
        }
    }

    pub(super) fn merge(&mut self, goal: &Goal, other: Self) {
        self.evaluated += other.evaluated;
        self.admitted += other.admitted;
        self.refused += other.refused;
        if let Some((index, reason)) = other.refusal
            && self.refusal.as_ref().is_none_or(|(first, _)| index < *first)
        {
            self.refusal = Some((index, reason));
        }
        if let Some(unbound) = other.unbound {
            self.offer_unbound(unbound.index, unbound.value, &unbound.figures);
        }
        self.front.merge(other.front);
        for candidate in other.best {
            self.offer(candidate);
        }
        for ((constraint, tally), other) in goal.constraints.iter().zip(&mut self.tallies).zip(other.tallies)
        {
            tally.merge(constraint, other);
        }
    }
}

/// A Pareto front of two figures to minimise: ascending in the first, descending in the second.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Front<T> {
    entries: Vec<Entry<T>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry<T> {
    time: f64,
    cost: f64,
    index: u64,
    what: T,
}

impl<T> Front<T> {
    /// Without entries.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Adds the entry that `what` creates unless an existing one is at least as good in both figures; among equals
    /// the lowest index stays. The front does not depend on the order in which entries are added.
    pub fn add(&mut self, time: f64, cost: f64, index: u64, what: impl FnOnce() -> T) {
        let place = self.entries.partition_point(|entry| entry.time < time);
        let beaten = place > 0 && self.entries[place - 1].cost <= cost;
        let at_once = self.entries.get(place).filter(|entry| entry.time <= time);
        let beaten_at_once =
            at_once.is_some_and(|entry| entry.cost < cost || (entry.cost <= cost && entry.index <= index));
        if beaten || beaten_at_once {
            return;
        }
        let worse = self.entries[place..].iter().take_while(|entry| entry.cost >= cost).count();
        let entry = Entry { time, cost, index, what: what() };
        self.entries.splice(place..place + worse, [entry]);
    }

    /// Adds all entries of another front.
    pub fn merge(&mut self, other: Self) {
        for entry in other.entries {
            self.add(entry.time, entry.cost, entry.index, || entry.what);
        }
    }

    /// The entries, in the order of the first figure.
    pub fn into_entries(self) -> impl Iterator<Item = T> {
        self.entries.into_iter().map(|entry| entry.what)
    }
}
