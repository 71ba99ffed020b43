//! Vision Transformer: an image as a sequence of patches.

use super::Entry;
use crate::model::op::{Activation, Conv2d, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

const SOURCE: &str = "Dosovitskiy et al. 2020, arXiv:2010.11929, table 1; layout of torchvision";

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "vit-b-16",
        aliases: &["vit-base-16", "vit-b16"],
        description: "Vision Transformer, base, patches of 16×16",
        source: SOURCE,
        layout: |builder| layout(builder, Size { depth: 12, width: 768, heads: 12 }),
    },
    Entry {
        name: "vit-l-16",
        aliases: &["vit-large-16", "vit-l16"],
        description: "Vision Transformer, large, patches of 16×16",
        source: SOURCE,
        layout: |builder| layout(builder, Size { depth: 24, width: 1024, heads: 16 }),
    },
];

#[derive(Clone, Copy)]
struct Size {
    depth: u64,
    width: u64,
    heads: u64,
}

const PATCH: u64 = 16;
const TOKENS: u64 = (224 / PATCH) * (224 / PATCH) + 1;

fn layout(mut builder: Builder, size: Size) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let x = b.input("input", &[3, 224, 224])?;
    let x = b.conv("conv_proj", Conv2d::new(size.width, PATCH).stride(PATCH).biased(), x)?;
    let x = b.add("to_sequence", Op::ToSequence, &[x])?;
    let x = b.add("class_token", Op::ClassToken, &[x])?;
    let x = b.add("encoder.pos_embedding", Op::PositionEmbedding { count: TOKENS }, &[x])?;
    let mut x = b.add("encoder.dropout", Op::Dropout, &[x])?;
    for place in 0..size.depth {
        x = encoder(b, &format!("encoder.layers.encoder_layer_{place}"), size, x)?;
    }
    let x = b.layer_norm("encoder.ln", x)?;
    let x = b.add("class", Op::SelectToken { index: 0 }, &[x])?;
    b.linear("heads.head", 1000, x)?;
    builder.finish()
}

/// Normalisation before each half of the block.
fn encoder(b: &mut Builder, name: &str, size: Size, from: LayerId) -> Result<LayerId, ShapeError> {
    let Size { width, heads, .. } = size;
    let x = b.layer_norm(format!("{name}.ln_1"), from)?;
    let x = b.linear(format!("{name}.self_attention.in_proj"), 3 * width, x)?;
    let x = b.add(format!("{name}.self_attention"), Op::Attention { heads, causal: false }, &[x])?;
    let x = b.linear(format!("{name}.self_attention.out_proj"), width, x)?;
    let x = b.add(format!("{name}.dropout"), Op::Dropout, &[x])?;
    let middle = b.add(format!("{name}.add_1"), Op::Add, &[x, from])?;
    let x = b.layer_norm(format!("{name}.ln_2"), middle)?;
    let x = b.linear(format!("{name}.mlp.0"), 4 * width, x)?;
    let x = b.activate(format!("{name}.mlp.1"), Activation::Gelu, x)?;
    let x = b.add(format!("{name}.mlp.2"), Op::Dropout, &[x])?;
    let x = b.linear(format!("{name}.mlp.3"), width, x)?;
    let x = b.add(format!("{name}.mlp.4"), Op::Dropout, &[x])?;
    b.add(format!("{name}.add_2"), Op::Add, &[x, middle])
}
