//! `config.json` of Hugging Face transformers: the shape of a checkpoint.
//!
//! Families write the same facts under different names and leave out their usual values; [`read`] knows those
//! of the zoo and their relatives, by their `model_type` or, for diffusers, `_class_name`. Keys that do not affect sizes are ignored.
//! Of a multimodal model, the text part is read.

mod gpt;
mod hybrid;
mod signal;

use super::section::most;
use super::{Experts, Mla, Mlp, Modules, NormKind, Pattern, Transformer};
use crate::fault::Fault;
use serde_json::Value;

type Reader = fn(&Config<'_>) -> Result<Transformer, Fault>;

const FAMILIES: &[(&str, Reader)] = &[
    ("gpt2", gpt::gpt2),
    ("gpt_neox", gpt::gpt_neox),
    ("gpt_bigcode", gpt::gpt_bigcode),
    ("opt", gpt::opt),
    ("bloom", gpt::bloom),
    ("gpt_neo", gpt::gpt_neo),
    ("gptj", gpt::gptj),
    ("codegen", gpt::gptj),
    ("falcon", gpt::falcon),
    ("phi", gpt::phi),
    ("mpt", gpt::mpt),
    ("llama", llama),
    ("mistral", mistral),
    ("mixtral", mixtral),
    ("phi3", phi3),
    ("granite", llama),
    ("granitemoe", mixtral),
    ("smollm3", llama),
    ("helium", llama),
    ("internlm2", llama),
    ("baichuan", llama),
    ("arcee", arcee),
    ("nemotron", nemotron),
    ("cohere", cohere),
    ("cohere2", cohere2),
    ("exaone4", exaone4),
    ("modernbert", modernbert),
    ("ernie4_5", llama),
    ("seed_oss", llama),
    ("glm", llama),
    ("glm4", glm4),
    ("stablelm", stablelm),
    ("starcoder2", starcoder2),
    ("qwen2", qwen2),
    ("qwen2_moe", qwen2_moe),
    ("qwen2_vl", qwen2),
    ("qwen2_vl_text", qwen2),
    ("qwen2_5_vl", qwen2),
    ("qwen2_5_vl_text", qwen2),
    ("qwen3", qwen3),
    ("qwen3_moe", qwen3_moe),
    ("qwen3_vl_text", qwen3),
    ("qwen3_vl_moe_text", qwen3_moe),
    ("gemma", gemma),
    ("gemma2", gemma2),
    ("gemma3_text", gemma3),
    ("olmo2", olmo2),
    ("olmo3", olmo3),
    ("olmoe", olmoe),
    ("minimax_m2", minimax_m2),
    ("gpt_oss", gpt_oss),
    ("glm4_moe", glm4_moe),
    ("kimi_k2", deepseek_v3),
    ("llama4_text", llama4),
    ("deepseek", deepseek),
    ("deepseek_v2", deepseek),
    ("deepseek_v3", deepseek_v3),
    ("bert", gpt::bert),
    ("roberta", gpt::bert),
    ("xlm-roberta", gpt::bert),
    ("distilbert", gpt::distilbert),
    ("t5", t5),
    ("mt5", t5),
    ("qwen3_next", hybrid::qwen3_next),
    ("nemotron_h", hybrid::nemotron_h),
    ("jamba", hybrid::jamba),
    ("mamba", hybrid::mamba),
    ("falcon_mamba", hybrid::mamba),
    ("mamba2", hybrid::mamba2),
    ("vit", signal::vit),
    ("whisper", signal::whisper),
    ("DiTTransformer2DModel", signal::dit),
    ("Transformer2DModel", signal::dit),
    ("SD3Transformer2DModel", signal::sd3),
];

/// The name, if the file has one, and the checked shape of the model in a `config.json`.
pub fn read(text: &str) -> Result<(Option<String>, Transformer), Fault> {
    let value: Value = serde_json::from_str(text).map_err(|error| {
        Fault::new(format!("it is not JSON: {error}"), "name the `config.json` of a Hugging Face model")
    })?;
    let text = value.get("text_config");
    let config = Config(text.unwrap_or(&value));
    let families = || FAMILIES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    // Diffusers name a class in place of a type.
    let kind = ["model_type", "_class_name"].iter().find_map(|key| config.0.get(*key)?.as_str());
    let kind = kind.ok_or_else(|| {
        Fault::new("it has no `model_type`", "name the `config.json` of a Hugging Face model")
    })?;
    let family = FAMILIES.iter().find(|(name, _)| *name == kind).ok_or_else(|| {
        let remedy = format!("known are {}; others can be written as `[model.transformer]`", families());
        Fault::new(format!("the `model_type` \"{kind}\" is not known"), remedy)
    })?;
    let shape = (family.1)(&config)?;
    shape.check().map_err(|fault| Fault::new(format!("{}: {}", fault.key, fault.reason), fault.remedy))?;
    let name = value.get("_name_or_path").and_then(Value::as_str).filter(|name| !name.is_empty());
    let own = |name: &str| if text.is_some() { format!("{name}, text") } else { name.to_owned() };
    Ok((name.map(own), shape))
}

/// A configuration with accessors that name the missing key.
struct Config<'a>(&'a Value);

impl Config<'_> {
    fn number(&self, key: &str) -> Result<u64, Fault> {
        self.given(key)?
            .ok_or_else(|| Fault::new(format!("it has no `{key}`"), "add it, or name another file"))
    }

    /// A number that may be absent or null.
    fn given(&self, key: &str) -> Result<Option<u64>, Fault> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| {
                Fault::new(format!("`{key}` is {value}, not a whole number"), "check the file")
            }),
        }
    }

    fn first(&self, keys: &[&str]) -> Result<u64, Fault> {
        let Some((last, others)) = keys.split_last() else { return Ok(0) };
        for key in others {
            if let Some(number) = self.given(key)? {
                return Ok(number);
            }
        }
        self.number(last)
    }

    fn or(&self, key: &str, usual: u64) -> Result<u64, Fault> {
        Ok(self.given(key)?.unwrap_or(usual))
    }

    fn truth(&self, key: &str, usual: bool) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or(usual)
    }

    fn head_width(&self, hidden: u64, heads: u64) -> Result<u64, Fault> {
        match self.given("head_dim")? {
            Some(width) => Ok(width),
            None => quotient(hidden, heads),
        }
    }
}

fn quotient(hidden: u64, heads: u64) -> Result<u64, Fault> {
    match hidden.checked_rem(heads) {
        Some(0) => Ok(hidden / heads),
        _ => Err(Fault::new(format!("{heads} heads do not divide the width {hidden}"), "check the file")),
    }
}

/// LayerNorm and two matrices in a layer of Llama's kind, biases everywhere.
fn starcoder2(config: &Config<'_>) -> Result<Transformer, Fault> {
    let bias = config.truth("use_bias", true);
    Ok(Transformer {
        mlp: Mlp::Gelu,
        norm: NormKind::Layer,
        bias,
        qkv_bias: bias,
        tied: config.truth("tie_word_embeddings", true),
        ..mistral(config)?
    })
}

/// Squared ReLU in place of a gate.
fn arcee(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { mlp: Mlp::Gelu, ..llama(config)? })
}

fn nemotron(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { norm: NormKind::Layer, ..arcee(config)? })
}

/// Norms of queries and keys have weights of their own for each head.
fn cohere(config: &Config<'_>) -> Result<Transformer, Fault> {
    let (qk_norm, tied) = (config.truth("use_qk_norm", false), config.truth("tie_word_embeddings", true));
    let (modules, norm) = (Modules::Cohere, NormKind::LayerNoBias);
    Ok(Transformer { modules, norm, qk_norm, qk_norm_joint: qk_norm, tied, ..llama(config)? })
}

fn cohere2(config: &Config<'_>) -> Result<Transformer, Fault> {
    let (window, global_every) = (config.given("sliding_window")?, config.or("sliding_window_pattern", 4)?);
    Ok(Transformer { window, global_every, ..cohere(config)? })
}

/// Normalisation follows each half; without a pattern every layer sees all.
fn exaone4(config: &Config<'_>) -> Result<Transformer, Fault> {
    let pattern = config.0.get("sliding_window_pattern");
    let global_every = pattern.and_then(|own| Some(own.as_u64().unwrap_or(own.as_str()?.len() as u64)));
    let window = config.given("sliding_window")?.filter(|_| global_every.is_some());
    Ok(Transformer { qk_norm: true, window, global_every: global_every.unwrap_or(0), ..llama(config)? })
}

/// With the head for masked language modelling; the norm of the embedding is also that of the first layer's attention.
fn modernbert(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer {
        norm: NormKind::LayerNoBias,
        window: config.given("local_attention")?,
        global_every: config.or("global_attn_every_n_layers", 3)?,
        causal: false,
        head_transform: true,
        tied: true,
        ..llama(config)?
    })
}

fn stablelm(config: &Config<'_>) -> Result<Transformer, Fault> {
    let qkv_bias = config.truth("use_qkv_bias", false);
    Ok(Transformer { norm: NormKind::Layer, qkv_bias, ..llama(config)? })
}

fn gemma(config: &Config<'_>) -> Result<Transformer, Fault> {
    let (head_width, tied) = (config.or("head_dim", 256)?, config.truth("tie_word_embeddings", true));
    Ok(Transformer { head_width, tied, ..llama(config)? })
}

/// An encoder and a decoder; pre-training makes 114 tokens of target from 512 of input (Raffel 2020, section 3.1.4).
fn t5(config: &Config<'_>) -> Result<Transformer, Fault> {
    let (encoder, sequence) = (config.number("num_layers")?, config.or("n_positions", 512)?);
    let decoder = config.or("num_decoder_layers", encoder)?;
    let layers = usize::try_from(encoder.saturating_add(decoder)).unwrap_or(usize::MAX);
    if layers > most::LAYERS as usize {
        return Err(Fault::new(format!("it has {layers} layers"), "check the file"));
    }
    let letters = "E".repeat(encoder as usize) + &"aC".repeat(decoder as usize);
    let heads = config.number("num_heads")?;
    let gated =
        config.0.get("feed_forward_proj").and_then(Value::as_str).is_some_and(|own| own.starts_with("gated"));
    let shape = Transformer::llama(
        encoder + 2 * decoder,
        config.number("d_model")?,
        [heads; 2],
        config.number("d_ff")?,
        config.number("vocab_size")?,
        sequence,
    );
    Ok(Transformer {
        head_width: config.number("d_kv")?,
        mlp: if gated { Mlp::Swiglu } else { Mlp::Gelu },
        modules: Modules::T5,
        target: (sequence.saturating_mul(114)).div_ceil(512),
        relative_positions: config.or("relative_attention_num_buckets", 32)?,
        tied: config.truth("tie_word_embeddings", true),
        pattern: Some(Pattern::parse(&letters)?),
        ..shape
    })
}

fn llama(config: &Config<'_>) -> Result<Transformer, Fault> {
    let (hidden, heads) = (config.number("hidden_size")?, config.number("num_attention_heads")?);
    let shape = Transformer {
        hidden,
        head_width: config.head_width(hidden, heads)?,
        ..Transformer::llama(
            config.number("num_hidden_layers")?,
            0,
            [heads, config.or("num_key_value_heads", heads)?],
            config.number("intermediate_size")?,
            config.number("vocab_size")?,
            config.or("max_position_embeddings", 4096)?,
        )
    };
    Ok(Transformer {
        bias: config.truth("mlp_bias", false),
        qkv_bias: config.truth("attention_bias", false),
        tied: config.truth("tie_word_embeddings", false),
        ..shape
    })
}

fn mistral(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { window: config.given("sliding_window")?, ..llama(config)? })
}

fn phi3(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { modules: Modules::Phi3, ..mistral(config)? })
}

fn mixtral(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = mistral(config)?;
    let (count, active) = (config.number("num_local_experts")?, config.number("num_experts_per_tok")?);
    let experts = Experts::new(count, active, shape.mlp_width);
    Ok(Transformer { experts: Some(experts), ..shape })
}

fn qwen2(config: &Config<'_>) -> Result<Transformer, Fault> {
    let window = match config.truth("use_sliding_window", false) {
        true => config.given("sliding_window")?,
        false => None,
    };
    Ok(Transformer { qkv_bias: true, window, ..llama(config)? })
}

/// Shared experts have a gate.
fn qwen2_moe(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shared_width = config.or("shared_expert_intermediate_size", 0)?;
    let experts = Experts { shared_width, shared_gate: true, ..experts(config)? };
    Ok(Transformer { experts: Some(experts), ..qwen2(config)? })
}

fn qwen3(config: &Config<'_>) -> Result<Transformer, Fault> {
    let head_width = config.or("head_dim", 128)?;
    Ok(Transformer { qk_norm: true, head_width, ..llama(config)? })
}

/// Normalisation follows each half; queries and keys are normalised over all heads.
fn olmo2(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { qk_norm: true, qk_norm_joint: true, ..llama(config)? })
}

/// Every layer has experts.
fn olmoe(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = llama(config)?;
    let count = config.first(&["num_local_experts", "num_experts"])?;
    let experts = Experts::new(count, config.number("num_experts_per_tok")?, shape.mlp_width);
    Ok(Transformer { qk_norm: true, qk_norm_joint: true, experts: Some(experts), ..shape })
}

/// Three layers with a window, one without.
fn olmo3(config: &Config<'_>) -> Result<Transformer, Fault> {
    let window = config.given("sliding_window")?;
    Ok(Transformer { window, window_every: 1, global_every: 4, ..olmo2(config)? })
}

/// Without the modules of further tokens, which its checkpoint does not have.
fn minimax_m2(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = mixtral(config)?;
    let router_bias = config.truth("use_routing_bias", false);
    let experts = shape.experts.map(|experts| Experts { router_bias, ..experts });
    let qk_norm = config.truth("use_qk_norm", false);
    let qk_norm_joint = config.0.get("qk_norm_type").and_then(Value::as_str) == Some("per_layer");
    Ok(Transformer { mlp_width: 0, qk_norm, qk_norm_joint, experts, ..shape })
}

fn qwen3_moe(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { experts: Some(experts(config)?), ..qwen3(config)? })
}

/// Experts of Qwen's kind; version 5 of transformers writes their number under Mixtral's name.
fn experts(config: &Config<'_>) -> Result<Experts, Fault> {
    let count = config.first(&["num_local_experts", "num_experts"])?;
    Ok(Experts::new(count, config.number("num_experts_per_tok")?, config.number("moe_intermediate_size")?))
}

fn glm4(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { sandwich: true, ..llama(config)? })
}

fn gemma2(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer {
        head_width: config.or("head_dim", 256)?,
        sandwich: true,
        tied: config.truth("tie_word_embeddings", true),
        window: Some(config.or("sliding_window", 4096)?),
        window_every: 2,
        ..llama(config)?
    })
}

/// Five layers with a window, one without; queries and keys are normalised. Multimodal models leave out default values.
fn gemma3(config: &Config<'_>) -> Result<Transformer, Fault> {
    let mut whole = config.0.clone();
    for (key, usual) in GEMMA3 {
        let key = key.to_owned();
        whole.as_object_mut().map(|whole| whole.entry(key).or_insert_with(|| usual.into()));
    }
    let global_every = config.or("sliding_window_pattern", 6)?;
    Ok(Transformer { qk_norm: true, window_every: 1, global_every, ..gemma2(&Config(&whole))? })
}

/// Defaults of a configuration of Gemma 3.
const GEMMA3: [(&str, u64); 4] = [
    ("num_attention_heads", 8),
    ("num_key_value_heads", 4),
    ("vocab_size", 262_208),
    ("max_position_embeddings", 1 << 17),
];

/// Biases of experts are left out.
fn gpt_oss(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = mixtral(config)?;
    Ok(Transformer { mlp_width: 0, qkv_bias: true, window_every: 2, ..shape })
}

fn glm4_moe(config: &Config<'_>) -> Result<Transformer, Fault> {
    Ok(Transformer { qk_norm: config.truth("use_qk_norm", false), ..deepseek_v3(config)? })
}

/// The text part: experts in every n-th layer, each with a shared one of its width.
fn llama4(config: &Config<'_>) -> Result<Transformer, Fault> {
    let dense = config.or("intermediate_size_mlp", 0)?;
    let shape = llama(config)?;
    let width = shape.mlp_width;
    let experts = Experts {
        shared_width: width,
        every: config.or("interleave_moe_layer_step", 1)?,
        ..Experts::new(config.number("num_local_experts")?, config.or("num_experts_per_tok", 1)?, width)
    };
    let mlp_width = if experts.every > 1 { dense } else { 0 };
    Ok(Transformer { mlp_width, experts: Some(experts), ..shape })
}

/// DeepSeekMoE and V2; the latter has latent attention.
fn deepseek(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = llama(config)?;
    let mla = match config.given("kv_lora_rank")? {
        None => None,
        Some(key_value_rank) => Some(Mla {
            query_rank: config.or("q_lora_rank", 0)?,
            key_value_rank,
            nope: config.number("qk_nope_head_dim")?,
            rope: config.number("qk_rope_head_dim")?,
            value: config.number("v_head_dim")?,
        }),
    };
    let width = config.number("moe_intermediate_size")?;
    let experts = Experts {
        count: config.number("n_routed_experts")?,
        active: config.number("num_experts_per_tok")?,
        width,
        shared_width: width.saturating_mul(config.or("n_shared_experts", 0)?),
        dense_layers: config.or("first_k_dense_replace", 0)?,
        every: 1,
        router_bias: false,
        shared_gate: false,
    };
    Ok(Transformer { experts: Some(experts), mla, ..shape })
}

/// The router has a value for each expert that balances the load.
fn deepseek_v3(config: &Config<'_>) -> Result<Transformer, Fault> {
    let shape = deepseek(config)?;
    let experts = shape.experts.map(|experts| Experts { router_bias: true, ..experts });
    Ok(Transformer { experts, ..shape })
}
