//! All plans on the same machines: memory first, then bounds, then the steps of the remaining plans.
//!
//! Memory and a lower bound of the step are computed for every plan. Those that fit are tried in the order of their
//! bounds, a round at a time; a plan is left out if its bound proves that it wins in none of its families and is on no
//! front. Rounds have a fixed length and their results are taken in order, so that answers and counts do not
//! depend on the number of threads.
//!
//! The budget of a search is a number of plans, not a time. Where there are more, some ways to divide ranks are left out
//! evenly, and the plans with the lowest bounds are tried first; a lower bound of the omitted plans limits how much better
//! one of them could be.

use super::families::{BestPlan, Families, Front, FrontPoint, PlanMemory};
use super::report::Counts;
use super::setup::Setup;
use super::space::PlanSpace;
use super::stagewise::Stages;
use super::training::TrainingRates;
use super::{Aim, Watch};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Mutex;
use stepcast_analytic::transformer::memory::Allowance;
use stepcast_analytic::transformer::plans::Table;
use stepcast_analytic::transformer::stages::Run;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::Planning;
use stepcast_core::strategy::{Framework, Plan, PlanChoice, Recomputation, Recompute, Shares};

/// Plans of a round, and of a round that looks only for the best plan.
const ROUND: [usize; 2] = [1024, 128];

/// Ways to divide ranks between two checks for cancellation.
const RANKS: usize = 64;

/// Plans that fit and wait to be tried, at most: about a quarter of a gigabyte.
const MOST_FITTING: usize = 1_000_000;

/// Cost of judging a plan by its memory and its bound, in the units of `cost`.
const LOOK: u64 = 20;

/// Cost of a plan's step.
const STEP: u64 = 200;

/// Bounds are computed in another order than steps: allowance for rounding.
const ROUNDING: f64 = 1e-9;

/// A plan that fits.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    choice: PlanChoice,
    memory: f64,
    bound: f64,
}

/// Removes the plans with the largest lower bounds if there are too many; returns a lower bound of the removed ones.
fn shorten(candidates: &mut [Vec<Candidate>]) -> Option<f64> {
    if candidates.iter().map(Vec::len).sum::<usize>() <= MOST_FITTING {
        return None;
    }
    let mut bounds: Vec<f64> = candidates.iter().flatten().map(|it| it.bound).collect();
    let (_, limit, _) = bounds.select_nth_unstable_by(MOST_FITTING / 2, f64::total_cmp);
    candidates.iter_mut().for_each(|list| list.retain(|it| it.bound <= *limit));
    Some(*limit)
}

/// Which plans are left out by their bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pruning {
    /// None of them.
    Nothing,
    /// Plans that win in none of their families and are on no front.
    Beaten,
    /// Plans that are not the best of all.
    NotTheBest,
}

/// Memory of a device, and whether plans may need all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemoryLimit {
    pub(super) capacity: Bytes,
    pub(super) may_fit: bool,
}

impl MemoryLimit {
    /// Memory that a device needs for tensors of `total`, without and with fragmentation.
    pub(super) fn needed(plan: &Plan, total: Bytes) -> [Bytes; 2] {
        let allowance = Allowance { fragmentation: plan.fragmentation, fixed: plan.reserved };
        [total + plan.reserved, allowance.with(total)]
    }

    pub(super) fn admits(&self, [least, most]: [Bytes; 2]) -> bool {
        if self.may_fit { least <= self.capacity } else { most <= self.capacity }
    }
}

/// The result of one part of the search, or of several together.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct PartResult {
    pub(super) families: Families,
    pub(super) front: Front,
    pub(super) counts: Counts,
    pub(super) stagewise: Option<Stages>,
    /// The best plan that a framework runs as predicted, if the search is for no particular framework.
    pub(super) launchable: Option<BestPlan>,
    /// A lower bound of the plans that the budget left out; none if it left out none.
    pub(super) left_out: Option<f64>,
}

impl PartResult {
    /// Adds the result of another part; ties keep the existing plan.
    pub(super) fn join(&mut self, other: Self) {
        self.families.merge(other.families);
        self.front.merge(other.front);
        self.counts.add(&other.counts);
        self.stagewise = Stages::better(self.stagewise.take(), other.stagewise);
        let both = [self.launchable, other.launchable].into_iter().flatten();
        self.launchable = both.reduce(|one, other| if other.value < one.value { other } else { one });
        self.leave_out(other.left_out);
    }

    /// Notes a lower bound of plans that are left out.
    fn leave_out(&mut self, least: Option<f64>) {
        self.left_out = [self.left_out, least].into_iter().flatten().reduce(f64::min);
    }
}

/// Tables that threads take and bring back.
pub(super) struct TablePool<'a> {
    run: Run<'a>,
    tables: Mutex<Vec<Table<'a>>>,
}

impl<'a> TablePool<'a> {
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Table<'a>) -> T) -> T {
        let taken = self.tables.lock().ok().and_then(|mut tables| tables.pop());
        let mut table = taken.unwrap_or_else(|| Table::new(self.run));
        let done = work(&mut table);
        if let Ok(mut tables) = self.tables.lock() {
            tables.push(table);
        }
        done
    }
}

/// The search on the same machines.
pub(super) struct Search<'a> {
    pub(super) space: PlanSpace<'a>,
    pub(super) setup: Setup,
    pub(super) run: Run<'a>,
    pub(super) rates: &'a TrainingRates,
    pub(super) room: MemoryLimit,
    pub(super) aim: Aim,
    pub(super) pruning: Pruning,
    /// Frameworks whose own settings agree with the plans' open ones.
    pub(super) launchers: Vec<Framework>,
    /// Budget of the search.
    pub(super) budget: u64,
    /// Lower bound of any step: all devices compute at their peak rates.
    pub(super) least_step: f64,
}

impl Search<'_> {
    /// Adds all plans to the results.
    pub(super) fn search(
        &self,
        found: &mut PartResult,
        watch: &mut Watch<'_>,
    ) -> Result<ControlFlow<()>, Fault> {
        let pool = TablePool { run: self.run, tables: Mutex::new(Vec::new()) };
        let mut candidates: Vec<Vec<Candidate>> = Vec::new();
        let ranks = self.affordable(found);
        for some in ranks.chunks(RANKS) {
            let parts: Vec<(Families, Vec<Candidate>)> = some
                .par_iter()
                .with_max_len(1)
                .map(|&ranks| pool.with(|table| self.fitting(ranks, table)))
                .collect();
            for (families, fitting) in parts {
                found.families.merge(families);
                candidates.push(fitting);
            }
            if let Some(limit) = shorten(&mut candidates) {
                found.leave_out(Some(self.value_of(limit)));
            }
            if watch(found.families.plans()[0]).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        // Stable, so that the first of equal ones is the first of the space; of places, which are smaller than plans.
        let mut order: Vec<(f64, [u32; 2])> = Vec::new();
        for (list, some) in candidates.iter().zip(0..) {
            order.extend(list.iter().zip(0..).map(|(it, place)| (it.bound, [some, place])));
        }
        order.par_sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let in_order = |&(_, [list, place]): &(f64, [u32; 2])| candidates[list as usize][place as usize];
        let mut left_to_spend = self.budget.saturating_sub(LOOK * found.families.plans()[0]);
        for round in order.chunks(ROUND[usize::from(self.pruning == Pruning::NotTheBest)]) {
            if left_to_spend == 0 {
                found.leave_out(Some(self.value_of(round[0].0)));
                return Ok(ControlFlow::Continue(()));
            }
            let left: Vec<Candidate> =
                round.iter().map(in_order).filter(|it| self.is_worth(it, found)).collect();
            let steps: Vec<Option<f64>> = left
                .par_chunks(32)
                .flat_map_iter(|some| {
                    pool.with(|table| {
                        some.iter()
                            .map(|it| table.step(&it.choice).map(|step| step.get()))
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            left_to_spend = left_to_spend.saturating_sub(STEP * left.len() as u64);
            for (candidate, step) in left.into_iter().zip(steps) {
                found.counts.evaluated += 1;
                if let Some(step) = step {
                    self.offer(&candidate, step, found);
                }
            }
            if watch(found.families.plans()[0]).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        // Stages of one kind of workers are alike.
        if self.bounds().per_stage && self.run.plan.shares != Some(Shares::Proportional) {
            let fitting: Vec<PlanChoice> = order.iter().map(|place| in_order(place).choice).collect();
            self.stagewise(&fitting, &pool, found);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The ways to divide ranks whose plans half of the budget pays for, spread evenly over all of them.
    fn affordable(&self, found: &mut PartResult) -> Vec<[u64; 3]> {
        let ranks = self.space.ranks();
        let cost = LOOK.saturating_mul(self.space.count(u64::MAX));
        let every = cost.div_ceil((self.budget / 2).max(1)).max(1);
        if every == 1 {
            return ranks;
        }
        found.leave_out(Some(self.value_of(self.least_step)));
        ranks.into_iter().step_by(usize::try_from(every).unwrap_or(usize::MAX)).collect()
    }

    /// The minimised figure of a plan with this step.
    fn value_of(&self, step: f64) -> f64 {
        let (time, cost) = self.rates.training(step);
        self.aim.value(time, cost)
    }

    /// Counts all plans that divide in this way; returns those that fit.
    fn fitting(&self, ranks: [u64; 3], table: &mut Table<'_>) -> (Families, Vec<Candidate>) {
        let mut families = Families::default();
        let mut fitting = Vec::new();
        let mut look = |choice: PlanChoice, table: &mut Table<'_>| {
            let needed = self.needed(&choice, table);
            let (fits, memory) = (self.room.admits(needed), needed[1].get());
            if fits {
                let bound = table.bound(&choice).get() * (1.0 - ROUNDING);
                fitting.push(Candidate { choice, memory, bound });
            }
            PlanMemory { choice, memory, fits }
        };
        let some = self.bounds().recompute_some;
        let mut looked = Vec::new();
        self.space.each(ranks, |alike| {
            looked.clear();
            for choice in alike.iter().filter(|choice| self.run.admits(choice)) {
                let own = look(*choice, table);
                looked.push(own);
                if some
                    && own.fits
                    && choice.recompute.what == Recompute::Layer
                    && let Some(fewer) = self.fewest(choice, table)
                {
                    families.count(&self.setup, &[look(fewer, table)]);
                }
            }
            families.count(&self.setup, &looked);
        });
        (families, fitting)
    }

    pub(super) fn needed(&self, choice: &PlanChoice, table: &mut Table<'_>) -> [Bytes; 2] {
        MemoryLimit::needed(self.run.plan, table.memory(choice))
    }

    /// A plan that fits if all layers are recomputed, with the fewest recomputed layers of every chunk with which it fits: more
    /// of them need less memory and more time. None if it fits without recomputation, or only with all layers.
    fn fewest(&self, choice: &PlanChoice, table: &mut Table<'_>) -> Option<PlanChoice> {
        let each = self.space.shape.layers.div_ceil(choice.pipeline * choice.virtual_stages);
        let with = |layers: u64| PlanChoice {
            recompute: match layers {
                0 => Recompute::None.into(),
                _ => Recomputation { layers: Some(layers), ..choice.recompute },
            },
            ..*choice
        };
        let (mut low, mut high) = (0, each);
        while low < high {
            let middle = low.midpoint(high);
            match self.room.admits(self.needed(&with(middle), table)) {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        (1..each).contains(&high).then(|| with(high))
    }

    pub(super) fn bounds(&self) -> &Planning {
        self.space.bounds
    }

    /// Whether time and cost keep the constraints; counts the plans that do not.
    pub(super) fn admitted(&self, time: f64, cost: Option<f64>, counts: &mut Counts) -> bool {
        if self.bounds().deadline.is_some_and(|deadline| time > deadline.get()) {
            counts.too_slow += 1;
            return false;
        }
        if self.bounds().budget.is_some_and(|budget| cost.is_some_and(|cost| cost > budget)) {
            counts.too_dear += 1;
            return false;
        }
        true
    }

    /// Whether the step of a plan has to be computed.
    fn is_worth(&self, candidate: &Candidate, found: &mut PartResult) -> bool {
        if self.pruning == Pruning::Nothing {
            return true;
        }
        let (time, cost) = self.rates.training(candidate.bound);
        if !self.admitted(time, cost, &mut found.counts) {
            return false;
        }
        let value = self.aim.value(time, cost);
        let launched = || found.launchable.is_some_and(|best| best.value <= value);
        let beaten = match self.pruning {
            Pruning::NotTheBest => found.families.best().is_some_and(|best| best.value <= value),
            _ => {
                found.families.beat(&self.setup, &candidate.choice, value)
                    && (launched() || !self.launches(&candidate.choice))
                    && found.front.dominates([time, cost.unwrap_or(0.0), candidate.memory])
            }
        };
        found.counts.bounded += u64::from(beaten);
        !beaten
    }

    /// Whether a framework runs a plan as it is predicted.
    fn launches(&self, choice: &PlanChoice) -> bool {
        self.launchers.iter().any(|own| self.space.runs_on(*own, choice))
    }

    fn offer(&self, candidate: &Candidate, step: f64, found: &mut PartResult) {
        let (time, cost) = self.rates.training(step);
        if !self.admitted(time, cost, &mut found.counts) {
            return;
        }
        let (setup, choice, memory) = (self.setup, candidate.choice, candidate.memory);
        let best = BestPlan { value: self.aim.value(time, cost), step, setup, choice };
        found.families.offer(&best, memory);
        if found.launchable.is_none_or(|own| best.value < own.value) && self.launches(&choice) {
            found.launchable = Some(best);
        }
        found.front.offer(FrontPoint { time, cost: cost.unwrap_or(0.0), memory, step, setup, choice });
    }
}
