//! A configuration of Hugging Face Accelerate for PyTorch's FSDP (huggingface.co/docs/accelerate, FSDP).

use super::{Launch, cannot, refuse_buckets};
use stepcast_core::fault::Fault;
use stepcast_core::strategy::{Attention, Recompute, Sharding};

pub(super) fn file(launch: &Launch<'_>) -> Result<String, Fault> {
    let plan = launch.plan;
    refuse_buckets("FSDP", plan)?;
    for (ranks, what, key) in [
        (plan.tensor, "tensor parallelism", "tensor"),
        (plan.context, "context parallelism", "context"),
        (plan.pipeline, "a pipeline", "pipeline"),
        (plan.expert, "expert parallelism", "expert"),
    ] {
        if ranks > 1 {
            return Err(cannot("FSDP alone", what, &format!("plan.{key}=[1]")));
        }
    }
    let strategy = match plan.sharding {
        Sharding::None => "NO_SHARD",
        Sharding::Zero2 => "SHARD_GRAD_OP",
        Sharding::Zero3 => "FULL_SHARD",
        Sharding::Hsdp if plan.sharding_group == Some(launch.workers_per_node) => "HYBRID_SHARD",
        Sharding::Hsdp => {
            let set = format!("plan.sharding-group=[{}]", launch.workers_per_node);
            return Err(cannot("FSDP by Accelerate", "groups that are not machines", &set));
        }
        Sharding::Zero1 | Sharding::Keep => {
            let set = "plan.sharding=[\"none\", \"zero-2\", \"zero-3\", \"hsdp\"]";
            return Err(cannot("FSDP", &format!("`{}`", plan.sharding), set));
        }
    };
    let recomputation = plan.recomputation();
    let kept = plan.attention == Attention::Unfused && recomputation.what == Recompute::Attention;
    if kept || recomputation.what == Recompute::Operators {
        let set = "plan.recompute=[\"none\", \"layer\"]";
        return Err(cannot("FSDP by Accelerate", "recomputation within a layer", set));
    }
    let recompute = recomputation.what == Recompute::Layer;
    Ok(format!(
        "distributed_type: FSDP\nmixed_precision: bf16\nnum_machines: {}\nnum_processes: {}\n\
         fsdp_config:\n  fsdp_version: 1\n  fsdp_sharding_strategy: {strategy}\n\
         \x20 fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_backward_prefetch: BACKWARD_PRE\n\
         \x20 fsdp_forward_prefetch: true\n  fsdp_activation_checkpointing: {recompute}\n\
         # in the trainer: per_device_train_batch_size={}, gradient_accumulation_steps={}\n",
        launch.nodes,
        launch.nodes * launch.workers_per_node,
        plan.micro_batch,
        launch.micro_batches,
    ))
}
