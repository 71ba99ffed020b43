//! BERT: an encoder over 128 tokens, with a pooler or a head for masked language modelling.

use super::Entry;
use crate::model::op::{Activation, Op};
use crate::model::{Builder, LayerId, Model, ShapeError};

const SOURCE: &str = "Devlin et al. 2018, arXiv:1810.04805; layout of Hugging Face transformers";
const TOKENS: u64 = 128;
const VOCABULARY: u64 = 30_522;
const POSITIONS: u64 = 512;

/// The layers on top of the encoder.
#[derive(Debug, Clone, Copy)]
enum Head {
    /// A layer on the first token, for classification.
    Pooler,
    /// Logits over the vocabulary at every position, sharing the weight of the embedding.
    MaskedLanguage,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    width: u64,
    heads: u64,
    depth: u64,
}

const BASE: Size = Size { width: 768, heads: 12, depth: 12 };
const LARGE: Size = Size { width: 1024, heads: 16, depth: 24 };

pub(super) const ENTRIES: &[Entry] = &[
    Entry {
        name: "bert-base",
        aliases: &["bert-base-uncased"],
        description: "BERT base with its pooler, 128 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, BASE, Head::Pooler),
    },
    Entry {
        name: "bert-large",
        aliases: &["bert-large-uncased"],
        description: "BERT large with its pooler, 128 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, LARGE, Head::Pooler),
    },
    Entry {
        name: "bert-base-mlm",
        aliases: &[],
        description: "BERT base for masked language modelling, 128 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, BASE, Head::MaskedLanguage),
    },
    Entry {
        name: "bert-large-mlm",
        aliases: &[],
        description: "BERT large for masked language modelling, 128 tokens",
        source: SOURCE,
        layout: |builder| layout(builder, LARGE, Head::MaskedLanguage),
    },
];

fn layout(mut builder: Builder, size: Size, head: Head) -> Result<Model, ShapeError> {
    let b = &mut builder;
    let width = size.width;
    let length = b.tokens(TOKENS);
    let tokens = b.input("input", &[length])?;
    let types = b.input("token_types", &[length])?;
    let words = b.add(
        "embeddings.word_embeddings",
        Op::Embedding { count: VOCABULARY, width, sparse: false },
        &[tokens],
    )?;
    let types = b.add(
        "embeddings.token_type_embeddings",
        Op::Embedding { count: 2, width, sparse: false },
        &[types],
    )?;
    let x = b.add("embeddings.add", Op::Add, &[words, types])?;
    let x = b.add("embeddings.position_embeddings", Op::PositionEmbedding { count: POSITIONS }, &[x])?;
    let x = b.layer_norm("embeddings.LayerNorm", x)?;
    let mut x = b.add("embeddings.dropout", Op::Dropout, &[x])?;
    for place in 0..size.depth {
        x = encoder(b, &format!("encoder.layer.{place}"), size, x)?;
    }
    match head {
        Head::Pooler => {
            let x = b.add("pooler.first", Op::SelectToken { index: 0 }, &[x])?;
            let x = b.linear("pooler.dense", width, x)?;
            b.activate("pooler.activation", Activation::Tanh, x)?;
        }
        Head::MaskedLanguage => {
            let x = b.linear("cls.predictions.transform.dense", width, x)?;
            let x = b.activate("cls.predictions.transform.transform_act_fn", Activation::Gelu, x)?;
            let x = b.layer_norm("cls.predictions.transform.LayerNorm", x)?;
            let decoder = Op::Linear { out: VOCABULARY, bias: true, tied: true };
            b.add("cls.predictions.decoder", decoder, &[x])?;
        }
    }
    builder.finish()
}

/// Normalisation after each half of the block.
fn encoder(b: &mut Builder, name: &str, size: Size, from: LayerId) -> Result<LayerId, ShapeError> {
    let Size { width, heads, .. } = size;
    let query = b.linear(format!("{name}.attention.self.query"), width, from)?;
    let key = b.linear(format!("{name}.attention.self.key"), width, from)?;
    let value = b.linear(format!("{name}.attention.self.value"), width, from)?;
    let attention = Op::Attention { heads, causal: false };
    let x = b.add(format!("{name}.attention.self"), attention, &[query, key, value])?;
    let x = b.linear(format!("{name}.attention.output.dense"), width, x)?;
    let x = b.add(format!("{name}.attention.output.dropout"), Op::Dropout, &[x])?;
    let x = b.add(format!("{name}.attention.output.add"), Op::Add, &[x, from])?;
    let middle = b.layer_norm(format!("{name}.attention.output.LayerNorm"), x)?;
    let x = b.linear(format!("{name}.intermediate.dense"), 4 * width, middle)?;
    let x = b.activate(format!("{name}.intermediate.intermediate_act_fn"), Activation::Gelu, x)?;
    let x = b.linear(format!("{name}.output.dense"), width, x)?;
    let x = b.add(format!("{name}.output.dropout"), Op::Dropout, &[x])?;
    let x = b.add(format!("{name}.output.add"), Op::Add, &[x, middle])?;
    b.layer_norm(format!("{name}.output.LayerNorm"), x)
}
