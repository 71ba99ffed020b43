//! Configurations whose layers have different mixers.

use super::{Config, llama, qwen3};
use crate::fault::Fault;
use crate::model::transformer::{Delta, Experts, Mamba, Mlp, Pattern, Transformer};
use serde_json::Value;

pub(super) fn not_modelled(what: &str) -> Fault {
    Fault::new(format!("{what} is not modelled"), "write it as `[model.transformer]`")
}

/// The pattern with these letters.
fn pattern(letters: impl Iterator<Item = Result<char, Fault>>) -> Result<Option<Pattern>, Fault> {
    Pattern::parse(&letters.collect::<Result<String, Fault>>()?).map(Some)
}

/// The words of a list, such as `layer_types`, if the configuration has it.
fn words<'a>(config: &'a Config<'_>, key: &str) -> Option<Vec<&'a str>> {
    Some(config.0.get(key)?.as_array()?.iter().filter_map(Value::as_str).collect())
}

/// Gated delta nets and, in every fourth layer, attention with a gate; experts everywhere. Its checkpoints also have a module
/// for further tokens, which the library does not train.
pub(super) fn qwen3_next(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = Transformer { head_width: config.or("head_dim", 256)?, ..qwen3(config)? };
    if config.or("decoder_sparse_step", 1)? != 1
        || config.0.get("mlp_only_layers").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
    {
        return Err(not_modelled("a mixture of dense layers and experts in Qwen3-Next"));
    }
    let every = config.or("full_attention_interval", 4)?;
    let letter = |kind: &str| match kind {
        "linear_attention" => Ok('L'),
        "full_attention" => Ok('A'),
        other => Err(not_modelled(&format!("the layer type \"{other}\""))),
    };
    let pattern = match words(config, "layer_types") {
        Some(list) => pattern(list.into_iter().map(letter))?,
        None => pattern((1..=every).map(|index| Ok(if index == every { 'A' } else { 'L' })))?,
    };
    let shared_width = config.or("shared_expert_intermediate_size", 0)?;
    Ok(Transformer {
        mlp_width: 0,
        attention_gate: true,
        pattern,
        delta: Some(Delta {
            key_heads: config.number("linear_num_key_heads")?,
            value_heads: config.number("linear_num_value_heads")?,
            key_width: config.number("linear_key_head_dim")?,
            value_width: config.number("linear_value_head_dim")?,
            convolution: config.or("linear_conv_kernel_dim", 4)?,
        }),
        experts: Some(Experts { shared_width, shared_gate: shared_width > 0, ..super::experts(config)? }),
        ..shape
    })
}

/// Layers of Mamba 2, attention, squared ReLU or experts of it alone, without positions.
pub(super) fn nemotron_h(config: &Config<'_>) -> Result<Transformer, Fault> {
    let count = config.or("n_routed_experts", 0)?;
    let letter = |kind: &str| match kind {
        "M" | "mamba" | "linear_attention" => Ok('m'),
        "*" | "attention" | "full_attention" => Ok('a'),
        "-" | "mlp" if count == 0 => Ok('f'),
        "E" | "moe" if count > 0 => Ok('f'),
        other => Err(not_modelled(&format!("the layer type \"{other}\""))),
    };
    let text = config.0.get("hybrid_override_pattern").and_then(Value::as_str);
    let pattern = match (text, words(config, "layers_block_type")) {
        (Some(text), _) => pattern(text.split("").filter(|one| !one.is_empty()).map(letter))?,
        (None, Some(list)) => pattern(list.into_iter().map(letter))?,
        (None, None) => {
            let remedy = "add it, or name another file";
            return Err(Fault::new("it has no `hybrid_override_pattern`", remedy));
        }
    };
    if config.truth("mamba_proj_bias", false) || !config.truth("use_conv_bias", true) {
        return Err(not_modelled("Mamba with biases of projections or without those of the convolution"));
    }
    let head_width = config.first(&["head_dim", "attention_head_dim"])?;
    let shape = llama(config)?;
    let experts = match count {
        0 => None,
        _ => Some(Experts {
            shared_width: config.or("moe_shared_expert_intermediate_size", 0)?,
            router_bias: true,
            ..Experts::new(
                count,
                config.number("num_experts_per_tok")?,
                config.number("moe_intermediate_size")?,
            )
        }),
    };
    Ok(Transformer {
        head_width,
        mlp: Mlp::Gelu,
        mlp_width: if count > 0 { 0 } else { shape.mlp_width },
        experts,
        pattern,
        mamba: Some(Mamba {
            heads: config.number("mamba_num_heads")?,
            head_width: config.number("mamba_head_dim")?,
            groups: config.or("n_groups", 8)?,
            state: config.or("ssm_state_size", 128)?,
            convolution: config.or("conv_kernel", 4)?,
            chunk: config.or("chunk_size", 256)?,
            step_rank: 0,
            step_norms: true,
        }),
        ..shape
    })
}

/// Mamba 1 and, in every eighth layer, attention; experts in every second one.
pub(super) fn jamba(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = llama(config)?;
    let [period, offset] = [config.or("attn_layer_period", 8)?, config.or("attn_layer_offset", 4)?];
    let every = config.or("expert_layer_period", 2)?;
    if config.or("expert_layer_offset", 1)?.saturating_add(1) != every {
        return Err(not_modelled("an `expert_layer_offset` that is not the last of its period"));
    }
    if config.truth("mamba_proj_bias", false) || !config.truth("mamba_conv_bias", true) {
        return Err(not_modelled("Mamba with biases of projections or without those of the convolution"));
    }
    let count = config.or("num_experts", 16)?;
    let inner = config.or("mamba_expand", 2)?.saturating_mul(shape.hidden);
    let step_rank = match config.0.get("mamba_dt_rank").and_then(Value::as_str) {
        Some(_) => shape.hidden.div_ceil(16),
        None => config.or("mamba_dt_rank", shape.hidden.div_ceil(16))?,
    };
    let head_width = 64;
    Ok(Transformer {
        pattern: pattern((0..period).map(|index| Ok(if index == offset { 'A' } else { 'M' })))?,
        mamba: Some(Mamba {
            heads: super::quotient(inner, head_width)?,
            head_width,
            groups: 1,
            state: config.or("mamba_d_state", 16)?,
            convolution: config.or("mamba_d_conv", 4)?,
            chunk: 256,
            step_rank,
            step_norms: true,
        }),
        experts: (count > 1).then_some(Experts {
            every,
            ..Experts::new(count, config.or("num_experts_per_tok", 2)?, shape.mlp_width)
        }),
        ..shape
    })
}

/// Layers of a mixer alone, without a normalisation of its steps.
fn only_mamba(config: &Config<'_>, mamba: Mamba, tied: bool) -> Result<Transformer, Fault> {
    let tied = config.truth("tie_word_embeddings", tied);
    let (layers, vocabulary) = (config.number("num_hidden_layers")?, config.number("vocab_size")?);
    if config.truth("use_bias", false) || !config.truth("use_conv_bias", true) {
        return Err(not_modelled("Mamba with biases of projections or without those of the convolution"));
    }
    let hidden = config.number("hidden_size")?;
    let shape = Transformer::llama(layers, hidden, [mamba.heads; 2], 0, vocabulary, 2048);
    Ok(Transformer {
        head_width: mamba.head_width,
        tied,
        pattern: Some(Pattern::parse("m")?),
        mamba: Some(mamba),
        ..shape
    })
}

pub(super) fn mamba(config: &Config<'_>) -> Result<Transformer, Fault> {
    let hidden = config.number("hidden_size")?;
    let inner = config.or("intermediate_size", config.or("expand", 2)?.saturating_mul(hidden))?;
    let mamba = Mamba {
        heads: super::quotient(inner, 64)?,
        head_width: 64,
        groups: 1,
        state: config.or("state_size", 16)?,
        convolution: config.or("conv_kernel", 4)?,
        chunk: 256,
        step_rank: config.0.get("time_step_rank").and_then(Value::as_u64).unwrap_or(hidden.div_ceil(16)),
        step_norms: false,
    };
    only_mamba(config, mamba, true)
}

pub(super) fn mamba2(config: &Config<'_>) -> Result<Transformer, Fault> {
    let mamba = Mamba {
        heads: config.number("num_heads")?,
        head_width: config.or("head_dim", 64)?,
        groups: config.or("n_groups", 8)?,
        state: config.or("state_size", 128)?,
        convolution: config.or("conv_kernel", 4)?,
        chunk: config.or("chunk_size", 256)?,
        step_rank: 0,
        step_norms: true,
    };
    only_mamba(config, mamba, false)
}
