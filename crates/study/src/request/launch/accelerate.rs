//! A configuration of Hugging Face Accelerate for PyTorch's FSDP, DistributedDataParallel or DeepSpeed
//! (huggingface.co/docs/accelerate).
//!
//! Mixed precision is autocast, except under DeepSpeed, which has its own formats (`native_amp` of `Accelerator`, 1.15).
//! FSDP holds parameters in 32 bits whatever they were loaded in (`prepare_model`, `fsdp2_prepare_model`), and gathers them and
//! reduces gradients in 16 (`set_mixed_precision` of `FullyShardedDataParallelPlugin`).

use super::emit::{Launch, Proposal, Refusal, first};
use super::keys::Keys;
use super::{Framework, Group, Launched};
use stepcast_core::fault::Fault;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{
    ContextExchange, Implementation, OverlapPreset, Recipe, Recompute, Sharding, States,
};

/// Keys without effect on the time of a step.
const WITHOUT_EFFECT: &str = include_str!("accelerate_without_effect.txt");

/// Arguments of a trainer that its configuration lacks; a comment may give them.
const TRAINER: [&str; 2] = ["per_device_train_batch_size", "gradient_accumulation_steps"];
const CHECKPOINTING: &str = "gradient_checkpointing";

/// Whether a text is such a configuration.
pub(super) fn recognises(text: &str) -> bool {
    let begins = |line: &str| {
        ["distributed_type:", "compute_environment:", "fsdp_config:", "deepspeed_config:"]
            .iter()
            .any(|key| line.starts_with(key))
    };
    text.lines().any(begins)
}

pub(super) fn read(mut keys: Keys, text: &str) -> Result<Launched, Fault> {
    let mut launched = Launched::read("Accelerate", &mut keys, Framework::Fsdp)?;
    launched.exchange(ContextExchange::AllGather);
    let kind = keys.word("distributed_type").unwrap_or_else(|| "MULTI_GPU".to_owned());
    launched.workers = keys.number("num_processes")?;
    let machines = keys.number("num_machines")?;
    launched.per_machine =
        launched.workers.zip(machines.filter(|count| *count > 0)).map(|(all, by)| all / by);
    let precision = precision(&mut keys, &mut launched);
    launched.precision = Some(precision);
    launched.plan.implementation = Some(Implementation::HuggingFace);
    match kind.as_str() {
        "FSDP" => fsdp(&mut keys, &mut launched)?,
        "DEEPSPEED" => deepspeed(&mut keys, &mut launched)?,
        "MULTI_GPU" | "MULTI_CPU" | "NO" => {
            launched.plan.overlap = Some(OverlapPreset::Fsdp2);
            launched.plan.states = Some(States::Fp32);
        }
        other => {
            let remedy = "use FSDP, DEEPSPEED or MULTI_GPU";
            return Err(Fault::new(format!("`distributed_type` is {other}"), remedy));
        }
    }
    let [batch, accumulated] = TRAINER.map(|name| argument(text, name)?.parse().ok());
    if argument(text, CHECKPOINTING) == Some("true") {
        launched.plan.recompute = Some(vec![Recompute::Layer]);
    }
    launched.plan.micro_batch = batch;
    launched.replica_batch = batch.map(|batch| batch.saturating_mul(accumulated.unwrap_or(1)));
    if batch.is_none() {
        let what = "the batch is an argument of the trainer: one sequence on every worker is assumed";
        launched.notes.push(format!("{what}; `strategy.plan.micro-batch` sets another"));
        launched.replica_batch = Some(accumulated.unwrap_or(1));
    }
    Ok(launched.without(keys, WITHOUT_EFFECT))
}

/// `name=4` anywhere in a text.
fn argument<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.match_indices(name).find_map(|(at, _)| {
        let value = text[at + name.len()..].trim_start().strip_prefix(['=', ':'])?.trim_start();
        let end = value.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(value.len());
        Some(&value[..end])
    })
}

/// The format of products. 8-bit products work in addition to autocast; without a backend, torchao precedes Transformer Engine.
fn precision(keys: &mut Keys, launched: &mut Launched) -> Precision {
    let backend = keys.word("fp8_config.backend");
    keys.forget(
        "fp8_config.use_autocast fp8_config.margin fp8_config.interval fp8_config.fp8_format fp8_config.amax",
    );
    match keys.word("mixed_precision").as_deref() {
        Some("bf16") => Precision::AmpBf16,
        Some("fp16") => Precision::AmpFp16,
        Some("fp8") => {
            match backend.as_deref() {
                Some("AO") | None => launched.plan.recipe = Some(Recipe::Fp8),
                Some("TE") => launched.plan.recipe = Some(Recipe::Fp8Delayed),
                Some(other) => launched.unknown.push(format!("mixed_precision: fp8 by {other}")),
            }
            Precision::AmpBf16
        }
        Some("no" | "false") | None => Precision::Fp32,
        Some(other) => {
            launched.unknown.push(format!("mixed_precision: {other}"));
            Precision::AmpBf16
        }
    }
}

/// Bits in which FSDP reduces gradients: the bits of products, if these are fewer than the bits of states.
pub(super) fn reduce_bits(precision: Precision) -> Option<u64> {
    (precision.width() == 2).then_some(16)
}

fn fsdp(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let plan = &mut launched.plan;
    plan.overlap = Some(OverlapPreset::Fsdp2);
    plan.states = Some(States::Fp32);
    plan.reduce_bits = launched.precision.and_then(reduce_bits);
    let strategy = keys.word("fsdp_config.fsdp_sharding_strategy");
    let reshard = keys.word("fsdp_config.fsdp_reshard_after_forward");
    // The first version reads only names of strategies, or their numbers; the second only a switch.
    let second = keys.number("fsdp_config.fsdp_version")? == Some(2);
    let sharding = match if second { reshard } else { strategy }.as_deref() {
        Some("FULL_SHARD" | "1" | "true") | None => Sharding::Zero3,
        Some("SHARD_GRAD_OP" | "2" | "false") => Sharding::Keep,
        Some("NO_SHARD" | "3") => Sharding::None,
        Some("HYBRID_SHARD" | "4") => Sharding::Hsdp,
        Some(other) => {
            let remedy = "use FULL_SHARD, SHARD_GRAD_OP, NO_SHARD or HYBRID_SHARD";
            return Err(Fault::new(format!("`fsdp_sharding_strategy` is {other}"), remedy));
        }
    };
    plan.sharding = Some(sharding);
    if sharding == Sharding::Hsdp {
        launched.group = Some(Group::Machine);
    }
    if keys.truth("fsdp_config.fsdp_activation_checkpointing")? == Some(true) {
        plan.recompute = Some(vec![Recompute::Layer]);
    }
    if keys.word("fsdp_config.fsdp_backward_prefetch").as_deref() == Some("NO_PREFETCH") {
        plan.overlap_prefetch = Some(false);
    }
    let key = |name: &str| format!("parallelism_config.parallelism_config_{name}");
    keys.forget(&key("dp_shard_size"));
    if let Some(groups) = keys.number(&key("dp_replicate_size"))?.filter(|groups| *groups > 1) {
        plan.sharding = Some(Sharding::Hsdp);
        launched.group = Some(Group::Count(groups));
    }
    Ok(())
}

fn deepspeed(keys: &mut Keys, launched: &mut Launched) -> Result<(), Fault> {
    let plan = &mut launched.plan;
    plan.overlap = Some(OverlapPreset::Deepspeed);
    launched.precision = launched.precision.map(Precision::of_products);
    plan.states =
        Some(if launched.precision == Some(Precision::Fp32) { States::Fp32 } else { States::MixedFp16 });
    plan.sharding = Some(match keys.number("deepspeed_config.zero_stage")?.unwrap_or(2) {
        0 => Sharding::None,
        1 => Sharding::Zero1,
        2 => Sharding::Zero2,
        _ => Sharding::Zero3,
    });
    for key in ["offload_optimizer_device", "offload_param_device"] {
        let path = format!("deepspeed_config.{key}");
        if keys.word(&path).is_some_and(|device| device != "none") {
            launched.unknown.push(path);
        }
    }
    keys.forget("deepspeed_config.gradient_accumulation_steps");
    Ok(())
}

/// Plans that FSDP by Accelerate does not run.
pub(super) fn refusal(asked: &Proposal<'_>) -> Option<Refusal> {
    let Proposal { choice, node, .. } = *asked;
    let groups = choice.sharding == Sharding::Hsdp && choice.sharding_group != Some(node);
    let sharding = "plan.sharding=[\"none\", \"fsdp-keep\", \"zero-3\"]";
    let shards = first([
        (groups, ("groups that are not machines", sharding)),
        (choice.sharding == Sharding::Zero1, ("`zero-1`", sharding)),
        (choice.sharding == Sharding::Zero2, ("`zero-2`", sharding)),
    ]);
    undivided(asked).or(shards)
}

/// Plans that modules of Hugging Face do not run under any sharding.
pub(super) fn undivided(asked: &Proposal<'_>) -> Option<Refusal> {
    let Proposal { choice, .. } = *asked;
    let recompute = choice.recompute.what;
    first([
        (choice.tensor > 1, ("tensor parallelism", "plan.tensor=[1]")),
        (choice.context > 1, ("context parallelism", "plan.context=[1]")),
        (choice.pipeline > 1, ("a pipeline", "plan.pipeline=[1]")),
        (choice.expert > 1, ("expert parallelism", "plan.expert=[1]")),
        (choice.recompute.layers.is_some(), ("recomputation of some layers", "plan.recompute-some=false")),
        (recompute.is_within(), ("recomputation within a layer", "plan.recompute=[\"none\", \"layer\"]")),
    ])
}

/// The configuration of a plan: for FSDP, or for DistributedDataParallel without sharding.
pub(super) fn write(launch: &Launch<'_>) -> String {
    let plan = launch.plan;
    let workers = launch.nodes * launch.workers_per_node;
    let again = plan.recomputation().what == Recompute::Layer;
    let strategy = match plan.sharding {
        Sharding::None => None,
        Sharding::Keep => Some("SHARD_GRAD_OP"),
        Sharding::Hsdp => Some("HYBRID_SHARD"),
        Sharding::Zero1 | Sharding::Zero2 | Sharding::Zero3 => Some("FULL_SHARD"),
    };
    let (kind, config) = match strategy {
        // YAML reads a bare NO as false.
        None if workers == 1 => ("'NO'", String::new()),
        None => ("MULTI_GPU", String::new()),
        Some(strategy) => (
            "FSDP",
            format!(
                "fsdp_config:\n  fsdp_version: 1\n  fsdp_sharding_strategy: {strategy}\n\
                 \x20 fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_backward_prefetch: BACKWARD_PRE\n\
                 \x20 fsdp_forward_prefetch: true\n  fsdp_activation_checkpointing: {again}\n"
            ),
        ),
    };
    let precision = match launch.precision {
        Precision::AmpBf16 | Precision::Bf16 => "bf16",
        Precision::AmpFp16 | Precision::Fp16 => "fp16",
        Precision::Fp32 | Precision::Tf32 => "'no'",
    };
    let [batch, accumulated] = TRAINER;
    let mut trainer = format!("{batch}={}, {accumulated}={}", plan.micro_batch, launch.micro_batches);
    if again && strategy.is_none() {
        trainer += &format!(", {CHECKPOINTING}=true");
    }
    // Otherwise whole gradients are kept on every rank until the last micro-batch.
    if matches!(plan.sharding, Sharding::Zero3 | Sharding::Hsdp) && launch.micro_batches > 1 {
        trainer += ", accelerator_config={\"gradient_accumulation_kwargs\": {\"sync_each_batch\": true}}";
    }
    format!(
        "# {}\ndistributed_type: {kind}\nmixed_precision: {precision}\nnum_machines: {}\nnum_processes: {workers}\n\
         {config}# in the trainer: {trainer}\n",
        Framework::Fsdp.title(),
        launch.nodes,
    )
}
