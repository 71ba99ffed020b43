//! The method on whole scenarios: limits in which the answer is known, and what must hold for every plan.

use super::scenario;
use crate::resolved;
use stepcast_analytic::transformer::Transformer;
use stepcast_analytic::transformer::flops::{self, Work};
use stepcast_core::method::Method;
use stepcast_core::prediction::{PartKind, Prediction, Saving, Verdict};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{Attention, Mask, Recompute};

fn predict(changes: &[&str]) -> Prediction {
    Transformer.predict(&scenario(changes).unwrap_or_else(|fault| panic!("{changes:?}: {fault}"))).unwrap()
}

/// On one device a step is its operations at the device's rate, and the update of all states.
#[test]
fn one_device_only_computes() {
    let one = predict(&["cluster.workers.count=1", "strategy.plan.global-batch=2"]);
    let scenario = scenario(&["cluster.workers.count=1", "strategy.plan.global-batch=2"]).unwrap();
    let shape = scenario.source.transformer().unwrap();
    let work = Work { sequence: 8192, batch: 2, mask: Mask::Causal };
    let step = flops::step(&shape, work, (Recompute::None.into(), []), Attention::Flash);
    let computing = step.hardware as f64 / (0.5 * 989.4e12);
    // Two bytes of weights, four of gradients, twelve of states, the last read and written, at half the memory rate.
    let update = shape.parameters() as f64 * (2.0 + 4.0 + 24.0) / (0.5 * 3.35e12);
    let expected = computing + update;
    assert!((one.iteration.get() / expected - 1.0).abs() < 1e-12, "{} {expected}", one.iteration);
    assert_eq!(
        one.breakdown.iter().map(|part| part.kind.name()).collect::<Vec<_>>(),
        ["compute", "recompute"]
    );
}

/// With a network that costs nothing, tensor parallelism divides computing, and replicas multiply throughput.
#[test]
fn free_communication_scales() {
    let free = [
        "cluster.network.bandwidth=1e12 Gbit/s",
        "cluster.network.latency=0 s",
        "cluster.nodes.network.bandwidth=1e12 Gbit/s",
        "cluster.nodes.network.latency=0 s",
        "cluster.network.transport=ideal",
        "cluster.nodes.network.transport=ideal",
        "strategy.plan.sharding=zero-1",
    ];
    let with = |more: &[&str]| predict(&[&free[..], more].concat());
    let [one, eight] = ["strategy.plan.tensor=1", "strategy.plan.tensor=8"].map(|tensor| with(&[tensor]));
    let compute = |prediction: &Prediction| prediction.part(PartKind::Compute).get();
    // All ranks together do the same work; only the update of norms is repeated.
    assert!(
        (one.iteration.get() / eight.iteration.get() - 1.0).abs() < 1e-4,
        "{} {}",
        one.iteration,
        eight.iteration
    );
    assert!(compute(&eight) > 0.99 * eight.iteration.get());
}

/// GPipe and 1F1B take the same time on equal stages without sends; interleaving divides the bubble.
#[test]
fn interleaving_shrinks_the_bubble() {
    let plan = |more: &[&str]| {
        // Many layers, so that the output layer does not unbalance the stages.
        let base = [
            "model.zoo=gpt3-175b",
            "strategy.plan.tensor=8",
            "strategy.plan.pipeline=4",
            "strategy.plan.overlap=torchtitan",
        ];
        predict(&[&base[..], more].concat()).transformer.unwrap()
    };
    let plain = plan(&["strategy.plan.schedule=1f1b"]);
    let gpipe = plan(&["strategy.plan.schedule=gpipe"]);
    let two = plan(&["strategy.plan.virtual-stages=2"]);
    let split = plan(&["strategy.plan.schedule=zb-h1"]);
    assert!((plain.bubble / gpipe.bubble - 1.0).abs() < 0.1, "{} {}", plain.bubble, gpipe.bubble);
    assert!(two.bubble < 0.8 * plain.bubble, "{} {}", two.bubble, plain.bubble);
    assert!(split.bubble < plain.bubble, "{} {}", split.bubble, plain.bubble);
    assert!(gpipe.stages[0].in_flight > plain.stages[0].in_flight);
}

#[test]
fn recomputation_costs_time_and_saves_memory() {
    let [none, all] =
        ["[]", "[\"layer\"]"].map(|list| predict(&[&format!("strategy.plan.recompute={list}")]));
    assert!(all.iteration > none.iteration);
    let memory = |prediction: &Prediction| prediction.transformer.as_ref().unwrap().memory.most;
    assert!(memory(&all) < memory(&none));
    let report = all.transformer.as_ref().unwrap();
    assert!(report.hfu > 1.2 * report.mfu, "{} {}", report.hfu, report.mfu);
}

/// Kernels that keep no scores are run again as well: a whole forward pass of attention, for nearly nothing.
#[test]
fn flash_attention_is_computed_again_where_a_plan_asks_for_it() {
    let [none, again] = ["[]", "[\"attention\"]"]
        .map(|list| predict(&["strategy.plan.attention=flash", &format!("strategy.plan.recompute={list}")]));
    assert!(again.part(PartKind::Recompute) > Seconds::ZERO);
    assert!(again.iteration > none.iteration);
    let least = |prediction: &Prediction| prediction.transformer.as_ref().unwrap().memory.least;
    assert!(least(&again) < least(&none) && least(&again) > least(&none) * 0.95);
}

/// Computing the first layers again lies between computing none and all of them, in time and in memory.
#[test]
fn recomputation_of_some_layers_lies_between() {
    let plan = [
        "strategy.plan.pipeline=4",
        "strategy.plan.sharding=zero-1",
        "strategy.plan.implementation=textbook",
    ];
    let with = |more: &[&str]| predict(&[&plan[..], more].concat());
    let figures = |prediction: &Prediction| {
        let report = prediction.transformer.as_ref().unwrap();
        (prediction.iteration.get(), report.memory.least.get(), report.hfu * prediction.iteration.get())
    };
    let layer = "strategy.plan.recompute=[\"layer\"]";
    let all = figures(&with(&[layer]));
    let mut before = figures(&with(&[]));
    for layers in 1..8 {
        let some = figures(&with(&[layer, &format!("strategy.plan.recompute-layers={layers}")]));
        assert!(some.0 > before.0 && some.1 < before.1 && some.2 > before.2, "{layers}: {some:?} {before:?}");
        before = some;
    }
    assert!(all.0 > before.0 && all.2 > before.2, "{all:?} {before:?}");
    let eight = figures(&with(&[layer, "strategy.plan.recompute-layers=8"]));
    assert_eq!(eight, all);
}

/// What the host holds is not on the device; what its link and its memory take is part of the step.
#[test]
fn offloading_saves_memory_and_costs_time() {
    let plan = [
        "cluster.workers.count=8",
        "strategy.plan.sharding=zero-2",
        "strategy.plan.global-batch=8",
        "strategy.plan.host-link=25 GB/s",
    ];
    let with = |more: &[&str]| predict(&[&plan[..], more].concat());
    let memory = |prediction: &Prediction| prediction.transformer.as_ref().unwrap().stages[0].memory;
    let usual = with(&[]);
    let optimiser = with(&["strategy.plan.offload=[\"optimiser\"]", "strategy.plan.overlap=none"]);
    assert_eq!(memory(&optimiser).optimiser, Bytes::ZERO);
    assert!(memory(&optimiser).gradients < memory(&usual).gradients);
    assert!(optimiser.warnings.iter().any(|warning| warning.code == "offload"));
    // An eighth of the parameters: gradients of 4 bytes down, weights of 2 or 4 bytes up at 25 GB/s, and 30 bytes moved by a
    // host that eight devices share at 100 GB/s. Offloading reaches a share of both rates.
    let parameters = 8_030_261_248.0 / 8.0;
    let scenario = scenario(&plan).unwrap();
    let width = f64::from(scenario.strategy.precision.width());
    let reached = scenario.priors.transformer.offload;
    let expected = parameters * ((4.0 + width) / 25e9 + 30.0 * 8.0 / 100e9) / reached;
    let found = optimiser.part(PartKind::Offload).get();
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
    let activations = with(&["strategy.plan.offload=[\"activations\"]"]);
    assert!(memory(&activations).activations < memory(&usual).activations * 0.1);
    assert!(activations.iteration >= usual.iteration);
    let slow = with(&["strategy.plan.offload=[\"activations\"]", "strategy.plan.host-link=1 GB/s"]);
    assert!(slow.part(PartKind::Offload) > activations.part(PartKind::Offload));
}

#[test]
fn what_does_not_fit_is_said_with_what_would() {
    let large = predict(&["model.zoo=llama3-70b", "strategy.plan.tensor=8"]);
    let report = large.transformer.as_ref().unwrap();
    assert_eq!(report.memory.verdict, Verdict::DoesNotFit);
    let warning = large.warnings.iter().find(|warning| warning.code == "memory").unwrap();
    assert!(warning.message.contains("does not fit"), "{}", warning.message);
    let small = predict(&["strategy.plan.sharding=zero-3", "strategy.plan.recompute=[\"layer\"]"]);
    assert_eq!(small.transformer.unwrap().memory.verdict, Verdict::Fits);
    assert!(small.warnings.is_empty(), "{:?}", small.warnings);
}

/// Nemotron-4 15B ran so on 16 H100 (dgxc-benchmarking): with gradients in 32 bits it does not fit, in 16 bits it does.
#[test]
fn what_fits_with_narrower_gradients_may_fit() {
    let run = [
        "model.zoo=nemotron4-15b",
        "cluster.workers.count=16",
        "cluster.workers.device=h100-sxm5",
        "strategy.plan.tensor=2",
        "strategy.plan.sequence-parallel=true",
        "strategy.plan.sharding=zero-1",
        "strategy.plan.micro-batch=2",
        "strategy.plan.global-batch=64",
    ];
    let wide = predict(&run);
    let memory = wide.transformer.as_ref().unwrap().memory;
    assert_eq!((memory.verdict, memory.saving), (Verdict::MayNotFit, Some(Saving::NarrowGradients)));
    let narrow = predict(&[&run[..], &["strategy.plan.states=mixed-fp16"]].concat());
    assert_eq!(narrow.transformer.unwrap().memory.least, memory.least);
    let warning = wide.warnings.iter().find(|warning| warning.code == "memory").unwrap();
    assert!(warning.message.contains("may not fit"), "{}", warning.message);
}

#[test]
fn plans_are_refused_where_they_make_no_sense() {
    let key = |changes: &[&str]| scenario(changes).unwrap_err().key.to_string();
    assert_eq!(key(&["strategy.plan.tensor=3"]), "strategy.plan.tensor");
    assert_eq!(key(&["strategy.architecture=parameter-server"]), "strategy.architecture");
    assert_eq!(key(&["strategy.synchronisation=async"]), "strategy.synchronisation");
    assert_eq!(key(&["model.zoo=resnet50"]), "strategy.plan");
    let without = resolved("[model]\nzoo = \"llama3-8b\"", &[]);
    assert_eq!(Transformer.applies(&without).unwrap_err().key.to_string(), "strategy.plan");
}

/// Korthikanti 2022, Table 5: seconds of a step with full recomputation, and with sequence parallelism and selective
/// recomputation, on A100s. What both have in common, such as the share of the peak rate, cancels in their quotient.
#[test]
fn selective_recomputation_gains_what_was_measured() {
    let rows = [
        ("megatron-22b", 8, [1, 1], [4, 4], 1.42 / 1.10),
        ("gpt3-175b-megatron", 64, [8, 3], [1, 64], 18.13 / 13.75),
        ("turing-530b", 280, [35, 3], [1, 280], 49.05 / 37.83),
        ("megatron-1t", 512, [64, 1], [1, 512], 94.42 / 71.49),
    ];
    for (model, workers, [stages, chunks], [micro, global], measured) in rows {
        let plan = [
            format!("model.zoo={model}"),
            format!("cluster.workers.count={workers}"),
            "cluster.workers.device=a100-sxm4-80gb".to_owned(),
            "cluster.workers.efficiency=0.6".to_owned(),
            "cluster.network.base=infiniband-hdr".to_owned(),
            "cluster.nodes.network=nvlink3".to_owned(),
            "strategy.precision=fp16".to_owned(),
            "strategy.plan.tensor=8".to_owned(),
            format!("strategy.plan.pipeline={stages}"),
            format!("strategy.plan.virtual-stages={chunks}"),
            format!("strategy.plan.micro-batch={micro}"),
            format!("strategy.plan.global-batch={global}"),
            "strategy.plan.attention=unfused".to_owned(),
            "strategy.plan.dropout=true".to_owned(),
            "strategy.plan.states=megatron-fp16".to_owned(),
        ];
        let step = |more: [&str; 2]| {
            let changes: Vec<&str> = plan.iter().map(String::as_str).chain(more).collect();
            predict(&changes).iteration
        };
        let full = step(["strategy.plan.recompute=[\"layer\"]", "strategy.plan.sequence-parallel=false"]);
        let selective =
            step(["strategy.plan.recompute=[\"attention\"]", "strategy.plan.sequence-parallel=true"]);
        let found = full / selective;
        assert!((found / measured - 1.0).abs() < 0.05, "{model}: {found} instead of {measured}");
    }
}

/// Replicas that exchange all weights at once wait for the link between sites and the outer update every H steps; fragments
/// beside enough steps hide both but the update.
#[test]
fn outer_gradients_cross_the_link_between_sites() {
    let inner =
        ["cluster.workers.count=32", "strategy.plan.sharding=zero-3", "strategy.plan.global-batch=32"];
    let outer = [
        "cluster.workers.count=64",
        "strategy.plan.sharding=zero-3",
        "strategy.plan.global-batch=64",
        "strategy.synchronisation=local-sgd(50)",
        "strategy.plan.outer-replicas=2",
        "strategy.plan.outer-link=10 Gbit/s",
        "strategy.plan.outer-latency=30 ms",
    ];
    let with = |more: &[&str]| predict(&[&outer[..], more].concat());
    let step = predict(&inner).iteration.get();
    let parameters = 8_030_261_248.0;
    // Of a ring of two, each sends all of it once, in two messages.
    let sent = |bits: f64| parameters * bits / 10e9 + 0.06;
    // 28 bytes of a weight and two of its gradient, on a thirty-second of the parameters at half the memory rate.
    let update = |width: f64| parameters / 32.0 * (28.0 + 2.0 * width) / (0.5 * 3.35e12);
    let expected = step + (sent(32.0) + update(4.0)) / 50.0;
    let plain = with(&[]);
    assert!((plain.iteration.get() / expected - 1.0).abs() < 1e-9, "{} {expected}", plain.iteration);
    assert!((plain.part(PartKind::OuterGradients).get() / (expected - step) - 1.0).abs() < 1e-6);
    assert_eq!(plain.samples, 64);
    let report = plain.transformer.as_ref().unwrap().outer.unwrap();
    assert_eq!((report.replicas, report.steps), (2, 50));
    assert!((report.sent.get() / (4.0 * parameters) - 1.0).abs() < 1e-12 && report.hides_from.is_none());
    let streamed = with(&[
        "strategy.plan.outer-fragments=10",
        "strategy.plan.outer-delay=4",
        "strategy.plan.outer-bits=4",
    ]);
    let report = streamed.transformer.as_ref().unwrap().outer.unwrap();
    let link = report.hides_from.unwrap().get();
    let room = 4.0 * step - 0.06;
    assert!((link / (parameters * 4.0 / 10.0 / room) - 1.0).abs() < 1e-9, "{link}");
    let shown = (sent(4.0) - 0.06) / 10.0 + 0.06 - 4.0 * step;
    let expected = step + (shown.max(0.0) + update(0.5) / 10.0) / 5.0;
    assert!((streamed.iteration.get() / expected - 1.0).abs() < 1e-9, "{} {expected}", streamed.iteration);
}

/// Outer weights and momentum are 8 bytes of a parameter, the fragment under way 4; the host may hold the former.
#[test]
fn the_outer_optimiser_takes_memory() {
    let states = |more: &[&str]| {
        let outer = ["strategy.synchronisation=local-sgd(50)", "strategy.plan.outer-replicas=2"];
        let zero = ["strategy.plan.sharding=zero-1", "strategy.plan.outer-fragments=2"];
        let memory = predict(&[&outer[..], &zero, more].concat()).transformer.unwrap().stages[0].memory;
        memory.optimiser.get() * 32.0 / 8_030_261_248.0
    };
    assert!((states(&[]) - (12.0 + 8.0 + 2.0)).abs() < 1e-6);
    assert!((states(&["strategy.plan.offload=[\"outer\"]"]) - (12.0 + 2.0)).abs() < 1e-6);
}
