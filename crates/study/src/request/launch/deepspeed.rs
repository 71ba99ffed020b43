//! A configuration of DeepSpeed (deepspeed.ai/docs/config-json).

use super::emit::{Launch, Proposal, Refusal, first};
use super::keys::Keys;
use super::settings::{Settings, insert};
use super::{Framework, Group, Launched};
use serde_json::{Map, Value};
use stepcast_core::fault::Fault;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{
    ContextExchange, Implementation, OverlapPreset, Recompute, ScheduleKind, Sharding, States,
};

/// Keys without effect on the time of a step.
const WITHOUT_EFFECT: &str = include_str!("deepspeed_without_effect.txt");

/// Whether an object of JSON is such a configuration.
pub(super) fn recognises(tree: &serde_json::Value) -> bool {
    ["zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"]
        .iter()
        .any(|key| tree.get(key).is_some())
}

pub(super) fn read(mut keys: Keys) -> Result<Launched, Fault> {
    let mut launched = Launched::read("DeepSpeed", &mut keys, Framework::Deepspeed)?;
    launched.plan.overlap = Some(OverlapPreset::Deepspeed);
    launched.plan.implementation = Some(Implementation::HuggingFace);
    launched.exchange(ContextExchange::AllToAll);
    sharding(&mut keys, &mut launched)?;
    let plan = &mut launched.plan;
    let half = keys.truth("fp16.enabled")?.unwrap_or(false);
    let mixed = half || keys.truth("bf16.enabled")?.unwrap_or(false);
    plan.states = Some(if mixed { States::MixedFp16 } else { States::Fp32 });
    launched.precision = match (half, mixed) {
        (true, _) => Some(Precision::Fp16),
        (false, true) => Some(Precision::Bf16),
        (false, false) => Some(Precision::Fp32),
    };
    let checkpoints = ["partition_activations", "cpu_checkpointing", "number_checkpoints"];
    let checkpoints = checkpoints.map(|key| format!("activation_checkpointing.{key}"));
    if checkpoints.iter().any(|key| keys.has(key)) {
        plan.recompute = Some(vec![Recompute::Layer]);
        keys.forget("activation_checkpointing.partition_activations activation_checkpointing.number");
    }
    let accumulated = keys.number("gradient_accumulation_steps")?;
    match (plan.global_batch, plan.micro_batch, accumulated) {
        (Some(whole), Some(micro), Some(accumulated)) => {
            let replicas = whole / micro.saturating_mul(accumulated).max(1);
            let ranks = launched.ranks();
            launched.workers = Some(ranks.iter().fold(replicas, |all, ranks| all.saturating_mul(*ranks)));
        }
        (None, Some(micro), accumulated) => {
            launched.replica_batch = Some(micro.saturating_mul(accumulated.unwrap_or(1)));
        }
        _ => {}
    }
    Ok(launched.without(keys, WITHOUT_EFFECT))
}

fn sharding(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let group = keys.number("zero_optimization.mics_shard_size")?;
    let stage = keys.number("zero_optimization.stage")?.unwrap_or(0);
    launched.plan.sharding = Some(match (stage, group) {
        (0, _) => Sharding::None,
        (1, _) => Sharding::Zero1,
        (2, _) => Sharding::Zero2,
        (3, None) => Sharding::Zero3,
        (3, Some(group)) => {
            launched.group = Some(Group::Of(group));
            Sharding::Hsdp
        }
        (other, _) => {
            let reason = format!("`zero_optimization.stage` is {other}");
            return Err(Fault::new(reason, "use 0, 1, 2 or 3"));
        }
    });
    // Overlap is the default only with ZeRO 3.
    let overlapped = keys.truth("zero_optimization.overlap_comm")?.unwrap_or(stage == 3);
    launched.plan.overlap_gradients = (!overlapped).then_some(false);
    if keys.number("zero_optimization.stage3_prefetch_bucket_size")? == Some(0) {
        launched.plan.overlap_prefetch = Some(false);
    }
    Ok(())
}

/// The configuration of a plan.
pub(super) fn write(launch: &Launch<'_>, mut settings: Settings) -> Result<String, Fault> {
    let plan = launch.plan;
    let stage = plan.sharding.stage();
    let mut file = Map::new();
    let mut set = |(key, value): (&str, Value)| insert(&mut file, key, value);
    settings.take(&["global-batch", "micro-batch"]).into_iter().for_each(&mut set);
    set(("gradient_accumulation_steps", launch.micro_batches.into()));
    match plan.states {
        States::Fp32 => {}
        States::MegatronFp16 => set(("fp16.enabled", true.into())),
        _ => set(("bf16.enabled", true.into())),
    }
    set(("zero_optimization.stage", stage.into()));
    set(("zero_optimization.overlap_comm", plan.overlaps().gradients.into()));
    set(("zero_optimization.contiguous_gradients", true.into()));
    for (key, value) in settings.take(&["bucket"]) {
        set((key, value.clone()));
        set(("zero_optimization.allgather_bucket_size", value));
    }
    if stage == 3 && !plan.overlaps().prefetch {
        set(("zero_optimization.stage3_prefetch_bucket_size", 0.into()));
    }
    if let (Sharding::Hsdp, Some(group)) = (plan.sharding, plan.sharding_group) {
        set(("zero_optimization.mics_shard_size", group.into()));
    }
    let offloaded = plan.offloaded();
    if offloaded.optimiser {
        set(("zero_optimization.offload_optimizer.device", "cpu".into()));
        set(("zero_optimization.offload_optimizer.pin_memory", true.into()));
    }
    settings.rest().for_each(&mut set);
    if plan.recomputation().what == Recompute::Layer {
        set(("activation_checkpointing.partition_activations", (plan.tensor > 1).into()));
        set(("activation_checkpointing.cpu_checkpointing", offloaded.activations.into()));
    }
    serde_json::to_string_pretty(&Value::Object(file))
        .map(|text| text + "\n")
        .map_err(|error| Fault::new(error.to_string(), "choose another framework"))
}

/// Plans that DeepSpeed does not run.
pub(super) fn refusal(asked: &Proposal<'_>) -> Option<Refusal> {
    let Proposal { base, choice, .. } = *asked;
    let recompute = choice.recompute.what;
    let staged = choice.pipeline > 1;
    first([
        (
            choice.tensor > 1 && choice.sequence_parallel,
            ("sequence parallelism", "plan.sequence-parallel=[false]"),
        ),
        (choice.virtual_stages > 1, ("several chunks on a stage", "plan.virtual-stages=[1]")),
        (
            staged && choice.schedule != ScheduleKind::OneFOneB,
            ("a schedule other than `1f1b`", "plan.schedule=[\"1f1b\"]"),
        ),
        (choice.expert > 1, ("expert parallelism by its file", "plan.expert=[1]")),
        (
            staged && choice.sharding.stage() > 1,
            ("gradients or weights in parts with a pipeline", "plan.sharding=[\"none\", \"zero-1\"]"),
        ),
        (
            choice.context > 1 && base.context_exchange != ContextExchange::AllToAll,
            ("a ring of context-parallel ranks", "strategy.plan.context-exchange=all-to-all"),
        ),
        (choice.recompute.layers.is_some(), ("recomputation of some layers", "plan.recompute-some=false")),
        (recompute.is_within(), ("recomputation within a layer", "plan.recompute=[\"none\", \"layer\"]")),
        (choice.sharding == Sharding::Keep, ("`fsdp-keep`", "plan.sharding=[\"zero-2\", \"zero-3\"]")),
        (
            base.offloaded().activations && recompute != Recompute::Layer,
            ("offloading of activations without recomputation", "strategy.plan.offload=[\"optimiser\"]"),
        ),
    ])
}
