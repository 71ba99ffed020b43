//! Flags of Megatron-LM (docs.nvidia.com/megatron-core, user guide; `megatron/training/arguments.py`).

use super::{Launch, cannot};
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{Mlp, NormKind, Transformer};
use stepcast_core::strategy::{Attention, ContextExchange, Recompute, ScheduleKind, Sharding, States};

/// Rows of the vocabulary are padded to a multiple of this for each tensor-parallel rank.
const PADDED: u64 = 128;

pub(super) fn flags(launch: &Launch<'_>) -> Result<String, Fault> {
    let Launch { shape, plan, nodes, workers_per_node, .. } = *launch;
    if !matches!(plan.schedule_kind(), ScheduleKind::OneFOneB | ScheduleKind::Interleaved) {
        let what = format!("`{}`", plan.schedule_kind());
        return Err(cannot("Megatron-LM", &what, "plan.schedule=[\"1f1b\", \"interleaved\"]"));
    }
    let mut flags =
        vec![format!("torchrun --nnodes {nodes} --nproc-per-node {workers_per_node} pretrain_gpt.py")];
    flags.extend(model(shape, plan.tensor));
    let mut push = |condition: bool, flag: String| {
        if condition {
            flags.push(flag);
        }
    };
    push(shape.experts.is_some(), format!("--expert-model-parallel-size {}", plan.expert));
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
    if let Some(layers) = &plan.stage_layers {
        push(true, divided(layers, launch.ends().filter(|_| plan.virtual_stages == 1)));
    }
    let overlaps = plan.overlaps();
    let in_turn = plan.virtual_stages > 1 && !overlaps.sends;
    push(in_turn, "--no-overlap-p2p-communication".to_owned());
    push(true, format!("--micro-batch-size {}", plan.micro_batch));
    push(true, format!("--global-batch-size {}", launch.global_batch()));
    let sharded = |strategy: &str| {
        format!(
            "--use-megatron-fsdp --use-distributed-optimizer --no-gradient-accumulation-fusion --data-parallel-sharding-strategy {strategy}"
        )
    };
    match plan.sharding {
        Sharding::None => {}
        Sharding::Zero1 => push(true, "--use-distributed-optimizer".to_owned()),
        Sharding::Zero2 => push(true, sharded("optim_grads")),
        Sharding::Zero3 => push(true, sharded("optim_grads_params")),
        Sharding::Keep => {
            let set = "plan.sharding=[\"none\", \"zero-1\", \"zero-2\", \"zero-3\", \"hsdp\"]";
            return Err(cannot("Megatron-LM", "`fsdp-keep`", set));
        }
        Sharding::Hsdp => {
            let groups = launch.data * plan.context / plan.sharding_group.unwrap_or(1);
            push(true, sharded("optim_grads_params"));
            push(true, format!("--num-distributed-optimizer-instances {groups}"));
        }
    }
    push(overlaps.gradients, "--overlap-grad-reduce".to_owned());
    if let Some(parameters) = plan.bucket {
        push(true, format!("--ddp-bucket-size {parameters}"));
    }
    push(overlaps.weights && plan.sharding != Sharding::None, "--overlap-param-gather".to_owned());
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
    push(plan.attention == Attention::Unfused, "--attention-backend unfused".to_owned());
    push(!plan.dropout, "--hidden-dropout 0 --attention-dropout 0".to_owned());
    match plan.states {
        States::Fp32 => {}
        States::MegatronFp16 => push(true, "--fp16".to_owned()),
        _ => push(true, "--bf16".to_owned()),
    }
    push(plan.float8, "--fp8-format hybrid".to_owned());
    Ok(unsaid(shape) + &flags.join(" \\\n  ") + "\n")
}

/// The layers of every virtual stage: by those of the ends, or one by one (`E` embedding, `t` layer, `L` loss).
fn divided(layers: &[u64], ends: Option<[u64; 3]>) -> String {
    if let Some([first, _, last]) = ends {
        return format!(
            "--decoder-first-pipeline-num-layers {first} --decoder-last-pipeline-num-layers {last}"
        );
    }
    let stages: Vec<String> = layers.iter().map(|layers| format!("t*{layers}")).collect();
    format!("--pipeline-model-parallel-layout 'E{}L'", stages.join("|"))
}

/// What is trained.
fn model(shape: &Transformer, tensor: u64) -> Vec<String> {
    let mut flags = vec![
        format!("--num-layers {}", shape.layers),
        format!("--hidden-size {}", shape.hidden),
        format!("--num-attention-heads {}", shape.heads),
        format!("--ffn-hidden-size {}", shape.mlp_width),
        format!("--seq-length {}", shape.sequence),
        format!("--max-position-embeddings {}", shape.positions.max(shape.sequence)),
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
    push(shape.head_width * shape.heads != shape.hidden, format!("--kv-channels {}", shape.head_width));
    push(shape.mlp == Mlp::Swiglu, "--swiglu".to_owned());
    push(shape.norm == NormKind::Rms, "--normalization RMSNorm".to_owned());
    push(shape.positions == 0, "--position-embedding-type rope".to_owned());
    push(!shape.bias, "--disable-bias-linear".to_owned());
    push(shape.qkv_bias && !shape.bias, "--add-qkv-bias".to_owned());
    push(shape.qk_norm, "--qk-layernorm".to_owned());
    push(!shape.tied, "--untie-embeddings-and-output-weights".to_owned());
    // The largest padding that leaves these rows as they are.
    let halves = std::iter::successors(Some(PADDED), |padding| (*padding > 1).then_some(padding / 2));
    let padding = halves.into_iter().find(|padding| shape.vocabulary.is_multiple_of(padding * tensor));
    let padding = padding.unwrap_or(1);
    push(true, format!("--vocab-size {} --make-vocab-size-divisible-by {padding}", shape.vocabulary));
    if let Some(experts) = shape.experts {
        push(true, format!("--num-experts {} --moe-router-topk {}", experts.count, experts.active));
        push(true, format!("--moe-ffn-hidden-size {}", experts.width));
        let shared = format!("--moe-shared-expert-intermediate-size {}", experts.shared_width);
        push(experts.shared_width > 0, shared);
        let sparse = shape.layers.saturating_sub(experts.dense_layers);
        let layers = format!("--moe-layer-freq '([0]*{}+[1]*{sparse})'", experts.dense_layers);
        push(experts.dense_layers > 0, layers);
        push(experts.router_bias, "--moe-router-enable-expert-bias".to_owned());
    }
    if let Some(mla) = shape.mla {
        push(true, format!("--multi-latent-attention --kv-lora-rank {}", mla.key_value_rank));
        push(mla.query_rank > 0, format!("--q-lora-rank {}", mla.query_rank));
        let widths =
            [("--qk-head-dim", mla.nope), ("--qk-pos-emb-head-dim", mla.rope), ("--v-head-dim", mla.value)];
        push(true, widths.map(|(flag, width)| format!("{flag} {width}")).join(" "));
    }
    flags
}

/// A comment that names what no flag says.
fn unsaid(shape: &Transformer) -> String {
    let parts = [
        (shape.window.is_some(), "attention within a window"),
        (shape.sandwich, "norms behind each half of a layer"),
        (shape.embedding_norm, "a norm behind the embedding"),
        (!shape.causal, "attention in both directions"),
        (shape.norm == NormKind::LayerNoBias, "norms without a shift"),
    ];
    let parts: Vec<&str> = parts.into_iter().filter_map(|(has, what)| has.then_some(what)).collect();
    match parts.is_empty() {
        true => String::new(),
        false => format!("# The model also has {}, which these flags do not say.\n", parts.join(", ")),
    }
}
