//! Plans whose stages differ: tried where plans with equal stages recompute layers or do not fit.

use super::search::{MemoryLimit, PartResult, Search, TablePool};
use super::setup::Setup;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use stepcast_analytic::transformer::stagewise::Stagewise;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{Framework, Plan, PlanChoice, Recompute};

/// Plans whose stages are chosen one by one, the most promising by a bound.
const MOST: usize = 32;

/// Plans tried between two updates of the shortest step.
const ROUND: usize = 8;

/// The best plan whose stages differ.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Stages {
    /// The minimised figure.
    pub(super) value: f64,
    pub(super) setup: Setup,
    /// The plan except for its stages.
    pub(super) choice: PlanChoice,
    /// Layers of every virtual stage.
    pub(super) layers: Vec<u64>,
    /// Recomputed layers of every virtual stage.
    pub(super) again: Vec<u64>,
    /// Time of a step, in seconds.
    pub(super) step: f64,
    /// A lower bound of the step for any division of the layers over these stages.
    pub(super) least: f64,
    /// Memory with fragmentation.
    pub(super) memory: f64,
}

impl Stages {
    /// The better of both; ties keep the first.
    pub(super) fn better(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(if other.value < one.value { other } else { one }),
            (one, other) => one.or(other),
        }
    }

    /// The plan, with everything else as in `base`.
    pub(super) fn plan(&self, base: &Plan) -> Plan {
        let chosen = Stagewise {
            layers: self.layers.clone(),
            again: self.again.clone(),
            step: Seconds::new(self.step),
            memory: Bytes::ZERO,
            least: Seconds::new(self.least),
        };
        chosen.plan(&self.choice.plan(base))
    }
}

impl Search<'_> {
    /// Chooses the stages of plans individually where this may help; `fitting` are all plans with equal stages that fit.
    pub(super) fn stagewise(&self, fitting: &[PlanChoice], pool: &TablePool<'_>, found: &mut PartResult) {
        let uniform = found.families.best();
        // Of the frameworks, one divides layers in any way, and none recomputes stage by stage.
        match (self.setup.framework, uniform) {
            (None, _) => {}
            (Some(Framework::Megatron), Some(best)) if best.choice.recompute == Recompute::None.into() => {}
            (Some(_), _) => return,
        }
        let mut limit = uniform.map_or(f64::INFINITY, |best| best.step);
        let mut open: Vec<(f64, PlanChoice)> = match uniform {
            Some(_) if self.setup.framework.is_some() => Vec::new(),
            Some(_) => {
                let mut open = self.recomputing(fitting, pool, limit);
                open.extend(self.of_two_kinds(fitting, pool, limit));
                open
            }
            None => found.families.smallest().into_iter().map(|choice| (0.0, choice)).collect(),
        };
        open.retain(|(_, choice)| choice.pipeline > 1 && (uniform.is_some() || choice.virtual_stages == 1));
        if let Some(best) = uniform.filter(|best| best.choice.pipeline > 1 && best.choice.virtual_stages == 1)
        {
            open.push((0.0, best.choice));
        }
        open.sort_by(|a, b| a.0.total_cmp(&b.0));
        open.truncate(MOST);
        for round in open.chunks(ROUND) {
            let below = limit;
            let tried: Vec<Option<(PlanChoice, Stagewise)>> = round
                .par_iter()
                .with_max_len(1)
                .map(
                    |(bound, choice)| {
                        if *bound < below { self.try_stages(choice, pool, below) } else { None }
                    },
                )
                .collect();
            for (choice, stages) in tried.into_iter().flatten() {
                if stages.step.get() < limit {
                    limit = stages.step.get();
                    self.take(choice, stages, found);
                }
            }
        }
    }

    /// Plans that fit with all layers recomputed but not with none, and whose bound over all stages is below `limit`.
    fn recomputing(
        &self,
        fitting: &[PlanChoice],
        pool: &TablePool<'_>,
        limit: f64,
    ) -> Vec<(f64, PlanChoice)> {
        let some = |choices: &[PlanChoice]| {
            pool.with(|table| {
                let own = choices.iter().filter(|choice| {
                    choice.pipeline > 1
                        && choice.recompute.what == Recompute::Layer
                        && choice.recompute.layers.is_none()
                });
                let bounded = own.filter_map(|choice| {
                    let bound = table.divided_bound(choice).get();
                    let whole = PlanChoice { recompute: Recompute::None.into(), ..*choice };
                    (bound < limit && !self.room.admits(self.needed(&whole, table)))
                        .then_some((bound, *choice))
                });
                bounded.collect::<Vec<_>>()
            })
        };
        fitting.par_chunks(4096).flat_map_iter(some).collect()
    }

    /// Plans whose stages are on two kinds of workers, so that layers may be divided by speed.
    fn of_two_kinds(
        &self,
        fitting: &[PlanChoice],
        pool: &TablePool<'_>,
        limit: f64,
    ) -> Vec<(f64, PlanChoice)> {
        let own = fitting.iter().filter(|choice| {
            self.run.kinds.is_some()
                && choice.pipeline > 1
                && choice.virtual_stages == 1
                && choice.recompute.what == Recompute::None
        });
        let bounded = own.map(|choice| (pool.with(|table| table.divided_bound(choice).get()), *choice));
        bounded.filter(|(bound, _)| *bound < limit).collect()
    }

    fn try_stages(
        &self,
        choice: &PlanChoice,
        pool: &TablePool<'_>,
        limit: f64,
    ) -> Option<(PlanChoice, Stagewise)> {
        let recompute = match self.setup.framework {
            Some(_) => choice.recompute,
            None => Recompute::Layer.into(),
        };
        let choice = PlanChoice { recompute, ..*choice };
        let fits = |total: Bytes| self.room.admits(MemoryLimit::needed(self.run.plan, total));
        let stages = pool.with(|table| table.stagewise(&choice, &fits, Seconds::new(limit)))?;
        Some((choice, stages))
    }

    fn take(&self, choice: PlanChoice, stages: Stagewise, found: &mut PartResult) {
        let (time, cost) = self.rates.training(stages.step.get());
        // These are not among the plans that are counted.
        let mut counts = found.counts;
        if !self.admitted(time, cost, &mut counts) {
            return;
        }
        let memory = MemoryLimit::needed(self.run.plan, stages.memory)[1].get();
        let own = Stages {
            value: self.aim.value(time, cost),
            setup: self.setup,
            choice,
            layers: stages.layers,
            again: stages.again,
            step: stages.step.get(),
            least: stages.least.get(),
            memory,
        };
        found.stagewise = Stages::better(found.stagewise.take(), Some(own));
    }
}
