//! Flags of Megatron-LM (docs.nvidia.com/megatron-core, user guide; `megatron/training/arguments.py`).

use super::{Launch, cannot};
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::Mlp;
use stepcast_core::strategy::{ContextExchange, Recompute, ScheduleKind, Sharding};

pub(super) fn flags(launch: &Launch<'_>) -> Result<String, Fault> {
    let Launch { shape, plan, nodes, workers_per_node, .. } = *launch;
    if !matches!(plan.schedule_kind(), ScheduleKind::OneFOneB | ScheduleKind::Interleaved) {
        let what = format!("`{}`", plan.schedule_kind());
        return Err(cannot("Megatron-LM", &what, "plan.schedule=[\"1f1b\", \"interleaved\"]"));
    }
    let mut flags = vec![
        format!("torchrun --nnodes {nodes} --nproc-per-node {workers_per_node} pretrain_gpt.py"),
        format!("--num-layers {}", shape.layers),
        format!("--hidden-size {}", shape.hidden),
        format!("--num-attention-heads {}", shape.heads),
        format!("--ffn-hidden-size {}", shape.mlp_width),
        format!("--seq-length {}", shape.sequence),
        format!("--max-position-embeddings {}", shape.sequence),
    ];
    let mut push = |condition: bool, flag: String| {
        if condition {
            flags.push(flag);
        }
    };
    push(
        shape.kv_heads != shape.heads,
        format!("--group-query-attention --num-query-groups {}", shape.kv_heads),
    );
    push(shape.mlp == Mlp::Swiglu, "--swiglu".to_owned());
    push(!shape.tied, "--untie-embeddings-and-output-weights".to_owned());
    if let Some(experts) = shape.experts {
        let top = format!("--num-experts {} --moe-router-topk {}", experts.count, experts.active);
        push(true, top);
        push(true, format!("--expert-model-parallel-size {}", plan.expert));
    }
    push(true, format!("--tensor-model-parallel-size {}", plan.tensor));
    push(plan.sequence_parallel, "--sequence-parallel".to_owned());
    push(true, format!("--context-parallel-size {}", plan.context));
    let exchange = match plan.context_exchange {
        ContextExchange::Ring => "p2p",
        ContextExchange::AllGather => "all_gather",
        ContextExchange::AllToAll => "a2a",
    };
    push(plan.context > 1, format!("--cp-comm-type {exchange}"));
    push(true, format!("--pipeline-model-parallel-size {}", plan.pipeline));
    let chunks = format!("--num-virtual-stages-per-pipeline-rank {}", plan.virtual_stages);
    push(plan.virtual_stages > 1, chunks);
    push(true, format!("--micro-batch-size {}", plan.micro_batch));
    push(true, format!("--global-batch-size {}", launch.global_batch()));
    let sharded = |strategy: &str| {
        format!(
            "--use-megatron-fsdp --use-distributed-optimizer --no-gradient-accumulation-fusion --data-parallel-sharding-strategy {strategy}"
        )
    };
    match plan.sharding {
        Sharding::None => push(true, "--overlap-grad-reduce".to_owned()),
        Sharding::Zero1 => {
            push(true, "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather".to_owned())
        }
        Sharding::Zero2 => push(true, sharded("optim_grads")),
        Sharding::Zero3 | Sharding::Keep => push(true, sharded("optim_grads_params")),
        Sharding::Hsdp => {
            let groups = launch.data * plan.context / plan.sharding_group.unwrap_or(1);
            push(true, sharded("optim_grads_params"));
            push(true, format!("--num-distributed-optimizer-instances {groups}"));
        }
    }
    let recompute = plan.recomputation();
    match recompute.what {
        Recompute::None => {}
        Recompute::Operators => {
            let set = "plan.recompute=[\"none\", \"attention\", \"layer\"]";
            return Err(cannot("Megatron-LM", "recomputation of operators", set));
        }
        Recompute::Attention if recompute.layers.is_some() => {
            return Err(cannot(
                "Megatron-LM",
                "recomputation of attention in some layers",
                "plan.recompute-some=false",
            ));
        }
        Recompute::Attention => push(true, "--recompute-granularity selective".to_owned()),
        Recompute::Layer => {
            let (method, layers) = recompute.layers.map_or(("uniform", 1), |layers| ("block", layers));
            let flags = format!(
                "--recompute-granularity full --recompute-method {method} --recompute-num-layers {layers}"
            );
            push(true, flags);
        }
    }
    push(true, "--bf16".to_owned());
    Ok(flags.join(" \\\n  ") + "\n")
}
