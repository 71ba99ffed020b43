//! Adapters, frozen layers and documents: what is computed, held and summed, against closed forms and measured peaks.

use super::{held, plan, scenario};
use crate::resolved;
use stepcast_analytic::transformer::flops::{self, LayerFlops, Work};
use stepcast_analytic::transformer::{LayerKind, Transformer as Method};
use stepcast_core::method::Method as _;
use stepcast_core::model::transformer::{Adapters, BaseFormat, Block, Target, Transformer, Tuning};
use stepcast_core::model::zoo;
use stepcast_core::strategy::{Attention, Implementation, Mask, Plan, Recompute, States};

fn adapted(rank: u64, targets: &[Target]) -> Transformer {
    let adapters = Adapters {
        rank,
        targets: targets.iter().copied().collect(),
        dropout: false,
        dora: false,
        base: BaseFormat::Bf16,
    };
    let tuning =
        Tuning { adapters: Some(adapters), frozen_layers: 0, frozen_embedding: true, frozen_output: true };
    Transformer { tuning, sequence: 1024, ..zoo::transformer("llama3-8b").unwrap() }
}

/// PyTorch 2.11 on an H200, all layers checkpointed: 18,022,036,480 bytes.
#[test]
fn the_peak_of_measured_adapters_is_predicted_to_a_mebibyte() {
    let shape = adapted(8, &Target::ALL[..4]);
    let plan = Plan { states: States::Bf16, ..plan(Implementation::Pytorch).recomputing(Recompute::Layer) };
    let off = held(&shape, &plan).rank(0).total().get() - 18_022_036_480.0;
    assert!(off.abs() < f64::from(1 << 20), "{off}");
}

/// Tensors at the peak of a step of Llama 3.2 1B by transformers 5.17 (4 sequences of 1024 tokens): four of the MLP, two inputs of
/// norms in 32 bits, their results with and without weights, queries and attention, keys and values, logarithms of sums. Under
/// autocast norms keep 32 bits, five inputs of matrices are cast, and all matrices have a copy.
#[test]
fn a_layer_of_hugging_face_keeps_what_was_allocated() {
    let shape = Transformer { sequence: 1024, ..Transformer::llama(16, 2048, [32, 8], 8192, 128_256, 1024) };
    let kept = |states| {
        let plan = Plan { micro_batch: 4, states, ..plan(Implementation::HuggingFace) };
        held(&shape, &plan).kept_by(LayerKind::default(), Recompute::None.into()).get()
    };
    let statistics = 8.0 * 4096.0;
    let mebibytes = |count: f64| count * f64::from(1 << 20) + statistics;
    assert_eq!(kept(States::Bf16), mebibytes(4.0 * 64.0 + 2.0 * 32.0 + 6.0 * 16.0 + 2.0 * 4.0 + 0.5));
    let copies = 3.0 * 32.0 + 2.0 * 8.0 + 2.0 * 2.0;
    assert_eq!(
        kept(States::Fp32),
        mebibytes(4.0 * 64.0 + 4.0 * 32.0 + 7.0 * 16.0 + 2.0 * 4.0 + 0.5 + copies)
    );
}

#[test]
fn frozen_matrices_are_stored_in_four_bits() {
    let stored = |base: BaseFormat| {
        let mut shape = adapted(16, &[Target::Q]);
        shape.tuning.adapters.as_mut().unwrap().base = base;
        held(&shape, &plan(Implementation::Pytorch)).rank(0).weights.get()
    };
    let shape = adapted(16, &[Target::Q]);
    let matrices = (shape.layer_matrices(Block::DENSE).total() * shape.layers) as f64;
    let saved = stored(BaseFormat::Bf16) - stored(BaseFormat::Nf4);
    assert!((saved - matrices * (2.0 - BaseFormat::Nf4.bytes())).abs() < 1.0);
}

/// A is repeated and B divided where a matrix is divided by its output, and the other way round.
#[test]
fn tensor_parallel_ranks_hold_a_factor_each() {
    let shape = adapted(16, &[Target::Q, Target::O]);
    let plan = Plan { tensor: 8, ..plan(Implementation::Megatron) };
    let each = 16 * shape.hidden;
    assert_eq!(held(&shape, &plan).stage_trained(0), (shape.layers * 2 * (each + each / 8), 0));
}

/// Gradients of weights, and of the first layer's input, are missing; adapters cost three times two for each parameter.
#[test]
fn only_gradients_that_exist_are_counted() {
    let shape = adapted(16, &Target::ALL[..7]);
    let whole = Transformer { tuning: Tuning::default(), ..shape };
    let work = Work { sequence: 1024, batch: 4, mask: Mask::Causal };
    let of =
        |shape: &Transformer| flops::step(shape, work, (Recompute::None.into(), []), Attention::Flash).model;
    let layer = LayerFlops::new(&shape, Block::DENSE, None, work);
    let missing = layer.linear() * u128::from(shape.layers) + layer.qkv + flops::logits(&shape, work);
    let adapters = 6 * 4096 * u128::from(shape.trained_parameters());
    assert_eq!(of(&shape), of(&whole) - missing + adapters);
}

#[test]
fn a_step_with_adapters_sums_and_updates_little() {
    let step = |changes: &[&str]| Method.predict(&scenario(changes).unwrap()).unwrap();
    let adapters = step(&["model.adapters.rank=16"]);
    assert!(adapters.iteration < step(&[]).iteration * 0.75);
    let frozen = step(&["model.frozen.layers=16"]).iteration;
    assert!(step(&["model.frozen.layers=31"]).iteration < frozen && frozen < step(&[]).iteration);
}

/// Documents of 512 tokens: a sixteenth of the pairs, and no more than attention is saved.
#[test]
fn attention_stays_within_documents() {
    let on_one = |more: &str| {
        let text = format!(
            "[model]\nzoo = \"llama3-8b\"\nsequence = 8192\n{more}\n[[cluster.workers]]\ncount = 1\n\
             device = \"h200-sxm\"\n[strategy.plan]\nglobal-batch = 1\noverlap = \"fsdp2\"\n"
        );
        Method.predict(&resolved(text, &[])).unwrap()
    };
    let [whole, across, within, padded] = [
        "",
        "[data]\nlengths = 512\npacking = \"across\"",
        "[data]\nlengths = 512",
        "[data]\nlengths = 2048\npacking = \"padded\"",
    ]
    .map(on_one);
    assert_eq!(whole.iteration, across.iteration);
    assert!(within.iteration < whole.iteration && padded.iteration == whole.iteration);
    assert!(padded.warnings.iter().any(|warning| warning.message.starts_with("75 %")));
}
