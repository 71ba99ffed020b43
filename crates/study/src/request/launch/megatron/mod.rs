//! Arguments of Megatron-LM, as a list or in a shell script (docs.nvidia.com/megatron-core, user guide;
//! `megatron/training/arguments.py`); and configurations of NeMo and Megatron-Bridge: the same flags in another spelling.

mod stages;
mod write;

pub(super) use write::{refusal, write};

use super::keys::{Keys, of_yaml};
use super::{Framework, Group, Launched, shell};
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{ExpertsSection, MlaSection, Mlp, NormKind, TransformerSection};
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{Dispatcher, OverlapPreset, Recipe, Recompute, Sharding, States};

/// Flags without effect on the time of a step, and flags of launchers.
const WITHOUT_EFFECT: &str = include_str!("megatron_without_effect.txt");

/// Rows of the vocabulary are padded to a multiple of this for each tensor-parallel rank.
const PADDED: u64 = 128;

/// Names of recomputed modules of a layer, and their parts.
const MODULES: [(&str, Recompute); 6] = [
    ("core_attn", Recompute::Attention),
    ("layernorm", Recompute::Norms),
    ("mla_up_proj", Recompute::Projections),
    ("moe_act", Recompute::Activation),
    ("mlp", Recompute::Mlp),
    ("moe", Recompute::Mlp),
];

/// The vocabulary of GPT-2, if none is given.
const GPT2: u64 = 50_257;

/// Whether a text has arguments of Megatron-LM.
pub(super) fn recognises(text: &str) -> bool {
    let known = |word: &str| {
        [
            "--num-layers",
            "--tensor-model-parallel-size",
            "--micro-batch-size",
            "--pipeline-model-parallel-size",
        ]
        .iter()
        .any(|flag| word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('=')))
    };
    text.split([' ', '\t', '\n', '\r', '"', '\'', '(']).any(known)
}

pub(super) fn read(mut keys: Keys) -> Result<Launched, Fault> {
    let mut launched = Launched::read("Megatron-LM", &mut keys, Framework::Megatron)?;
    launched.plan.overlap = Some(OverlapPreset::Megatron);
    let nodes = either(&mut keys, ["--nnodes", "--nodes", "-N"])?;
    let each = either(&mut keys, ["--nproc-per-node", "--gpus-per-node", "--ntasks-per-node"])?;
    launched.per_machine = each;
    launched.workers = nodes.zip(each).map(|(nodes, each)| nodes.saturating_mul(each));
    sharding(&mut keys, &mut launched)?;
    recomputation(&mut keys, &mut launched)?;
    formats(&mut keys, &mut launched)?;
    launched.sequence = keys.number("--seq-length")?;
    model(&mut keys, &mut launched)?;
    stages::read(&mut keys, &mut launched)?;
    launched.replica_batch = launched.plan.micro_batch;
    launched.steps = keys.number("--train-iters")?;
    launched.samples = keys.number("--train-samples")?;
    keys.word("--optimizer");
    Ok(launched.without(keys, WITHOUT_EFFECT))
}

fn either(keys: &mut Keys, names: [&str; 3]) -> Result<Option<u64>, Fault> {
    let mut found = None;
    for name in names {
        // A variable of the scheduler gives no value here.
        let known = keys.word(name).filter(|value| !shell::is_unknown(value));
        if let (None, Some(value)) = (found, known) {
            keys.set(name, Value::String(value));
            found = keys.number(name)?;
        }
    }
    Ok(found)
}

fn sharding(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let distributed = keys.switch("--use-distributed-optimizer");
    let own = keys.switch("--use-megatron-fsdp") | keys.switch("--use-custom-fsdp");
    let torch = keys.switch("--use-torch-fsdp2");
    let groups = keys.number("--num-distributed-optimizer-instances")?.filter(|groups| *groups > 1);
    let strategy = keys.word("--data-parallel-sharding-strategy");
    let sharding = match (own, strategy.as_deref()) {
        (true, Some("no_shard") | None) => Sharding::None,
        (true, Some("optim")) => Sharding::Zero1,
        (true, Some("optim_grads")) => Sharding::Zero2,
        (true, Some("optim_grads_params")) if groups.is_some() => Sharding::Hsdp,
        (true, Some("optim_grads_params")) => Sharding::Zero3,
        (true, Some(other)) => {
            let remedy = "use no_shard, optim, optim_grads or optim_grads_params";
            return Err(Fault::new(format!("`--data-parallel-sharding-strategy` is {other}"), remedy));
        }
        (false, _) if torch => Sharding::Zero3,
        (false, _) if distributed => Sharding::Zero1,
        (false, _) => Sharding::None,
    };
    match (sharding, groups) {
        (Sharding::Hsdp, Some(groups)) => launched.group = Some(Group::Count(groups)),
        (_, Some(_)) => launched.unknown.push("--num-distributed-optimizer-instances".to_owned()),
        (_, None) => {}
    }
    let plan = &mut launched.plan;
    plan.sharding = Some(sharding);
    if !keys.switch("--overlap-grad-reduce") && !torch {
        plan.overlap_gradients = Some(false);
    }
    if !keys.switch("--overlap-param-gather") && !torch && sharding != Sharding::None {
        plan.overlap_weights = Some(false);
        plan.overlap_prefetch = (sharding.stage() == 3).then_some(false);
    }
    Ok(())
}

fn recomputation(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let selective = keys.switch("--recompute-activations");
    let parts = modules(keys, launched);
    let method = keys.word("--recompute-method");
    let layers = keys.number("--recompute-num-layers")?;
    // Names of earlier versions.
    let earlier = keys.switch("--checkpoint-activations");
    let method = keys.word("--activations-checkpoint-method").or(method);
    let layers = keys.number("--activations-checkpoint-num-layers")?.or(layers).unwrap_or(1);
    let granularity = keys.word("--recompute-granularity");
    let whole = earlier || (granularity.is_none() && method.is_some());
    let granularity = if whole { Some("full".to_owned()) } else { granularity };
    launched.plan.recompute = match granularity.as_deref() {
        None if selective => Some(parts),
        None => None,
        Some("selective") => Some(parts),
        Some("full") => {
            match method.as_deref() {
                Some("block") => launched.plan.recompute_layers = Some(layers),
                _ if layers > 1 => launched.unknown.push(format!("--recompute-num-layers {layers}")),
                _ => {}
            }
            Some(vec![Recompute::Layer])
        }
        Some(other) => {
            let reason = format!("`--recompute-granularity` is {other}");
            return Err(Fault::new(reason, "use full or selective"));
        }
    };
    Ok(())
}

/// The parts that `--recompute-modules` names, if the model has them: `mlp` is the MLP of layers without experts, `moe` of layers
/// with experts; norms that Transformer Engine computes in the kernel of a product are not recomputed.
fn modules(keys: &mut Keys, launched: &mut Launched) -> Vec<Recompute> {
    let (experts, latent) = (keys.has("--num-experts"), keys.has("--multi-latent-attention"));
    let given = keys.words("--recompute-modules");
    let mut names: Vec<&str> = given.iter().flat_map(|word| word.split_whitespace()).collect();
    if names.is_empty() {
        names.push("core_attn");
    }
    let mut parts = Vec::new();
    for name in names {
        let known = MODULES.iter().find(|(own, _)| *own == name);
        match known {
            None => launched.unknown.push(format!("--recompute-modules {name}")),
            Some(("mlp", _)) if experts => {}
            Some(("moe" | "moe_act", _)) if !experts => {}
            Some(("layernorm", _)) if !experts && !latent => {}
            Some(("mla_up_proj", _)) if !latent => {}
            Some((_, part)) => parts.push(*part),
        }
    }
    parts
}

fn formats(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let (half, brain) = (keys.switch("--fp16"), keys.switch("--bf16"));
    let (states, precision) = match (half, brain) {
        (true, _) => (States::MegatronFp16, Precision::Fp16),
        // Gradients are summed in 16 bits.
        (false, true) if keys.switch("--grad-reduce-in-bf16") => (States::MixedFp16, Precision::Bf16),
        (false, true) => (States::MegatronBf16, Precision::Bf16),
        (false, false) => (States::Fp32, Precision::Fp32),
    };
    launched.plan.states = Some(states);
    launched.precision = Some(precision);
    let (eight, four) = (keys.word("--fp8-format").is_some(), keys.word("--fp4-format").is_some());
    keys.word("--fp4-recipe");
    launched.plan.recipe = match (eight, four) {
        (_, true) => Some(Recipe::Nvfp4),
        (true, false) => launched.plan.recipe.or(Some(Recipe::Fp8Delayed)),
        (false, false) => None,
    };
    // Both are defaults there.
    let [hidden, attention] = ["--hidden-dropout", "--attention-dropout"].map(|flag| keys.real(flag));
    let dropout = hidden?.unwrap_or(0.1) > 0.0 || attention?.unwrap_or(0.1) > 0.0;
    launched.plan.dropout = dropout.then_some(true);
    Ok(())
}

fn model(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let layers = keys.number("--num-layers")?;
    let hidden = keys.number("--hidden-size")?;
    let heads = keys.number("--num-attention-heads")?;
    let grouped = keys.switch("--group-query-attention");
    let kv_heads = keys.number("--num-query-groups")?.filter(|_| grouped);
    let (head_width, given) = (keys.number("--kv-channels")?, keys.number("--ffn-hidden-size")?);
    let swiglu = keys.switch("--swiglu");
    let bias = !keys.switch("--disable-bias-linear");
    let qkv_bias = keys.switch("--add-qkv-bias") || bias;
    let qk_norm = keys.switch("--qk-layernorm");
    let rms = keys.word("--normalization").is_some_and(|name| name.eq_ignore_ascii_case("rmsnorm"));
    let rotary = keys.switch("--use-rotary-position-embeddings")
        || keys.word("--position-embedding-type").is_some_and(|kind| kind != "learned_absolute");
    let positions = keys.number("--max-position-embeddings")?;
    let tied = !keys.switch("--untie-embeddings-and-output-weights");
    // The tokeniser without words has one more token, for the end of a document.
    let end = u64::from(keys.word("--tokenizer-type").as_deref() == Some("NullTokenizer"));
    let vocabulary = keys.number("--vocab-size")?.map(|rows| rows.saturating_add(end));
    let padding = keys.number("--make-vocab-size-divisible-by")?.unwrap_or(PADDED);
    let experts = experts(keys)?;
    let expert_tensor = keys.number("--expert-tensor-parallel-size")?.or(launched.plan.tensor).unwrap_or(1);
    if experts.is_some() && expert_tensor > 1 {
        launched.unknown.push(format!("--expert-tensor-parallel-size {expert_tensor}"));
    }
    let among = experts.is_some() && launched.plan.expert.is_some_and(|ranks| ranks > 1);
    launched.plan.dispatcher = match launched.plan.dispatcher {
        _ if !among => None,
        // The default of a plan.
        Some(Dispatcher::Flex) => None,
        given => Some(given.unwrap_or(Dispatcher::AllGather)),
    };
    let mla = latent(keys)?;
    let (Some(layers), Some(hidden), Some(heads)) = (layers, hidden, heads) else { return Ok(()) };
    let padding = padding.saturating_mul(launched.plan.tensor.unwrap_or(1)).max(1);
    if vocabulary.is_none() {
        let what = format!("the vocabulary is that of the tokeniser: the {GPT2} tokens of GPT-2 are assumed");
        launched.notes.push(format!("{what}; `model.transformer.vocabulary` sets another"));
    }
    // Two thirds of four times the width, in multiples of 64.
    let usual = if swiglu { hidden.saturating_mul(8) / 3 / 64 * 64 } else { hidden.saturating_mul(4) };
    launched.shape = Some(TransformerSection {
        layers: Some(layers),
        hidden: Some(hidden),
        heads: Some(heads),
        kv_heads,
        head_width,
        mlp_width: Some(given.unwrap_or(usual)),
        mlp: Some(if swiglu { Mlp::Swiglu } else { Mlp::Gelu }),
        vocabulary: Some(vocabulary.unwrap_or(GPT2).div_ceil(padding).saturating_mul(padding)),
        sequence: launched.sequence,
        norm: Some(if rms { NormKind::Rms } else { NormKind::Layer }),
        bias: Some(bias),
        qkv_bias: Some(qkv_bias),
        qk_norm: Some(qk_norm && mla.is_none()),
        positions: Some(if rotary { 0 } else { positions.or(launched.sequence).unwrap_or(0) }),
        tied: Some(tied),
        experts,
        mla,
        ..TransformerSection::default()
    });
    Ok(())
}

fn experts(keys: &mut Keys) -> Result<Option<ExpertsSection>, Fault> {
    let Some(count) = keys.number("--num-experts")? else { return Ok(None) };
    let layers = keys.word("--moe-layer-freq");
    // A pattern such as ([0]*3+[1]*58): the first layers keep a dense MLP; or ([0]*1+[1]*1)*24: every second layer does.
    let repeated = layers.as_ref().is_some_and(|pattern| pattern.contains(")*"));
    let dense: Option<u64> = layers.and_then(|pattern| {
        let inner = pattern.trim_matches(['(', ')', ' ']).strip_prefix("[0]*")?.to_owned();
        inner.split('+').next()?.trim().parse().ok()
    });
    Ok(Some(ExpertsSection {
        count: Some(count),
        active: Some(keys.number("--moe-router-topk")?.unwrap_or(2)),
        width: keys.number("--moe-ffn-hidden-size")?,
        shared_width: keys.number("--moe-shared-expert-intermediate-size")?,
        dense_layers: dense.filter(|_| !repeated),
        every: dense.filter(|_| repeated).map(|dense| dense.saturating_add(1)),
        router_bias: keys.switch("--moe-router-enable-expert-bias").then_some(true),
        shared_gate: None,
    }))
}

fn latent(keys: &mut Keys) -> Result<Option<MlaSection>, Fault> {
    let on = keys.switch("--multi-latent-attention");
    // Defaults there.
    let mla = MlaSection {
        query_rank: keys.number("--q-lora-rank")?,
        key_value_rank: Some(keys.number("--kv-lora-rank")?.unwrap_or(32)),
        nope: Some(keys.number("--qk-head-dim")?.unwrap_or(128)),
        rope: Some(keys.number("--qk-pos-emb-head-dim")?.unwrap_or(64)),
        value: Some(keys.number("--v-head-dim")?.unwrap_or(128)),
    };
    Ok(on.then_some(mla))
}

/// Keys of NeMo that have another name.
const RENAMED: [(&str, &str); 14] = [
    ("num_nodes", "--nnodes"),
    ("devices", "--nproc-per-node"),
    ("gpus_per_node", "--nproc-per-node"),
    ("max_steps", "--train-iters"),
    ("encoder_seq_length", "--seq-length"),
    ("virtual_pipeline_model_parallel_size", "--num-virtual-stages-per-pipeline-rank"),
    ("num_moe_experts", "--num-experts"),
    ("activations_checkpoint_granularity", "--recompute-granularity"),
    ("fp8", "--fp8-format"),
    ("num_layers_in_first_pipeline_stage", "--decoder-first-pipeline-num-layers"),
    ("num_layers_in_last_pipeline_stage", "--decoder-last-pipeline-num-layers"),
    ("fp16_enabled", "--fp16"),
    ("megatron_amp_O2", "--bf16"),
    ("use_megatron_fsdp", "--use-megatron-fsdp"),
];

/// Keys whose absence is a flag.
const ABSENT: [(&str, &str); 3] = [
    ("bias", "--disable-bias-linear"),
    ("add_bias_linear", "--disable-bias-linear"),
    ("share_embeddings_and_output_weights", "--untie-embeddings-and-output-weights"),
];

/// Whether a text is a configuration of NeMo or Megatron-Bridge, or Megatron-LM's own in YAML.
pub(super) fn recognises_nemo(text: &str) -> bool {
    let known = |line: &str| {
        let name = line.split(':').next().unwrap_or_default().trim().trim_start_matches('-');
        line.contains(':')
            && ["tensor_model_parallel_size", "pipeline_model_parallel_size"]
                .contains(&name.replace('-', "_").as_str())
    };
    text.lines().any(known)
}

/// The keys of such a configuration as flags, whatever sections they are in.
pub(super) fn nemo_keys(text: &str) -> Result<Keys, Fault> {
    let mut flags = Keys::default();
    for (path, value) in of_yaml(text)?.all() {
        let name = path.rsplit('.').next().unwrap_or_default();
        if name.starts_with("--") {
            flags.set(name, value);
            continue;
        }
        let word = value.as_str().unwrap_or_default().to_lowercase();
        let absent = ABSENT.iter().find(|(theirs, _)| *theirs == name);
        let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == name);
        match (name, absent, renamed) {
            (_, Some((_, flag)), _) => flags.set(*flag, Value::Bool(value == Value::Bool(false))),
            (_, _, Some((_, flag))) => flags.set(*flag, value),
            ("precision", ..) => {
                let half =
                    if word.starts_with("fp16") || word.starts_with("16") { "--fp16" } else { "--bf16" };
                flags.set(half, true.into());
            }
            ("activation" | "activation_func", ..) => {
                flags.set("--swiglu", (word.contains("swiglu") || word.contains("silu")).into());
            }
            ("num_query_groups", ..) => {
                flags.set("--group-query-attention", (!value.is_null()).into());
                flags.set("--num-query-groups", value);
            }
            ("name", ..) if word.contains("distributed") => {
                flags.set("--use-distributed-optimizer", true.into())
            }
            _ => flags.set(format!("--{}", name.replace('_', "-")), value),
        }
    }
    Ok(flags)
}
