//! torchtune: recipes that name components of its library.

use super::{Keys, Launched, named_targets, reduce_bits, usual};
use stepcast_core::fault::Fault;
use stepcast_core::model::transformer::{AdaptersSection, BaseFormat, Packing};
use stepcast_core::precision::Precision;
use stepcast_core::strategy::{Implementation, Loss, Offload, Sharding, States};

pub(super) fn read(keys: &mut Keys) -> Result<Launched, Fault> {
    let mut launched = usual("torchtune");
    launched.plan.implementation = Some(Implementation::Pytorch);
    launched.plan.states = Some(States::Bf16);
    launched.precision = Some(Precision::Bf16);
    if keys.word("dtype").as_deref() == Some("fp32") {
        launched.plan.states = Some(States::Fp32);
        launched.precision = Some(Precision::Fp32);
    }
    // "torchtune.models.llama3_1.qlora_llama3_1_8b"
    let component = keys.word("model._component_").unwrap_or_default();
    let builder = component.rsplit('.').next().unwrap_or("").to_owned();
    let (kind, name) = match builder.split_once("lora_") {
        Some(("q", name)) => (Some(BaseFormat::Nf4), name.to_owned()),
        Some((_, name)) => (Some(BaseFormat::Bf16), name.to_owned()),
        None => (None, builder),
    };
    launched.named_model(Some(name.replace('_', "-")));
    launched.sequence = keys.number("tokenizer.max_seq_len")?;
    launched.batch(keys, "batch_size", 1)?;
    launched.recompute(keys.truth("enable_activation_checkpointing")?);
    if keys.truth("enable_activation_offloading")? == Some(true) {
        launched.plan.offload = Some(vec![Offload::Activations]);
    }
    // Its recipes for several devices shard by FSDP 2.
    let reshards = keys.truth("fsdp_reshard_after_forward")?.unwrap_or(true);
    launched.plan.sharding = Some(if reshards { Sharding::Zero3 } else { Sharding::Keep });
    launched.plan.reduce_bits = launched.precision.and_then(reduce_bits);
    launched.optimiser(keys, "optimizer._component_")?;
    let packed = keys.truth("dataset.packed")? == Some(true);
    launched.packs(keys, packed.then_some(Packing::Within))?;
    // Both losses upcast logits chunk by chunk; one of them also computes logits by chunks.
    launched.plan.loss = match keys.word("loss._component_").unwrap_or_default().rsplit('.').next() {
        Some("LinearCrossEntropyLoss" | "LigerLinearCrossEntropy") => Some(Loss::Chunked),
        Some("CEWithChunkedOutputLoss") => Some(Loss::Compiled),
        _ => None,
    };
    if let Some(base) = kind {
        let mut targets = named_targets(&keys.words("model.lora_attn_modules"), &mut launched.unknown);
        if keys.truth("model.apply_lora_to_mlp")? == Some(true) {
            targets.get_or_insert_default().push("mlp".to_owned());
        }
        launched.adapters = Some(AdaptersSection {
            rank: Some(keys.number("model.lora_rank")?.unwrap_or(8)),
            targets,
            dropout: keys.real("model.lora_dropout")?.map(|share| share > 0.0),
            dora: keys.truth("model.use_dora")?,
            base: Some(base),
            trained_output: keys.truth("model.apply_lora_to_output")?.filter(|on| !on),
            ..AdaptersSection::default()
        });
    }
    Ok(launched)
}
