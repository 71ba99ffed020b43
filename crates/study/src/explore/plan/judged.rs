//! What is said of plans beside the best one: runs that never end, plans that are close, stages that do not divide.

use super::tests::{go, scenario};
use super::*;
use std::collections::HashSet;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;
use stepcast_core::strategy::{PlanChoice, ScheduleKind, Sharding};

/// More machines than their failures let work: no figure of 10¹⁹ s, but what is missing.
#[test]
fn runs_that_never_end_say_what_would_end_them() {
    let narrow =
        ["plan.pipeline=[1]", "plan.recompute=[\"none\"]", "plan.nodes=[1024]", "plan.global-batch=4096"];
    let with = |own: &[&str]| plan(&scenario(&[&narrow[..], own].concat()), Aim::Time, &mut go).unwrap();
    let spared =
        with(&["failures.rate=0.01", "failures.repair=10 h", "failures.spares=4", "failures.restart=1 min"]);
    let endless = spared.endless.unwrap();
    assert!(spared.training.is_none() && spared.best.training.is_none() && spared.best.cost.is_none());
    assert!(endless.enough_spares.unwrap() > 4 && endless.machines.unwrap() < 1024, "{endless:?}");
    let restarted =
        with(&["failures.rate=0.01", "failures.restart=1 h", "failures.detection=1 h"]).endless.unwrap();
    assert!(restarted.enough_spares.is_none() && restarted.machines.is_some(), "{restarted:?}");
    assert!(with(&["failures.rate=0"]).endless.is_none());
}

/// Spares and what to do with slow machines are chosen where they are not given.
#[test]
fn spares_and_slow_machines_are_chosen() {
    let narrow =
        ["plan.pipeline=[1]", "plan.recompute=[\"none\"]", "failures.rate=0.0002", "failures.repair=1 d"];
    let with = |own: &[&str]| {
        let report = plan(&scenario(&[&narrow[..], own].concat()), Aim::Time, &mut go).unwrap();
        report.training.unwrap()
    };
    let machine_time =
        |training: &Training, nodes: f64| training.time.get() * (nodes + f64::from(training.spares));
    let chosen = with(&["plan.nodes=[8]"]);
    for spares in 0..6 {
        let given = with(&["plan.nodes=[8]", &format!("failures.spares={spares}")]);
        assert!(
            machine_time(&chosen, 8.0) <= machine_time(&given, 8.0),
            "{} instead of {spares}",
            chosen.spares
        );
    }
    let slow = ["plan.nodes=[8]", "failures.slow-share=0.01", "failures.slow-factor=1.5"];
    let waiting = with(&slow);
    // An hour lost to a restart is more than half of ten minutes, and less than half of two days.
    let brief = with(&[&slow[..], &["failures.slow-time=10 min"]].concat());
    let long = with(&[&slow[..], &["failures.slow-time=2 d"]].concat());
    assert!(brief.slow_replaced.is_none() && brief.time == waiting.time);
    assert!(long.slow_replaced.unwrap() > 0.0 && long.slow_machines.is_none() && long.time < waiting.time);
}

/// Of plans that are nearly as good the simplest is taken; close ones are named with what would tell them apart.
#[test]
fn more_kinds_of_parallelism_must_be_worth_it() {
    let report = plan(&scenario(&[]), Aim::Time, &mut go).unwrap();
    assert!(report.forgone < 0.005, "{}", report.forgone);
    assert_eq!(report.best.plan.context.unwrap_or(1), 1, "{}", report.best.words);
    let close = report.close.unwrap();
    assert!(close.plans > 1, "{close:?}");
    let training = report.training.unwrap();
    let [low, high] = training.time_range.unwrap();
    assert!(low < training.time && training.time < high && training.cost_range.is_some());
}

/// Layers that no number of stages divides have pipelines, and what was out of reach before is found.
#[test]
fn stages_need_not_divide_layers() {
    let changes =
        ["model.zoo=deepseek-v3", "plan.nodes=[64]", "plan.global-batch=512", "plan.micro-batch=[1]"];
    let question = scenario(&changes);
    let question = PlanQuestion::of(&question, Aim::Time).unwrap();
    let here = question.on(&question.setups[0]).unwrap();
    let space = question.space(&here, &question.base, None);
    let stages: HashSet<u64> = space.ranks().into_iter().map(|[_, _, pipeline]| pipeline).collect();
    assert!([2, 4, 8, 16].iter().all(|count| stages.contains(count)), "{stages:?}");
}

/// Llama 3.1 405B has 126 layers: with embedding and output layer, 8 stages of 16 chunks divide them.
#[test]
fn stages_of_llama_405b_are_tried_and_fit() {
    let changes = [
        "model.zoo=llama3.1-405b",
        "cluster={ machine = \"dgx-h100\", machines = 2048 }",
        "plan.global-batch=2048",
    ];
    let asked = scenario(&changes);
    let question = PlanQuestion::of(&asked, Aim::Time).unwrap();
    let here = question.on(&question.setups[0]).unwrap();
    let space = question.space(&here, &question.base, None);
    let mut found = None;
    space.each([8, 1, 8], |alike| {
        let own = |choice: &&PlanChoice| {
            choice.virtual_stages == 16
                && choice.schedule == ScheduleKind::Interleaved
                && choice.sequence_parallel
                && choice.sharding == Sharding::Zero1
                && choice.micro_batch == 1
                && choice.recompute == Recompute::Operators.into()
        };
        found = found.or(alike.iter().find(own).copied());
    });
    let mut chosen = here.clone();
    chosen.strategy.plan = Some(found.unwrap().plan(&question.base));
    let predicted = Method.predict(&chosen).unwrap();
    let layers: Vec<u64> =
        chosen.strategy.plan.as_ref().unwrap().stage_ranges(126).map(|it| it.end - it.start).collect();
    assert_eq!((layers[0], layers[1], layers[127], layers.iter().sum::<u64>()), (0, 1, 0, 126));
    assert_eq!(predicted.transformer.unwrap().memory.verdict, Verdict::Fits);
    assert!(predicted.iteration.get() < 8.0, "{}", predicted.iteration);
}

/// Moments of low rank leave replicas and pipelines of whole matrices.
#[test]
fn plans_with_moments_of_low_rank_can_be_resolved() {
    let asked = scenario(&["strategy.plan.optimiser-rank=128", "plan.context=[1]"]);
    let report = plan(&asked, Aim::Time, &mut go).unwrap();
    let best = applied(&asked, &report.best).unwrap();
    let chosen = best.strategy.plan.unwrap();
    assert_eq!((chosen.tensor, chosen.sharding, chosen.optimiser_rank), (1, Sharding::None, Some(128)));
}
