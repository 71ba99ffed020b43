//! What is emitted is read as the same plan, and what cannot be read is named.

use super::*;
use stepcast_core::fault::Note;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{
    Attention, ContextExchange, Implementation, Loss, OverlapPreset, Plan, Recipe, Recompute, ScheduleKind,
    Sharding, States,
};

const WORKERS: u64 = 16;
const MACHINE: u64 = 4;
const BATCH: u64 = 32;

fn changes(texts: &[&str]) -> Vec<Edit> {
    let ignored = |text: &&&str| text.starts_with(IGNORE_UNKNOWN);
    let own = texts.iter().filter(|text| !ignored(text)).map(|text| Edit::parse(text).unwrap());
    own.chain(texts.iter().filter(ignored).map(|_| Edit::set(IGNORE_UNKNOWN, true))).collect()
}

fn request(content: &str, texts: &[&str]) -> Result<Request, Fault> {
    Request::from_launch("launch", content, &changes(texts)).map(|request| request.expect("a launch file"))
}

fn scenario(content: &str, texts: &[&str]) -> Scenario {
    request(content, texts).unwrap().scenario().unwrap().as_ref().clone()
}

fn plain() -> Plan {
    PlanSection::default().resolve(&NoFiles).unwrap()
}

/// The plan with what it leaves open or says twice filled in.
fn whole(plan: &Plan, framework: Framework) -> Plan {
    // Flash attention keeps nothing that this would compute again; only Megatron-LM has a word for it.
    let said = |part: &Recompute| framework == Framework::Megatron || *part != Recompute::Attention;
    let schedule = Some(plan.schedule_kind()).filter(|_| plan.pipeline > 1);
    let exchange = if plan.context > 1 { plan.context_exchange } else { ContextExchange::Ring };
    let recompute = plan.recomputation().what.parts().filter(said).collect();
    Plan { recompute, schedule, context_exchange: exchange, data: None, ..plan.clone() }
}

/// Plans of a transformer that its checks accept, in the manner of a framework.
pub(super) fn plans(shape: &Transformer, framework: Framework) -> Vec<Plan> {
    let (overlap, states, exchange) = match framework {
        Framework::Megatron => (OverlapPreset::Megatron, States::MegatronBf16, ContextExchange::Ring),
        Framework::Torchtitan => (OverlapPreset::Torchtitan, States::Fp32, ContextExchange::AllGather),
        Framework::Deepspeed => (OverlapPreset::Deepspeed, States::MixedFp16, ContextExchange::AllToAll),
        _ => (OverlapPreset::Fsdp2, States::Fp32, ContextExchange::Ring),
    };
    let loss = Some(Loss::Chunked).filter(|_| framework == Framework::Torchtitan);
    let accelerate = framework == Framework::Fsdp;
    let modules = accelerate || framework == Framework::Deepspeed;
    let base = Plan {
        overlap,
        states,
        loss,
        context_exchange: exchange,
        global_batch: Some(BATCH),
        implementation: modules.then_some(Implementation::HuggingFace),
        ..plain()
    };
    let with_float8 = matches!(framework, Framework::Megatron | Framework::Torchtitan);
    let recipe = if framework == Framework::Megatron { Recipe::Fp8Delayed } else { Recipe::Fp8 };
    let drops = framework == Framework::Megatron && shape.experts.is_some();
    let with_buckets = matches!(framework, Framework::Megatron | Framework::Deepspeed);
    let mut all = Vec::new();
    for (tensor, context, pipeline) in [1, 2, 4]
        .into_iter()
        .flat_map(|t| [1, 2].map(|c| (t, c)))
        .flat_map(|(t, c)| [1, 2, 4].map(|p| (t, c, p)))
    {
        for (schedule, virtual_stages) in [
            (ScheduleKind::OneFOneB, 1),
            (ScheduleKind::Gpipe, 1),
            (ScheduleKind::Interleaved, 2),
            (ScheduleKind::Interleaved, 4),
            (ScheduleKind::Zbv, 2),
            (ScheduleKind::DualPipeV, 2),
        ] {
            for (sharding, sharding_group) in [
                (Sharding::None, None),
                (Sharding::Zero1, None),
                (Sharding::Zero2, None),
                (Sharding::Zero3, None),
                (Sharding::Keep, None),
                (Sharding::Hsdp, Some(2)),
                (Sharding::Hsdp, Some(MACHINE)),
            ] {
                for recompute in [
                    &[][..],
                    &[Recompute::Attention],
                    &[Recompute::Norms, Recompute::Activation, Recompute::Projections],
                    &[Recompute::Norms, Recompute::Mlp],
                    &[Recompute::Operators],
                    &[Recompute::Layer],
                ] {
                    let small = recompute.contains(&Recompute::Norms);
                    if small && (shape.mla.is_none() || framework != Framework::Megatron) {
                        continue;
                    }
                    for (micro_batch, sequence_parallel) in [(1, tensor > 1), (2, false)] {
                        all.push(Plan {
                            tensor,
                            sequence_parallel,
                            context,
                            pipeline,
                            virtual_stages,
                            schedule: Some(schedule),
                            sharding,
                            sharding_group,
                            micro_batch,
                            recompute: recompute.to_vec(),
                            recipe: if with_float8 && micro_batch == 2 { recipe } else { Recipe::None },
                            expert_capacity: (drops && micro_batch == 2).then_some(1.25),
                            bucket: with_buckets.then_some(40_000_000 * micro_batch),
                            loss: Some(Loss::Compiled)
                                .filter(|_| with_float8 && micro_batch == 2)
                                .or(base.loss),
                            expert: shape.experts.map_or(1, |_| 2),
                            reduce_bits: (accelerate && sharding != Sharding::None).then_some(16),
                            ..base.clone()
                        });
                    }
                }
            }
        }
    }
    all.retain(|plan| {
        let staged = plan.pipeline > 1 || plan.schedule == Some(ScheduleKind::OneFOneB);
        // A single replica has nothing to shard, and a single group is no hybrid.
        let replicas = WORKERS / plan.tensor / plan.pipeline;
        let alone = replicas == 1 && plan.sharding != Sharding::None;
        staged
            && !alone
            && plan.sharding_group.is_none_or(|group| group < replicas)
            && plan.divide(shape, WORKERS).is_ok()
    });
    all
}

/// Autocast where kernels are those of Hugging Face.
fn precision(plan: &Plan) -> Precision {
    if plan.implementation.is_some() { Precision::AmpBf16 } else { Precision::Bf16 }
}

/// A plan on machines of four workers.
pub(super) fn launch<'a>(name: &'a str, shape: &'a Transformer, plan: &'a Plan) -> Launch<'a> {
    let division = plan.divide(shape, WORKERS).unwrap();
    Launch {
        name,
        shape,
        plan,
        precision: precision(plan),
        nodes: WORKERS / MACHINE,
        workers_per_node: MACHINE,
        data: division.data,
        micro_batches: division.micro_batches,
    }
}

fn round_trips(model: &str, framework: Framework, names_model: bool) -> usize {
    let shape = zoo::transformer(model).unwrap();
    let mut texts = vec!["cluster.workers.device=h100-sxm5".to_owned()];
    if names_model {
        texts.push(format!("model.zoo={model}"));
    }
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let mut count = 0;
    // One of eleven: the number divides no list of properties, so that all their values come together.
    for plan in plans(&shape, framework).into_iter().step_by(11) {
        let Ok(text) = launch(model, &shape, &plan).emit(framework) else { continue };
        let read = scenario(&text, &texts);
        // Megatron-LM has as many rows of the vocabulary on every rank.
        let rows = match framework {
            Framework::Megatron => shape.vocabulary.next_multiple_of(plan.tensor),
            _ => shape.vocabulary,
        };
        let expected = Transformer { vocabulary: rows, ..shape };
        assert_eq!(read.transformer_of_plan().unwrap(), expected, "{text}");
        assert_eq!(read.cluster.workers(), WORKERS, "{text}");
        let again = whole(read.strategy.plan.as_ref().unwrap(), framework);
        assert_eq!(again, whole(&plan, framework), "{text}");
        let products = if framework == Framework::Fsdp { Precision::AmpBf16 } else { Precision::Bf16 };
        assert_eq!(read.strategy.precision, products, "{text}");
        count += 1;
    }
    count
}

fn note_texts(notes: &[Note]) -> String {
    notes.iter().map(|note| note.text.as_str()).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_emitted_for_megatron_is_read_alike() {
    for model in ["gpt3-2.7b", "llama3-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v3"] {
        let count = round_trips(model, Framework::Megatron, false);
        assert!(count > 10, "{model}: {count}");
    }
}

#[test]
fn what_is_emitted_for_torchtitan_is_read_alike() {
    assert!(round_trips("llama3-8b", Framework::Torchtitan, false) > 10);
    assert!(round_trips("gpt3-2.7b", Framework::Torchtitan, true) > 10);
}

#[test]
fn what_is_emitted_for_deepspeed_is_read_alike() {
    assert!(round_trips("llama3-8b", Framework::Deepspeed, true) > 5);
}

#[test]
fn what_is_emitted_for_accelerate_is_read_alike() {
    assert!(round_trips("llama3-8b", Framework::Fsdp, true) >= 1);
}

/// Stages with layers of their own, as far as a framework has words for them.
#[test]
fn uneven_stages_are_read_alike() {
    let shape = zoo::transformer("llama3-8b").unwrap();
    let every = [[7, 9, 9, 7], [9, 8, 8, 7], [8, 9, 7, 8]];
    for (framework, expected) in [(Framework::Megatron, 3), (Framework::Torchtitan, 1)] {
        let mut found = 0;
        for layers in every {
            let base = plans(&shape, framework)
                .into_iter()
                .find(|plan| plan.pipeline == 4 && plan.virtual_stages == 1);
            let plan = Plan {
                stage_layers: Some(layers.to_vec()),
                recompute: vec![Recompute::Layer],
                ..base.unwrap()
            };
            let launch = launch("llama3-8b", &shape, &plan);
            let Ok(text) = launch.emit(framework) else { continue };
            let read = scenario(&text, &["cluster.workers.device=h100-sxm5"]).strategy.plan.unwrap();
            assert_eq!(read.stage_layers, Some(layers.to_vec()), "{text}");
            let apart = Plan { stage_recompute: Some(vec![4, 2, 0, 0]), ..plan.clone() };
            let refused = Launch { plan: &apart, ..launch }.emit(framework).unwrap_err();
            assert!(refused.remedy.contains("plan.per-stage = false"), "{refused}");
            found += 1;
        }
        assert_eq!(found, expected, "{framework:?}");
    }
}

/// A value that a framework has no setting for is refused by its name, with what excludes it.
#[test]
fn what_has_no_setting_is_refused() {
    let shape = zoo::transformer("llama3-8b").unwrap();
    for line in include_str!("refused.txt").lines() {
        let [framework, text, reason, remedy] = line.split(" | ").collect::<Vec<_>>().try_into().unwrap();
        let framework = Framework::named(framework).unwrap();
        let plan =
            toml::from_str::<PlanSection>(&text.replace("; ", "\n")).unwrap().resolve(&NoFiles).unwrap();
        let refused = launch("llama3-8b", &shape, &plan).emit(framework).unwrap_err();
        assert!(refused.reason.contains(reason), "{text}: {refused}");
        assert!(refused.remedy.contains(remedy), "{text}: {refused}");
    }
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
    for example in ["quickstart", "transformer", "plan-175b", "job", "search", "async"] {
        let path = format!("{}/../../examples/{example}.toml", env!("CARGO_MANIFEST_DIR"));
        assert!(!recognises(&std::fs::read_to_string(path).unwrap()), "{example}");
    }
    assert!(!recognises("") && !recognises("[model]\nzoo = \"vgg16\" # --num-layers 3") && !recognises("{}"));
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
