//! Results that a search keeps: the best plan of every family, and the front of time, cost and memory.
//!
//! A family is all plans with the same value of one dimension. Its best plan shows the cost of the value.

use super::setup::Setup;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;
use stepcast_core::strategy::{
    COMPARED_EACH, COMPARED_LISTED, Coded, DIMENSIONS, Dimension, DimensionNames, PlanChoice,
};

/// Dimensions of machines: their kind, their number, and the framework that runs there.
pub(super) const MACHINES: [&str; 3] = ["machine", "nodes", "framework"];

pub(super) const NODES: usize = 1;

pub(super) const FRAMEWORK: usize = 2;

/// Dimensions that reports compare: those of machines, then those of plans.
const COMPARED: usize = MACHINES.len() + COMPARED_EACH + COMPARED_LISTED;

/// The dimensions of plans that reports compare: those that a search tries in full, then those that it tries as listed.
pub(super) fn compared() -> impl Iterator<Item = &'static Dimension> {
    let each = DIMENSIONS.iter().filter(|dimension| dimension.each && dimension.words.is_some());
    each.chain(listed())
}

/// The dimensions that a search tries as listed.
pub(super) fn listed() -> impl Iterator<Item = &'static Dimension> {
    DIMENSIONS.iter().filter(|dimension| dimension.listed.is_some())
}

/// The values of a plan in all dimensions that reports compare.
pub(super) fn codes(setup: &Setup, choice: &PlanChoice) -> [u64; COMPARED] {
    let mut codes = [0; COMPARED];
    codes[0] = setup.offer.map_or(0, |place| place as u64 + 1);
    codes[NODES] = setup.nodes;
    codes[FRAMEWORK] = setup.framework.code();
    codes[MACHINES.len()..][..COMPARED_EACH].copy_from_slice(&choice.codes());
    codes[MACHINES.len() + COMPARED_EACH..].copy_from_slice(&setup.codes);
    codes
}

/// The place of sharding among the compared dimensions.
static SHARDING: LazyLock<usize> = LazyLock::new(|| {
    let place = compared().position(|dimension| dimension.is(DimensionNames::ALL.sharding));
    place.map_or(COMPARED, |place| place + MACHINES.len())
});

/// A plan and the memory that it needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanMemory {
    pub(super) choice: PlanChoice,
    pub(super) memory: f64,
    pub(super) fits: bool,
}

/// The best of some plans.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct BestPlan {
    /// The minimised figure.
    pub(super) value: f64,
    /// Time of a step, in seconds.
    pub(super) step: f64,
    pub(super) setup: Setup,
    pub(super) choice: PlanChoice,
}

/// All plans with the same value of one dimension.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Family {
    pub(super) code: u64,
    /// Plans of it.
    pub(super) plans: u64,
    /// Plans of it that fit into memory.
    pub(super) fitting: u64,
    /// The plan that needs least memory.
    pub(super) least: (f64, Setup, PlanChoice),
    /// The best admissible plan.
    pub(super) best: Option<BestPlan>,
}

/// All families that have been seen, by dimension.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Families {
    by: [Vec<Family>; COMPARED],
    /// Places of the families of the last counted plan.
    #[serde(skip)]
    last: [usize; COMPARED],
}

impl Families {
    /// The place of the family of a plan, which needs this much memory, in one dimension.
    fn place(list: &mut Vec<Family>, code: u64, least: impl FnOnce() -> (f64, Setup, PlanChoice)) -> usize {
        let known = list.iter().position(|family| family.code == code);
        known.unwrap_or_else(|| {
            list.push(Family { code, plans: 0, fitting: 0, least: least(), best: None });
            list.len() - 1
        })
    }

    /// Counts plans that differ only in sharding.
    pub(super) fn count(&mut self, setup: &Setup, alike: &[PlanMemory]) {
        let Some(first) = alike.first() else { return };
        let places = self.by.iter_mut().zip(&mut self.last);
        for (place, ((list, last), code)) in places.zip(codes(setup, &first.choice)).enumerate() {
            if place == *SHARDING {
                for plan in alike {
                    let code = plan.choice.sharding.code();
                    Self::add(list, last, code, setup, std::slice::from_ref(plan));
                }
            } else {
                Self::add(list, last, code, setup, alike);
            }
        }
    }

    /// Counts plans of one family; `last` is the place of the family of the previous plans.
    fn add(list: &mut Vec<Family>, last: &mut usize, code: u64, setup: &Setup, plans: &[PlanMemory]) {
        if list.get(*last).is_none_or(|family| family.code != code) {
            *last = Self::place(list, code, || (f64::INFINITY, *setup, plans[0].choice));
        }
        let family = &mut list[*last];
        family.plans += plans.len() as u64;
        for plan in plans {
            family.fitting += u64::from(plan.fits);
            if plan.memory < family.least.0 {
                family.least = (plan.memory, *setup, plan.choice);
            }
        }
    }

    /// Adds the counts and finds of another search; ties keep the existing plan.
    pub(super) fn merge(&mut self, other: Self) {
        for (list, others) in self.by.iter_mut().zip(other.by) {
            for family in others {
                let place = Self::place(list, family.code, || family.least);
                let own = &mut list[place];
                own.plans += family.plans;
                own.fitting += family.fitting;
                if family.least.0 < own.least.0 {
                    own.least = family.least;
                }
                if let Some(best) = family.best
                    && own.best.is_none_or(|own| best.value < own.value)
                {
                    own.best = Some(best);
                }
            }
        }
    }

    /// Whether a plan of at least this value cannot be the best of any of its families.
    pub(super) fn beat(&self, setup: &Setup, choice: &PlanChoice, value: f64) -> bool {
        self.by.iter().zip(codes(setup, choice)).all(|(list, code)| {
            let own = list.iter().find(|family| family.code == code);
            own.and_then(|family| family.best).is_some_and(|best| best.value <= value)
        })
    }

    /// Takes an admissible plan into account; the first of equal ones stays.
    pub(super) fn offer(&mut self, found: &BestPlan, memory: f64) {
        for (list, code) in self.by.iter_mut().zip(codes(&found.setup, &found.choice)) {
            let place = Self::place(list, code, || (memory, found.setup, found.choice));
            let family = &mut list[place];
            if family.best.is_none_or(|best| found.value < best.value) {
                family.best = Some(*found);
            }
        }
    }

    /// Plans that were counted, and those of them that fit.
    pub(super) fn plans(&self) -> [u64; 2] {
        let sum = |count: fn(&Family) -> u64| self.by[NODES].iter().map(count).sum();
        [sum(|family| family.plans), sum(|family| family.fitting)]
    }

    /// The best of all plans.
    pub(super) fn best(&self) -> Option<BestPlan> {
        let best = self.by[NODES].iter().filter_map(|family| family.best);
        best.reduce(|a, b| if b.value < a.value { b } else { a })
    }

    /// The best plans of all families, the best of all first.
    pub(super) fn finalists(&self) -> Vec<BestPlan> {
        let mut found: Vec<BestPlan> = Vec::new();
        for best in self.sorted().filter_map(|(_, family)| family.best) {
            if !found.iter().any(|known| known.setup == best.setup && known.choice == best.choice) {
                found.push(best);
            }
        }
        found.sort_by(|a, b| a.value.total_cmp(&b.value));
        found
    }

    /// The plan that needs least memory.
    pub(super) fn least(&self) -> Option<(f64, Setup, PlanChoice)> {
        let least = self.by[NODES].iter().map(|family| family.least);
        least.reduce(|a, b| if b.0 < a.0 { b } else { a })
    }

    /// The plan of every family that needs least memory, the smallest first.
    pub(super) fn smallest(&self) -> Vec<PlanChoice> {
        let mut least: Vec<(f64, Setup, PlanChoice)> =
            self.sorted().map(|(_, family)| family.least).collect();
        least.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut found: Vec<PlanChoice> = Vec::new();
        for (_, _, choice) in least {
            if !found.contains(&choice) {
                found.push(choice);
            }
        }
        found
    }

    /// All families with the place of their dimension.
    fn sorted(&self) -> impl Iterator<Item = (usize, &Family)> {
        // Reports list chunks after the schedule.
        let chunks = compared().position(|dimension| dimension.is(DimensionNames::ALL.virtual_stages));
        let chunks = chunks.map_or(0, |place| place + MACHINES.len());
        let mut order: Vec<usize> = (0..COMPARED).collect();
        order.swap(chunks, chunks + 1);
        order.into_iter().flat_map(|place| self.by[place].iter().map(move |family| (place, family)))
    }

    /// All families with the place of their dimension, in the order of their values.
    pub(super) fn by_value(mut self) -> Vec<(usize, Family)> {
        self.by.iter_mut().for_each(|list| list.sort_by_key(|family| family.code));
        self.sorted().map(|(place, family)| (place, *family)).collect()
    }
}

/// A plan with its time, cost and memory.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct FrontPoint {
    pub(super) time: f64,
    pub(super) cost: f64,
    pub(super) memory: f64,
    /// Time of a step.
    pub(super) step: f64,
    pub(super) setup: Setup,
    pub(super) choice: PlanChoice,
}

impl FrontPoint {
    fn dominates(&self, [time, cost, memory]: [f64; 3]) -> bool {
        self.time <= time && self.cost <= cost && self.memory <= memory
    }
}

/// Plans of which none is better in time, cost and memory at once.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Front {
    points: Vec<FrontPoint>,
}

impl Front {
    /// Whether a known plan is at least as good in time, cost and memory.
    pub(super) fn dominates(&self, figures: [f64; 3]) -> bool {
        self.points.iter().any(|known| known.dominates(figures))
    }

    /// Adds a plan, and removes those that it dominates.
    pub(super) fn offer(&mut self, point: FrontPoint) {
        if self.dominates([point.time, point.cost, point.memory]) {
            return;
        }
        self.points.retain(|known| !point.dominates([known.time, known.cost, known.memory]));
        self.points.push(point);
    }

    /// Adds all plans of another front.
    pub(super) fn merge(&mut self, other: Self) {
        other.points.into_iter().for_each(|point| self.offer(point));
    }

    /// The fastest first.
    pub(super) fn sorted(mut self) -> Vec<FrontPoint> {
        self.points.sort_by(|a, b| {
            a.time.total_cmp(&b.time).then(a.cost.total_cmp(&b.cost)).then(a.memory.total_cmp(&b.memory))
        });
        self.points
    }
}
