//! GPT-2 and models with its layers: decoders by OpenAI, EleutherAI, BigCode, Meta, BigScience, MosaicML, TII and Microsoft, and
//! BERT's encoders.

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

/// The window is in every second layer; queries, keys and values have no biases.
pub(super) fn gpt_neo(config: &Config<'_>) -> Result<Transformer, Fault> {
    let keys: [&[&str]; 3] = [&["hidden_size"], &["num_heads"], &["num_layers"]];
    let shape = gpt(config, keys, ("max_position_embeddings", 2048), "intermediate_size")?;
    let tied = config.truth("tie_word_embeddings", true);
    Ok(Transformer { qkv_bias: false, tied, window: config.given("window_size")?, window_every: 2, ..shape })
}

pub(super) fn gptj(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { modules: Modules::Gptj, positions: 0, qkv_bias: false, tied: false, ..gpt2(config)? })
}

pub(super) fn phi(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt(config, USUAL_KEYS, ("max_position_embeddings", 2048), "intermediate_size")?;
    if config.or("num_key_value_heads", shape.heads)? != shape.heads || config.truth("qk_layernorm", false) {
        return Err(super::hybrid::not_modelled("Phi with grouped queries or norms of queries and keys"));
    }
    Ok(Transformer { modules: Modules::Phi, positions: 0, tied: false, ..shape })
}

/// One normalisation for both halves, or in the larger models one for each.
pub(super) fn falcon(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = gpt(config, USUAL_KEYS, ("max_position_embeddings", 2048), "ffn_hidden_size")?;
    let grouped = config.truth("new_decoder_architecture", false);
    let beside = grouped || config.truth("parallel_attn", true);
    let kv_heads = match (grouped, config.truth("multi_query", true)) {
        (true, _) => config.or("num_kv_heads", shape.heads)?,
        (false, true) => 1,
        (false, false) => shape.heads,
    };
    let one = if grouped { config.or("num_ln_in_parallel_attn", 2)? == 1 } else { beside };
    let bias = config.truth("bias", false);
    Ok(Transformer {
        modules: if one {
            Modules::Falcon
        } else if beside {
            Modules::Neox
        } else {
            Modules::Plain
        },
        kv_heads,
        bias,
        qkv_bias: bias,
        positions: 0,
        tied: config.truth("tie_word_embeddings", true),
        ..shape
    })
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
