//! The usual changes of a plan that splits a transformer.

use super::faster::{with_bandwidth, with_compute, with_startup};
use stepcast_core::prediction::{Prediction, Verdict};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Plan, Recompute, ScheduleKind, Sharding};

/// The changes that can be made to a scenario with a plan; those that do not divide it are left out when they are
/// predicted.
pub(super) fn changes(scenario: &Scenario, plan: &Plan) -> Vec<(&'static str, Scenario)> {
    let cluster = &scenario.cluster;
    let with = |plan: Plan| {
        let mut changed = scenario.clone();
        changed.strategy.plan = Some(plan);
        changed
    };
    let mut changes = vec![
        ("2× compute", scenario.on(with_compute(cluster, 2.0))),
        ("2× bandwidth", scenario.on(with_bandwidth(cluster, 2.0))),
        ("½ start-up", scenario.on(with_startup(cluster, 0.5))),
    ];
    // The replicas follow from the other kinds, so that every change keeps the workers.
    let base = Plan { data: None, stage_layers: None, stage_recompute: None, ..plan.clone() };
    let mut change = |name, plan: Plan| changes.push((name, with(plan)));
    let global_batch = plan.global_batch.map(|batch| batch.saturating_mul(2));
    if global_batch.is_some() {
        change("2× global batch", Plan { global_batch, ..plan.clone() });
    }
    change("2× micro-batch", Plan { micro_batch: plan.micro_batch.saturating_mul(2), ..plan.clone() });
    change("2× tensor ranks", Plan { tensor: base.tensor.saturating_mul(2), ..base.clone() });
    if plan.tensor.is_multiple_of(2) {
        change("½ tensor ranks", Plan { tensor: base.tensor / 2, ..base.clone() });
    }
    change("2× stages", Plan { pipeline: base.pipeline.saturating_mul(2), ..base.clone() });
    if plan.pipeline.is_multiple_of(2) {
        change("½ stages", Plan { pipeline: base.pipeline / 2, ..base.clone() });
    }
    if plan.pipeline > 1 && plan.virtual_stages == 1 {
        let schedule = Some(ScheduleKind::Interleaved);
        change("two chunks per stage", Plan { virtual_stages: 2, schedule, ..base.clone() });
        if plan.schedule_kind() != ScheduleKind::ZbH1 {
            change("split backward (zb-h1)", Plan { schedule: Some(ScheduleKind::ZbH1), ..plan.clone() });
        }
    }
    if plan.tensor > 1 && !plan.sequence_parallel {
        change("sequence parallelism", Plan { sequence_parallel: true, ..plan.clone() });
    }
    if plan.recomputation().what == Recompute::Layer {
        change("recompute attention only", plan.recomputing(Recompute::Attention));
    }
    if plan.recomputation().what != Recompute::None {
        change("no recomputation", plan.recomputing(Recompute::None));
    }
    if plan.sharding == Sharding::Zero3 {
        change("ZeRO 1 instead of 3", Plan { sharding: Sharding::Zero1, ..plan.clone() });
    }
    changes
}

/// Whether a change leads from a plan that may fit to one that does not.
pub(super) fn overflows(now: &Prediction, then: &Prediction) -> bool {
    let verdict =
        |prediction: &Prediction| prediction.transformer.as_ref().map(|report| report.memory.verdict);
    verdict(then) == Some(Verdict::DoesNotFit) && verdict(now) != Some(Verdict::DoesNotFit)
}
