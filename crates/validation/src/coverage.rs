//! Whether 90 % intervals contain the measured values: the interval of each case is made from the residuals of other
//! sets.
//!
//! Where no other set validates the method, the interval is made from the other groups of the case's own set. That is a
//! weaker test, so such cases are counted separately.

use serde::Serialize;
use stepcast_stats::NORMAL_95;
use stepcast_study::predict::interval::{Case, Pool, Residuals, residuals};

/// What was left out when an interval was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftOut {
    Set,
    /// The case's network or configuration.
    Group,
}

/// The interval of one case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    pub left_out: LeftOut,
    /// Half-width of the 90 % interval, as a logarithm.
    pub half_width: f64,
    pub inside: bool,
    /// Whether an interval made from other sets alone, whatever their methods, would contain it; none where there are too
    /// few of them.
    pub inside_by_sets: Option<bool>,
}

/// The interval of every case of `judged`, made from the residuals of `all`; none where there are too few.
pub fn intervals(judged: &[Case], all: &[Case]) -> Vec<Option<Judged>> {
    let rows = residuals(all);
    judged.iter().map(|case| interval(case, &rows)).collect()
}

fn interval(case: &Case, rows: &[Residuals]) -> Option<Judged> {
    let pool = |keep: &dyn Fn(&Residuals) -> bool| Pool::of(rows, &case.method, case.regime, keep);
    let other_sets = pool(&|row| row.set != case.set);
    let other_groups = || pool(&|row| row.set != case.set || row.group != case.group);
    let is_own = |pool: &Pool<'_>| pool.level().is_own();
    let half_width = |pool: &Pool<'_>| pool.half_width().hypot(NORMAL_95 * case.run_spread);
    let contains = |half_width: f64| case.residual().abs() <= half_width;
    let inside_by_sets = other_sets.as_ref().map(|pool| contains(half_width(pool)));
    let (left_out, pool) = match other_sets {
        Some(pool) if is_own(&pool) => (LeftOut::Set, pool),
        other_sets => match other_groups().filter(is_own) {
            Some(pool) => (LeftOut::Group, pool),
            None => (LeftOut::Set, other_sets?),
        },
    };
    let half_width = half_width(&pool);
    Some(Judged { left_out, half_width, inside: contains(half_width), inside_by_sets })
}

/// How many intervals contain the measured value.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Coverage {
    pub cases: usize,
    /// Cases whose measured value lies in it.
    pub inside: usize,
    /// Cases whose interval was made from the other groups of their own set.
    pub by_group: usize,
    /// Cases whose measured value lies in the interval made from other sets alone.
    pub inside_by_sets: usize,
}

impl Coverage {
    pub fn new(judged: &[Option<Judged>]) -> Self {
        let known = || judged.iter().flatten();
        Self {
            cases: known().count(),
            inside: known().filter(|judged| judged.inside).count(),
            by_group: known().filter(|judged| judged.left_out == LeftOut::Group).count(),
            inside_by_sets: known().filter(|judged| judged.inside_by_sets == Some(true)).count(),
        }
    }

    /// Of two sets together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            cases: self.cases + other.cases,
            inside: self.inside + other.inside,
            by_group: self.by_group + other.by_group,
            inside_by_sets: self.inside_by_sets + other.inside_by_sets,
        }
    }

    /// Share of the cases that lie inside; none without cases.
    pub fn share(self) -> Option<f64> {
        (self.cases > 0).then(|| self.inside as f64 / self.cases as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::quantity::SamplesPerSec;
    use stepcast_core::strategy::Architecture;
    use stepcast_study::predict::interval::{Limit, Machines, Pace, Regime};

    fn case(set: &'static str, group: &str, method: &str, residual: f64) -> Case {
        Case {
            set,
            group: group.to_owned(),
            method: method.to_owned(),
            regime: Regime {
                architecture: Architecture::AllReduce,
                pace: Pace::Synchronous,
                limit: Limit::Computing,
                machines: Machines::Several,
            },
            workers: 2,
            bandwidth: None,
            parameters: None,
            predicted: SamplesPerSec::new(1.0),
            measured: SamplesPerSec::new(residual.exp()),
            run_spread: 0.0,
        }
    }

    /// A set with large errors does not widen its own interval: that is t(3) · 0.1 from the other set, less than 0.5.
    #[test]
    fn a_set_does_not_judge_itself() {
        let mut cases: Vec<Case> = ["a", "b", "c"].map(|group| case("x", group, "m", 0.1)).into();
        cases.extend(["d", "e", "f"].map(|group| case("y", group, "m", 0.5)));
        let judged = intervals(&cases, &cases);
        assert!(judged.iter().flatten().all(|judged| judged.left_out == LeftOut::Set));
        assert!((judged[3].unwrap().half_width - 0.2353).abs() < 1e-3, "{:?}", judged[3]);
        let coverage = Coverage::new(&judged);
        assert_eq!((coverage.cases, coverage.inside, coverage.by_group), (6, 3, 0));
    }

    /// The only set of its method: its other groups give the interval, and the case's own group does not.
    #[test]
    fn the_only_set_of_a_method_is_judged_by_its_other_groups() {
        let mut cases: Vec<Case> = ["a", "b", "c"].map(|group| case("x", group, "m", 0.1)).into();
        cases.push(case("x", "d", "m", 0.9));
        cases.extend(["e", "f", "g"].map(|group| case("y", group, "other", 0.5)));
        let judged = intervals(&cases[..4], &cases);
        assert!(judged.iter().flatten().all(|judged| judged.left_out == LeftOut::Group));
        assert!((judged[3].unwrap().half_width - 0.2353).abs() < 1e-3, "{:?}", judged[3]);
        assert_eq!(judged[3].unwrap().inside_by_sets, Some(true));
    }
}
