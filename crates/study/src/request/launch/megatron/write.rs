//! A plan as flags of Megatron-LM.
//!
//! Flags that must be given together are asserted in `validate_args` of `megatron/training/arguments.py`; the tests
//! have a table of these assertions.

use super::super::Framework;
use super::super::emit::{Launch, Proposal, Refusal, first};
use super::super::settings::Settings;
use super::{MODULES, PADDED, stages};
use serde_json::Value;
use stepcast_core::model::transformer::{Mlp, NormKind, Transformer};
use stepcast_core::strategy::{Dispatcher, Recipe, Recompute, ScheduleKind, Sharding, States};

/// Plans that Megatron-LM does not run.
pub(in super::super) fn refusal(asked: &Proposal<'_>) -> Option<Refusal> {
    let Proposal { shape, choice, base, .. } = *asked;
    let interleaved = choice.schedule == ScheduleKind::Interleaved;
    let scheduled = interleaved || choice.schedule == ScheduleKind::OneFOneB;
    let experts = shape.experts.is_some();
    let recompute = choice.recompute;
    first([
        (
            choice.pipeline > 1 && !scheduled,
            ("a schedule other than `1f1b` and `interleaved`", "plan.schedule=[\"1f1b\", \"interleaved\"]"),
        ),
        (
            choice.sharding == Sharding::Keep,
            ("`fsdp-keep`", "plan.sharding=[\"none\", \"zero-1\", \"zero-2\", \"zero-3\", \"hsdp\"]"),
        ),
        (
            recompute.what == Recompute::Operators,
            ("recomputation of operators", "plan.recompute=[\"none\", \"attention\", \"layer\"]"),
        ),
        (
            base.recipe == Recipe::Fp8Delayed
                && (recompute.what.has(Recompute::Norms) || recompute.what.has(Recompute::Activation)),
            (
                "recomputed norms or activations with delayed scales",
                "plan.recompute=[\"none\", \"mlp\", \"layer\"]",
            ),
        ),
        (
            recompute.what.has(Recompute::Activation) && base.states == States::Fp32,
            (
                "recomputed activations of experts that are not grouped",
                "plan.recompute=[\"none\", \"mlp\", \"layer\"]",
            ),
        ),
        (
            recompute.what.is_within() && recompute.layers.is_some(),
            ("recomputation of a part of some layers", "plan.recompute-some=false"),
        ),
        (
            choice.context > 1 && !shape.sequence.is_multiple_of(2 * choice.context),
            ("sequences that twice the context-parallel ranks do not divide", "plan.context=[1]"),
        ),
        (
            experts && choice.tensor > 1 && !choice.sequence_parallel,
            ("experts with tensor but without sequence parallelism", "plan.sequence-parallel=[true, false]"),
        ),
        (
            base.overlap_experts
                && (choice.expert == 1
                    || base.dispatcher == Some(Dispatcher::AllGather)
                    || [Recompute::Mlp, Recompute::Layer].iter().any(|part| recompute.what.has(*part))
                    || choice.pipeline > 1 && choice.virtual_stages == 1),
            ("expert traffic beside another micro-batch here", "strategy.plan.overlap-experts=false"),
        ),
        (
            experts && choice.expert > 1 && base.states == States::MegatronFp16,
            ("expert parallelism in fp16", "strategy.plan.states=megatron-bf16"),
        ),
    ])
}

/// The flags of a plan.
pub(in super::super) fn write(launch: &Launch<'_>, mut settings: Settings) -> String {
    let Launch { shape, plan, nodes, workers_per_node, .. } = *launch;
    let fsdp = matches!(plan.sharding, Sharding::Zero2 | Sharding::Zero3 | Sharding::Hsdp);
    // One queue to the device keeps the order of traffic and products; Megatron's FSDP asserts more.
    let queues = match (fsdp, plan.tensor > 1 || plan.context > 1) {
        (false, true) => "CUDA_DEVICE_MAX_CONNECTIONS=1 ",
        (true, _) => "CUDA_DEVICE_MAX_CONNECTIONS=8 ",
        (false, false) => "",
    };
    let mut flags = vec![format!(
        "{queues}torchrun --nnodes {nodes} --nproc-per-node {workers_per_node} pretrain_gpt.py"
    )];
    flags.extend(model_flags(shape, plan.tensor));
    flags.extend(settings.take_if("expert", shape.experts.is_some()).map(flag));
    let mut push = |condition: bool, flag: &str| {
        if condition {
            flags.push(flag.to_owned());
        }
    };
    // Without expert parallelism nothing is sent, and Megatron-LM asserts that there is some with `flex`.
    settings.take(&["dispatcher"]);
    let dispatcher = if plan.expert > 1 { plan.dispatcher_kind() } else { Dispatcher::AllToAll };
    push(shape.experts.is_some(), &format!("--moe-token-dispatcher-type {dispatcher}"));
    push(dispatcher == Dispatcher::Flex, "--moe-flex-dispatcher-backend deepep --moe-router-dtype fp32");
    if let Some((name, most)) = settings.take(&["expert-nodes"]).pop() {
        let machines = plan.expert.div_ceil(workers_per_node);
        push(true, &format!("--moe-router-num-groups {machines} {name} {most}"));
    }
    push(shape.experts.is_some() && plan.states != States::Fp32, "--moe-grouped-gemm");
    push(shape.experts.is_some() && plan.tensor > 1, "--expert-tensor-parallel-size 1");
    flags.extend(settings.take(&["tensor", "sequence-parallel", "context"]).into_iter().map(flag));
    flags.extend(settings.take_if("context-exchange", plan.context > 1).map(flag));
    flags.extend(settings.take(&["pipeline"]).into_iter().map(flag));
    let chunks = settings.take(&["virtual-stages"]);
    let divided = stages::written(plan, shape.layers, launch.ends());
    let counts_chunks = divided.as_ref().is_some_and(|(_, counts)| *counts);
    flags.extend(chunks.into_iter().filter(|_| !counts_chunks).map(flag));
    flags.extend(divided.map(|(flags, _)| flags));
    let overlaps = plan.overlaps();
    if plan.virtual_stages > 1 && !overlaps.sends {
        flags.push("--no-overlap-p2p-communication".to_owned());
    }
    flags.extend(settings.take(&["micro-batch", "global-batch"]).into_iter().map(flag));
    let mut push = |condition: bool, flag: String| {
        if condition {
            flags.push(flag);
        }
    };
    push(plan.sharding == Sharding::Zero1, "--use-distributed-optimizer".to_owned());
    if fsdp {
        let strategy = if plan.sharding == Sharding::Zero2 { "optim_grads" } else { "optim_grads_params" };
        push(
            true,
            format!(
                "--use-megatron-fsdp --use-distributed-optimizer --no-gradient-accumulation-fusion \
                 --ckpt-format fsdp_dtensor --data-parallel-sharding-strategy {strategy}"
            ),
        );
    }
    if let (Sharding::Hsdp, Some(group)) = (plan.sharding, plan.sharding_group) {
        let groups = launch.data * plan.context / group;
        push(true, format!("--num-distributed-optimizer-instances {groups}"));
    }
    push(overlaps.gradients, "--overlap-grad-reduce".to_owned());
    settings.take(&["bucket"]).into_iter().for_each(|own| push(true, flag(own)));
    let gathers = overlaps.weights && overlaps.gradients && plan.sharding != Sharding::None;
    push(gathers, "--overlap-param-gather".to_owned());
    let recompute = plan.recomputation();
    let modules = MODULES
        .iter()
        .filter(|(name, part)| recompute.what.has(*part) && (shape.experts.is_some() || *name != "moe"));
    let modules: Vec<&str> = modules.map(|(name, _)| *name).collect();
    if recompute.what == Recompute::Layer {
        let (method, layers) = recompute.layers.map_or(("uniform", 1), |layers| ("block", layers));
        let flags = format!(
            "--recompute-granularity full --recompute-method {method} --recompute-num-layers {layers}"
        );
        push(true, flags);
    } else if !modules.is_empty() {
        let modules = modules.join(" ");
        push(true, format!("--recompute-granularity selective --recompute-modules {modules}"));
    }
    settings.take(&["attention"]).into_iter().for_each(|own| push(true, flag(own)));
    push(!plan.dropout, "--hidden-dropout 0 --attention-dropout 0".to_owned());
    match plan.states {
        States::Fp32 => {}
        States::MegatronFp16 => push(true, "--fp16".to_owned()),
        States::MixedFp16 => push(true, "--bf16 --grad-reduce-in-bf16".to_owned()),
        _ => push(true, "--bf16".to_owned()),
    }
    settings.take(&["recipe"]).into_iter().for_each(|own| {
        push(
            true,
            match plan.recipe {
                Recipe::Nvfp4 => "--fp4-format e2m1 --fp4-recipe nvfp4".to_owned(),
                _ => format!("--fp8-format hybrid {}", flag(own)),
            },
        );
    });
    flags.extend(settings.rest().map(flag));
    flags.push("--mock-data --train-iters 20 --lr 1e-4".to_owned());
    let title = format!("# {}; made-up data until --data-path gives some.\n", Framework::Megatron.title());
    title + &unsaid(shape) + &flags.join(" \\\n  ") + "\n"
}

/// A flag with its value; `true` has none.
fn flag((name, value): (&'static str, Value)) -> String {
    match value {
        Value::Bool(_) => name.to_owned(),
        Value::String(word) => format!("{name} {word}"),
        value => format!("{name} {value}"),
    }
}

/// Flags of the model.
fn model_flags(shape: &Transformer, tensor: u64) -> Vec<String> {
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
    // With latent attention, the norms of its narrow projections.
    push(shape.qk_norm || shape.mla.is_some(), "--qk-layernorm".to_owned());
    push(!shape.tied, "--untie-embeddings-and-output-weights".to_owned());
    // The largest padding that leaves these rows as they are.
    let halves = std::iter::successors(Some(PADDED), |padding| (*padding > 1).then_some(padding / 2));
    let padding = halves.into_iter().find(|padding| shape.vocabulary.is_multiple_of(padding * tensor));
    let padding = padding.unwrap_or(1);
    // This tokeniser has one more token, for the end of a document.
    let rows = shape.vocabulary.saturating_sub(1);
    let vocabulary = format!(
        "--tokenizer-type NullTokenizer --vocab-size {rows} --make-vocab-size-divisible-by {padding}"
    );
    push(true, vocabulary);
    if let Some(experts) = shape.experts {
        push(true, format!("--num-experts {} --moe-router-topk {}", experts.count, experts.active));
        push(true, format!("--moe-ffn-hidden-size {}", experts.width));
        let shared = format!("--moe-shared-expert-intermediate-size {}", experts.shared_width);
        push(experts.shared_width > 0, shared);
        let sparse = shape.layers.saturating_sub(experts.dense_layers);
        let layers = match experts.every {
            1 => format!("--moe-layer-freq '([0]*{}+[1]*{sparse})'", experts.dense_layers),
            every => format!("--moe-layer-freq '([0]*{}+[1]*1)*{}'", every - 1, shape.layers / every),
        };
        push(experts.dense_layers > 0 || experts.every > 1, layers);
        let bias = "--moe-router-score-function sigmoid --moe-router-enable-expert-bias";
        push(experts.router_bias, bias.to_owned());
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

/// A comment with properties that no flag can express.
fn unsaid(shape: &Transformer) -> String {
    let parts = [
        (shape.window.is_some(), "attention within a window"),
        (shape.pattern.is_some(), "layers of several kinds"),
        (shape.attention_gate, "a gate of attention"),
        (shape.sandwich, "norms behind each half of a layer"),
        (shape.qk_norm_joint, "norms of queries and keys over all heads"),
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
