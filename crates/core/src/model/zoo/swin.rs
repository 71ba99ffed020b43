//! Swin Transformer: attention within windows of an image.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op};
use crate::model::{Builder, Cost, LayerId, Model, ShapeError};

const SOURCE: &str = "Liu et al. 2021, arXiv:2103.14030, section 3; layout of torchvision";

/// Edge of a window in tokens.
const WINDOW: u64 = 7;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "swin-t",
        aliases: &["swin-tiny"],
        description: "Swin Transformer, tiny, windows of 7×7",
        source: SOURCE,
        layout: |builder| layout(builder, [2, 2, 6, 2], 96, 3),
    },
    Entry {
        name: "swin-s",
        aliases: &["swin-small"],
        description: "Swin Transformer, small, windows of 7×7",
        source: SOURCE,
        layout: |builder| layout(builder, [2, 2, 18, 2], 96, 3),
    },
    Entry {
        name: "swin-b",
        aliases: &["swin-base"],
        description: "Swin Transformer, base, windows of 7×7",
        source: SOURCE,
        layout: |builder| layout(builder, [2, 2, 18, 2], 128, 4),
    },
];

/// Tokens of a stage, their width and the heads of attention.
#[derive(Clone, Copy)]
struct Stage {
    tokens: u64,
    width: u64,
    heads: u64,
}

fn layout(mut builder: Builder, depths: [u64; 4], width: u64, heads: u64) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let mut stage = Stage { tokens: (224 / 4) * (224 / 4), width, heads };
    let x = b.input("input", &[3, 224, 224])?;
    let x = b.conv("features.0.0", Conv2d::new(width, 4).stride(4).biased(), x)?;
    let x = b.add("features.0.1", Op::ToSequence, &[x])?;
    let mut x = b.layer_norm("features.0.2", x)?;
    for (place, depth) in depths.into_iter().enumerate() {
        if place > 0 {
            (x, stage) = merged(b, &format!("features.{}", 2 * place), stage, x)?;
        }
        for index in 0..depth {
            x = block(b, &format!("features.{}.{index}", 2 * place + 1), stage, x)?;
        }
    }
    let x = b.layer_norm("norm", x)?;
    let mean = Cost { pooling: stage.tokens * stage.width, ..Cost::default() };
    let x = b.counted("avgpool", &[x], &[stage.width], mean)?;
    b.linear("head", 1000, x)?;
    builder.finish()
}

/// Joins four neighbours to one token of twice the width.
fn merged(b: &mut Builder, name: &str, of: Stage, from: LayerId) -> Result<(LayerId, Stage), ShapeError> {
    let stage = Stage { tokens: of.tokens / 4, width: 2 * of.width, heads: 2 * of.heads };
    let joined = [stage.tokens, 4 * of.width];
    let x = b.counted(&format!("{name}.neighbours"), &[from], &joined, Cost::default())?;
    let x = b.layer_norm(format!("{name}.norm"), x)?;
    let reduction = Op::Linear { out: stage.width, bias: false, tied: false };
    Ok((b.add(format!("{name}.reduction"), reduction, &[x])?, stage))
}

fn block(b: &mut Builder, name: &str, stage: Stage, from: LayerId) -> Result<LayerId, ShapeError> {
    let x = b.layer_norm(format!("{name}.norm1"), from)?;
    let x = b.linear(format!("{name}.attn.qkv"), 3 * stage.width, x)?;
    let dims = [stage.tokens, stage.width];
    let x = b.counted(&format!("{name}.attn.relative_position_bias_table"), &[x], &dims, attention(stage))?;
    let x = b.linear(format!("{name}.attn.proj"), stage.width, x)?;
    let middle = b.add(format!("{name}.add_1"), Op::Add, &[x, from])?;
    let x = b.layer_norm(format!("{name}.norm2"), middle)?;
    let x = b.linear(format!("{name}.mlp.0"), 4 * stage.width, x)?;
    let x = b.activate(format!("{name}.mlp.1"), Activation::Gelu, x)?;
    let x = b.linear(format!("{name}.mlp.3"), stage.width, x)?;
    b.add(format!("{name}.add_2"), Op::Add, &[x, middle])
}

/// Attention of every token to those of its window, with a learned bias for each distance and head.
fn attention(Stage { tokens, width, heads }: Stage) -> Cost {
    let pairs = tokens * WINDOW * WINDOW;
    let distances = 2 * WINDOW - 1;
    Cost {
        multiply_add: 2 * pairs * 2 * width,
        activation: Activation::Softmax.operations() * heads * pairs,
        elementwise: 2 * heads * pairs,
        weights: distances * distances * heads,
        ..Cost::default()
    }
}
