//! Recipes are read as people write them, and what is written is read as the same plan.

use super::super::runs::Proposal;
use super::super::yaml;
use super::*;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::strategy::{Plan, PlanSection};

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

/// As people write them: keys without a value, words of several versions, trained modules, epochs with a point.
#[test]
fn recipes_are_read_as_they_are_written() {
    let empty = recipe(
        "base_model: unsloth/Meta-Llama-3.1-8B-bnb-4bit\nadapter: lora\nlora_r: 16\nlora_target_linear: true\n\
         lora_modules_to_save:\n  - embed_tokens\n  - lm_head\nsequence_len: 4096\nmicro_batch_size: 2\n\
         sample_packing: true\nnum_epochs: 4\nfsdp:\nfsdp_config:\ndeepspeed:\ncut_cross_entropy: true\n",
    );
    assert_eq!((empty.plan.sharding, empty.plan.loss), (None, Some(Loss::Chunked)));
    assert_eq!((empty.packing, empty.epochs), (Some(Packing::Within), Some(4.0)));
    let adapters = empty.adapters.unwrap();
    assert_eq!((adapters.base, adapters.trained_embedding), (Some(BaseFormat::Nf4), Some(true)));
    assert!(empty.unknown.is_empty(), "{:?}", empty.unknown);
    let sharded = recipe(
        "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 8192\nmicro_batch_size: 1\nmax_steps: 20\nfsdp:\n\
         \x20 - full_shard\n  - auto_wrap\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n\
         \x20 fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: false\n",
    );
    assert_eq!((sharded.plan.sharding, sharded.steps), (Some(Sharding::Keep), Some(20)));
    assert!(sharded.unknown.is_empty(), "{:?}", sharded.unknown);
    let grouped = recipe(
        "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\nfinetuning_type: lora\nlora_target: all\n\
         num_train_epochs: 3.0\ngroup_by_length: true\ndeepspeed: examples/deepspeed/ds_z0_config.json\n",
    );
    assert_eq!((grouped.zoo.as_deref(), grouped.packing), (Some("qwen3-4b"), Some(Packing::Bucketed)));
    assert_eq!((grouped.epochs, grouped.plan.sharding), (Some(3.0), None));
    let encoder = recipe("model_name_or_path: google/flan-t5-large\ndataset_name: stanfordnlp/imdb\n");
    assert_eq!(encoder.zoo.as_deref(), Some("flan-t5-large"));
    let least = recipe("model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: stanfordnlp/imdb\n");
    assert_eq!((least.framework, least.plan.micro_batch), ("TRL", Some(8)));
}

#[test]
fn ranks_of_galore_are_read() {
    let trainer = recipe(
        "model_name_or_path: Qwen/Qwen2.5-7B\noptim: galore_adamw_8bit\noptim_args: rank=64, scale=0.10\n\
         optim_target_modules: all-linear\ndataset_name: stanfordnlp/imdb\n",
    );
    assert_eq!((trainer.plan.optimiser_rank, trainer.plan.states), (Some(64), Some(States::AdamW8Bit)));
    assert!(trainer.unknown.is_empty(), "{:?}", trainer.unknown);
    let factory = recipe(
        "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: full\nuse_galore: true\ngalore_rank: 128\n\
         galore_target: mlp,self_attn\n",
    );
    assert_eq!(factory.plan.optimiser_rank, Some(128));
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

/// Settings of plans that a framework runs are read as these plans, whoever shards.
#[test]
fn settings_are_read_back() {
    let beginnings = [
        (Framework::Axolotl, "base_model: meta-llama/Meta-Llama-3-8B\nsequence_len: 4096\n"),
        (Framework::LlamaFactory, "model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: full\n"),
        (Framework::Torchtune, "model:\n  _component_: torchtune.models.llama3.llama3_8b\n"),
        (Framework::Trl, "model_name_or_path: meta-llama/Meta-Llama-3-8B\n"),
    ];
    let shape = zoo::transformer("llama3-8b").unwrap();
    let mut written = 0;
    for (framework, beginning) in beginnings {
        for overlap in [OverlapPreset::Fsdp2, OverlapPreset::Deepspeed] {
            let base =
                Plan { overlap, global_batch: Some(32), ..PlanSection::default().resolve(&NoFiles).unwrap() };
            let base = adopted(framework, &base, Precision::Bf16);
            let shardings = Sharding::ALL.iter().filter(|own| **own != Sharding::Hsdp);
            for (sharding, again) in shardings.flat_map(|own| [(*own, true), (*own, false)]) {
                let recompute = if again { vec![Recompute::Layer] } else { Vec::new() };
                let plan = Plan { sharding, recompute, micro_batch: 2, ..base.clone() };
                let choice = plan.choice(&plan.divide(&shape, 8).unwrap());
                let asked = Proposal { shape: &shape, base: &plan, choice: &choice, node: 8 };
                if refusal(framework, &asked).is_some() {
                    continue;
                }
                let settings = settings(framework, &plan, 2);
                let lines = settings.iter().map(|(name, value)| format!("{name}: {value}\n"));
                let text = beginning.to_owned() + &lines.collect::<String>();
                let read = recipe(&text);
                assert!(read.unknown.is_empty(), "{:?}\n{text}", read.unknown);
                assert_eq!(read.plan.sharding.unwrap_or(Sharding::None), sharding, "{text}");
                assert_eq!(read.plan.overlap, Some(plan.overlap), "{text}");
                assert_eq!((read.plan.micro_batch, read.replica_batch), (Some(2), Some(4)), "{text}");
                assert_eq!(read.plan.recompute.is_some(), again, "{text}");
                written += 1;
            }
        }
    }
    // FSDP: three shardings of each, but two of torchtune, which ignores DeepSpeed; DeepSpeed: three, and two of LLaMA-Factory.
    assert_eq!(written, 2 * (3 * 3 + 2 * 2 + 3 + 2 + 3));
}
