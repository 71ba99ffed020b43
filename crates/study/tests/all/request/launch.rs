//! Launch files as people write them, and what of them cannot be read; plans that are found for a framework are emitted, and read
//! back with the same step and memory.

use crate::{example, fastest, go};
use proptest::prelude::*;
use stepcast_analytic::transformer::Transformer as Method;
use stepcast_core::fault::{Fault, Note};
use stepcast_core::method::Method as _;
use stepcast_core::precision::Precision;
use stepcast_core::scenario::{Edit, Scenario};
use stepcast_core::strategy::{Attention, Implementation, Recipe, Recompute, Sharding, States};
use stepcast_study::Request;
use stepcast_study::explore::plan::{Aim, plan};
use stepcast_study::request::launch::{Framework, IGNORE_UNKNOWN, emit};

fn changes(texts: &[&str]) -> Vec<Edit> {
    let ignored = |text: &&&str| text.starts_with(IGNORE_UNKNOWN);
    let own = texts.iter().filter(|text| !ignored(text)).map(|text| Edit::parse(text).unwrap());
    own.chain(texts.iter().filter(ignored).map(|_| Edit::set(IGNORE_UNKNOWN, true))).collect()
}

pub(super) fn request(content: &str, texts: &[&str]) -> Result<Request, Fault> {
    Request::from_reader("launch", content.as_bytes(), changes(texts))
}

pub(super) fn scenario(content: &str, texts: &[&str]) -> Scenario {
    request(content, texts).unwrap().scenario().unwrap().as_ref().clone()
}

fn note_texts(notes: &[Note]) -> String {
    notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn layouts_of_megatron_are_read() {
    let flags = |layout: &str| {
        format!(
            "--num-layers 16 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --pipeline-model-parallel-size 4 \
             --pipeline-model-parallel-layout '{layout}'"
        )
    };
    let texts = ["cluster.workers.device=a100", "cluster.workers.count=4"];
    let read = |layout: &str| scenario(&flags(layout), &texts).strategy.plan.unwrap();
    assert_eq!(read("Et*3|(tttt|)*2,t*5,L").stage_layers, Some(vec![3, 4, 4, 5]));
    let chunks = read("E(tt|)*7ttL");
    assert_eq!((chunks.virtual_stages, chunks.stage_layers), (2, None));
    for wrong in ["Et*3|x", "((t|)*2)", "(t|", "t*|t", "t*99999999999", "Et|tL|t"] {
        let refused = request(&flags(wrong), &texts).unwrap_err().to_string();
        assert!(refused.contains("--pipeline-model-parallel-layout"), "{wrong}: {refused}");
    }
}

#[test]
fn a_script_with_strange_flags_names_them() {
    let script = "#SBATCH --nodes=2 --gpus-per-node=8\nARGS=(--num-layers 32 --hidden-size 4096 \
                  --num-attention-heads 32 --seq-length 2048 --micro-batch-size 1 --global-batch-size 64 \
                  --train-iters 1000 --tensor-model-parallel-size 4 --lr 1e-4 --fp8-format hybrid --fp8-margin 2 --bf16)\n\
                  srun python pretrain_gpt.py ${ARGS[@]}";
    let request = request(script, &["cluster.machine=dgx-h100"]).unwrap();
    let read = request.scenario().unwrap();
    assert_eq!(read.cluster.workers(), 16);
    assert_eq!(read.data.unwrap().samples, Some(64_000));
    let plan = read.strategy.plan.as_ref().unwrap();
    assert!(
        plan.dropout && plan.recipe == Recipe::Fp8Delayed && !plan.overlaps().gradients && plan.tensor == 4
    );
    let shape = read.source.transformer().unwrap();
    // 50257 tokens in whole multiples of 128 for each of four ranks.
    assert_eq!((shape.vocabulary, shape.mlp_width, shape.positions), (50_688, 16_384, 2048));
    let notes = note_texts(&request.take_notes());
    assert!(notes.contains("left out: --fp8-margin.") && notes.contains("vocabulary"), "{notes}");
}

#[test]
fn torchtitan_fills_ranks_and_stages_in_its_own_way() {
    let text = "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 4\nseq_len = 4096\nsteps = 10\n\
                [parallelism]\npipeline_parallel_degree = 4\npipeline_parallel_schedule = \"1F1B\"\n\
                [activation_checkpoint]\nmode = \"full\"\n[compile]\nenable = true";
    let request = request(text, &["cluster.machine=dgx-h100", "cluster.machines=2"]).unwrap();
    let read = request.scenario().unwrap();
    let plan = read.strategy.plan.as_ref().unwrap();
    assert_eq!(read.source.transformer().unwrap().sequence, 4096);
    // 34 weighted layers: 9, 9, 8, 8, less one at either end.
    assert_eq!(plan.stage_layers, Some(vec![8, 9, 8, 7]));
    assert_eq!((plan.sharding, plan.global_batch), (Sharding::Keep, Some(16)));
    assert_eq!(read.data.unwrap().samples, Some(160));
    assert!(note_texts(&request.take_notes()).contains("compile.enable"));
}

#[test]
fn accelerate_asks_for_the_batch_of_the_trainer() {
    let text = "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nmixed_precision: 'bf16'\nfsdp_config:\n\
                \x20 fsdp_version: 2\n  fsdp_reshard_after_forward: true\n  fsdp_offload_params: true\n";
    let texts = ["cluster.workers.device=h100-sxm5", "model.zoo=llama3-8b", "launch.ignore-unknown=true"];
    let refused = request(text, &texts[..2]).unwrap_err().to_string();
    assert!(refused.contains("fsdp_offload_params") && refused.contains("ignore-unknown"), "{refused}");
    let request = request(text, &texts).unwrap();
    let read = request.scenario().unwrap();
    assert_eq!(read.cluster.workers_per_node(), 8);
    assert_eq!(read.cluster.nodes.as_ref().unwrap().ports, Some(8));
    assert_eq!(read.strategy.plan.as_ref().unwrap().sharding, Sharding::Zero3);
    let notes = note_texts(&request.take_notes());
    assert!(notes.contains("argument of the trainer") && notes.contains("fsdp_offload_params"), "{notes}");
    let given = format!("{text}# per_device_train_batch_size=4, gradient_accumulation_steps=2");
    let plan = scenario(&given, &texts).strategy.plan.unwrap();
    assert_eq!((plan.micro_batch, plan.global_batch), (4, Some(128)));
}

/// Autocast over Hugging Face's modules with 32-bit states, except by DeepSpeed, which has formats of its own.
#[test]
fn mixed_precision_of_accelerate_is_autocast() {
    let texts = ["cluster.workers.device=h200-sxm", "model.zoo=gpt2-medium", "cluster.workers.count=8"];
    for (lines, precision, states, reduced, recipe) in [
        ("FSDP\nmixed_precision: bf16", Precision::AmpBf16, States::Fp32, Some(16), Recipe::None),
        ("MULTI_GPU\nmixed_precision: fp16", Precision::AmpFp16, States::Fp32, None, Recipe::None),
        ("FSDP\nmixed_precision: 'no'", Precision::Fp32, States::Fp32, None, Recipe::None),
        ("FSDP\nmixed_precision: fp8", Precision::AmpBf16, States::Fp32, Some(16), Recipe::Fp8),
        (
            "MULTI_GPU\nmixed_precision: fp8\nfp8_config:\n  backend: TE\n  fp8_format: HYBRID",
            Precision::AmpBf16,
            States::Fp32,
            None,
            Recipe::Fp8Delayed,
        ),
        ("DEEPSPEED\nmixed_precision: bf16", Precision::Bf16, States::MixedFp16, None, Recipe::None),
    ] {
        let read = scenario(&format!("distributed_type: {lines}\n"), &texts);
        let plan = read.strategy.plan.unwrap();
        assert_eq!((read.strategy.precision, plan.states), (precision, states), "{lines}");
        assert_eq!((plan.reduce_bits, plan.recipe), (reduced, recipe), "{lines}");
        assert_eq!(plan.implementation, Some(Implementation::HuggingFace), "{lines}");
    }
    let refused =
        request("distributed_type: FSDP\nmixed_precision: fp8\nfp8_config:\n  backend: MSAMP\n", &texts);
    assert!(refused.unwrap_err().to_string().contains("fp8 by MSAMP"));
}

#[test]
fn deepspeed_leaves_what_is_open_to_flags() {
    let text = r#"{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": "auto",
        "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}, "reduce_bucket_size": 5e8,
        "stage3_prefetch_bucket_size": "5e7"}, "fp16": {"enabled": true}}"#;
    let request = request(
        text,
        &[
            "cluster.workers.device=a100",
            "cluster.workers.count=8",
            "model.zoo=llama3-8b",
            "launch.ignore-unknown=true",
        ],
    );
    let request = request.unwrap();
    let read = request.scenario().unwrap();
    let plan = read.strategy.plan.as_ref().unwrap();
    assert_eq!((plan.global_batch, plan.bucket), (Some(16), Some(500_000_000)));
    assert_eq!(read.strategy.precision, Precision::Fp16);
    assert!(note_texts(&request.take_notes()).contains("zero_optimization.offload_param.device"));
}

#[test]
fn what_is_missing_is_asked_for() {
    let launch =
        "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --micro-batch-size 1 --seq-length 64";
    let refused = |content: &str, texts: &[&str]| request(content, texts).unwrap_err().to_string();
    assert!(refused(launch, &[]).contains("dgx-h100"));
    assert!(refused(launch, &["cluster.workers.device=a100"]).contains("4x8"));
    let without = "{\"zero_optimization\": {\"stage\": 3}}";
    let texts = ["cluster.workers.device=a100", "cluster.workers.count=8"];
    assert!(refused(without, &texts).contains("llama3-8b"));
    assert!(refused("{\"zero_optimization\": {\"stage\": \"x\"}}", &texts).contains("not a whole number"));
    let unknown = "[training]\nseq_len = 64\n[model]\nname = \"nobody\"\nflavor = \"9B\"";
    assert!(refused(unknown, &texts).contains("nobody 9B"));
}

#[test]
fn scenarios_are_no_launch_files() {
    // Launch files ask on what they run.
    let is_read = |text: &str| request(text, &[]).is_ok();
    for name in ["quickstart", "transformer", "plan-175b", "job", "search", "async"] {
        assert!(is_read(&example(&format!("{name}.toml"))), "{name}");
    }
    assert!(is_read("") && is_read("[model]\nzoo = \"vgg16\" # --num-layers 3") && is_read("{}"));
    let unfused = Attention::Unfused;
    assert_eq!(
        scenario(
            "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 64 --attention-backend unfused",
            &["cluster.workers.device=a100", "cluster.workers.count=1"]
        )
        .strategy
        .plan
        .unwrap()
        .attention,
        Some(unfused)
    );
}

/// NVIDIA's way to write elements of lists, 16-bit gradients, names of earlier versions, and configurations in YAML.
#[test]
fn other_forms_of_arguments_are_read() {
    let script = "ARGS=(\"--num-layers 32\" \"--hidden-size 4096\" \"--num-attention-heads 32\" \"--seq-length 8192\" \
                  \"--vocab-size 128256\" \"--fp8-format hybrid\" --bf16 --grad-reduce-in-bf16 \
                  \"--activations-checkpoint-method uniform\" \"--tensor-model-parallel-size 2\")\n\
                  torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py ${ARGS[@]}";
    let read = scenario(script, &["cluster.machine=dgx-h100"]);
    let plan = read.strategy.plan.as_ref().unwrap();
    assert_eq!((plan.recipe, plan.states, plan.tensor), (Recipe::Fp8Delayed, States::MixedFp16, 2));
    assert_eq!(plan.recompute, [Recompute::Layer]);
    assert_eq!(read.source.transformer().unwrap().vocabulary, 128_256);
    let yaml = "trainer:\n  num_nodes: 2\n  devices: 8\n  precision: bf16-mixed\nmodel:\n  num_layers: 32\n  hidden_size: 4096\n  \
                num_attention_heads: 32\n  num_query_groups: 8\n  ffn_hidden_size: 14336\n  encoder_seq_length: 8192\n  \
                tensor_model_parallel_size: 4\n  pipeline_model_parallel_size: 2\n  sequence_parallel: true\n  \
                micro_batch_size: 1\n  global_batch_size: 128\n  activation: fast-swiglu\n  bias: false\n";
    let read = scenario(yaml, &["cluster.machine=dgx-h100"]);
    let plan = read.strategy.plan.as_ref().unwrap();
    assert_eq!(
        (read.cluster.workers(), plan.tensor, plan.pipeline, plan.sequence_parallel),
        (16, 4, 2, true)
    );
    let shape = read.source.transformer().unwrap();
    assert_eq!(
        (shape.kv_heads, shape.mlp, shape.bias),
        (8, stepcast_core::model::transformer::Mlp::Swiglu, false)
    );
    let text =
        "[training]\nseq_len = 4096\n[model]\nname = \"llama3\"\nflavor = \"8B\"\nconverters = \"float8\"";
    let read = scenario(text, &["cluster.machine=dgx-h100", "cluster.machines=1"]);
    assert_eq!(read.strategy.plan.unwrap().recipe, Recipe::Fp8);
}

#[test]
fn scripts_are_followed_without_running_them() {
    let asked = request(include_str!("script.sh"), &["cluster.workers.device=h100-sxm5"]).unwrap();
    let file = asked.file().unwrap();
    let (workers, nodes) = (file.cluster.workers.unwrap(), file.cluster.nodes.unwrap());
    assert_eq!((workers[0].count, nodes.workers), (Some(32), Some(8)));
    let shape = file.model.transformer.unwrap();
    assert_eq!((shape.layers, shape.hidden, shape.sequence), (Some(12), Some(768), Some(1024)));
    assert_eq!(shape.vocabulary, Some(128_256));
    let plan = file.strategy.plan.unwrap();
    assert_eq!((plan.micro_batch, plan.global_batch), (Some(8), Some(65)));
    assert_eq!(file.strategy.precision, Some(Precision::Bf16));
    assert!(!note_texts(&asked.take_notes()).contains("left out"));
}

#[test]
fn any_text_ends() {
    let doubling = format!("A=1234567890\n{}", "A=$A$A\n".repeat(60));
    for text in
        ["$(((", "${A:-${A:-$B}}", "\"$", "'", "`", "\\", "A=$A; $A", "$((1/0))", "--x=$((2-3))", &doubling]
    {
        let _ = request(&format!("--num-layers 2\n{text}"), &[]);
    }
}

const LORA: &str = "base_model: meta-llama/Meta-Llama-3-8B\nadapter: lora\n";

#[test]
fn mappings_are_joined_by_dots() {
    for config in [
        "fsdp_config:\n  # full\n  reshard_after_forward: no\n",
        "fsdp_config: {reshard_after_forward: no}\n",
    ] {
        let text = format!(
            "---\n{LORA}lora_r: 16 # one\nlora_dropout: 2.5e-1\nb:\n  c: 'x # y'\n  d:\n    e: []\n{config}fsdp:\n- full_shard\n\
             - auto_wrap\nh:\n- p\n- q\ni: {{}}\nk: {{l: no, m: [4, {{n: 5}}]}}\ngradient_checkpointing: true\n"
        );
        let asked = request(&text, &["cluster.workers.device=h100-sxm5", "cluster.workers.count=8"]).unwrap();
        let file = asked.file().unwrap();
        let adapters = file.model.adapters.unwrap();
        assert_eq!((adapters.rank, adapters.dropout), (Some(16), Some(true)));
        let plan = file.strategy.plan.unwrap();
        assert_eq!((plan.sharding, plan.recompute), (Some(Sharding::Keep), Some(vec![Recompute::Layer])));
        let notes = note_texts(&asked.take_notes());
        assert!(notes.contains("left out: b.c, h, k.m."), "{notes}");
    }
}

#[test]
fn depth_is_bounded_and_takes_no_stack() {
    for opening in ["[", "{a: ", "- "] {
        let _ = request(&format!("{LORA}a: {}", opening.repeat(100_000)), &[]);
    }
    let wrong = request(&format!("{LORA}a: 'x\nb: 1\n"), &[]).unwrap_err();
    assert!(wrong.reason.contains("it is not YAML"), "{wrong}");
}

/// Time of a step, and memory of the fullest device.
fn figures(scenario: &Scenario) -> [f64; 2] {
    let prediction = Method.predict(scenario).unwrap();
    [prediction.iteration.get(), prediction.transformer.unwrap().memory.most.get()]
}

/// What a recipe says of the model, before settings that a plan decides.
fn recipe(framework: Framework, sequence: u64) -> String {
    match framework {
        Framework::Axolotl => format!("base_model: own\nsequence_len: {sequence}\n"),
        Framework::LlamaFactory => {
            format!("model_name_or_path: own\nfinetuning_type: full\ncutoff_len: {sequence}\n")
        }
        Framework::Torchtune => {
            format!("model:\n  _component_: torchtune.models.own\ntokenizer:\n  max_seq_len: {sequence}\n")
        }
        Framework::Trl => format!("model_name_or_path: own\nmax_length: {sequence}\n"),
        _ => String::new(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 18, ..ProptestConfig::default() })]
    #[test]
    fn plans_that_are_found_for_a_framework_are_read_back(
        model in prop::sample::select(vec!["gpt3-2.7b", "llama3-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v2-lite", "llama3-70b"]),
        machines in prop::sample::select(vec![2_u64, 3, 4, 8]),
        batch in prop::sample::select(vec![48_u64, 64, 192]),
        chunks in prop::sample::select(vec!["[1]", "[1, 2, 4]"]),
        framework in prop::sample::select(Framework::ALL.to_vec()),
    ) {
        let (count, zoo) = (format!("cluster.machines={machines}"), format!("model.zoo={model}"));
        let cluster = ["cluster.machine=dgx-h100", &count, &zoo];
        let text = format!(
            "[model]\n[cluster]\n[strategy.plan]\n[plan]\nframeworks = [\"{framework}\"]\nglobal-batch = {batch}\n\
             virtual-stages = {chunks}\nmicro-batch = [1, 2]\ncontext = [1, 2]\n"
        );
        let scenario = crate::scenario(&text, &cluster);
        // What does not fit has no plan.
        let Ok(report) = plan(&scenario, Aim::Time, &mut go) else {
            return Ok(());
        };
        prop_assert_eq!(report.framework, Some(framework));
        prop_assert!(report.launches.contains(&framework));
        let sequence = scenario.transformer_of_plan().unwrap().sequence;
        let emitted = recipe(framework, sequence) + &emit(&scenario, &report, framework).unwrap();
        let best = report.stages.as_ref().map_or(&report.best, |stages| &stages.entry);
        let named = if framework == Framework::Megatron { &cluster[..2] } else { &cluster[..] };
        let request = request(&emitted, named).unwrap();
        let read = request.scenario().unwrap();
        let [step, memory] = figures(&read);
        // Rows of a vocabulary that ranks do not divide are padded.
        let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-5;
        prop_assert!(near(step, best.step.get()), "{step} instead of {}: {}\n{emitted}", best.step, best.words);
        prop_assert!(near(memory, best.memory.get()), "{memory} instead of {}: {}\n{emitted}", best.memory, best.words);
        let notes = request.take_notes();
        let left_out = notes.iter().any(|note| note.text.contains("left out"));
        prop_assert!(!left_out, "{notes:?}\n{emitted}");
    }
}

#[test]
fn part_of_a_machine_has_as_many_processes() {
    let text = "model.zoo = \"gpt2-medium\"\n[[cluster.workers]]\ncount = 2\ndevice = \"h200\"\n\
                [cluster.nodes]\nworkers = 8\nnetwork = \"nvlink4\"\n[plan]\nglobal-batch = 16\n[strategy.plan]\n";
    for framework in [Framework::Fsdp, Framework::Torchtitan, Framework::Megatron] {
        let scenario = crate::scenario(text, &[&format!("plan.frameworks=[\"{framework}\"]")]);
        let emitted = emit(&scenario, &fastest(&scenario), framework).unwrap();
        let named = ["cluster.workers.device=h200", "model.zoo=gpt2-medium"];
        let named = if framework == Framework::Megatron { &named[..1] } else { &named[..] };
        assert_eq!(super::launch::scenario(&emitted, named).cluster.workers(), 2, "{emitted}");
    }
}
