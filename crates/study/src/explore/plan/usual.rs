//! The default plan of a transformer: the best of the plans that people launch first.

use super::setup::Setup;
use super::{Aim, PlanQuestion};
use crate::predict::budget;
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::scenario::{ModelSource, Planning, PlanningSection, Scenario};
use stepcast_core::strategy::{
    Implementation, OverlapPreset, Plan, PlanSection, Recompute, ScheduleKind, Sharding, usual_global_batch,
};

/// A plan with more kinds of parallelism must be this much faster.
const WORTH: f64 = 0.1;

/// A plan that was chosen, and whether it fits into memory.
#[derive(Debug, Clone, PartialEq)]
pub struct UsualPlan {
    /// The plan.
    pub section: PlanSection,
    /// Whether it fits.
    pub fits: bool,
}

/// The fastest of the usual plans that fits: replicas or FSDP; FSDP with tensor parallelism within machines, or a
/// division by Megatron-LM, if that is clearly faster or nothing simpler fits. Without any that fits, FSDP that recomputes
/// everything.
///
/// `given` has the sequences of a step and of a micro-batch, kernels and number formats where the scenario gives them; lists of its `[plan]`
/// replace the usual ones.
pub fn usual_plan(scenario: &Scenario, given: &PlanSection) -> Result<UsualPlan, Fault> {
    let shape = scenario.transformer_of_plan()?;
    let workers = scenario.cluster.workers();
    let global_batch = given.global_batch.unwrap_or_else(|| usual_global_batch(&shape, workers));
    let micro_batch = given.micro_batch.map(|batch| vec![batch]);
    let hugging_face = matches!(scenario.source, ModelSource::Config { .. });
    let own = given.implementation.or(Implementation::usual(&shape));
    let kernels = own.or(hugging_face.then_some(Implementation::HuggingFace));
    let states = scenario.strategy.plan.as_ref().map(|plan| plan.states);
    let fsdp = PlanSection {
        states: given.states.or(states),
        overlap: given.overlap.or(Some(OverlapPreset::Fsdp2)),
        implementation: kernels,
        global_batch: None,
        micro_batch: None,
        ..given.clone()
    };
    let megatron = PlanSection {
        overlap: given.overlap.or(Some(OverlapPreset::Megatron)),
        implementation: own,
        ..fsdp.clone()
    };
    let bounds = PlanningSection {
        global_batch: Some(global_batch),
        micro_batch,
        context: Some(vec![1]),
        recompute: Some(vec![Recompute::None, Recompute::Layer]),
        per_stage: Some(false),
        ..PlanningSection::default()
    };
    let simple = PlanningSection {
        tensor: Some(vec![1]),
        pipeline: Some(vec![1]),
        sharding: Some(vec![Sharding::None, Sharding::Zero3]),
        ..bounds.clone()
    };
    let sharded = PlanningSection { tensor: None, ..simple.clone() };
    let divided = PlanningSection {
        sharding: Some(vec![Sharding::None, Sharding::Zero1]),
        schedule: Some(vec![ScheduleKind::OneFOneB, ScheduleKind::Interleaved]),
        ..bounds
    };
    let mut chosen: Option<(f64, Plan)> = None;
    for (base, bounds) in [(&fsdp, simple), (&fsdp, sharded), (&megatron, divided)] {
        let found = best(scenario, shape, base, bounds, global_batch)?;
        let worth = |step: f64| chosen.as_ref().is_none_or(|(other, _)| step * (1.0 + WORTH) < *other);
        chosen = found.filter(|(step, _)| worth(*step)).or(chosen);
        if workers == 1 {
            break;
        }
    }
    Ok(match chosen {
        Some((_, plan)) => UsualPlan { section: plan.section(), fits: true },
        None => UsualPlan { section: least(scenario, &fsdp, global_batch, given), fits: false },
    })
}

/// The simple plan that needs the least memory.
fn least(scenario: &Scenario, fsdp: &PlanSection, global_batch: u64, given: &PlanSection) -> PlanSection {
    let workers = scenario.cluster.workers();
    let whole = global_batch.next_multiple_of(workers * given.micro_batch.unwrap_or(1));
    let listed = scenario.planning.as_ref().and_then(|own| own.sharding.as_ref());
    let is_listed = |sharding: &Sharding| listed.is_none_or(|list| list.contains(sharding));
    let sharding = [Sharding::Zero3, Sharding::Zero2, Sharding::Zero1].into_iter().find(is_listed);
    PlanSection {
        sharding: sharding.filter(|_| workers > 1),
        recompute: Some(vec![Recompute::Layer]),
        micro_batch: given.micro_batch,
        global_batch: given.global_batch.or(Some(whole)),
        ..fsdp.clone()
    }
}

/// The fastest plan within bounds that fits, and its step.
fn best(
    scenario: &Scenario,
    shape: Transformer,
    base: &PlanSection,
    bounds: PlanningSection,
    global_batch: u64,
) -> Result<Option<(f64, Plan)>, Fault> {
    let base = base.clone().resolve(&NoFiles)?;
    let mut bounds = bounds.resolve(&NoFiles)?;
    for list in Planning::LISTS {
        scenario.planning.iter().for_each(|given| (list.take)(&mut bounds, given));
    }
    let setups = Setup::all(scenario, &shape, &base, &bounds);
    let question = PlanQuestion {
        scenario,
        shape,
        base,
        bounds,
        global_batch,
        setups,
        aim: Aim::Time,
        budget: budget::UNASKED,
        simulated: false,
    };
    let Some(setup) = question.setups.first() else { return Ok(None) };
    Ok(question.best_on(setup)?.map(|best| (best.step, best.choice.plan(&question.base))))
}
