//! Computing part by part: limits in which the time of a product is known, and when the host shows.

use crate::resolved;
use proptest::prelude::*;
use stepcast_analytic::transformer::compute::{Compute, Parts, Product, Shard, Software, Sums};
use stepcast_analytic::transformer::flops::Work;
use stepcast_analytic::transformer::{LayerKind, Split, Transformer};
use stepcast_core::machine::catalog;
use stepcast_core::method::Method;
use stepcast_core::precision::Precision;
use stepcast_core::prediction::{PartKind, Prediction};
use stepcast_core::prior::Priors;
use stepcast_core::strategy::{Mask, Recipe};

const SOFTWARE: Software = Software::eager(Precision::Bf16);

fn parts(device: &str) -> Parts {
    let device = catalog::device(device).unwrap();
    let peak = device.peak(Precision::Bf16).unwrap();
    Parts::new(&device, peak, 1.0, SOFTWARE, &Priors::shipped().unwrap().transformer)
}

/// A large product fills all multiprocessors with large tiles: nearly its share of the peak rate.
#[test]
fn large_products_reach_their_share_of_the_peak() {
    let share = Priors::shipped().unwrap().transformer.product_hopper;
    let size = 32768.0;
    let took = parts("h200-sxm").product(&Product::new(size, size, size)).get();
    let reached = 2.0 * size * size * size / took / 989.4e12;
    assert!((reached / share - 1.0).abs() < 0.02, "{reached} {share}");
}

/// A product of one row reads its matrix once, which no multiprocessor makes faster.
#[test]
fn thin_products_take_what_memory_takes() {
    let size = 16384.0;
    let stream = Priors::shipped().unwrap().transformer.memory * 4.8e12;
    let took = parts("h200-sxm").product(&Product::new(1.0, size, size)).get();
    let read = 2.0 * (size * size + 2.0 * size) / stream;
    assert!(took >= read * (1.0 - 1e-12), "{took} {read}");
}

/// A model on one H200.
fn on_h200(model: &str, changes: &[&str]) -> Prediction {
    let text = format!(
        "[model.transformer]\n{model}\n[[cluster.workers]]\ncount = 1\ndevice = \"h200-sxm\"\n[strategy]\nprecision = \"bf16\"\n\
         [strategy.plan]\nglobal-batch = 1\noverlap = \"fsdp2\"\n"
    );
    Transformer.predict(&resolved(text, changes)).unwrap()
}

fn predict(changes: &[&str]) -> Prediction {
    on_h200("base = \"llama3-8b\"\nsequence = 1024", changes)
}

/// Weights that FSDP gathers in 16 bits leave autocast nothing to cast: such a step is that of a model in 16 bits. Weights
/// that every replica holds in 32 bits are cast for every product.
#[test]
fn gathered_weights_are_not_cast_again() {
    let step = |precision: &str, sharding: &str| {
        let [precision, sharding] = [("precision", precision), ("plan.sharding", sharding)]
            .map(|(key, value)| format!("strategy.{key}={value}"));
        let workers = "cluster.workers.count=2";
        let states = "strategy.plan.states=fp32";
        let batch = "strategy.plan.global-batch=2";
        predict(&[&precision, &sharding, workers, states, batch]).iteration.get()
    };
    for sharding in ["zero-3", "fsdp-keep"] {
        assert!((step("amp-bf16", sharding) / step("bf16", sharding) - 1.0).abs() < 1e-12, "{sharding}");
    }
    assert!(step("amp-bf16", "none") > 1.01 * step("bf16", "none"));
}

/// Where gradients are reduced in 16 bits, they send half of the bytes and need half of the copy.
#[test]
fn gradients_are_reduced_in_the_bits_of_the_plan() {
    let figures = |bits: &str, sharding: &str| {
        let sharding = format!("strategy.plan.sharding={sharding}");
        let none = "strategy.plan.overlap=none";
        let kernels = "strategy.plan.implementation=pytorch";
        let more = ["cluster.workers.count=2", "strategy.plan.global-batch=2", "strategy.plan.states=fp32"];
        let bits = format!("strategy.plan.reduce-bits={bits}");
        let found = predict(&[&[sharding.as_str(), none, kernels, &bits], &more[..]].concat());
        let sharded = found.breakdown.iter().find(|part| part.kind == PartKind::ShardedWeights);
        [sharded.map_or(0.0, |part| part.time.get()), found.transformer.unwrap().memory.most.get()]
    };
    let [wide, narrow] = ["32", "16"].map(|bits| figures(bits, "zero-3"));
    // Two gathers of 2 bytes, and a reduction of 4 or of 2.
    assert!((wide[0] / narrow[0] - 8.0 / 6.0).abs() < 0.02, "{wide:?} {narrow:?}");
    let layer = 218_112_000.0;
    let share = 1.1;
    assert!((wide[1] - narrow[1] - 2.0 * layer * share).abs() < 0.01 * layer, "{wide:?} {narrow:?}");
    assert_eq!(figures("32", "zero-1"), figures("16", "zero-1"));
}

/// What FSDP copies for a layer and for the output layer of Llama 3 8B, measured on an H200 (research/transformers/copies.py): weights
/// in 16 bits, gradients into 32 bits and into 16.
#[test]
fn copies_of_sharded_units_take_what_was_measured() {
    let parts = Compute::Parts(parts("h200-sxm"));
    for (numbers, measured) in [(218.1e6, [0.2345, 0.6351, 0.2561]), (525.3e6, [0.5440, 1.5085, 0.5924])] {
        for ([from, to], measured) in [[2.0, 2.0], [2.0, 4.0], [2.0, 2.0]].into_iter().zip(measured) {
            let found = parts.copying(numbers, from, to).get() * 1e3;
            assert!((found / measured - 1.0).abs() < 0.1, "{numbers} {from} to {to}: {found} ms");
        }
    }
}

/// FSDP copies every layer's weights twice and its gradients once; its embedding and output layer are gathered and reduced besides, which
/// nothing hides. Software that computes where weights are gathered does neither.
#[test]
fn fsdp_copies_its_units_and_waits_for_its_root() {
    let step = |overlap: &str| {
        let overlap = format!("strategy.plan.overlap={overlap}");
        let more = [
            "strategy.plan.sharding=zero-3",
            "strategy.plan.implementation=pytorch",
            "strategy.plan.states=fp32",
        ];
        let workers = ["cluster.workers.count=2", "strategy.plan.global-batch=2"];
        let hidden = [
            "strategy.plan.overlap-prefetch=false",
            "strategy.plan.overlap-gradients=false",
            "strategy.plan.overlap-weights=false",
        ];
        let tensor = ["strategy.plan.overlap-tensor=false", "strategy.plan.overlap-context=false"];
        predict(&[&[overlap.as_str()], &more[..], &workers[..], &hidden[..], &tensor[..]].concat())
    };
    let [fsdp, deepspeed, megatron] = ["fsdp2", "deepspeed", "megatron"].map(step);
    let parts = Compute::Parts(parts("h200-sxm"));
    let copied = |numbers: f64, gathers: f64| {
        (parts.copying(numbers, 2.0, 2.0) * gathers + parts.copying(numbers, 2.0, 4.0)).get()
    };
    let compute = |step: &Prediction| step.part(PartKind::Compute).get();
    let layers = copied(32.0 * 218_112_000.0, 2.0);
    assert!((compute(&fsdp) - compute(&megatron) - layers).abs() < 1e-9 * layers + 1e-9);
    assert!(compute(&deepspeed) > compute(&megatron) + layers);
    let sharded = |step: &Prediction| step.part(PartKind::ShardedWeights).get();
    let root = copied(2.0 * 525_336_576.0 + 4096.0, 1.0);
    assert!(sharded(&fsdp) > sharded(&megatron) + root, "{:?}", fsdp.breakdown);
    assert!((sharded(&deepspeed) - sharded(&megatron)).abs() < 1e-9);
}

/// Peaks of steps of Hugging Face's models on an H200 (PyTorch 2.11, transformers 5.17), compiled and not, allocated bytes.
#[test]
fn compiled_models_of_hugging_face_need_what_was_measured() {
    let measured = [
        ("llama3.2-1b", 8, [4, 2048], [[31.80, 22.88], [24.43, 16.35]]),
        ("gpt2-medium", 12, [8, 1024], [[16.58, 9.35], [12.12, 7.37]]),
        ("qwen2.5-1.5b", 12, [4, 2048], [[37.96, 27.06], [30.05, 20.10]]),
    ];
    for (model, layers, [batch, sequence], peaks) in measured {
        for (precision, peaks) in [("amp-bf16", peaks[0]), ("bf16", peaks[1])] {
            for (compiled, peak) in [false, true].into_iter().zip(peaks) {
                let model = format!("base = \"{model}\"\nlayers = {layers}\nsequence = {sequence}");
                let states = if precision == "bf16" { "bf16" } else { "fp32" };
                let mut changes = vec![
                    format!("strategy.precision={precision}"),
                    format!("strategy.compiled={compiled}"),
                    format!("strategy.plan.states={states}"),
                    format!("strategy.plan.micro-batch={batch}"),
                    format!("strategy.plan.global-batch={batch}"),
                ];
                changes.push("strategy.plan.implementation=hugging-face".to_owned());
                let changes: Vec<&str> = changes.iter().map(String::as_str).collect();
                let found = on_h200(&model, &changes).transformer.unwrap().stages[0].memory.total.get() / 1e9;
                let tolerance = if compiled { 0.08 } else { 0.002 };
                assert!(
                    (found / peak - 1.0).abs() < tolerance,
                    "{model} {changes:?}: {found} GB, measured {peak}"
                );
            }
        }
    }
}

/// Small layers are bound by the host: fewer numbers to compute and a faster device do not shorten the step, fewer kernels do.
#[test]
fn the_host_is_a_floor() {
    let small = |hidden: u64, changes: &[&str]| {
        let model = format!("layers = 32\nhidden = {hidden}\nheads = 8\nvocabulary = 32000\nsequence = 512");
        on_h200(&model, changes)
    };
    let [narrow, wider] = [512, 768].map(|hidden| small(hidden, &[]));
    assert!(narrow.part(PartKind::Host).get() > 0.5 * narrow.iteration.get(), "{:?}", narrow.breakdown);
    assert!((narrow.iteration / wider.iteration - 1.0).abs() < 1e-9);
    let faster = small(512, &["cluster.workers.speed=2"]);
    assert!((faster.iteration / narrow.iteration - 1.0).abs() < 1e-9);
    let compiled = small(512, &["strategy.compiled=true"]);
    assert!(compiled.iteration < narrow.iteration * 0.65, "{} {}", compiled.iteration, narrow.iteration);
    let large = predict(&["strategy.plan.micro-batch=8", "strategy.plan.global-batch=8"]);
    assert!(large.breakdown.iter().all(|part| part.kind != PartKind::Host), "{:?}", large.breakdown);
}

/// Modules of Megatron core take the host a while in each of both passes through a layer, and a third if it is computed again;
/// hosts of an A100 take longer. Software until 2022 and graphs have none of it.
#[test]
fn modules_of_megatron_keep_the_host_busy() {
    let own = Priors::shipped().unwrap().transformer;
    let step = |device: &str, changes: &[&str]| {
        let text = format!(
            "[model.transformer]\nlayers = 24\nhidden = 512\nheads = 8\nvocabulary = 1000\nsequence = 512\n\
             [[cluster.workers]]\ncount = 1\ndevice = \"{device}\"\n[strategy]\nprecision = \"bf16\"\n\
             [strategy.plan]\nglobal-batch = 1\noverlap = \"megatron\"\nattention = \"flash\"\n"
        );
        Transformer.predict(&resolved(text, changes)).unwrap().iteration.get()
    };
    let (old, again) = ("strategy.plan.overlap=megatron-2021", "strategy.plan.recompute=[\"layer\"]");
    let modules =
        |device: &str, again: &[&str]| step(device, again) - step(device, &[again, &[old][..]].concat());
    let layers = 24.0 * own.modules.get();
    assert!((modules("h200-sxm", &[]) / (2.0 * layers) - 1.0).abs() < 1e-9);
    assert!((modules("a100", &[]) / (2.0 * layers * own.older_host) - 1.0).abs() < 1e-9);
    let three = modules("h200-sxm", &[again]) / layers;
    assert!((2.8..=3.0).contains(&three), "{three}");
    let graphed =
        |changes: &[&str]| step("h200-sxm", &[changes, &["strategy.plan.graphs=true"][..]].concat());
    assert!((graphed(&[]) / graphed(&[old]) - 1.0).abs() < 1e-9);
}

/// A device with a share of its own computes at one rate; without, it takes longer for small matrices.
#[test]
fn a_given_share_replaces_what_is_assumed() {
    let given = predict(&["cluster.workers.efficiency=0.5"]);
    let twice = predict(&["cluster.workers.efficiency=1"]);
    let compute = |prediction: &Prediction| prediction.part(PartKind::Compute).get();
    assert!(compute(&given) > compute(&twice));
    let assumed = predict(&[]);
    assert!((compute(&assumed) / compute(&given) - 1.0).abs() > 1e-3);
}

/// Flash attention, forward, of 2048 numbers in heads of `width`: bound by tensor units, not by memory.
fn flash(device: &str, width: u64) -> f64 {
    let text = format!(
        "[model.transformer]\nlayers = 1\nhidden = 2048\nheads = {}\nvocabulary = 32000\nsequence = 16384\n\
         [[cluster.workers]]\ncount = 1\ndevice = \"{device}\"\n[strategy]\nprecision = \"bf16\"\n\
         [strategy.plan]\nglobal-batch = 1\n",
        2048 / width
    );
    let scenario = resolved(text, &[]);
    let shape = scenario.transformer_of_plan().unwrap();
    let plan = scenario.strategy.plan.as_ref().unwrap();
    let work = Work { sequence: 16384, batch: 1, mask: Mask::Causal };
    let shard = Shard::new(&shape, plan, &Split::WHOLE, LayerKind::default(), false, work);
    let start = Priors::shipped().unwrap().transformer.kernel;
    (parts(device).layer(&shard).core[0].device - start).get()
}

/// A narrow head costs as many exponentials on an A100 as on an H200, whose tensor units are 2.6 times as fast: there it
/// loses more.
#[test]
fn narrow_heads_lose_more_on_fast_tensor_units() {
    // Attention is cuDNN's, which has kernels of its own from Hopper on.
    let own = Priors::shipped().unwrap().transformer;
    let ampere = 312.0 / 108.0 / (989.4 / 132.0);
    for (device, head, pace) in [("h200-sxm", own.head_cudnn, 1.0), ("a100-sxm4-80gb", own.head, ampere)] {
        let lost = head * pace;
        let expected = (1.0 + lost / 64.0) / (1.0 + lost / 128.0);
        let found = flash(device, 64) / flash(device, 128);
        assert!((found / expected - 1.0).abs() < 1e-9, "{device}: {found} {expected}");
    }
}

proptest! {
    /// More of anything never takes less time by more than the step from one tile to another.
    #[test]
    fn products_grow(rows in 1_u32..5000, columns in 1_u32..5000, depth in 1_u32..5000, device in prop::sample::select(vec!["h200-sxm", "a100-sxm4-80gb", "tesla-t4"])) {
        let device = catalog::device(device).unwrap();
        let peak = device.peak(Precision::Fp16).unwrap();
        let parts = Parts::new(&device, peak, 1.0, SOFTWARE, &Priors::shipped().unwrap().transformer);
        let time = |rows: u32, columns: u32, depth: u32| {
            parts.product(&Product::new(f64::from(rows), f64::from(columns), f64::from(depth))).get()
        };
        let one = time(rows, columns, depth);
        prop_assert!(one > 0.0 && one.is_finite());
        for more in [time(2 * rows, columns, depth), time(rows, 2 * columns, depth), time(rows, columns, 2 * depth)] {
            prop_assert!(more >= one * (1.0 - 1e-9), "{} {}", one, more);
        }
    }
}

fn rested(device: &str, software: Software) -> Parts {
    let device = catalog::device(device).unwrap();
    let peak = device.peak(software.precision).unwrap();
    Parts::new(&device, peak, 1.0, software, &Priors::shipped().unwrap().transformer).rested()
}

/// Casting takes what the products of small layers gain, and a part of what those of large ones do: measured 0.9 to 1.2 times
/// as fast with products of 1024 x 1024 alone, and 1.7 to 1.95 with large ones, before casts (`research/float8`).
#[test]
fn float8_pays_for_wide_layers() {
    let faster = |hidden: u64| {
        let heads = hidden / 128;
        let model =
            format!("layers = 8\nhidden = {hidden}\nheads = {heads}\nvocabulary = 32000\nsequence = 8192");
        let step = |recipe: &str| on_h200(&model, &["strategy.compiled=true", recipe]).iteration;
        step("strategy.plan.recipe=none") / step("strategy.plan.recipe=fp8")
    };
    let gains = [1024, 4096, 16384].map(faster);
    assert!(gains[0] < 1.1 && (1.1..1.5).contains(&gains[1]), "{gains:?}");
    assert!(gains.is_sorted() && (1.4..1.8).contains(&gains[2]), "{gains:?}");
}

/// An H200 computes products of 1024 to 28672 in 8 bits with one scale a tensor in these times (PyTorch 2.11), start included.
#[test]
fn products_in_8_bits_take_what_was_measured() {
    let software = Software { recipe: Recipe::Fp8, ..SOFTWARE };
    let parts = rested("h200-sxm", software);
    let measured = [
        ([8192.0, 28672.0, 8192.0], 2.4322e-3),
        ([16384.0, 8192.0, 28672.0], 4.884e-3),
        ([8192.0, 4096.0, 4096.0], 0.185e-3),
        ([8192.0, 7168.0, 2048.0], 0.1749e-3),
        ([1024.0, 7168.0, 2048.0], 0.028e-3),
    ];
    for ([rows, columns, depth], seconds) in measured {
        let found = parts.narrow_product(&Product::new(rows, columns, depth)) + parts.starting(1.0);
        let off = found.get() / seconds - 1.0;
        assert!(off.abs() < 0.08, "{rows} x {columns} x {depth}: {off}");
    }
}

fn layer(parts: &Parts, changes: &[&str]) -> [f64; 3] {
    let text = "[model.transformer]\nbase = \"llama2-7b\"\nsequence = 8192\n[[cluster.workers]]\ncount = 8\n\
                device = \"h200-sxm\"\n[strategy]\nprecision = \"bf16\"\n[strategy.plan]\nglobal-batch = 8\n";
    let scenario = resolved(text, changes);
    let (shape, plan) = (scenario.source.transformer().unwrap(), scenario.strategy.plan.as_ref().unwrap());
    let split = Split { context: plan.context, ..Split::WHOLE };
    let work = Work { sequence: shape.sequence, batch: 1, mask: Mask::Causal };
    let computed = parts.layer(&Shard::new(&shape, plan, &split, LayerKind::default(), true, work));
    [computed.forward, computed.input, computed.weight].map(|work| work.device.get())
}

/// Gradients of 22016 x 4096, 4096 x 11008 and four times 4096 x 4096 weights, a layer, take an H200 this much longer if they are
/// added to sums in 32 bits (research/transformers/accumulate.py); a kernel of its own for the sums takes longer still.
#[test]
fn sums_of_gradients_show_where_micro_batches_are_short() {
    let software = Software { fused: true, ..SOFTWARE };
    let weights = |sums: Sums, tokens: u64| {
        let parts = rested("h200-sxm", Software { sums, ..software });
        layer(&parts, &[format!("model.transformer.sequence={tokens}").as_str()])[2]
    };
    for (tokens, measured) in [(512, 1.87), (1024, 1.39), (2048, 1.14), (4096, 1.05), (8192, 1.04)] {
        let [plain, added, apart] =
            [Sums::None, Sums::InProduct, Sums::Apart].map(|sums| weights(sums, tokens));
        let ratio = added / plain;
        assert!((ratio / measured - 1.0).abs() < 0.12, "{tokens}: {ratio} for {measured}");
        assert!(apart > added, "{tokens}: {apart} {added}");
    }
}

/// Around a ring the outputs of every step are added up: attention takes longer than the same tokens would on one rank.
#[test]
fn every_step_around_a_ring_costs_passes() {
    let parts = rested("h200-sxm", Software { fused: true, ..SOFTWARE });
    let [ring, gathered] = ["ring", "all-gather"].map(|exchange| {
        let exchange = format!("strategy.plan.context-exchange={exchange}");
        layer(&parts, &["strategy.plan.context=4", exchange.as_str()])
    });
    let passes = |index: usize| ring[index] - gathered[index];
    let rate = Priors::shipped().unwrap().transformer.pass * 4.8e12;
    let starts = parts.starting(1.0).get();
    let bytes = 4.0 * 2.0 * 2048.0 * 4096.0;
    let forward = 4.5 * bytes / rate + starts * (3.0 + 2.0 * 4.0);
    let backward = 2.25 * 3.0 * bytes / rate + starts * (9.0 + 3.0 * 4.0);
    assert!((passes(0) / forward - 1.0).abs() < 1e-9, "{} {forward}", passes(0));
    assert!((passes(1) / backward - 1.0).abs() < 1e-9, "{} {backward}", passes(1));
}

/// Tensor-parallel traffic beside products costs a part of itself at most; all-reduces cannot be divided.
#[test]
fn traffic_beside_products_hides() {
    let step = |changes: &[&str]| {
        let text = "[model]\nzoo = \"llama3-70b\"\n[[cluster.workers]]\ncount = 8\ndevice = \"h100-sxm5\"\n\
                    [cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\n[strategy]\nprecision = \"bf16\"\n\
                    [strategy.plan]\ntensor = 8\nglobal-batch = 1\nsequence-parallel = true\n";
        let found = Transformer.predict(&resolved(text, changes)).unwrap();
        [found.iteration.get(), found.part(PartKind::TensorParallelism).get()]
    };
    let beside = "strategy.plan.overlap-products=true";
    let ([exposed, waited], [hidden, left]) = (step(&[]), step(&[beside]));
    assert!(left < 0.3 * waited, "{left} {waited}");
    assert!(hidden < exposed && exposed - hidden < waited - left, "{hidden} {exposed}");
    let plain = "strategy.plan.sequence-parallel=false";
    assert_eq!(step(&[plain]), step(&[plain, beside]));
}

#[test]
fn recipes_need_a_rate() {
    let text = "[model]\nzoo = \"llama3-8b\"\n[[cluster.workers]]\ncount = 8\ndevice = \"a100-sxm4-80gb\"\n[strategy.plan]\n\
                sharding = \"zero-3\"\nrecipe = \"fp8\"\n";
    let fault = Transformer.applies(&resolved(text, &[])).unwrap_err();
    assert!(fault.reason.contains("no 8-bit rate of the NVIDIA A100"), "{fault:?}");
    let text = text.replace("\"a100-sxm4-80gb\"", "{ base = \"h100-sxm5\", efficiency = 0.5 }");
    let fault = Transformer.applies(&resolved(text, &[])).unwrap_err();
    assert!(fault.reason.contains("at one given rate"), "{fault:?}");
}
