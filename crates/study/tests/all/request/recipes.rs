//! Recipes are read as people write them, and what is written is read as the same plan.

use crate::request;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::{BaseFormat, Packing};
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::scenario::ScenarioFile;
use stepcast_core::strategy::{Loss, OverlapPreset, Plan, PlanSection, Recompute, Sharding, States};
use stepcast_study::request::launch::{Framework, Launch};

/// The scenario that a recipe gives on one device, and whether no setting of it was left out.
fn read(text: &str, changes: &[&str]) -> (ScenarioFile, bool) {
    let asked = request(text, &[&["cluster.workers.device=h100-sxm5"], changes].concat());
    let is_whole = asked.take_notes().iter().all(|note| !note.text.contains("left out"));
    (asked.file().unwrap(), is_whole)
}

fn recipe(text: &str) -> ScenarioFile {
    read(text, &["cluster.workers.count=1", "data.samples=1000"]).0
}

/// One whose words are all understood.
fn whole_recipe(text: &str) -> ScenarioFile {
    let (file, is_whole) = read(text, &["cluster.workers.count=1", "data.samples=1000"]);
    assert!(is_whole, "{text}");
    file
}

fn plan(file: &ScenarioFile) -> &PlanSection {
    file.strategy.plan.as_ref().unwrap()
}

fn framework(file: &ScenarioFile) -> Framework {
    file.plan.as_ref().unwrap().frameworks.as_ref().unwrap()[0]
}

#[test]
fn a_recipe_of_axolotl_says_model_adapters_and_batch() {
    let launched = recipe(
        "base_model: NousResearch/Meta-Llama-3-8B-Instruct\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\n\
         lora_target_modules:\n  - q_proj\n  - down_proj\nsequence_len: 4096\nmicro_batch_size: 2\n\
         gradient_accumulation_steps: 4\noptimizer: paged_adamw_8bit\ngradient_checkpointing: true\n",
    );
    assert_eq!(launched.model.zoo.as_deref(), Some("llama3-8b"));
    let adapters = launched.model.adapters.as_ref().unwrap();
    assert_eq!((adapters.rank, adapters.base), (Some(32), Some(BaseFormat::Nf4)));
    assert_eq!(adapters.targets.as_ref().unwrap(), &["q", "down"]);
    assert_eq!((plan(&launched).micro_batch, plan(&launched).global_batch), (Some(2), Some(8)));
    assert_eq!(plan(&launched).states, Some(States::AdamW8Bit));
    assert_eq!(plan(&launched).recompute, Some(vec![Recompute::Layer]));
}

#[test]
fn other_recipes_are_told_apart() {
    let factory = recipe(
        "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\nlora_rank: 8\n\
         lora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\ndeepspeed: ds_z3_config.json\n",
    );
    assert_eq!(
        (framework(&factory), factory.model.zoo.as_deref()),
        (Framework::LlamaFactory, Some("qwen2.5-7b"))
    );
    assert_eq!(plan(&factory).sharding, Some(Sharding::Zero3));
    assert_eq!(factory.model.adapters.unwrap().targets.unwrap(), ["all"]);
    let tune = recipe(
        "model:\n  _component_: torchtune.models.llama3_2.lora_llama3_2_3b\n  lora_attn_modules: ['q_proj', 'v_proj']\n\
         \x20 apply_lora_to_mlp: True\n  lora_rank: 64\ntokenizer:\n  max_seq_len: 2048\nbatch_size: 4\ndtype: bf16\n",
    );
    assert_eq!((framework(&tune), tune.model.zoo.as_deref()), (Framework::Torchtune, Some("llama3.2-3b")));
    assert_eq!(tune.model.adapters.unwrap().targets.unwrap(), ["q", "v", "mlp"]);
    let trl = recipe(
        "model_name_or_path: mistralai/Mistral-7B-v0.1\nuse_peft: true\nper_device_train_batch_size: 2\n",
    );
    assert_eq!((framework(&trl), trl.model.zoo.as_deref()), (Framework::Trl, Some("mistral-7b")));
}

/// As people write them: keys without a value, words of several versions, trained modules, epochs with a point.
#[test]
fn recipes_are_read_as_they_are_written() {
    let empty = whole_recipe(
        "base_model: unsloth/Meta-Llama-3.1-8B-bnb-4bit\nadapter: lora\nlora_r: 16\nlora_target_linear: true\n\
         lora_modules_to_save:\n  - embed_tokens\n  - lm_head\nsequence_len: 4096\nmicro_batch_size: 2\n\
         sample_packing: true\nnum_epochs: 4\nfsdp:\nfsdp_config:\ndeepspeed:\ncut_cross_entropy: true\n",
    );
    assert_eq!((plan(&empty).sharding, plan(&empty).loss), (None, Some(Loss::Chunked)));
    let data = empty.data.as_ref().unwrap();
    assert_eq!((data.packing, data.epochs), (Some(Packing::Within), Some(4)));
    let adapters = empty.model.adapters.unwrap();
    assert_eq!((adapters.base, adapters.trained_embedding), (Some(BaseFormat::Nf4), Some(true)));
    let (sharded, is_whole) = read(
        "base_model: meta-llama/Llama-3.1-8B\nsequence_len: 8192\nmicro_batch_size: 1\nmax_steps: 20\nfsdp:\n\
         \x20 - full_shard\n  - auto_wrap\nfsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n\
         \x20 fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_offload_params: false\n",
        &["cluster.workers.count=1"],
    );
    assert!(is_whole && plan(&sharded).sharding == Some(Sharding::Keep));
    // Twenty steps of a sequence.
    assert_eq!(sharded.data.unwrap().samples.unwrap().get().to_bits(), 20.0_f64.to_bits());
    let grouped = recipe(
        "model_name_or_path: Qwen/Qwen3-4B-Instruct-2507\nfinetuning_type: lora\nlora_target: all\n\
         num_train_epochs: 3.0\ngroup_by_length: true\ndeepspeed: examples/deepspeed/ds_z0_config.json\n",
    );
    assert_eq!((grouped.model.zoo.as_deref(), plan(&grouped).sharding), (Some("qwen3-4b"), None));
    let data = grouped.data.as_ref().unwrap();
    assert_eq!((data.packing, data.epochs), (Some(Packing::Bucketed), Some(3)));
    let encoder = recipe("model_name_or_path: google/flan-t5-large\ndataset_name: stanfordnlp/imdb\n");
    assert_eq!(encoder.model.zoo.as_deref(), Some("t5-v1.1-large"));
    let least = recipe("model_name_or_path: Qwen/Qwen2.5-0.5B\ndataset_name: stanfordnlp/imdb\n");
    assert_eq!((framework(&least), plan(&least).micro_batch), (Framework::Trl, Some(8)));
}

#[test]
fn ranks_of_galore_are_read() {
    let trainer = whole_recipe(
        "model_name_or_path: Qwen/Qwen2.5-7B\noptim: galore_adamw_8bit\noptim_args: rank=64, scale=0.10\n\
         optim_target_modules: all-linear\ndataset_name: stanfordnlp/imdb\n",
    );
    assert_eq!((plan(&trainer).optimiser_rank, plan(&trainer).states), (Some(64), Some(States::AdamW8Bit)));
    let factory = recipe(
        "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: full\nuse_galore: true\ngalore_rank: 128\n\
         galore_target: mlp,self_attn\n",
    );
    assert_eq!(plan(&factory).optimiser_rank, Some(128));
}

#[test]
fn adapters_of_peft_are_read() {
    let text = r#"{"peft_type": "LORA", "r": 16, "target_modules": ["q_proj", "v_proj"], "lora_dropout": 0.05,
        "base_model_name_or_path": "meta-llama/Llama-3.1-8B"}"#;
    let launched = recipe(text);
    assert_eq!(launched.model.zoo.as_deref(), Some("llama3-8b"));
    let own = launched.model.adapters.unwrap();
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
            // torchtune ignores DeepSpeed.
            let overlap = if framework == Framework::Torchtune { OverlapPreset::Fsdp2 } else { overlap };
            let plain = PlanSection::default().resolve(&NoFiles).unwrap();
            let shardings = Sharding::ALL.iter().filter(|own| **own != Sharding::Hsdp);
            for (sharding, again) in shardings.flat_map(|own| [(*own, true), (*own, false)]) {
                let recompute = if again { vec![Recompute::Layer] } else { Vec::new() };
                let own = Plan { sharding, recompute, overlap, micro_batch: 2, ..plain.clone() };
                let launch = Launch {
                    name: "llama3-8b",
                    shape: &shape,
                    plan: &own,
                    precision: Precision::Bf16,
                    nodes: 1,
                    workers_per_node: 8,
                    data: 8,
                    micro_batches: 2,
                };
                let Ok(settings) = launch.emit(framework) else { continue };
                let text = beginning.to_owned() + &settings;
                let (file, is_whole) = read(&text, &["cluster.workers.count=8"]);
                let found = plan(&file);
                assert!(is_whole && found.overlap == Some(overlap), "{text}");
                assert_eq!(found.sharding.unwrap_or(Sharding::None), sharding, "{text}");
                assert_eq!((found.micro_batch, found.global_batch), (Some(2), Some(32)), "{text}");
                assert_eq!(found.recompute.is_some(), again, "{text}");
                written += 1;
            }
        }
    }
    // FSDP: three shardings of each, but two of torchtune, which ignores DeepSpeed; DeepSpeed: three, and two of LLaMA-Factory.
    assert_eq!(written, 2 * (3 * 3 + 2 * 2 + 3 + 2 + 3));
}
