//! What is emitted is read as the same plan, has only options that frameworks have, and keeps what they assert of them.
//!
//! Both tables name their sources. `.ci/frameworks` writes the rows of torchtitan and Accelerate from their packages.

use super::launch::scenario;
use serde_json::Value;
use std::collections::BTreeMap;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{
    ContextExchange, Implementation, Loss, OverlapPreset, Plan, PlanSection, Recipe, Recompute, ScheduleKind,
    Sharding, States,
};
use stepcast_core::text::parse;
use stepcast_study::request::launch::{Framework, Launch};

const WORKERS: u64 = 16;
const MACHINE: u64 = 4;
const BATCH: u64 = 32;

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
fn plans(shape: &Transformer, framework: Framework) -> Vec<Plan> {
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
fn launch<'a>(name: &'a str, shape: &'a Transformer, plan: &'a Plan) -> Launch<'a> {
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

#[test]
fn what_is_emitted_is_read_alike() {
    for (framework, model, names_model, least) in [
        (Framework::Megatron, "gpt3-2.7b", false, 11),
        (Framework::Megatron, "llama3-8b", false, 11),
        (Framework::Megatron, "qwen3-8b", false, 11),
        (Framework::Megatron, "mixtral-8x7b", false, 11),
        (Framework::Megatron, "deepseek-v3", false, 11),
        (Framework::Torchtitan, "llama3-8b", false, 11),
        (Framework::Torchtitan, "gpt3-2.7b", true, 11),
        (Framework::Deepspeed, "llama3-8b", true, 6),
        (Framework::Fsdp, "llama3-8b", true, 1),
    ] {
        let count = round_trips(model, framework, names_model);
        assert!(count >= least, "{framework} {model}: {count}");
    }
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
        let plan = parse::<PlanSection>(&text.replace("; ", "\n")).unwrap().resolve(&NoFiles).unwrap();
        let refused = launch("llama3-8b", &shape, &plan).emit(framework).unwrap_err();
        assert!(refused.reason.contains(reason), "{text}: {refused}");
        assert!(refused.remedy.contains(remedy), "{text}: {refused}");
    }
}

const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    table.lines().skip(1).map(|line| line.splitn(3, ',').collect())
}

/// Adds the leaves of a tree, with their paths.
fn flatten(path: String, value: &Value, options: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(path, value, options);
            }
        }
        Value::String(text) => drop(options.insert(path, text.clone())),
        value => drop(options.insert(path, value.to_string())),
    }
}

/// The options of an emitted file, with their values.
fn options(text: &str, framework: Framework) -> BTreeMap<String, String> {
    let mut options = BTreeMap::new();
    match framework {
        Framework::Megatron => {
            let mut flag = "";
            for word in text.split_once("pretrain_gpt.py").unwrap().1.split_whitespace() {
                match options.get_mut(flag) {
                    _ if word == "\\" => {}
                    _ if word.starts_with("--") => {
                        flag = word;
                        options.insert(flag.to_owned(), String::new());
                    }
                    Some(value) if value.is_empty() => *value = word.to_owned(),
                    value => value.into_iter().for_each(|value| *value += &format!(" {word}")),
                }
            }
            if let Some((_, rest)) = text.split_once(CONNECTIONS) {
                options.insert(CONNECTIONS.to_owned(), rest[1..].split(' ').next().unwrap().to_owned());
            }
        }
        Framework::Torchtitan => {
            let set = text.lines().filter_map(|line| line.trim().strip_prefix("config."));
            let set = set.filter_map(|line| line.split_once(" = "));
            options.extend(set.map(|(key, value)| (key.to_owned(), value.to_owned())));
        }
        Framework::Deepspeed => flatten(String::new(), &serde_json::from_str(text).unwrap(), &mut options),
        _ => {
            let mut section = String::new();
            for line in text.lines().filter(|line| !line.starts_with('#')) {
                let (key, value) = line.split_once(':').unwrap();
                let path = key.strip_prefix("  ").map_or(key.to_owned(), |key| format!("{section}.{key}"));
                match value.trim() {
                    "" => section = path,
                    value => {
                        let tree = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
                        flatten(path, &tree, &mut options);
                    }
                }
            }
        }
    }
    options
}

/// Whether options have what a condition says: `name`, `!name`, `name=value` (one of several) or `name>number`.
fn holds(term: &str, options: &BTreeMap<String, String>) -> bool {
    if let Some(term) = term.strip_prefix('!') {
        return !holds(term, options);
    }
    let value = |name: &str| options.get(name);
    match (term.split_once('='), term.split_once('>')) {
        (Some((name, wanted)), _) => {
            value(name).is_some_and(|value| value.split(' ').any(|word| word == wanted))
        }
        (None, Some((name, least))) => {
            let number = |text: &str| text.parse::<u64>().unwrap();
            value(name).is_some_and(|value| number(value) > number(least))
        }
        (None, None) => value(term).is_some(),
    }
}

#[test]
fn emitted_options_exist_and_keep_assertions() {
    let known: Vec<[&str; 2]> = rows(include_str!("options.csv")).map(|row| [row[0], row[1]]).collect();
    let assertions: Vec<Vec<&str>> = rows(include_str!("assertions.csv")).collect();
    for framework in Framework::ALL.iter().copied() {
        let own = framework.to_string();
        for model in ["gpt3-2.7b", "llama3-8b", "mixtral-8x7b", "deepseek-v3"] {
            let shape = zoo::transformer(model).unwrap();
            for plan in plans(&shape, framework).into_iter().step_by(7) {
                let Ok(text) = launch(model, &shape, &plan).emit(framework) else { continue };
                let options = options(&text, framework);
                for name in options.keys().filter(|name| *name != CONNECTIONS) {
                    assert!(known.contains(&[own.as_str(), name]), "{framework}: {name}\n{text}");
                }
                for assertion in assertions.iter().filter(|_| framework == Framework::Megatron) {
                    let all = |terms: &str| terms.split(' ').all(|term| holds(term, &options));
                    assert!(!all(assertion[0]) || all(assertion[1]), "{assertion:?}\n{text}");
                }
            }
        }
    }
}
