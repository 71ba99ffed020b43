//! Recipes of fine-tuning: Axolotl, LLaMA-Factory, torchtune and TRL (YAML), and PEFT's `adapter_config.json`. They name a model of
//! the Hugging Face hub, adapters, and the batch of a device; all run under PyTorch with replicas, unless workers are sharded.

use super::Launched;
use super::keys::Keys;
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{AdaptersSection, BaseFormat};
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{Implementation, OverlapPreset, Recompute, Sharding, States};

/// A recipe by its framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recipe {
    Axolotl,
    LlamaFactory,
    Torchtune,
    Trl,
}

/// Names of matrices in models of the hub, and what they are.
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

/// Keys that say nothing about the time of a step, by their beginnings.
const WITHOUT_EFFECT: &str = include_str!("recipes_without_effect.txt");

/// Which recipe a text is, if one.
pub(super) fn recognises(text: &str) -> Option<Recipe> {
    let has = |key: &str| text.lines().any(|line| line.trim_start().starts_with(key));
    if text.contains("_component_: torchtune") {
        return Some(Recipe::Torchtune);
    }
    if has("base_model:") && (has("micro_batch_size:") || has("sequence_len:") || has("adapter:")) {
        return Some(Recipe::Axolotl);
    }
    if has("model_name_or_path:") {
        if has("finetuning_type:") {
            return Some(Recipe::LlamaFactory);
        }
        return (has("per_device_train_batch_size:") || has("use_peft:") || has("lora_r:"))
            .then_some(Recipe::Trl);
    }
    None
}

/// Whether a tree is the configuration of adapters by PEFT.
pub(super) fn is_adapters(tree: &Value) -> bool {
    tree.get("peft_type").is_some()
}

/// What the recipe says.
pub(super) fn read(recipe: Recipe, mut keys: Keys) -> Result<Launched, Fault> {
    let mut launched = match recipe {
        Recipe::Axolotl => axolotl(&mut keys)?,
        Recipe::LlamaFactory => llama_factory(&mut keys)?,
        Recipe::Torchtune => torchtune(&mut keys)?,
        Recipe::Trl => trl(&mut keys)?,
    };
    sharded(&mut keys, &mut launched);
    keys.forget(WITHOUT_EFFECT);
    launched.unknown.extend(keys.rest());
    Ok(launched)
}

/// Adapters alone: the model, and one sequence of a micro-batch on every worker.
pub(super) fn adapters(mut keys: Keys) -> Result<Launched, Fault> {
    let kind = keys.word("peft_type").unwrap_or_default();
    if kind != "LORA" {
        return Err(Fault::new(format!("`peft_type` is {kind}"), "use LORA"));
    }
    let mut launched = usual("PEFT");
    launched.named_model(keys.word("base_model_name_or_path"));
    let targets = keys.words("target_modules");
    launched.adapters = Some(AdaptersSection {
        rank: Some(keys.number("r")?.unwrap_or(8)),
        targets: named_targets(&targets, &mut launched.unknown),
        dropout: keys.real("lora_dropout")?.map(|share| share > 0.0),
        dora: keys.truth("use_dora")?,
        ..AdaptersSection::default()
    });
    launched.replica_batch = Some(1);
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
    /// The model of a name of the hub: that of the zoo if it has it.
    fn named_model(&mut self, name: Option<String>) {
        let Some(name) = name else { return };
        self.zoo = zoo_name(&name);
        self.named = Some(name);
    }

    fn batch(&mut self, keys: &mut Keys, size: &str) -> Result<(), Fault> {
        let micro_batch = keys.number(size)?;
        let accumulated = keys.number("gradient_accumulation_steps")?.unwrap_or(1);
        self.plan.micro_batch = micro_batch;
        self.replica_batch = Some(micro_batch.unwrap_or(1).saturating_mul(accumulated));
        Ok(())
    }

    fn recompute(&mut self, on: Option<bool>) {
        if on == Some(true) {
            self.plan.recompute = Some(vec![Recompute::Layer]);
        }
    }

    /// Number formats of the optimiser by its name.
    fn optimiser(&mut self, name: Option<String>) {
        let name = name.unwrap_or_default().to_lowercase();
        if name.contains("8bit") {
            self.plan.states = Some(States::AdamW8Bit);
        } else if name.contains("adafactor") {
            self.plan.states = Some(States::Adafactor);
        }
    }
}

/// The name in the zoo of a model of the hub: without its owner, and without what does not change its shape.
fn zoo_name(name: &str) -> Option<String> {
    const WITHOUT: [&str; 11] =
        ["meta", "instruct", "chat", "hf", "base", "it", "v0.1", "v0.2", "v0.3", "bnb", "4bit"];
    let own = name.rsplit('/').next()?.to_lowercase().replace('_', "-");
    let words: Vec<&str> = own.split('-').filter(|word| !WITHOUT.contains(word)).collect();
    let plain = |text: &str| text.replace(['-', '.'], "");
    let joined = plain(&words.concat());
    // Llama 3.1 has the shapes of Llama 3, but for its longest sequence.
    let older = joined.replace("llama31", "llama3");
    let mut known = zoo::transformers();
    known.find(|known| [&joined, &older].contains(&&plain(known))).map(|known| known.to_string())
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
    launched.batch(keys, "micro_batch_size")?;
    launched.recompute(keys.truth("gradient_checkpointing")?);
    launched.optimiser(keys.word("optimizer"));
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
            base: base(four? || kind == "qlora", eight?),
            ..AdaptersSection::default()
        });
    }
    Ok(launched)
}

fn llama_factory(keys: &mut Keys) -> Result<Launched, Fault> {
    let mut launched = usual("LLaMA-Factory");
    launched.named_model(keys.word("model_name_or_path"));
    launched.sequence = Some(keys.number("cutoff_len")?.unwrap_or(2048));
    launched.batch(keys, "per_device_train_batch_size")?;
    launched.recompute(Some(!keys.truth("disable_gradient_checkpointing")?.unwrap_or(false)));
    launched.optimiser(keys.word("optim"));
    launched.samples = keys.number("max_samples")?;
    let bits = keys.number("quantization_bit")?;
    if keys.word("finetuning_type").as_deref() == Some("lora") {
        let targets = keys.words("lora_target");
        launched.adapters = Some(AdaptersSection {
            rank: Some(keys.number("lora_rank")?.unwrap_or(8)),
            targets: named_targets(&targets, &mut launched.unknown),
            dropout: keys.real("lora_dropout")?.map(|share| share > 0.0),
            dora: keys.truth("use_dora")?,
            base: base(bits == Some(4), bits == Some(8)),
            ..AdaptersSection::default()
        });
    }
    Ok(launched)
}

fn trl(keys: &mut Keys) -> Result<Launched, Fault> {
    let mut launched = usual("TRL");
    launched.named_model(keys.word("model_name_or_path"));
    launched.sequence = keys.number("max_length")?.or(keys.number("max_seq_length")?).or(Some(1024));
    launched.batch(keys, "per_device_train_batch_size")?;
    launched.recompute(keys.truth("gradient_checkpointing")?);
    launched.optimiser(keys.word("optim"));
    let [four, eight] = [keys.truth("load_in_4bit")?, keys.truth("load_in_8bit")?].map(|on| on == Some(true));
    let rank = keys.number("lora_r")?;
    if keys.truth("use_peft")?.unwrap_or(rank.is_some()) {
        let targets = keys.words("lora_target_modules");
        launched.adapters = Some(AdaptersSection {
            rank: Some(rank.unwrap_or(16)),
            targets: named_targets(&targets, &mut launched.unknown),
            dropout: keys.real("lora_dropout")?.map(|share| share > 0.0),
            dora: keys.truth("use_dora")?,
            base: base(four, eight),
            ..AdaptersSection::default()
        });
    }
    Ok(launched)
}

fn torchtune(keys: &mut Keys) -> Result<Launched, Fault> {
    let mut launched = usual("torchtune");
    launched.plan.implementation = Some(Implementation::Pytorch);
    launched.plan.states = Some(States::Bf16);
    launched.precision = Some(Precision::Bf16);
    if keys.word("dtype").as_deref() == Some("fp32") {
        launched.plan.states = Some(States::Fp32);
        launched.precision = Some(Precision::Fp32);
    }
    // "torchtune.models.llama3_1.qlora_llama3_1_8b"
    let component = keys.word("model._component_").unwrap_or_default();
    let builder = component.rsplit('.').next().unwrap_or("").to_owned();
    let (kind, name) = match builder.split_once("lora_") {
        Some(("q", name)) => (Some(BaseFormat::Nf4), name.to_owned()),
        Some((_, name)) => (Some(BaseFormat::Bf16), name.to_owned()),
        None => (None, builder),
    };
    launched.named_model(Some(name.replace('_', "-")));
    launched.sequence = keys.number("tokenizer.max_seq_len")?;
    launched.batch(keys, "batch_size")?;
    launched.recompute(keys.truth("enable_activation_checkpointing")?);
    launched.optimiser(keys.word("optimizer._component_"));
    if let Some(base) = kind {
        let mut targets = named_targets(&keys.words("model.lora_attn_modules"), &mut launched.unknown);
        if keys.truth("model.apply_lora_to_mlp")? == Some(true) {
            targets.get_or_insert_default().push("mlp".to_owned());
        }
        launched.adapters = Some(AdaptersSection {
            rank: Some(keys.number("model.lora_rank")?.unwrap_or(8)),
            targets,
            dropout: keys.real("model.lora_dropout")?.map(|share| share > 0.0),
            dora: keys.truth("model.use_dora")?,
            base: Some(base),
            trained_output: keys.truth("model.apply_lora_to_output")?.filter(|on| !on),
            ..AdaptersSection::default()
        });
    }
    Ok(launched)
}

/// Replicas that hold a part each, where a file for DeepSpeed or FSDP is named.
fn sharded(keys: &mut Keys, launched: &mut Launched) {
    let deepspeed = keys.word("deepspeed").unwrap_or_default();
    let zero3 = deepspeed.contains("zero3") || deepspeed.contains("z3");
    let fsdp = ["fsdp", "fsdp_config.fsdp_sharding_strategy", "fsdp_version"].iter().any(|key| keys.has(key));
    if zero3 || fsdp {
        launched.plan.sharding = Some(Sharding::Zero3);
    } else if !deepspeed.is_empty() {
        launched.plan.sharding = Some(Sharding::Zero2);
    }
    if !deepspeed.is_empty() {
        launched.plan.overlap = Some(OverlapPreset::Deepspeed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    fn recipe(text: &str) -> Launched {
        read(recognises(text).unwrap(), yaml::keys(text).unwrap()).unwrap()
    }

    #[test]
    fn a_recipe_of_axolotl_says_model_adapters_and_batch() {
        let launched = recipe(
            "base_model: NousResearch/Meta-Llama-3-8B-Instruct\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\n\
             lora_target_modules:\n  - q_proj\n  - down_proj\nsequence_len: 4096\nmicro_batch_size: 2\n\
             gradient_accumulation_steps: 4\noptimizer: paged_adamw_8bit\ngradient_checkpointing: true\n",
        );
        assert_eq!(launched.zoo.as_deref(), Some("llama3-8b"));
        let adapters = launched.adapters.unwrap();
        assert_eq!((adapters.rank, adapters.base), (Some(32), Some(BaseFormat::Nf4)));
        assert_eq!(adapters.targets.unwrap(), ["q", "down"]);
        assert_eq!((launched.plan.micro_batch, launched.replica_batch), (Some(2), Some(8)));
        assert_eq!(launched.plan.states, Some(States::AdamW8Bit));
        assert_eq!(launched.plan.recompute, Some(vec![Recompute::Layer]));
    }

    #[test]
    fn other_recipes_are_told_apart() {
        let factory = recipe(
            "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\n\
             lora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\ndeepspeed: ds_z3_config.json\n",
        );
        assert_eq!((factory.framework, factory.zoo.as_deref()), ("LLaMA-Factory", Some("qwen2.5-7b")));
        assert_eq!(factory.plan.sharding, Some(Sharding::Zero3));
        assert_eq!(factory.adapters.unwrap().targets.unwrap(), ["all"]);
        let tune = recipe(
            "model:\n  _component_: torchtune.models.llama3_2.lora_llama3_2_3b\n  lora_attn_modules: ['q_proj', 'v_proj']\n\
             \x20 apply_lora_to_mlp: True\n  lora_rank: 64\ntokenizer:\n  max_seq_len: 2048\nbatch_size: 4\ndtype: bf16\n",
        );
        assert_eq!((tune.framework, tune.zoo.as_deref()), ("torchtune", Some("llama3.2-3b")));
        assert_eq!(tune.adapters.unwrap().targets.unwrap(), ["q", "v", "mlp"]);
        let trl = recipe(
            "model_name_or_path: mistralai/Mistral-7B-v0.1\nuse_peft: true\nper_device_train_batch_size: 2\n",
        );
        assert_eq!((trl.framework, trl.zoo.as_deref()), ("TRL", Some("mistral-7b")));
    }

    #[test]
    fn adapters_of_peft_are_read() {
        let text = r#"{"peft_type": "LORA", "r": 16, "target_modules": ["q_proj", "v_proj"], "lora_dropout": 0.05,
            "base_model_name_or_path": "meta-llama/Llama-3.1-8B"}"#;
        let tree: Value = serde_json::from_str(text).unwrap();
        assert!(is_adapters(&tree));
        let launched = adapters(Keys::of_tree(tree)).unwrap();
        assert_eq!(launched.zoo.as_deref(), Some("llama3-8b"));
        let own = launched.adapters.unwrap();
        assert_eq!((own.rank, own.dropout), (Some(16), Some(true)));
    }
}
