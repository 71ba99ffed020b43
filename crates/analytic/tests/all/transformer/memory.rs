//! Memory: Korthikanti's tables, ZeRO's table, whole ranks.

use super::flops::recomputed;
use super::{held, near, number, of_kind, plan, shape, truth};
use serde_json::Value;
use stepcast_analytic::transformer::memory::{Allowance, MemoryInputs, StageLayers};
use stepcast_core::model::transformer::{Block, Transformer};
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{
    Attention, Division, Implementation, Plan, Recipe, Recompute, Recomputed, ScheduleKind, Sharding, States,
};

const GOLDEN: &str = include_str!("../../../../../validation/transformer/memory.json");
const GIB: f64 = (1_u64 << 30) as f64;

/// What Korthikanti measured with: unfused attention, dropout, 16 bits.
fn korthikanti(recompute: Recompute) -> Plan {
    let textbook = plan(Implementation::Textbook).recomputing(recompute);
    Plan { attention: Some(Attention::Unfused), dropout: true, ..textbook }
}

fn layer(shape: &Transformer, [tensor, micro_batch]: [u64; 2], sp: bool, recompute: Recompute) -> f64 {
    let plan = Plan { tensor, sequence_parallel: sp, micro_batch, ..korthikanti(recompute) };
    held(shape, &plan).layer_activations(Block::DENSE, recompute.into()).get()
}

#[test]
fn layers_of_korthikanti() {
    use Recompute::{Attention, Layer, None};
    for case in of_kind(GOLDEN, "korthikanti-table2") {
        let shape = shape(&case, "seq");
        let b = number(&case, "micro_batch");
        let t = number(&case, "tp");
        let expect = &case["expect_bytes_per_layer"];
        near(layer(&shape, [1, b], false, None), &expect["none, no parallelism"], "none");
        near(layer(&shape, [t, b], false, None), &expect["tp"], "tp");
        near(layer(&shape, [t, b], true, None), &expect["tp+sp"], "tp+sp");
        near(layer(&shape, [t, b], false, Attention), &expect["tp+selective"], "tp+selective");
        near(layer(&shape, [t, b], true, Attention), &expect["tp+sp+selective"], "tp+sp+selective");
        near(layer(&shape, [1, b], false, Layer), &expect["full"], "full");
    }
    for case in of_kind(GOLDEN, "korthikanti-fig7") {
        let shape = Transformer { sequence: 2048, ..shape(&case, "seq") };
        let whole = layer(&shape, [8, 1], false, None);
        let share = |sp, recompute| 100.0 * layer(&shape, [8, 1], sp, recompute) / whole;
        let shares = [
            ("sp", share(true, None)),
            ("selective", share(false, Attention)),
            ("sp+selective", share(true, Attention)),
            ("full", share(false, Layer)),
        ];
        for (key, found) in shares {
            near(found, &case["expect_percent"][key], key);
            let read_off = case["read_off_figure"][key].as_f64().unwrap();
            assert!((found - read_off).abs() <= case["tol_percent_points"].as_f64().unwrap(), "{key}");
        }
    }
    for case in of_kind(GOLDEN, "korthikanti-section5") {
        let shape = shape(&case, "seq");
        let all = layer(&shape, [1, 1], false, None);
        let saved = 1.0 - layer(&shape, [1, 1], false, Attention) / all;
        near(100.0 * saved, &case["expect"]["saved_percent"], "saved");
        let scores = 5 * shape.heads * shape.sequence / shape.hidden;
        assert_eq!(scores, number(&case["expect"], "five_a_s_over_h"));
    }
}

#[test]
fn figure_1_of_korthikanti() {
    for case in of_kind(GOLDEN, "korthikanti-fig1") {
        let shape = shape(&case, "seq");
        let (t, p, v) = (number(&case, "tp"), number(&case, "pp"), number(&case, "chunks"));
        let (micro_batch, micro_batches) = (number(&case, "micro_batch"), number(&case, "micro_batches"));
        let division = Division { data: 1, micro_batches, global_batch: micro_batch * micro_batches };
        let activations = |sequence_parallel: bool, recompute: Recompute| {
            let plan = Plan {
                tensor: t,
                sequence_parallel,
                pipeline: p,
                virtual_stages: v,
                micro_batch,
                ..korthikanti(recompute)
            };
            let rank = MemoryInputs::new(&shape, &plan, &division).rank(0);
            assert_eq!(rank.in_flight, number(&case, "in_flight_chunks"));
            rank.activations.get() / GIB
        };
        let expect = &case["expect_gib"];
        near(activations(false, Recompute::None), &expect["tp"], "tp");
        near(activations(true, Recompute::Attention), &expect["tp_sp_selective"], "tp+sp+selective");
        let states = 18 * 12 * shape.layers * shape.hidden * shape.hidden / (p * t);
        near(states as f64 / GIB, &expect["states_18_bytes_of_12Lh2"], "states");
    }
}

#[test]
fn table_1_of_zero() {
    for case in of_kind(GOLDEN, "zero-table1") {
        let [weight, gradient, optimiser] = States::MixedFp16.bytes().map(|bytes| bytes as f64);
        let (parameters, ranks) = (number(&case, "parameters") as f64, number(&case, "ranks") as f64);
        let stages = [
            weight + gradient + optimiser / ranks,
            weight + (gradient + optimiser) / ranks,
            (weight + gradient + optimiser) / ranks,
        ];
        for (stage, bytes) in ["stage1", "stage2", "stage3"].into_iter().zip(stages) {
            near(parameters * bytes / 1e9, &case["expect_gb"][stage], stage);
        }
    }
    for case in of_kind(GOLDEN, "bytes-per-parameter") {
        let states: States = super::word(&case["precision"]);
        let [weight, gradient, optimiser] = states.bytes().map(|bytes| bytes as f64);
        let over = |ranks: f64| weight + gradient + optimiser / ranks;
        near(over(1.0), &case["expect"]["replicated"], "replicated");
        near(over(8.0), &case["expect"]["sharded_over_8"], "over 8");
        near(over(64.0), &case["expect"]["sharded_over_64"], "over 64");
    }
}

/// States of `galore_torch` 1.0 after a step of a Llama of six layers on an H200: moments and projections of all matrices of layers,
/// whole moments of the others.
#[test]
fn moments_of_low_rank_are_those_of_galore() {
    let shape = Transformer::llama(6, 2048, [32, 8], 8192, 32_000, 128);
    for (rank, states, measured) in [
        (128, States::Bf16, 642_359_296.0),
        (512, States::Bf16, 996_253_696.0),
        (256, States::Fp32, 1_520_648_192.0),
    ] {
        let whole = Plan { states, ..plan(Implementation::Pytorch) };
        let narrow = Plan { optimiser_rank: Some(rank), ..whole.clone() };
        let [whole, narrow] = [whole, narrow].map(|plan| held(&shape, &plan).rank(0));
        assert_eq!(narrow.optimiser.get(), measured);
        assert!(narrow.total() < whole.total());
    }
}

/// The arguments of a run; what is absent is usual.
fn divided(run: &Value) -> (Plan, Division) {
    let count = |key: &str| run[key].as_u64().unwrap_or(1);
    let (data, micro_batch, micro_batches) = (count("d"), count("b"), count("m"));
    let plan = Plan {
        tensor: count("t"),
        sequence_parallel: truth(run, "sp"),
        context: count("c"),
        pipeline: count("p"),
        virtual_stages: count("v"),
        expert: count("x"),
        micro_batch,
        sharding: match run["zero"].as_u64().unwrap_or(0) {
            0 => Sharding::None,
            1 => Sharding::Zero1,
            2 => Sharding::Zero2,
            _ => Sharding::Zero3,
        },
        states: run["precision"].as_str().map_or(States::MegatronBf16, |_| super::word(&run["precision"])),
        attention: run["attention"].as_str().map(|_| super::word(&run["attention"])),
        dropout: truth(run, "dropout"),
        schedule: run["schedule"].as_str().map(|_| super::word(&run["schedule"])),
        ..plan(Implementation::Textbook).recomputing(recomputed(&run["recompute"]))
    };
    (plan, Division { data, micro_batches, global_batch: data * micro_batch * micro_batches })
}

#[test]
fn whole_ranks() {
    let cases = of_kind(GOLDEN, "rank");
    assert_eq!(cases.len(), 25);
    for case in cases {
        let run = &case["run"];
        let shape = Transformer { sequence: number(run, "s"), ..shape(&case, "s") };
        let (plan, division) = divided(run);
        let rank = MemoryInputs::new(&shape, &plan, &division).rank(number(&case, "stage"));
        let expect = &case["expect_bytes"];
        let what = format!("{} {run} stage {}", case["model"], case["stage"]);
        assert_eq!(rank.parameters, number(expect, "parameters"), "{what}: parameters");
        assert_eq!(rank.in_flight, number(expect, "in_flight"), "{what}: in flight");
        let parts = [
            ("weights", rank.weights),
            ("gradients", rank.gradients),
            ("optimiser", rank.optimiser),
            ("activations", rank.activations),
            ("recompute_working_set", rank.recomputed),
            ("embedding", rank.embedding),
            ("head", rank.head),
            ("unsharded", rank.unsharded),
            ("total", rank.total()),
        ];
        for (key, found) in parts {
            near(found.get(), &expect[key], &format!("{what}: {key}"));
        }
        let with = &case["with_allowance"];
        let allowance = Allowance {
            fragmentation: with["fragmentation"].as_f64().unwrap(),
            fixed: Bytes::new(with["fixed"].as_f64().unwrap()),
        };
        let total = allowance.with(rank.total());
        near(total.get(), &with["total"], &what);
        assert_eq!(total.get() <= with["capacity"].as_f64().unwrap(), truth(with, "fits"), "{what}");
    }
}

#[test]
fn stages_have_the_golden_parameters() {
    let cases = of_kind(GOLDEN, "stage-parameters");
    assert_eq!(cases.len(), 3);
    for case in cases {
        let shape = shape(&case, "seq");
        let (tensor, pipeline) = (number(&case, "tp"), number(&case, "pp"));
        let plan = Plan { tensor, pipeline, ..korthikanti(Recompute::None) };
        let held = held(&shape, &plan);
        for (stage, expected) in case["expect"].as_array().unwrap().iter().enumerate() {
            let (dense, expert) = held.stage_parameters(stage as u64);
            assert_eq!(dense + expert, expected.as_u64().unwrap(), "{} stage {stage}", case["model"]);
        }
    }
}

/// Stages that are given differ; together they hold all layers.
#[test]
fn given_stages_hold_the_given_layers() {
    let shape = stepcast_core::model::zoo::transformer("deepseek-v3").unwrap();
    let stage_layers = Some(vec![2, 20, 20, 19]);
    let plan = Plan { pipeline: 4, stage_layers, ..korthikanti(Recompute::None) };
    let held = held(&shape, &plan);
    let layers: Vec<_> = (0..4).map(|stage| held.layers(stage)).collect();
    assert_eq!(layers.iter().map(|layers| layers.0[0]).collect::<Vec<_>>(), [2, 1, 0, 0]);
    assert_eq!(layers.iter().map(StageLayers::count).sum::<u64>(), 61);
    let all: u64 =
        (0..4).map(|stage| held.stage_parameters(stage)).map(|(dense, expert)| dense + expert).sum();
    assert_eq!(all, shape.parameters());
}

/// Modules that Megatron-LM computes again, of latent attention and experts: outputs of the two norms that are kernels of their own,
/// the input of the experts' second product, and queries, keys and values. Together they save what each saves, and one layer
/// at a time has them back.
#[test]
fn parts_of_a_layer_are_not_kept() {
    let shape = stepcast_core::model::zoo::transformer("deepseek-v3").unwrap();
    let plan = plan(Implementation::Megatron);
    let whole = held(&shape, &plan);
    let kept = |parts: &[Recompute], block| {
        whole.layer_activations(block, parts.iter().copied().collect()).get() / shape.sequence as f64
    };
    let (experts, mla) = (shape.experts.unwrap(), shape.mla.unwrap());
    let heads = shape.heads * (2 * (mla.nope + mla.rope) + mla.value);
    let parts = [Recompute::Norms, Recompute::Activation, Recompute::Projections];
    let saved = [4 * shape.hidden, 2 * experts.active * experts.width, 2 * heads];
    for (part, saved) in parts.iter().zip(saved) {
        let found = kept(&[], Block::EXPERTS) - kept(&[*part], Block::EXPERTS);
        assert!((found - saved as f64).abs() < 1e-6, "{part}: {found} {saved}");
    }
    let all = kept(&[], Block::EXPERTS) - kept(&parts, Block::EXPERTS);
    assert!((all - saved.iter().sum::<u64>() as f64).abs() < 1e-6);
    // Layers without experts have one such norm and no such activation; an MLP has its activation in it.
    let dense = kept(&[], Block::DENSE) - kept(&parts[..2], Block::DENSE);
    assert!((dense - (2 * shape.hidden) as f64).abs() < 1e-6);
    assert_eq!(
        kept(&[Recompute::Mlp], Block::EXPERTS),
        kept(&[Recompute::Mlp, Recompute::Activation], Block::EXPERTS)
    );
    let again = held(&shape, &Plan { recompute: parts.to_vec(), ..plan.clone() }).rank(0);
    let one = (whole.layer_activations(Block::EXPERTS, Recomputed::NONE).get())
        - kept(&parts, Block::EXPERTS) * shape.sequence as f64;
    assert!((again.recomputed.get() - one).abs() < 1.0, "{} {one}", again.recomputed);
}

/// Inputs of products in 8 bits: those of queries, keys and values, of both products of the MLP, and once more the output of
/// attention, which attention itself keeps in 16.
#[test]
fn inputs_of_products_are_kept_in_their_format() {
    let shape = Transformer { sequence: 4096, ..Transformer::llama(2, 4096, [32, 8], 14336, 1000, 4096) };
    let [wide, narrow] = [Recipe::None, Recipe::Fp8].map(|recipe| {
        let plan = Plan { recipe, ..plan(Implementation::Megatron) };
        held(&shape, &plan).layer_activations(Block::DENSE, Recompute::None.into()).get()
    });
    let saved = 4096.0 * (2.0 * 4096.0 + 14336.0 - 4096.0);
    assert!((wide - narrow - saved).abs() < 1e-6, "{wide} {narrow} {saved}");
}

/// Beside the textbook's count Megatron-LM needs 2 bytes of a logit, and 16 bits of every shape of a layer's matrices where gradients
/// are summed in 32 bits.
#[test]
fn megatron_keeps_placeholders_of_gradients() {
    let shape = Transformer::llama(4, 1024, [8, 2], 4096, 32000, 1024);
    let beside = |states| {
        let total = |implementation| {
            held(&shape, &Plan { tensor: 2, states, ..plan(implementation) }).rank(0).total()
        };
        (total(Implementation::Megatron) - total(Implementation::Textbook)).get()
    };
    let (workspaces, logits) = (f64::from((2 * 32) << 20), 2.0 * 1024.0 * 32000.0 / 2.0);
    assert!((beside(States::MixedFp16) - workspaces - logits).abs() < 1e-3);
    // Queries and outputs, keys and values, and the three matrices of the MLP.
    let matrices = 1024.0 * (2.0 * 1024.0 + 2.0 * 256.0 + 3.0 * 4096.0) / 2.0;
    assert!((beside(States::MegatronBf16) - workspaces - logits - 2.0 * matrices).abs() < 1e-3);
}

/// XLA gathers one matrix and the next, and holds the gradient of one; PyTorch layers. The stage with the first and last layers of
/// `zbv` has the logits of one micro-batch.
#[test]
fn gathered_weights_and_logits_are_those_in_use() {
    let shape = Transformer::llama(4, 1024, [8, 8], 4096, 32000, 1024);
    let unsharded = |implementation| {
        let plan = Plan { sharding: Sharding::Zero3, ..plan(implementation) };
        let division = Division { data: 8, micro_batches: 1, global_batch: 8 };
        MemoryInputs::new(&shape, &plan, &division).rank(0).unsharded.get()
    };
    let matrix = 1024.0 * 4096.0 * (2.0 * 2.0 + 2.0);
    assert!((unsharded(Implementation::Xla) - matrix).abs() < 1e-6);
    assert!(unsharded(Implementation::Megatron) > 2.0 * matrix);
    let head = |schedule, virtual_stages, stage| {
        let plan =
            Plan { pipeline: 2, virtual_stages, schedule: Some(schedule), ..plan(Implementation::Textbook) };
        let division = Division { data: 1, micro_batches: 8, global_batch: 8 };
        MemoryInputs::new(&shape, &plan, &division).rank(stage).head
    };
    assert_eq!(head(ScheduleKind::Zbv, 2, 0), head(ScheduleKind::OneFOneB, 1, 1));
}

/// Two stages of two ranks each, layers of 243 million parameters computed again (research/transformers/keep.py): PyTorch's allocator
/// reserved 16.1 to 17.0 GiB with 4 layers a stage and 30.5 with 8, whether units are divided again or not.
#[test]
fn pipelines_under_fsdp_keep_units_and_sums_of_gradients() {
    let reserved = |layers, sharding| {
        let shape =
            Transformer { sequence: 2048, ..Transformer::llama(layers, 4096, [32, 32], 14336, 2, 2048) };
        let staged = Plan { pipeline: 2, sharding, states: States::Fp32, ..plan(Implementation::Pytorch) };
        let division = Division { data: 2, micro_batches: 4, global_batch: 8 };
        let plan = staged.recomputing(Recompute::Layer);
        MemoryInputs::new(&shape, &plan, &division).rank(0).total().get() / GIB
    };
    for sharding in [Sharding::Keep, Sharding::Zero3] {
        assert!((16.1..17.0).contains(&reserved(8, sharding)), "{}", reserved(8, sharding));
        assert!((reserved(16, sharding) / 30.5 - 1.0).abs() < 0.05, "{}", reserved(16, sharding));
    }
}
