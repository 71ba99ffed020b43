//! A configuration of DeepSpeed (deepspeed.ai/docs/config-json).

use super::{Launch, cannot};
use serde_json::{Map, Value, json};
use stepcast_core::fault::Fault;
use stepcast_core::strategy::{Attention, ContextExchange, Recompute, ScheduleKind, Sharding, States};

pub(super) fn file(launch: &Launch<'_>) -> Result<String, Fault> {
    let plan = launch.plan;
    if plan.pipeline > 1 && plan.sharding.stage() > 1 {
        let what = format!("`{}` with a pipeline", plan.sharding);
        return Err(cannot("DeepSpeed", &what, "plan.sharding=[\"none\", \"zero-1\"]"));
    }
    if plan.virtual_stages > 1 {
        return Err(cannot("DeepSpeed", "several chunks on a stage", "plan.virtual-stages=[1]"));
    }
    refuse(launch)?;
    let mut zero = Map::new();
    zero.insert("stage".to_owned(), plan.sharding.stage().into());
    zero.insert("overlap_comm".to_owned(), plan.overlaps().gradients.into());
    zero.insert("contiguous_gradients".to_owned(), true.into());
    if let Some(parameters) = plan.bucket {
        zero.insert("reduce_bucket_size".to_owned(), parameters.into());
        zero.insert("allgather_bucket_size".to_owned(), parameters.into());
    }
    if plan.sharding.stage() == 3 && !plan.overlaps().prefetch {
        zero.insert("stage3_prefetch_bucket_size".to_owned(), 0.into());
    }
    if let (Sharding::Hsdp, Some(group)) = (plan.sharding, plan.sharding_group) {
        zero.insert("mics_shard_size".to_owned(), group.into());
    }
    let offloaded = plan.offloaded();
    if offloaded.optimiser {
        zero.insert("offload_optimizer".to_owned(), json!({ "device": "cpu", "pin_memory": true }));
    }
    if offloaded.activations && plan.recomputation().what != Recompute::Layer {
        let set = "strategy.plan.offload=[\"optimiser\"]";
        return Err(cannot("DeepSpeed", "offloading of activations without recomputation", set));
    }
    let mut file = Map::new();
    let mut set = |key: &str, value: Value| file.insert(key.to_owned(), value);
    set("train_batch_size", launch.global_batch().into());
    set("train_micro_batch_size_per_gpu", plan.micro_batch.into());
    set("gradient_accumulation_steps", launch.micro_batches.into());
    match plan.states {
        States::Fp32 => None,
        States::MegatronFp16 => set("fp16", json!({ "enabled": true })),
        _ => set("bf16", json!({ "enabled": true })),
    };
    set("zero_optimization", Value::Object(zero));
    if plan.tensor > 1 {
        set("tensor_parallel", json!({ "autotp_size": plan.tensor }));
    }
    if plan.context > 1 {
        set("sequence_parallel_size", plan.context.into());
    }
    if plan.pipeline > 1 {
        set("pipeline", json!({ "stages": plan.pipeline }));
    }
    if plan.recomputation().what == Recompute::Layer {
        set(
            "activation_checkpointing",
            json!({ "partition_activations": plan.tensor > 1, "cpu_checkpointing": offloaded.activations }),
        );
    }
    serde_json::to_string_pretty(&Value::Object(file))
        .map(|text| text + "\n")
        .map_err(|error| Fault::new(error.to_string(), "choose another framework"))
}

/// What DeepSpeed has no words for.
fn refuse(launch: &Launch<'_>) -> Result<(), Fault> {
    let plan = launch.plan;
    let kept = plan.attention == Attention::Unfused && plan.recomputation().what == Recompute::Attention;
    let cases = [
        (plan.sequence_parallel, "sequence parallelism", "plan.sequence-parallel=[false]"),
        (
            plan.context > 1 && plan.context_exchange != ContextExchange::AllToAll,
            "a ring of context-parallel ranks",
            "strategy.plan.context-exchange=all-to-all",
        ),
        (
            plan.pipeline > 1 && plan.schedule_kind() != ScheduleKind::OneFOneB,
            "a schedule other than `1f1b`",
            "plan.schedule=[\"1f1b\"]",
        ),
        (plan.expert > 1, "expert parallelism by its file", "plan.expert=[1]"),
        (
            kept || plan.recomputation().what == Recompute::Operators,
            "recomputation within a layer",
            "plan.recompute=[\"none\", \"layer\"]",
        ),
        (plan.sharding == Sharding::Keep, "`fsdp-keep`", "plan.sharding=[\"zero-2\", \"zero-3\"]"),
    ];
    match cases.into_iter().find(|(found, ..)| *found) {
        Some((_, what, set)) => Err(cannot("DeepSpeed", what, set)),
        None => Ok(()),
    }
}
