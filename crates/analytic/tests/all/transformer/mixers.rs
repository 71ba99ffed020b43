//! Delta nets and Mamba in place of attention: operations product by product, what is kept, and times.

use super::{BASE, held, plan};
use crate::resolved;
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_analytic::transformer::flops::{self, LayerFlops, Work};
use stepcast_core::method::Method as _;
use stepcast_core::model::transformer::{FeedForward, Mixer, Transformer};
use stepcast_core::model::zoo;
use stepcast_core::strategy::{Attention, Implementation, Mask, Recomputed};

const TOKENS: u128 = 4096;

fn layer(name: &str, index: u64) -> (Transformer, LayerFlops) {
    let shape = zoo::transformer(name).unwrap();
    let work = Work { sequence: TOKENS as u64, batch: 1, mask: Mask::Causal };
    (shape, LayerFlops::new(&shape, shape.block(index), None, work))
}

const fn product(rows: u128, columns: u128, depth: u128) -> u128 {
    2 * rows * columns * depth
}

/// A gated delta net of Qwen3-Next: 16 heads of keys and 32 of values, all of width 128, in 64 chunks of 64 tokens.
#[test]
fn a_delta_net_computes_its_products() {
    let (_, flops) = layer("qwen3-next-80b-a3b", 0);
    assert_eq!(flops.qkv, product(TOKENS, 2 * 2048 + 4096 + 4096 + 2 * 32, 2048));
    assert_eq!(flops.output, product(TOKENS, 2048, 4096));
    // By substitution, an element of the inverse takes as many multiply-adds as it is below the diagonal.
    let inverse: u128 =
        (0..64_u128).flat_map(|column| (column + 1..64).map(move |row| 2 * (row - column))).sum();
    let scores = product(64, 64, 128);
    let chunk =
        2 * scores + inverse + 2 * product(64, 128, 64) + product(64, 128, 64) + 3 * product(64, 128, 128);
    assert_eq!(flops.scan, 64 * 32 * chunk + product(TOKENS, 8192, 4));
    assert_eq!((flops.scores, flops.values, flops.mlp), (0, 0, 0));
    assert_eq!(flops.experts, 10 * 3 * product(TOKENS, 512, 2048));
    // Gradients of the scan cost it twice, and its kernels compute it once more.
    let linear = flops.linear();
    assert_eq!(flops.backward(Attention::Flash), 2 * linear + 3 * flops.scan);
}

/// A layer of Nemotron-H with 128 heads of 64 in 8 groups and states of 128, in 16 chunks of 256 tokens.
#[test]
fn mamba_2_computes_its_products() {
    let (_, flops) = layer("nemotron-h-8b", 0);
    assert_eq!(flops.qkv, product(TOKENS, 2 * 8192 + 2 * 8 * 128 + 128, 4096));
    let chunk = 8 * product(256, 256, 128)
        + 128 * (product(256, 64, 256) + product(128, 64, 256) + product(256, 64, 128));
    assert_eq!(flops.scan, 16 * chunk + product(TOKENS, 8192 + 2 * 8 * 128, 4));
    assert_eq!(flops.forward(), flops.qkv + flops.scan + product(TOKENS, 4096, 8192));
}

/// A layer of Jamba: 8192 channels with states of 16, steps of rank 256, and a dense MLP.
#[test]
fn mamba_1_scans_every_channel() {
    let (_, flops) = layer("jamba-v0.1", 0);
    assert_eq!(flops.qkv, product(TOKENS, 2 * 8192, 4096));
    let select = product(TOKENS, 256 + 2 * 16, 8192) + product(TOKENS, 8192, 256);
    assert_eq!(flops.scan, select + 9 * TOKENS * 8192 * 16 + product(TOKENS, 8192, 4));
    assert_eq!(flops.mlp, 3 * product(TOKENS, 14336, 4096));
}

#[test]
fn halves_are_counted_alone() {
    let (shape, mlp) = layer("nemotron-h-8b", 1);
    assert_eq!(mlp.forward(), 2 * product(TOKENS, 21504, 4096));
    let (_, attention) = layer("nemotron-h-8b", 7);
    assert_eq!(attention.linear(), product(TOKENS, 4096 + 2 * 1024, 4096) + product(TOKENS, 4096, 4096));
    let kinds = [0, 1, 7].map(|index| shape.block(index));
    assert_eq!(kinds.map(|block| block.mixer), [Mixer::Mamba, Mixer::None, Mixer::Attention]);
    assert_eq!(kinds.map(|block| block.feed), [FeedForward::None, FeedForward::Dense, FeedForward::None]);
    // All layers are the sum of each by itself.
    let work = Work { sequence: 512, batch: 2, mask: Mask::Half };
    let one_by_one = (0..shape.layers).fold(LayerFlops::default(), |sum, index| {
        sum.plus(&LayerFlops::new(&shape, shape.block(index), None, work), 1)
    });
    assert_eq!(flops::layers(&shape, work, &(0..shape.layers)), one_by_one);
}

/// Bytes of a token in 16 bits: inputs of norm and products, and what lies between them.
#[test]
fn mixers_keep_what_their_gradients_need() {
    let kept = |name: &str, index: u64, implementation| {
        let shape = zoo::transformer(name).unwrap();
        held(&shape, &plan(implementation)).layer_activations(shape.block(index), Recomputed::NONE).get()
            / shape.sequence as f64
    };
    let textbook = |name, index| kept(name, index, Implementation::Textbook);
    assert_eq!(textbook("nemotron-h-8b", 1), (4 * 4096 + 4 * 21504) as f64);
    let projected = 2 * 8192 + 2 * 8 * 128 + 128;
    assert_eq!(textbook("nemotron-h-8b", 0), (4 * 4096 + 2 * (projected + 2 * 8192)) as f64);
    assert_eq!(textbook("nemotron-h-8b", 7), (4 * 4096 + 4 * 4096 + 4 * 1024 + 4 * 32) as f64);
}

/// Attention grows with the square of the sequence, scans with its length.
#[test]
fn scans_take_time_in_proportion_to_tokens() {
    let step = |name: &str, sequence: u64| {
        let pattern = if name == "jamba-v0.1" { "M" } else { "A" };
        let own = format!(
            "transformer = {{ base = \"{name}\", layers = 4, pattern = \"{pattern}\", sequence = {sequence} }}"
        );
        let text = BASE.replace("zoo = \"llama3-8b\"", &own);
        let scenario = resolved(text, &["cluster.workers.device=h100", "strategy.plan.global-batch=2048"]);
        Method.predict(&scenario).unwrap().iteration.get()
    };
    let grows = |name: &str| step(name, 65_536) / step(name, 8192) / 8.0;
    let [attention, mamba] = ["llama3-8b", "jamba-v0.1"].map(grows);
    assert!(attention > 1.5, "{attention}");
    // Gradients are reduced once, however long sequences are.
    assert!((0.7..1.02).contains(&mamba), "{mamba}");
}
