//! GPT-2 and models with its layers: decoders by OpenAI, EleutherAI, BigCode, Meta, BigScience and MosaicML, and BERT's encoders.

use super::{Config, quotient};
use crate::fault::Fault;
use crate::model::transformer::{Modules, NormKind, Transformer};

/// The shape of GPT-2's kind by the keys of a family: width, heads, layers, tokens with their usual number, and inner
/// width of the MLP.
fn gpt(
    config: &Config<'_>,
    [hidden, heads, layers]: [&[&str]; 3],
    (sequence, usual): (&str, u64),
    mlp_width: &str,
) -> Result<Transformer, Fault> {
    let (hidden, heads) = (config.first(hidden)?, config.first(heads)?);
    let (layers, sequence) = (config.first(layers)?, config.or(sequence, usual)?);
    Ok(Transformer {
        hidden,
        head_width: quotient(hidden, heads)?,
        mlp_width: config.or(mlp_width, hidden.saturating_mul(4))?,
        ..Transformer::gpt(layers, 0, heads, config.number("vocab_size")?, sequence)
    })
}

const USUAL_KEYS: [&[&str]; 3] = [&["hidden_size"], &["num_attention_heads"], &["num_hidden_layers"]];

pub(super) fn gpt2(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt(config, [&["n_embd"], &["n_head"], &["n_layer"]], ("n_positions", 1024), "n_inner")?;
    let tied = config.truth("tie_word_embeddings", true);
    Ok(Transformer { modules: Modules::Gpt2, tied, ..shape })
}

pub(super) fn gpt_neox(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt(config, USUAL_KEYS, ("max_position_embeddings", 2048), "intermediate_size")?;
    let tied = config.truth("tie_word_embeddings", false);
    Ok(Transformer { modules: Modules::Neox, positions: 0, tied, ..shape })
}

/// One key and value for all heads, unless `multi_query` says otherwise.
pub(super) fn gpt_bigcode(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt2(config)?;
    let kv_heads = if config.truth("multi_query", true) { 1 } else { shape.heads };
    Ok(Transformer { kv_heads, ..shape })
}

/// Two positions more than tokens.
pub(super) fn opt(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt(config, USUAL_KEYS, ("max_position_embeddings", 2048), "ffn_dim")?;
    let bias = config.truth("enable_bias", true);
    let width = config.or("word_embed_proj_dim", shape.hidden)?;
    if width != shape.hidden {
        let reason =
            format!("embeddings of {width} are projected to {}, which is not modelled", shape.hidden);
        return Err(Fault::new(reason, "write it as `[model.transformer]`"));
    }
    Ok(Transformer {
        modules: Modules::Opt,
        positions: shape.sequence.saturating_add(2),
        bias,
        qkv_bias: bias,
        final_norm: config.truth("do_layer_norm_before", true),
        tied: config.truth("tie_word_embeddings", true),
        ..shape
    })
}

pub(super) fn bloom(config: &Config<'_>) -> Result<Transformer, Fault> {
    let keys: [&[&str]; 3] =
        [&["hidden_size", "n_embed"], &["n_head", "num_attention_heads"], &["n_layer", "num_hidden_layers"]];
    Ok(Transformer { positions: 0, embedding_norm: true, ..gpt(config, keys, ("seq_length", 2048), "")? })
}

pub(super) fn mpt(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt(config, [&["d_model"], &["n_heads"], &["n_layers"]], ("max_seq_len", 2048), "")?;
    let ratio = config.or("expansion_ratio", 4)?;
    let plain = config.truth("no_bias", true);
    let alibi = config.0.get("attn_config").and_then(|attention| attention.get("alibi")?.as_bool());
    Ok(Transformer {
        mlp_width: shape.hidden.saturating_mul(ratio),
        norm: if plain { NormKind::LayerNoBias } else { NormKind::Layer },
        bias: !plain,
        qkv_bias: !plain,
        positions: if alibi.unwrap_or(true) { 0 } else { shape.sequence },
        ..shape
    })
}

/// With the head for masked language modelling.
pub(super) fn bert(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt(config, USUAL_KEYS, ("max_position_embeddings", 512), "intermediate_size")?;
    Ok(masked(shape, config.or("type_vocab_size", 2)?))
}

pub(super) fn distilbert(config: &Config<'_>) -> Result<Transformer, Fault> {
    let keys: [&[&str]; 3] = [&["dim"], &["n_heads"], &["n_layers"]];
    Ok(masked(gpt(config, keys, ("max_position_embeddings", 512), "hidden_dim")?, 0))
}

fn masked(shape: Transformer, token_types: u64) -> Transformer {
    Transformer {
        token_types,
        embedding_norm: true,
        final_norm: false,
        head_transform: true,
        causal: false,
        ..shape
    }
}
