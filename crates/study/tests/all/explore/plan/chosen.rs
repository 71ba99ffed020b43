//! Which plan is chosen: layers that are computed again, stages of their own, listed values, and what interruptions cost.

use super::{SMALL, scenario};
use crate::fastest;
use std::collections::HashSet;
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;
use stepcast_core::strategy::{Offload, PlanChoice, PlanSection, Recompute, ScheduleKind, Sharding};
use stepcast_study::explore::plan::{Training, applied, choices};

/// Of plans that fit only with recomputation, some with fewer layers are faster than those with all, and no number of
/// layers below the chosen one fits.
#[test]
fn no_more_layers_are_recomputed_than_have_to_be() {
    let changes = [
        "plan.micro-batch=[16]",
        "plan.recompute=[\"layer\"]",
        "plan.schedule=[\"1f1b\"]",
        "plan.pipeline=[2]",
    ];
    let all = fastest(&scenario(&changes));
    let some = fastest(&scenario(&[&changes[..], &["plan.recompute-some=true"]].concat()));
    assert!(some.best.step < all.best.step, "{} {}", some.best.step, all.best.step);
    let layers = some.best.plan.recompute_layers.unwrap();
    let verdict = |layers: u64| {
        let mut scenario = scenario(&changes);
        let section = PlanSection { recompute_layers: Some(layers), ..some.best.plan.clone() };
        scenario.strategy.plan = Some(section.resolve(&NoFiles).unwrap());
        Method.predict(&scenario).unwrap().transformer.unwrap().memory.verdict
    };
    assert_eq!(verdict(layers), Verdict::Fits);
    assert!((1..layers).all(|fewer| verdict(fewer) != Verdict::Fits));
}

/// Where layers are recomputed, stages of their own are faster, and they are predicted, fit and written as they are said to.
#[test]
fn stages_of_their_own_gain_where_layers_are_recomputed() {
    let changes = [
        "plan.micro-batch=[16]",
        "plan.recompute=[\"layer\"]",
        "plan.schedule=[\"1f1b\"]",
        "plan.pipeline=[4]",
    ];
    let report = fastest(&scenario(&changes));
    let stages = report.stages.unwrap();
    assert!(stages.entry.step < report.best.step && stages.gain > 0.0, "{stages:?}");
    assert!(stages.least <= stages.entry.step);
    let again = stages.entry.plan.stage_recompute.clone().unwrap();
    assert!(again[0] > again[3], "{again:?}");
    let text = SMALL.replace("[strategy.plan]\n", &stages.toml);
    let own = crate::scenario(&text, &[]);
    let predicted = Method.predict(&own).unwrap();
    assert!((predicted.iteration / stages.entry.step - 1.0).abs() < 1e-12, "{}", stages.toml);
    let memory = predicted.transformer.unwrap().memory;
    assert_eq!(memory.verdict, Verdict::Fits);
    assert!((memory.most / stages.entry.memory - 1.0).abs() < 1e-9);
    assert!(stages.confirmation.confirmed, "{:?}", stages.confirmation);
    let alike = fastest(&scenario(&[&changes[..], &["plan.per-stage=false"]].concat()));
    assert!(alike.stages.is_none() && alike.best == report.best && alike.families == report.families);
}

/// Where no plan with equal stages fits, one whose last stage has fewer layers beside the output layer may.
#[test]
fn stages_of_their_own_fit_where_equal_ones_do_not() {
    let changes =
        ["plan.pipeline=[4]", "plan.schedule=[\"1f1b\"]", "plan.tensor=[1]", "plan.micro-batch=[2]"];
    let families = fastest(&scenario(&changes)).families;
    let least = families.iter().map(|family| family.memory.get()).fold(f64::INFINITY, f64::min);
    let memory = format!("cluster.workers.0.device.memory={} B", (0.999 * least) as u64);
    let report = fastest(&scenario(&[&changes[..], &[memory.as_str()]].concat()));
    assert_eq!(report.counts.plans, report.counts.too_large);
    let layers = report.best.plan.stage_layers.clone().unwrap();
    assert_eq!(layers.iter().sum::<u64>(), 32);
    assert!(report.stages.is_none() && report.toml.contains("stage-layers"), "{}", report.toml);
    assert!(report.best.memory.get() <= 0.999 * least);
}

/// Layers that no number of stages divides have pipelines, and what was out of reach before is found.
#[test]
fn stages_need_not_divide_layers() {
    let changes = [
        "model.zoo=deepseek-v3",
        "cluster.workers.0.count=256",
        "plan.global-batch=512",
        "plan.micro-batch=[1]",
        "plan.tensor=[1]",
        "plan.sharding=[\"none\"]",
    ];
    let stages: HashSet<u64> =
        choices(&scenario(&changes)).unwrap().iter().map(|choice| choice.pipeline).collect();
    assert!([2, 4, 8, 16].iter().all(|count| stages.contains(count)), "{stages:?}");
}

/// Llama 3.1 405B has 126 layers: with embedding and output layer, 8 stages of 16 chunks divide them.
#[test]
fn stages_of_llama_405b_are_tried_and_fit() {
    let changes = [
        "model.zoo=llama3.1-405b",
        "cluster={ machine = \"dgx-h100\", machines = 2048 }",
        "plan.global-batch=2048",
        "plan.tensor=[8]",
        "plan.context=[1]",
        "plan.pipeline=[8]",
    ];
    let asked = scenario(&changes);
    let own = |choice: &&PlanChoice| {
        choice.virtual_stages == 16
            && choice.schedule == ScheduleKind::Interleaved
            && choice.sequence_parallel
            && choice.sharding == Sharding::Zero1
            && choice.micro_batch == 1
            && choice.recompute == Recompute::Operators.into()
    };
    let all = choices(&asked).unwrap();
    let mut chosen = asked.clone();
    chosen.strategy.plan = Some(all.iter().find(own).unwrap().plan(asked.strategy.plan.as_ref().unwrap()));
    let predicted = Method.predict(&chosen).unwrap();
    let layers: Vec<u64> =
        chosen.strategy.plan.as_ref().unwrap().stage_ranges(126).map(|it| it.end - it.start).collect();
    assert_eq!((layers[0], layers[1], layers[127], layers.iter().sum::<u64>()), (0, 1, 0, 126));
    assert_eq!(predicted.transformer.unwrap().memory.verdict, Verdict::Fits);
    assert!(predicted.iteration.get() < 8.0, "{}", predicted.iteration);
}

/// Listed values of a dimension are searched as if each were a search of its own.
#[test]
fn listed_values_are_searched() {
    let narrow =
        ["plan.nodes=[1]", "plan.virtual-stages=[1]", "plan.context=[1]", "plan.recompute=[\"none\"]"];
    let best = |own: &[&str]| fastest(&scenario(&[&narrow[..], own].concat())).best.step;
    let none = "plan.sharding=[\"none\"]";
    let sizes = [1_000, 10_000_000, 100_000_000_000_u64];
    let each = sizes.map(|size| best(&[none, &format!("strategy.plan.bucket={size}")]));
    // Starts of many messages, a balance, and nothing hidden.
    assert!(each[1] < each[0] && each[1] < each[2], "{each:?}");
    assert_eq!(best(&[none, &format!("plan.bucket={sizes:?}")]), each[1]);

    let sharded = "plan.sharding=[\"zero-3\"]";
    let [ahead, late] =
        ["true", "false"].map(|text| best(&[sharded, &format!("strategy.plan.overlap-prefetch={text}")]));
    assert!(ahead < late, "{ahead:?} {late:?}");
    let both = fastest(&scenario(&[&narrow[..], &[sharded, "plan.overlap-prefetch=[false, true]"]].concat()));
    assert_eq!((both.best.step, both.best.plan.overlap_prefetch), (ahead, Some(true)));
    assert!(both.families.iter().any(|family| family.words == "weights gathered when needed"));
    assert!(both.families.iter().all(|family| family.property != "loss"));

    let losses = "plan.loss=[\"eager\", \"chunked\"]";
    let report = fastest(&scenario(&[&narrow[..], &[losses]].concat()));
    let memory = |words: &str| report.families.iter().find(|family| family.words == words).unwrap().memory;
    assert!(memory("chunked loss") <= memory("eager loss"));
}

/// What does not fit otherwise fits with optimiser states in the host's memory, and takes longer where both fit.
#[test]
fn offloading_is_chosen_where_it_helps() {
    let changes = ["plan.nodes=[1]", "plan.recompute=[\"layer\"]", "plan.virtual-stages=[1]"];
    let both = "plan.offload=[[], [\"optimiser\"]]";
    let report = fastest(&scenario(&[&changes[..], &[both]].concat()));
    let of = |words: &str| report.families.iter().find(|family| family.words == words).unwrap();
    let (without, with) = (of("without offloading"), of("offloading optimiser"));
    assert!(without.chosen && with.more.unwrap() > 0.0 && with.memory < without.memory);
    let between = 0.5 * (without.memory.get() + with.memory.get());
    let small = format!("cluster.workers.0.device.memory={between} B");
    let tight = fastest(&scenario(&[&changes[..], &[both, &small]].concat()));
    assert!(tight.best.words.ends_with("offloading optimiser"), "{}", tight.best.words);
    assert!(tight.best.plan.offload == Some(vec![Offload::Optimiser]));
}

/// Moments of low rank leave replicas and pipelines of whole matrices.
#[test]
fn plans_with_moments_of_low_rank_can_be_resolved() {
    let asked = scenario(&["strategy.plan.optimiser-rank=128", "plan.context=[1]"]);
    let report = fastest(&asked);
    let best = applied(&asked, &report.best).unwrap();
    let chosen = best.strategy.plan.unwrap();
    assert_eq!((chosen.tensor, chosen.sharding, chosen.optimiser_rank), (1, Sharding::None, Some(128)));
}

/// Of plans that are nearly as good the simplest is taken; close ones are named with what would tell them apart.
#[test]
fn more_kinds_of_parallelism_must_be_worth_it() {
    let report = fastest(&scenario(&[]));
    assert!(report.forgone < 0.005, "{}", report.forgone);
    assert_eq!(report.best.plan.context.unwrap_or(1), 1, "{}", report.best.words);
    let close = report.close.unwrap();
    assert!(close.plans > 1, "{close:?}");
    let training = report.training.unwrap();
    let [low, high] = training.time_range.unwrap();
    assert!(low < training.time && training.time < high && training.cost_range.is_some());
}

/// Without interruptions nothing is lost, whatever else the section says.
#[test]
fn runs_without_failures_lose_nothing() {
    for changes in [
        &["failures.rate=0"][..],
        &["failures.rate=0", "failures.interval=1 h", "failures.repair=1 d"],
        &["failures.rate=0", "failures.rate-range=[0, 0]", "failures.spares=2"],
    ] {
        let report = fastest(&scenario(&[&["plan.pipeline=[1]"][..], changes].concat()));
        let training = report.training.unwrap();
        assert!(training.interruptions == 0.0 && training.between_interruptions.is_none(), "{changes:?}");
        assert!(training.time.get().is_finite() && training.goodput > 0.98, "{changes:?}: {training:?}");
        assert!(training.time >= training.without_interruptions);
    }
}

/// More machines than their failures let work: no figure of 10¹⁹ s, but what is missing.
#[test]
fn runs_that_never_end_say_what_would_end_them() {
    let narrow =
        ["plan.pipeline=[1]", "plan.recompute=[\"none\"]", "plan.nodes=[1024]", "plan.global-batch=4096"];
    let with = |own: &[&str]| fastest(&scenario(&[&narrow[..], own].concat()));
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
        let report = fastest(&scenario(&[&narrow[..], own].concat()));
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
