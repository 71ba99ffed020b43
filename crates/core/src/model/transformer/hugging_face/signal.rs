//! Configurations of models over patches of images and frames of sound, those of diffusers included.

use super::hybrid::not_modelled;
use super::{Config, quotient};
use crate::fault::Fault;
use crate::model::transformer::section::most;
use crate::model::transformer::{Condition, Modules, NormKind, Pattern, Signal, Transformer};
use serde_json::Value;

/// Labels of ImageNet.
const LABELS: u64 = 1000;

/// Tokens of a text beside an image: 77 of CLIP and 77 of T5 (Esser 2024, section 4).
const TEXT: u64 = 154;

const PATCHES: Signal = Signal { patch: 0, frequencies: 0, class_tokens: 0, outputs: 0 };

/// Patches of an image or of its latents, and numbers in each: `channels` for every point.
fn patches(config: &Config<'_>, size: &str, channels: u64) -> Result<(u64, u64), Fault> {
    let (size, patch) = (config.number(size)?, config.number("patch_size")?);
    let side = size.checked_div(patch).ok_or_else(|| Fault::new("`patch_size` is 0", "check the file"))?;
    Ok((side.saturating_mul(side), channels.saturating_mul(patch).saturating_mul(patch)))
}

/// With a class token and a head for images' labels.
pub(super) fn vit(config: &Config<'_>) -> Result<Transformer, Fault> {
    let (patches, patch) = patches(config, "image_size", config.or("num_channels", 3)?)?;
    let labels = config.0.get("id2label").and_then(Value::as_object).map_or(LABELS, |own| own.len() as u64);
    let (hidden, heads) = (config.number("hidden_size")?, config.number("num_attention_heads")?);
    let shape = Transformer::gpt(
        config.number("num_hidden_layers")?,
        hidden,
        heads,
        labels,
        patches.saturating_add(1),
    );
    Ok(Transformer {
        head_width: quotient(hidden, heads)?,
        mlp_width: config.number("intermediate_size")?,
        qkv_bias: config.truth("qkv_bias", true),
        causal: false,
        tied: false,
        signal: Some(Signal { patch, class_tokens: 1, outputs: 1, ..PATCHES }),
        ..shape
    })
}

/// An encoder over frames of a spectrogram, and a decoder.
pub(super) fn whisper(config: &Config<'_>) -> Result<Transformer, Fault> {
    let [encoder, decoder] = ["encoder_layers", "decoder_layers"].map(|key| config.number(key));
    let (encoder, decoder) = (encoder?, decoder?);
    if encoder.saturating_add(decoder) > most::LAYERS {
        return Err(Fault::new(format!("it has {encoder} and {decoder} layers"), "check the file"));
    }
    let letters = "E".repeat(encoder as usize) + &"aC".repeat(decoder as usize);
    let (hidden, heads) = (config.number("d_model")?, config.number("encoder_attention_heads")?);
    let (vocabulary, target) = (config.number("vocab_size")?, config.or("max_target_positions", 448)?);
    let sequence = config.or("max_source_positions", 1500)?;
    let frequencies = config.or("num_mel_bins", 80)?;
    Ok(Transformer {
        head_width: quotient(hidden, heads)?,
        mlp_width: config.number("encoder_ffn_dim")?,
        modules: Modules::Whisper,
        target,
        positions: target,
        pattern: Some(Pattern::parse(&letters)?),
        signal: Some(Signal { frequencies, ..PATCHES }),
        ..Transformer::gpt(encoder + 2 * decoder, hidden, heads, vocabulary, sequence)
    })
}

/// The common part of diffusion transformers of diffusers.
fn diffusion(config: &Config<'_>) -> Result<Transformer, Fault> {
    let channels = config.number("in_channels")?;
    let (patches, patch) = patches(config, "sample_size", channels)?;
    let (heads, head_width) = (config.number("num_attention_heads")?, config.number("attention_head_dim")?);
    let outputs = config.or("out_channels", channels)?.saturating_mul(patch / channels.max(1));
    let hidden = heads.saturating_mul(head_width);
    Ok(Transformer {
        head_width,
        mlp_width: hidden.saturating_mul(4),
        norm: NormKind::LayerPlain,
        positions: 0,
        causal: false,
        tied: false,
        signal: Some(Signal { patch, ..PATCHES }),
        ..Transformer::gpt(config.number("num_layers")?, hidden, heads, outputs, patches)
    })
}

/// Diffusers repeat the matrices of time step and class in every layer, with equal values; the paper has them once.
pub(super) fn dit(config: &Config<'_>) -> Result<Transformer, Fault> {
    let classes = config.number("num_embeds_ada_norm")?.saturating_add(1);
    let condition = Some(Condition { classes, pooled: 0, text: 0, text_tokens: 0 });
    Ok(Transformer { condition, ..diffusion(config)? })
}

pub(super) fn sd3(config: &Config<'_>) -> Result<Transformer, Fault> {
    if config.0.get("dual_attention_layers").and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
        return Err(not_modelled("a second attention in layers of Stable Diffusion 3"));
    }
    let shape = diffusion(config)?;
    if shape.layers > most::LAYERS {
        return Err(Fault::new(format!("it has {} layers", shape.layers), "check the file"));
    }
    let letters = "J".repeat(shape.layers.saturating_sub(1) as usize) + "j";
    let (pooled, text) = (config.number("pooled_projection_dim")?, config.number("joint_attention_dim")?);
    Ok(Transformer {
        qk_norm: config.0.get("qk_norm").is_some_and(Value::is_string),
        sequence: shape.sequence.saturating_add(TEXT),
        pattern: Some(Pattern::parse(&letters)?),
        condition: Some(Condition { classes: 0, pooled, text, text_tokens: TEXT }),
        ..shape
    })
}
