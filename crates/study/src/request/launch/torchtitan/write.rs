//! A plan as a configuration of torchtitan: a Python function that changes one of torchtitan's configurations.

use super::super::Framework;
use super::super::emit::{Launch, Proposal, Refusal, first};
use super::super::settings::Settings;
use super::SCHEDULES;
use serde_json::Value;
use stepcast_core::model::zoo;
use stepcast_core::strategy::{ContextExchange, Loss, PlanChoice, Recompute, Sharding, States};

/// Families of the zoo in torchtitan 0.3, and their names there.
const FAMILIES: [(&str, &str); 4] =
    [("llama3-", "llama3"), ("llama3.1-", "llama3"), ("qwen3-", "qwen3"), ("deepseek-v3", "deepseek_v3")];

/// The size of DeepSeek-V3, whose name in the zoo has none.
const DEEPSEEK: &str = "671B";

/// The family and size of a model, if torchtitan has one of this name.
fn known_model(name: &str) -> Option<(&'static str, String)> {
    zoo::transformer(name)?;
    FAMILIES.iter().find_map(|(ours, theirs)| match name.strip_prefix(ours)? {
        "" => Some((*theirs, DEEPSEEK.to_owned())),
        size => Some((*theirs, size.to_uppercase())),
    })
}

/// The model of the zoo that torchtitan calls by this family and size.
pub(super) fn in_zoo(family: &str, size: &str) -> Option<String> {
    let own = FAMILIES.iter().filter(|(_, theirs)| *theirs == family);
    let names = own.map(|(ours, _)| match ours.ends_with('-') {
        true => format!("{ours}{}", size.to_lowercase()),
        false => (*ours).to_owned(),
    });
    let mut names = names.chain([format!("{family}-{size}").to_lowercase().replace('_', "-")]);
    names.find(|name| zoo::transformer(name).is_some())
}

/// Plans that torchtitan does not run.
pub(in super::super) fn refusal(asked: &Proposal<'_>) -> Option<Refusal> {
    let Proposal { shape, base, choice, .. } = *asked;
    let stages = [choice.pipeline, choice.virtual_stages];
    let staged = choice.pipeline > 1;
    let known = SCHEDULES.iter().any(|(_, kind)| *kind == choice.schedule);
    let recompute = choice.recompute.what;
    let within = recompute.is_within() && recompute != Recompute::Operators;
    let groups = choice.sharding_group.is_some_and(|group| !group.is_multiple_of(choice.context));
    let [_, shard] = degrees(choice);
    let expert_ranks = shard * choice.context * choice.tensor;
    first([
        (staged && !known, ("`zb-h1`", "plan.schedule=[\"1f1b\", \"interleaved\", \"zbv\"]")),
        (
            divided(shape.layers, stages).is_none(),
            ("this many chunks of unequal size", "plan.virtual-stages=[1, 2]"),
        ),
        (
            choice.context > 1 && choice.sharding == Sharding::None,
            ("context parallelism with whole weights", "plan.sharding=[\"zero-3\", \"hsdp\"]"),
        ),
        (
            choice.context > 1 && base.context_exchange != ContextExchange::AllGather,
            ("a ring of context-parallel ranks", "strategy.plan.context-exchange=all-gather"),
        ),
        (
            choice.sharding == Sharding::Zero1,
            ("`zero-1`", "plan.sharding=[\"none\", \"zero-2\", \"zero-3\", \"hsdp\"]"),
        ),
        (
            choice.sharding == Sharding::Zero2 && staged,
            ("`zero-2` with a pipeline", "plan.sharding=[\"none\", \"fsdp-keep\", \"zero-3\", \"hsdp\"]"),
        ),
        (
            choice.sharding == Sharding::Keep && !staged,
            ("`fsdp-keep` without a pipeline", "plan.sharding=[\"none\", \"zero-2\", \"zero-3\", \"hsdp\"]"),
        ),
        (groups, ("groups that divide a sequence", "plan.sharding=[\"none\", \"zero-3\"]")),
        (choice.recompute.layers.is_some(), ("recomputation of some layers", "plan.recompute-some=false")),
        (
            within,
            ("recomputation of one half of a layer", "plan.recompute=[\"none\", \"operators\", \"layer\"]"),
        ),
        (
            !expert_ranks.is_multiple_of(choice.expert),
            ("experts on ranks that do not share weights", "plan.sharding=[\"zero-3\"]"),
        ),
    ])
}

/// Replicas of the weights, and ranks that each divides its own over. Ranks that divide a sequence also divide the weights.
fn degrees(choice: &PlanChoice) -> [u64; 2] {
    match (choice.sharding, choice.sharding_group) {
        (Sharding::None, _) => [choice.data, 1],
        (Sharding::Hsdp, Some(group)) => {
            let shard = (group / choice.context).max(1);
            [choice.data / shard, shard]
        }
        _ => [1, choice.data],
    }
}

/// Reduction of layers on the first stage, layers of the other stages, and reduction on the last stage, if needed; none if no such
/// numbers divide the layers in this way.
fn divided(layers: u64, [pipeline, chunks]: [u64; 2]) -> Option<[u64; 3]> {
    let places = pipeline * chunks;
    let weighed = layers + 2;
    let each = weighed.div_ceil(places);
    match layers.is_multiple_of(places) {
        true => Some([0, layers / places, 0]),
        // One stage on a rank, or two, are usual.
        false if chunks <= 2 => Some([1, 0, 1]),
        false => (weighed.div_ceil(each) == places).then_some([1, each, 1]),
    }
}

/// These numbers for given stages.
fn given([first, each, last]: [u64; 3]) -> Option<[u64; 3]> {
    (first <= each && last <= each).then(|| [each - first, each, each - last])
}

/// Whether torchtitan can divide layers as a plan does.
pub(in super::super) fn divides(launch: &Launch<'_>) -> bool {
    launch.plan.stage_layers.is_none() || launch.ends().and_then(given).is_some()
}

/// The configuration of a plan.
pub(in super::super) fn write(launch: &Launch<'_>, mut settings: Settings, choice: &PlanChoice) -> String {
    let Launch { shape, plan, nodes, workers_per_node, .. } = *launch;
    let known = known_model(launch.name);
    let (family, size) = known.clone().unwrap_or(("llama3", "debugmodel".to_owned()));
    let float8 = settings.take(&["recipe"]).into_iter().next().is_some();
    let activations = match plan.recomputation().what {
        what if what == Recompute::Operators => "SelectiveAC.Config()",
        what if what == Recompute::Layer => "FullAC.Config()",
        // Flash attention keeps nothing that could be recomputed.
        _ => "None",
    };
    let mut lines = vec![
        format!("# {}, as plan.py beside where this runs:", Framework::Torchtitan.title()),
        format!(
            "# torchrun --nnodes {nodes} --nproc-per-node {workers_per_node} -m torchtitan.train --module plan --config plan"
        ),
    ];
    if known.is_none() {
        lines.push(format!("# torchtitan has no model {}: give its own as model_spec.", launch.name));
    }
    let losses = match plan.loss {
        Some(Loss::Chunked) => "ChunkedLossWrapper, CrossEntropyLoss",
        _ => "CrossEntropyLoss",
    };
    lines.push(format!("from torchtitan.components.loss import {losses}"));
    if float8 {
        lines.push("from torchtitan.components.quantization import Float8LinearConverter".to_owned());
    }
    if let Some((policy, _)) = activations.split_once('.') {
        lines.push(format!("from torchtitan.distributed.activation_checkpoint import {policy}"));
    }
    lines.extend([
        "from torchtitan.models.common.config_utils import decoder_vocab_size".to_owned(),
        format!("from torchtitan.models.{family} import model_registry"),
        format!("from torchtitan.models.{family}.config_registry import {family}_debugmodel"),
        String::new(),
        String::new(),
        "def plan():".to_owned(),
    ]);
    let mut say = |line: String| lines.push(format!("    {line}"));
    say(format!("config = {family}_debugmodel()"));
    let converters = match float8 {
        true => ", converters=[Float8LinearConverter.Config(filter_fqns=[\"lm_head\"])]",
        false => "",
    };
    say(format!("config.model_spec = model_registry(\"{size}\"{converters})"));
    let loss = "CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(config.model_spec))";
    say(match plan.loss {
        Some(Loss::Chunked) => format!("config.loss = ChunkedLossWrapper.Config(loss_fn={loss})"),
        _ => format!("config.loss = {loss}"),
    });
    let mut set = |(key, value): (&str, Value)| say(format!("config.{key} = {}", python(&value)));
    set(("training.disable_cuda_graphs", true.into()));
    if plan.states == States::Bf16 {
        set(("training.dtype", "bfloat16".into()));
    }
    let local = plan.micro_batch * if plan.pipeline > 1 { launch.micro_batches } else { 1 };
    set(("training.local_batch_size", local.into()));
    settings.take(&["global-batch"]).into_iter().for_each(&mut set);
    set(("training.seq_len", shape.sequence.into()));
    let [replicate, shard] = degrees(choice);
    set(("parallelism.data_parallel_replicate_degree", replicate.into()));
    set(("parallelism.data_parallel_shard_degree", shard.into()));
    let reshard = match plan.sharding {
        Sharding::None => "default",
        Sharding::Zero2 | Sharding::Keep => "never",
        _ => "always",
    };
    set(("parallelism.fsdp_reshard_after_forward", reshard.into()));
    settings.take(&["tensor", "context", "pipeline"]).into_iter().for_each(&mut set);
    // Always a gather.
    settings.take(&["context-exchange"]);
    if plan.tensor > 1 {
        set(("parallelism.enable_sequence_parallel", plan.sequence_parallel.into()));
    }
    if plan.pipeline > 1 {
        let counts = [plan.pipeline, plan.virtual_stages];
        let usual = || divided(shape.layers, counts);
        let [first, each, last] = launch.ends().and_then(given).or_else(usual).unwrap_or_default();
        let name =
            SCHEDULES.iter().find(|(_, kind)| *kind == choice.schedule).map_or("1F1B", |(name, _)| name);
        set(("parallelism.pipeline_parallel_schedule", name.into()));
        set(("parallelism.pipeline_parallel_microbatch_size", plan.micro_batch.into()));
        if each > 0 {
            set(("parallelism.pipeline_parallel_layers_per_stage", each.into()));
        }
        set(("parallelism.pipeline_parallel_first_stage_less_layers", first.into()));
        set(("parallelism.pipeline_parallel_last_stage_less_layers", last.into()));
    }
    settings.take(&["expert"]).into_iter().for_each(&mut set);
    let compiled = plan.loss == Some(Loss::Compiled);
    set(("compile.enable", compiled.into()));
    settings.rest().for_each(&mut set);
    say(format!("config.activation_checkpoint = {activations}"));
    say("return config".to_owned());
    lines.join("\n") + "\n"
}

/// A value as Python writes it.
fn python(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        value => value.to_string(),
    }
}
