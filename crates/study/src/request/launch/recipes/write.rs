//! Plans as settings of recipes. Model, data and adapters of the recipe stay unchanged.
//!
//! Weights are sharded by FSDP 2, or by DeepSpeed where the recipe names a file for it.

use super::super::accelerate;
use super::super::emit::{Proposal, Refusal, first};
use super::Framework;
use serde_json::{Value, json};
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{
    ContextExchange, Implementation, OverlapPreset, Plan, Recipe, Recompute, Sharding, States,
};

/// Whether DeepSpeed shards instead of FSDP.
fn by_deepspeed(framework: Framework, plan: &Plan) -> bool {
    plan.overlap == OverlapPreset::Deepspeed && framework != Framework::Torchtune
}

/// A plan adapted to a framework: kernels, losses and optimisers that recipes can name are kept.
pub(in super::super) fn adopted(framework: Framework, plan: &Plan, precision: Precision) -> Plan {
    let deepspeed = by_deepspeed(framework, plan);
    let implementation = match plan.implemented_by() {
        _ if framework == Framework::Torchtune => Implementation::Pytorch,
        own if own.is_hugging_face() => own,
        _ => Implementation::HuggingFace,
    };
    // torchtune holds all states in the format of products.
    let usual = match framework == Framework::Torchtune && precision.width() == 2 {
        true => States::Bf16,
        false => States::Fp32,
    };
    let named = [States::AdamW8Bit, States::Adafactor].contains(&plan.states);
    Plan {
        overlap: if deepspeed { OverlapPreset::Deepspeed } else { OverlapPreset::Fsdp2 },
        implementation: Some(implementation),
        states: if named { plan.states } else { usual },
        reduce_bits: accelerate::reduce_bits(precision).filter(|_| !deepspeed),
        context_exchange: ContextExchange::Ring,
        bucket: None,
        recipe: Recipe::None,
        dropout: false,
        ..plan.clone()
    }
}

/// Plans that a recipe cannot express.
pub(in super::super) fn refusal(framework: Framework, asked: &Proposal<'_>) -> Option<Refusal> {
    let Proposal { base, choice, .. } = *asked;
    let deepspeed = by_deepspeed(framework, base);
    let runs = match choice.sharding {
        Sharding::None => choice.data == 1 || !(deepspeed || framework == Framework::Torchtune),
        // LLaMA-Factory has no DeepSpeed file for ZeRO 1.
        Sharding::Zero1 => deepspeed && framework != Framework::LlamaFactory,
        Sharding::Zero2 => deepspeed,
        Sharding::Zero3 => true,
        Sharding::Keep => !deepspeed,
        Sharding::Hsdp => false,
    };
    let sharding = "plan.sharding=[\"none\", \"zero-3\"]";
    accelerate::undivided(asked).or(first([(!runs, ("this sharding", sharding))]))
}

/// Settings of a plan of `micro_batches`, in the order of recipes.
pub(in super::super) fn settings(
    framework: Framework,
    plan: &Plan,
    micro_batches: u64,
) -> Vec<(&'static str, Value)> {
    let again = plan.recomputation().what == Recompute::Layer;
    let [batch, checkpointing] = match framework {
        Framework::Axolotl => ["micro_batch_size", "gradient_checkpointing"],
        Framework::Torchtune => ["batch_size", "enable_activation_checkpointing"],
        Framework::LlamaFactory => ["per_device_train_batch_size", "disable_gradient_checkpointing"],
        _ => ["per_device_train_batch_size", "gradient_checkpointing"],
    };
    let checkpoints = again != (framework == Framework::LlamaFactory);
    let mut all = vec![
        (batch, json!(plan.micro_batch)),
        ("gradient_accumulation_steps", json!(micro_batches)),
        (checkpointing, json!(checkpoints)),
    ];
    let reshards = plan.sharding == Sharding::Zero3;
    if plan.sharding == Sharding::None {
        return all;
    }
    if by_deepspeed(framework, plan) {
        let stage = plan.sharding.stage();
        all.push(match framework {
            Framework::Axolotl => ("deepspeed", json!(format!("deepspeed_configs/zero{stage}.json"))),
            Framework::LlamaFactory => {
                ("deepspeed", json!(format!("examples/deepspeed/ds_z{stage}_config.json")))
            }
            _ => ("accelerate_config", json!(format!("zero{stage}"))),
        });
        return all;
    }
    let config = json!({"auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "reshard_after_forward": reshards});
    match framework {
        Framework::Torchtune => all.push(("fsdp_reshard_after_forward", json!(reshards))),
        Framework::Axolotl => all.extend([("fsdp_version", json!(2)), ("fsdp_config", config)]),
        _ => all.extend([("fsdp", json!(true)), ("fsdp_config", config)]),
    }
    all
}
