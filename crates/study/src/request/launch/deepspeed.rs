//! A configuration of DeepSpeed (deepspeed.ai/docs/config-json).

use super::keys::Keys;
use super::{Group, Launched};
use stepcast_core::fault::Fault;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{ContextExchange, OverlapPreset, Recompute, Sharding, States};

/// Keys that say nothing about the time of a step.
const WITHOUT_EFFECT: &str = "\
    zero_optimization.allgather_bucket_size \
    zero_optimization.stage3_param_persistence_threshold \
    optimizer. scheduler. gradient_clipping steps_per_print wall_clock_breakdown dump_state fp16. bf16. \
    tensorboard. wandb. csv_monitor. comet. flops_profiler. checkpoint. data_types. \
    zero_allow_untested_optimizer zero_force_ds_cpu_optimizer prescale_gradients \
    zero_optimization.stage3_gather_16bit_weights_on_model_save zero_optimization.round_robin_gradients \
    zero_optimization.contiguous_gradients zero_optimization.reduce_scatter gradient_predivide_factor \
    zero_optimization.allgather_partitions zero_optimization.sub_group_size \
    zero_optimization.load_from_fp32_weights zero_optimization.stage3_max_live_parameters \
    zero_optimization.stage3_max_reuse_distance communication_data_type seq_parallel_communication_data_type \
    comms_logger. elasticity. autotuning. memory_breakdown torch_autocast.";

/// Whether an object of JSON is such a configuration.
pub(super) fn recognises(tree: &serde_json::Value) -> bool {
    ["zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size"]
        .iter()
        .any(|key| tree.get(key).is_some())
}

pub(super) fn read(mut keys: Keys) -> Result<Launched, Fault> {
    let mut launched = Launched::of("DeepSpeed");
    let plan = &mut launched.plan;
    plan.overlap = Some(OverlapPreset::Deepspeed);
    plan.tensor = keys.number("tensor_parallel.autotp_size")?;
    plan.pipeline = keys.number("pipeline.stages")?;
    plan.context = keys.number("sequence_parallel_size")?;
    if plan.context.is_some_and(|ranks| ranks > 1) {
        plan.context_exchange = Some(ContextExchange::AllToAll);
    }
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
    let whole = keys.number("train_batch_size")?;
    let micro = keys.number("train_micro_batch_size_per_gpu")?;
    let accumulated = keys.number("gradient_accumulation_steps")?;
    plan.micro_batch = micro;
    plan.global_batch = whole;
    match (whole, micro, accumulated) {
        (Some(whole), Some(micro), Some(accumulated)) => {
            let replica = micro.saturating_mul(accumulated).max(1);
            let ranks = [plan.tensor, plan.context, plan.pipeline].map(|ranks| ranks.unwrap_or(1));
            let product = ranks.iter().fold(whole / replica, |all, ranks| all.saturating_mul(*ranks));
            launched.workers = Some(product);
        }
        (None, Some(micro), accumulated) => {
            launched.replica_batch = Some(micro.saturating_mul(accumulated.unwrap_or(1)));
        }
        _ => {}
    }
    keys.forget(WITHOUT_EFFECT);
    launched.unknown = keys.rest();
    Ok(launched)
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
    // Overlap is usual with ZeRO 3 alone.
    let overlapped = keys.truth("zero_optimization.overlap_comm")?.unwrap_or(stage == 3);
    launched.plan.overlap_gradients = (!overlapped).then_some(false);
    launched.plan.bucket = keys.number("zero_optimization.reduce_bucket_size")?;
    if keys.number("zero_optimization.stage3_prefetch_bucket_size")? == Some(0) {
        launched.plan.overlap_prefetch = Some(false);
    }
    Ok(())
}
