//! One method for all points of a grid, so that their figures can be compared.
//!
//! With the method `auto`, all points are predicted by the first method that models all of them; points that no method
//! models do not count. Rough methods answer only where there is no other. If no method models all points, each point
//! has its own method, and callers must say so.
//!
//! Which methods model a scenario depends on few of its keys, so not every point is checked:
//!
//! * Latencies, speeds, efficiencies, devices, prices, precisions, fusion rules and data sets never matter: one of their
//!   values stands for all.
//! * More workers, servers or samples never make a method model what it refused with fewer, except that workers must fill
//!   nodes, a condition that is the same in all methods that have it. Where the methods change along such an axis is found by
//!   bisection.
//! * Of all other axes every value counts: models, architectures, synchronisations, bandwidths (TCP is modelled for equal
//!   ports), options of methods.
//!
//! All combinations of the remaining values are checked, or evenly chosen ones if there are too many. Tests compare with a
//! check of all points.

use super::{Axis, Variants, Walker};
use crate::predict::MethodChoice;
use crate::predict::methods::MethodSet;
use stepcast_core::keys::Effect;

const MOST: u128 = 65_536;

/// Points that are tried for a combination whose values are inconsistent with the first values of the other axes.
const TRIES: u64 = 256;

/// The methods that predict the points of a grid.
#[derive(Clone)]
pub struct Agreement {
    choice: MethodChoice,
    methods: Vec<&'static str>,
}

impl Agreement {
    /// The method for all points of `variants`: the requested one, or the one that `auto` finds.
    pub fn of(variants: &Variants<'_>, asked: MethodChoice) -> Self {
        match asked {
            MethodChoice::One(method) => Self { choice: asked, methods: vec![method.name()] },
            MethodChoice::Auto => Self::found(variants),
        }
    }

    fn found(variants: &Variants<'_>) -> Self {
        let mut seen = Seen { all: MethodSet::every(), any: MethodSet::NONE, own: MethodSet::NONE };
        Look::new(variants).each(|set| seen.add(set));
        let fine = !seen.any.without_rough().is_empty();
        let common = if fine { seen.all.without_rough() } else { seen.all };
        match common.methods().next().filter(|_| !seen.any.is_empty()) {
            Some(method) => Self { choice: MethodChoice::One(method), methods: vec![method.name()] },
            None => Self {
                choice: MethodChoice::Auto,
                methods: seen.own.methods().map(|method| method.name()).collect(),
            },
        }
    }

    /// The method of every point.
    pub fn choice(&self) -> MethodChoice {
        self.choice
    }

    /// The methods that predict points, in order of preference: one, unless no method models all points.
    pub fn methods(&self) -> &[&'static str] {
        &self.methods
    }

    /// A name that identifies the choice.
    pub fn name(&self) -> &'static str {
        match self.choice {
            MethodChoice::One(method) => method.name(),
            MethodChoice::Auto => "auto",
        }
    }
}

/// The sets of methods that were found at points with any.
struct Seen {
    all: MethodSet,
    any: MethodSet,
    /// The preferred methods of the points.
    own: MethodSet,
}

impl Seen {
    fn add(&mut self, set: MethodSet) {
        if set.is_empty() {
            return;
        }
        self.all = self.all.and(set);
        self.any = self.any.or(set);
        self.own = self.own.or(set.first());
    }
}

/// How the values of an axis affect which methods apply.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Matters {
    Never,
    /// Larger numbers may only exclude methods.
    Excludes,
    Always,
}

fn matters(variants: &Variants<'_>, axis: usize) -> Matters {
    let Axis { key, .. } = &variants.axes()[axis];
    let below = |section: &&str| {
        key.strip_prefix(*section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if ["data", "price", "strategy.fusion", "strategy.precision"].iter().any(below) {
        return Matters::Never;
    }
    let Some(setting) = variants.setting(axis, 0) else { return Matters::Always };
    match setting.effect() {
        Effect::Delay | Effect::Computing | Effect::Choice => Matters::Never,
        Effect::Load | Effect::Servers if setting.number().is_some() => Matters::Excludes,
        _ => Matters::Always,
    }
}

struct Look<'a> {
    variants: &'a Variants<'a>,
    walker: Walker<'a>,
    matters: Vec<Matters>,
}

impl<'a> Look<'a> {
    fn new(variants: &'a Variants<'a>) -> Self {
        let matters = (0..variants.axes().len()).map(|axis| matters(variants, axis)).collect();
        Self { variants, walker: variants.walker(), matters }
    }

    /// Passes the methods of every combination that matters to `see`.
    fn each(&mut self, mut see: impl FnMut(MethodSet)) {
        let lengths = self.variants.grid().lengths().to_vec();
        let mut places: Vec<Vec<u64>> = Vec::with_capacity(lengths.len());
        for (axis, &length) in lengths.iter().enumerate() {
            places.push(match self.matters[axis] {
                Matters::Never => vec![0],
                Matters::Excludes => self.changes(axis),
                Matters::Always => (0..length.min(MOST as u64)).collect(),
            });
        }
        let all = places.iter().fold(1_u128, |all, some| all.saturating_mul(some.len() as u128));
        let step = all.div_ceil(MOST).max(1);
        let mut digits = vec![0; places.len()];
        let mut number = 0;
        while number < all {
            let mut rest = number;
            for (digit, some) in digits.iter_mut().zip(&places).rev() {
                *digit = some[(rest % some.len() as u128) as usize];
                rest /= some.len() as u128;
            }
            if let Some(set) = self.at(&mut digits) {
                see(set);
            }
            number += step;
        }
    }

    /// The methods at a point, or at another one that differs only in irrelevant axes; `None` if no tried point is
    /// consistent.
    fn at(&mut self, digits: &mut [u64]) -> Option<MethodSet> {
        let lengths = self.variants.grid().lengths();
        for _ in 0..TRIES {
            if let Ok(set) = self.walker.look(digits, MethodSet::of) {
                return Some(set);
            }
            // The next combination of irrelevant axes.
            let free = (0..digits.len()).rev().filter(|&axis| self.matters[axis] == Matters::Never);
            let mut carried = true;
            for axis in free {
                digits[axis] += 1;
                if digits[axis] < lengths[axis] {
                    carried = false;
                    break;
                }
                digits[axis] = 0;
            }
            if carried {
                return None;
            }
        }
        None
    }

    /// Positions of an axis of numbers, in the order of the numbers: the ends, and both sides of every change of methods
    /// along the axis while all other axes have their first values.
    fn changes(&mut self, axis: usize) -> Vec<u64> {
        let length = self.variants.grid().lengths()[axis];
        let mut order: Vec<u64> = Vec::new();
        if self.variants.axes()[axis].values.number(0).is_none() {
            let number = |place: u64| self.variants.setting(axis, place).and_then(|setting| setting.number());
            order = (0..length).collect();
            order.sort_by(|&a, &b| number(a).unwrap_or(0.0).total_cmp(&number(b).unwrap_or(0.0)));
        }
        let place = |rank: u64| order.get(rank as usize).copied().unwrap_or(rank);
        let mut found = vec![0, length - 1];
        let mut open = vec![(0, length - 1)];
        let mut digits = vec![0; self.variants.axes().len()];
        let mut set = |look: &mut Self, rank: u64| {
            digits.fill(0);
            digits[axis] = place(rank);
            look.at(&mut digits)
        };
        while let Some((low, high)) = open.pop() {
            if high - low < 2 || set(self, low) == set(self, high) {
                continue;
            }
            let middle = low + (high - low) / 2;
            found.extend([middle, middle + 1]);
            open.extend([(low, middle), (middle + 1, high)]);
        }
        found.sort_unstable();
        found.dedup();
        found.into_iter().map(place).collect()
    }
}
