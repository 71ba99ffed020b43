//! Recipes of fine-tuning: Axolotl, LLaMA-Factory, torchtune and TRL (YAML), and PEFT's `adapter_config.json`. They name a model of
//! the Hugging Face hub, adapters, and the batch of a device; all run under PyTorch with replicas, unless workers are sharded.

mod torchtune;
mod write;

pub(super) use write::{adopted, refusal, settings};

use super::accelerate::reduce_bits;
use super::keys::Keys;
use super::{Framework, Group, Launched};
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{AdaptersSection, BaseFormat, Packing};
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{Implementation, Loss, OverlapPreset, Recompute, Sharding, States};

/// Names of matrices in models of the hub, and their meaning.
const TARGETS: [(&str, &[&str]); 15] = [
    ("q_proj", &["q"]),
    ("k_proj", &["k"]),
    ("v_proj", &["v"]),
    ("o_proj", &["o"]),
    ("output_proj", &["o"]),
    ("gate_proj", &["gate"]),
    ("up_proj", &["up"]),
    ("down_proj", &["down"]),
    ("qkv_proj", &["q", "k", "v"]),
    ("query_key_value", &["q", "k", "v"]),
    ("c_attn", &["q", "k", "v"]),
    ("gate_up_proj", &["gate", "up"]),
    ("c_fc", &["up"]),
    ("fc1", &["up"]),
    ("fc2", &["down"]),
];

/// Words for all matrices.
const ALL: [&str; 3] = ["all", "all-linear", "linear"];

/// Ranks of GaLore unless a file says another: in Hugging Face's trainer, and in LLaMA-Factory.
const TRAINER_RANK: u64 = 128;
const FACTORY_RANK: u64 = 16;

/// Prefixes of keys without effect on the time of a step.
const WITHOUT_EFFECT: &str = include_str!("without_effect.txt");

/// The framework whose recipe a text is, if it is one.
pub(super) fn recognises(text: &str) -> Option<Framework> {
    let has = |key: &str| text.lines().any(|line| line.trim_start().starts_with(key));
    if text.contains("_component_: torchtune") {
        return Some(Framework::Torchtune);
    }
    if has("base_model:") && (has("micro_batch_size:") || has("sequence_len:") || has("adapter:")) {
        return Some(Framework::Axolotl);
    }
    if has("model_name_or_path:") {
        if has("finetuning_type:") {
            return Some(Framework::LlamaFactory);
        }
        let trained = ["per_device_train_batch_size:", "use_peft:", "lora_r:", "dataset_name:"];
        return trained.into_iter().any(has).then_some(Framework::Trl);
    }
    None
}

/// Whether a tree is the configuration of adapters by PEFT.
pub(super) fn is_adapters(tree: &Value) -> bool {
    tree.get("peft_type").is_some()
}

/// Content of a recipe.
pub(super) fn read(framework: Framework, mut keys: Keys) -> Result<Launched, Fault> {
    let mut launched = match framework {
        Framework::Axolotl => axolotl(&mut keys)?,
        Framework::LlamaFactory => llama_factory(&mut keys)?,
        Framework::Torchtune => torchtune::read(&mut keys)?,
        _ => trl(&mut keys)?,
    };
    launched.recipe = Some(framework);
    if framework != Framework::Torchtune {
        sharded(&mut keys, &mut launched)?;
    }
    let [steps, max_steps] = ["max_steps_per_epoch", "max_steps"].map(|key| keys.number(key));
    launched.steps = max_steps?.or(steps?);
    for key in ["num_epochs", "num_train_epochs", "epochs"] {
        launched.epochs = keys.real(key)?.or(launched.epochs);
    }
    kernels(&mut keys, &mut launched)?;
    Ok(launched.without(keys, WITHOUT_EFFECT))
}

/// Adapters alone: the model, and one sequence of a micro-batch on every worker.
pub(super) fn adapters(mut keys: Keys) -> Result<Launched, Fault> {
    let kind = keys.word("peft_type").unwrap_or_default();
    if kind != "LORA" {
        return Err(Fault::new(format!("`peft_type` is {kind}"), "use LORA"));
    }
    let mut launched = usual("PEFT");
    launched.named_model(keys.word("base_model_name_or_path"));
    let rank = keys.number("r")?.unwrap_or(8);
    launched.adapts(&mut keys, rank, None, ["target_modules", "modules_to_save"])?;
    launched.replica_batch = Some(1);
    let changed = ["layers_to_transform", "rank_pattern", "exclude_modules", "lora_bias"];
    let differs = |key: &str| changed.iter().any(|own| key.split('.').next() == Some(own));
    let said = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    launched
        .unknown
        .extend(keys.all().filter(|(key, value)| differs(key) && said(value)).map(|(key, _)| key));
    Ok(launched)
}

fn usual(framework: &'static str) -> Launched {
    let mut launched = Launched { framework, workers: Some(1), ..Launched::default() };
    launched.plan.overlap = Some(OverlapPreset::Fsdp2);
    launched.plan.implementation = Some(Implementation::HuggingFace);
    launched.plan.states = Some(States::Fp32);
    launched.precision = Some(Precision::AmpBf16);
    launched
}

impl Launched {
    /// The model of a name of the hub, from the zoo if it has it.
    fn named_model(&mut self, name: Option<String>) {
        let Some(name) = name else { return };
        self.zoo = zoo::find(&name).filter(|model| model.shape().is_some()).map(|model| model.name.clone());
        self.named = Some(name);
    }

    /// The format of the base where the name of the model says it: `unsloth/llama-3-8b-bnb-4bit`.
    fn named_base(&self) -> Option<BaseFormat> {
        zoo::stored_format(self.named.as_deref()?)
    }

    /// Adapters in PEFT's notation; trainers have other names for the adapted matrices and for the modules that are trained in
    /// full.
    fn adapts(
        &mut self,
        keys: &mut Keys,
        rank: u64,
        base: Option<BaseFormat>,
        [targets, trained]: [&str; 2],
    ) -> Result<(), Fault> {
        self.adapters = Some(AdaptersSection {
            rank: Some(rank),
            targets: named_targets(&keys.words(targets), &mut self.unknown),
            dropout: keys.real("lora_dropout")?.map(|share| share > 0.0),
            dora: keys.truth("use_dora")?,
            base: base.or(self.named_base()),
            ..AdaptersSection::default()
        });
        self.trained(keys.words(trained));
        Ok(())
    }

    /// Modules that are trained in full beside adapters.
    fn trained(&mut self, modules: Vec<String>) {
        for module in modules {
            match (self.adapters.as_mut(), module.rsplit('.').next()) {
                (Some(adapters), Some("embed_tokens")) => adapters.trained_embedding = Some(true),
                (Some(adapters), Some("lm_head")) => adapters.trained_output = Some(true),
                _ => self.unknown.push(format!("trained module {module}")),
            }
        }
    }

    /// The batch of a device, or its trainer's default.
    fn batch(&mut self, keys: &mut Keys, size: &str, usual: u64) -> Result<(), Fault> {
        let micro_batch = keys.number(size)?.unwrap_or(usual);
        let accumulated = keys.number("gradient_accumulation_steps")?.unwrap_or(1);
        self.plan.micro_batch = Some(micro_batch);
        self.replica_batch = Some(micro_batch.saturating_mul(accumulated));
        Ok(())
    }

    /// How documents share a sequence: padded unless they are packed, or grouped by their lengths.
    fn packs(&mut self, keys: &mut Keys, packed: Option<Packing>) -> Result<(), Fault> {
        let grouped = keys.truth("group_by_length")? == Some(true);
        self.packing = Some(packed.unwrap_or(if grouped { Packing::Bucketed } else { Packing::Padded }));
        Ok(())
    }

    fn recompute(&mut self, on: Option<bool>) {
        if on == Some(true) {
            self.plan.recompute = Some(vec![Recompute::Layer]);
        }
    }

    /// Number formats of the optimiser by its name, and the rank of its moments.
    fn optimiser(&mut self, keys: &mut Keys, key: &str) -> Result<(), Fault> {
        let name = keys.word(key).unwrap_or_default().to_lowercase();
        let arguments = keys.words("optim_args");
        let given = arguments.iter().find_map(|own| own.strip_prefix("rank=")?.trim().parse().ok());
        let given = given.or(keys.number("optim_args.rank")?);
        let factory = keys.number("galore_rank")?.unwrap_or(FACTORY_RANK);
        if keys.truth("use_galore")? == Some(true) {
            self.plan.optimiser_rank = Some(factory);
        } else if name.starts_with("galore") {
            self.plan.optimiser_rank = Some(given.unwrap_or(TRAINER_RANK));
        }
        if self.plan.optimiser_rank.is_some() {
            self.notes.push("GaLore is taken to project all matrices of layers".to_owned());
        }
        if name.contains("8bit") {
            self.plan.states = Some(States::AdamW8Bit);
        } else if name.contains("adafactor") {
            self.plan.states = Some(States::Adafactor);
        }
        Ok(())
    }
}

fn named_targets(words: &[String], unknown: &mut Vec<String>) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for word in words.iter().filter(|word| !word.is_empty()) {
        let own = word.rsplit('.').next().unwrap_or(word);
        if ALL.contains(&own) {
            return Some(vec!["all".to_owned()]);
        }
        match TARGETS.iter().find(|(name, _)| *name == own) {
            Some((_, targets)) => all.extend(targets.iter().map(|target| (*target).to_owned())),
            None => unknown.push(format!("target {word}")),
        }
    }
    (!all.is_empty()).then_some(all)
}

fn base(four: bool, eight: bool) -> Option<BaseFormat> {
    match (four, eight) {
        (true, _) => Some(BaseFormat::Nf4),
        (false, true) => Some(BaseFormat::Int8),
        (false, false) => None,
    }
}

fn axolotl(keys: &mut Keys) -> Result<Launched, Fault> {
    let mut launched = usual("Axolotl");
    launched.named_model(keys.word("base_model"));
    launched.sequence = keys.number("sequence_len")?;
    launched.batch(keys, "micro_batch_size", 1)?;
    launched.recompute(keys.truth("gradient_checkpointing")?);
    launched.optimiser(keys, "optimizer")?;
    let packed = keys.truth("sample_packing")? == Some(true);
    launched.packs(keys, packed.then_some(Packing::Within))?;
    let kind = keys.word("adapter");
    let [four, eight, linear, dora] = ["load_in_4bit", "load_in_8bit", "lora_target_linear", "peft_use_dora"]
        .map(|key| keys.truth(key))
        .map(|on| on.map(|on| on.unwrap_or(false)));
    let targets = keys.words("lora_target_modules");
    let (rank, dropout) = (keys.number("lora_r")?, keys.real("lora_dropout")?);
    if let Some(kind) = kind {
        launched.adapters = Some(AdaptersSection {
            rank: Some(rank.unwrap_or(8)),
            targets: match linear? {
                true => Some(vec!["all".to_owned()]),
                false => named_targets(&targets, &mut launched.unknown),
            },
            dropout: dropout.map(|share| share > 0.0),
            dora: Some(dora?),
            base: base(four? || kind == "qlora", eight?).or(launched.named_base()),
            ..AdaptersSection::default()
        });
        launched.trained(keys.words("lora_modules_to_save"));
    }
    Ok(launched)
}

fn llama_factory(keys: &mut Keys) -> Result<Launched, Fault> {
    let mut launched = usual("LLaMA-Factory");
    launched.named_model(keys.word("model_name_or_path"));
    launched.sequence = Some(keys.number("cutoff_len")?.unwrap_or(2048));
    launched.batch(keys, "per_device_train_batch_size", 8)?;
    launched.recompute(Some(!keys.truth("disable_gradient_checkpointing")?.unwrap_or(false)));
    launched.optimiser(keys, "optim")?;
    launched.samples = keys.number("max_samples")?;
    let [packed, apart] = [keys.truth("packing")?, keys.truth("neat_packing")?].map(|on| on == Some(true));
    let packed = packed.then_some(Packing::Across);
    launched.packs(keys, if apart { Some(Packing::Within) } else { packed })?;
    let bits = keys.number("quantization_bit")?;
    if keys.word("finetuning_type").as_deref() == Some("lora") {
        let (rank, base) = (keys.number("lora_rank")?.unwrap_or(8), base(bits == Some(4), bits == Some(8)));
        launched.adapts(keys, rank, base, ["lora_target", "additional_target"])?;
    }
    Ok(launched)
}

fn trl(keys: &mut Keys) -> Result<Launched, Fault> {
    let mut launched = usual("TRL");
    launched.named_model(keys.word("model_name_or_path"));
    launched.sequence = keys.number("max_length")?.or(keys.number("max_seq_length")?).or(Some(1024));
    launched.batch(keys, "per_device_train_batch_size", 8)?;
    // Its trainers recompute layers unless they are told not to.
    launched.recompute(Some(keys.truth("gradient_checkpointing")?.unwrap_or(true)));
    launched.optimiser(keys, "optim")?;
    let packed = keys.truth("packing")? == Some(true);
    launched.packs(keys, packed.then_some(Packing::Within))?;
    let [four, eight] = [keys.truth("load_in_4bit")?, keys.truth("load_in_8bit")?].map(|on| on == Some(true));
    let rank = keys.number("lora_r")?;
    if keys.truth("use_peft")?.unwrap_or(rank.is_some()) {
        let named = ["lora_target_modules", "lora_modules_to_save"];
        launched.adapts(keys, rank.unwrap_or(16), base(four, eight), named)?;
    }
    Ok(launched)
}

/// Sharded replicas, if a file for DeepSpeed is named or FSDP is requested.
fn sharded(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let deepspeed = keys.word("deepspeed").or(keys.word("accelerate_config")).unwrap_or_default();
    let asked = keys.words("fsdp").join(" ");
    let option = |keys: &mut Keys, name: &str| {
        let [own, other] =
            ["fsdp_config.fsdp_", "fsdp_config."].map(|path| keys.word(&format!("{path}{name}")));
        own.or(other).map(|word| word.to_lowercase())
    };
    let strategy = option(keys, "sharding_strategy").unwrap_or_else(|| asked.to_lowercase());
    let kept = option(keys, "reshard_after_forward").as_deref() == Some("false");
    let version = keys.word("fsdp_version").or(option(keys, "version"));
    let fsdp = !strategy.is_empty() || version.is_some() || deepspeed.contains("fsdp");
    if option(keys, "activation_checkpointing").as_deref() == Some("true") {
        launched.recompute(Some(true));
    }
    if option(keys, "offload_params").as_deref() == Some("true") || strategy.contains("offload") {
        launched.unknown.push("fsdp_config.fsdp_offload_params".to_owned());
    }
    keys.forget("fsdp_config. fsdp_final");
    let hybrid = strategy.contains("hybrid_shard");
    let partly = kept || strategy.contains("shard_grad_op");
    launched.plan.sharding = match deepspeed.to_lowercase() {
        _ if hybrid => Some(Sharding::Hsdp),
        _ if fsdp && partly => Some(Sharding::Keep),
        name if fsdp || name.contains("zero3") || name.contains("z3") => Some(Sharding::Zero3),
        name if name.contains("zero1") || name.contains("z1") => Some(Sharding::Zero1),
        name if name.contains("z0") || name.contains("gpu") || name.is_empty() => None,
        _ => Some(Sharding::Zero2),
    };
    launched.group = hybrid.then_some(Group::Machine);
    launched.plan.reduce_bits = launched.precision.filter(|_| fsdp).and_then(reduce_bits);
    if !fsdp && launched.plan.sharding.is_some() {
        launched.plan.overlap = Some(OverlapPreset::Deepspeed);
    }
    Ok(())
}

/// Kernels that replace those of the library: Liger's, and Unsloth's, which fuse the same operations. The loss of both, and cut
/// cross-entropy, is computed with the output layer, chunk by chunk.
fn kernels(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let mut any = |names: &[&str]| {
        names.iter().try_fold(false, |any, key| Ok::<_, Fault>(any | (keys.truth(key)? == Some(true))))
    };
    let all = any(&["use_liger_kernel", "enable_liger_kernel"])?;
    let some = any(&["liger_rms_norm", "liger_rope", "liger_glu_activation", "liger_swiglu"])?;
    let chunked = any(&["liger_fused_linear_cross_entropy", "cut_cross_entropy"])?;
    let unsloth = any(&["use_unsloth"])?;
    if all || some || unsloth {
        launched.plan.implementation = Some(Implementation::Liger);
    }
    if all || chunked || unsloth {
        launched.plan.loss = Some(Loss::Chunked);
    } else if some {
        launched.plan.loss = Some(Loss::Eager);
    }
    keys.forget("liger_ plugins");
    if unsloth {
        launched.notes.push("kernels of Unsloth count as those of Liger".to_owned());
    }
    for key in ["torch_compile", "compile"] {
        launched.compiled |= keys.truth(key)? == Some(true);
    }
    Ok(())
}
