//! GPT-2: a decoder over 1024 tokens whose output layer shares the weight of the embedding.

use super::Entry;
use crate::model::op::{Activation, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

const SOURCE: &str = "Radford et al. 2019, Language Models are Unsupervised Multitask Learners; \
                      layout of Hugging Face transformers";
const TOKENS: u64 = 1024;
const VOCABULARY: u64 = 50_257;

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "gpt2",
        aliases: &["gpt2-small", "gpt-2"],
        description: "GPT-2 small, 1024 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, 768, 12, 12),
    },
    Entry {
        name: "gpt2-medium",
        aliases: &["gpt-2-medium"],
        description: "GPT-2 medium, 1024 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, 1024, 16, 24),
    },
    Entry {
        name: "gpt2-large",
        aliases: &["gpt-2-large"],
        description: "GPT-2 large, 1024 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, 1280, 20, 36),
    },
    Entry {
        name: "gpt2-xl",
        aliases: &["gpt-2-xl"],
        description: "GPT-2 XL, 1024 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, 1600, 25, 48),
    },
];

fn layout(mut builder: Builder, width: u64, heads: u64, depth: u64) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let tokens = b.tokens(TOKENS);
    let x = b.input("input", &[tokens])?;
    let x = b.add("wte", Op::Embedding { count: VOCABULARY, width, sparse: false }, &[x])?;
    let x = b.add("wpe", Op::PositionEmbedding { count: TOKENS }, &[x])?;
    let mut x = b.add("drop", Op::Dropout, &[x])?;
    for place in 0..depth {
        x = decoder(b, &format!("h.{place}"), width, heads, x)?;
    }
    let x = b.layer_norm("ln_f", x)?;
    b.add("lm_head", Op::Linear { out: VOCABULARY, bias: false, tied: true }, &[x])?;
    builder.finish()
}

/// Normalisation before each half of the block.
fn decoder(
    b: &mut Builder,
    name: &str,
    width: u64,
    heads: u64,
    from: LayerId,
) -> Result<LayerId, ShapeError> {
    let x = b.layer_norm(format!("{name}.ln_1"), from)?;
    let x = b.linear(format!("{name}.attn.c_attn"), 3 * width, x)?;
    let x = b.add(format!("{name}.attn"), Op::Attention { heads, causal: true }, &[x])?;
    let x = b.linear(format!("{name}.attn.c_proj"), width, x)?;
    let x = b.add(format!("{name}.attn.resid_dropout"), Op::Dropout, &[x])?;
    let middle = b.add(format!("{name}.add_1"), Op::Add, &[x, from])?;
    let x = b.layer_norm(format!("{name}.ln_2"), middle)?;
    let x = b.linear(format!("{name}.mlp.c_fc"), 4 * width, x)?;
    let x = b.activate(format!("{name}.mlp.act"), Activation::Gelu, x)?;
    let x = b.linear(format!("{name}.mlp.c_proj"), width, x)?;
    let x = b.add(format!("{name}.mlp.dropout"), Op::Dropout, &[x])?;
    b.add(format!("{name}.add_2"), Op::Add, &[x, middle])
}
