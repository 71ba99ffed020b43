//! Transformer-XL: a decoder that also attends to the states of the segment before, by distance.

use super::Entry;
use crate::model::op::{Activation, Op};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

const SOURCE: &str =
    "Dai et al. 2019, arXiv:1901.02860; layout of github.com/kimiyoung/transformer-xl, pytorch";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "transformer-xl",
        aliases: &["transformer-xl-wt103"],
        description: "Transformer-XL of WikiText-103, 16 layers, 150 tokens and as many remembered; its adaptive softmax \
                      counted by the frequent words",
        source: SOURCE,
        layout: |builder| layout(builder, WIKITEXT),
    },
    Entry {
        name: "transformer-xl-enwik8",
        aliases: &[],
        description: "Transformer-XL of enwik8, 24 layers, 768 characters and as many remembered",
        source: SOURCE,
        layout: |builder| layout(builder, ENWIK8),
    },
];

#[derive(Debug, Clone, Copy)]
struct Size {
    vocabulary: u64,
    /// Words of the softmax's first cluster, and clusters of rarer ones; all words, and none, without clusters.
    frequent: u64,
    clusters: u64,
    width: u64,
    heads: u64,
    inner: u64,
    depth: u64,
    /// Tokens of a segment; as many of the segment before are remembered.
    segment: u64,
}

const WIKITEXT: Size = Size {
    vocabulary: 267_735,
    frequent: 20_000,
    clusters: 3,
    width: 410,
    heads: 10,
    inner: 2100,
    depth: 16,
    segment: 150,
};

const ENWIK8: Size = Size {
    vocabulary: 204,
    frequent: 204,
    clusters: 0,
    width: 1024,
    heads: 8,
    inner: 3072,
    depth: 24,
    segment: 768,
};

fn layout(mut builder: Builder, size: Size) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let size = Size { segment: b.tokens(size.segment), ..size };
    let sequence = [size.segment, size.width];
    let tokens = b.input("input", &[size.segment])?;
    let words = Op::Embedding { count: size.vocabulary, width: size.width, sparse: false };
    let mut x = b.add("word_emb", words, &[tokens])?;
    // Added to the queries of all layers, which count the sums.
    for name in ["r_w_bias", "r_r_bias"] {
        x = b.counted(name, &[x], &sequence, Cost { biases: size.width, ..Cost::default() })?;
    }
    for place in 0..size.depth {
        x = block(b, &format!("layers.{place}"), size, x)?;
    }
    let softmax = Cost {
        multiply_add: 2 * size.segment * size.width * size.frequent,
        bias: size.segment * size.frequent,
        biases: size.vocabulary,
        ..Cost::default()
    };
    b.counted("crit.out_layers.0", &[x], &[size.segment, size.frequent], softmax)?;
    if size.clusters > 0 {
        let clusters = Op::Linear { out: size.clusters, bias: true, tied: false };
        b.add("crit.cluster", clusters, &[x])?;
    }
    builder.finish()
}

/// Normalisation after each half, as in the paper's equations.
fn block(b: &mut Builder, name: &str, size: Size, from: LayerId) -> Result<LayerId, ShapeError> {
    let Size { width, inner, segment, .. } = size;
    let seen = 2 * segment;
    // Queries of the remembered tokens are computed with the others, and dropped.
    let projections = product(seen, width, 3 * width);
    let x = b.counted(&format!("{name}.dec_attn.qkv_net"), &[from], &[seen, 3 * width], projections)?;
    // Distances are projected once for all samples.
    let distances = Cost { weights: width * width, ..Cost::default() };
    let x = b.counted(&format!("{name}.dec_attn.r_net"), &[x], &[seen, 3 * width], distances)?;
    let x = b.counted(&format!("{name}.dec_attn"), &[x], &[segment, width], attention(size))?;
    let x = b.counted(
        &format!("{name}.dec_attn.o_net"),
        &[x],
        &[segment, width],
        product(segment, width, width),
    )?;
    let x = b.add(format!("{name}.dec_attn.add"), Op::Add, &[x, from])?;
    let middle = b.layer_norm(format!("{name}.dec_attn.layer_norm"), x)?;
    let x = b.linear(format!("{name}.pos_ff.CoreNet.0"), inner, middle)?;
    let x = b.activate(format!("{name}.pos_ff.CoreNet.1"), Activation::Relu, x)?;
    let x = b.linear(format!("{name}.pos_ff.CoreNet.3"), width, x)?;
    let x = b.add(format!("{name}.pos_ff.add"), Op::Add, &[x, middle])?;
    b.layer_norm(format!("{name}.pos_ff.layer_norm"), x)
}

/// A matrix product without bias.
fn product(rows: u64, read: u64, out: u64) -> Cost {
    Cost { multiply_add: 2 * rows * read * out, weights: read * out, ..Cost::default() }
}

/// Products of queries with keys and with distances, and of weights with values (section 3.3): a token sees all that is
/// remembered and those of its own segment up to itself.
fn attention(Size { width, heads, segment, .. }: Size) -> Cost {
    let pairs = segment * segment + segment * (segment + 1) / 2;
    Cost {
        multiply_add: 2 * pairs * 3 * width,
        activation: Activation::Softmax.operations() * heads * pairs,
        // Both biases of the queries, the sum of both products, and their scale.
        elementwise: 2 * segment * width + 2 * heads * pairs,
        ..Cost::default()
    }
}
