//! Memory of transformers: peaks of real steps on one GPU, what shards keep, and published peaks of parallel runs, all
//! from shapes alone.

use crate::ValidationError;
use crate::families::{Families, Figure, Unit};
use crate::records::Fields;
use crate::report::Findings;
use crate::set::Run;
use serde_json::Value;
use stepcast_analytic::transformer::memory::{Allowance, MemoryInputs};
use stepcast_analytic::transformer::{LayerKind, Split};
use stepcast_core::model::transformer::Transformer;
use stepcast_core::model::zoo;
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{Implementation, Recompute, Sharding, States};
use stepcast_stats::mean;

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let measured: Vec<Value> = run.cases("h200.csv")?;
    // What the allocator reserves beyond tensors, as a share of them: the mean over all steps.
    let reserved = |row: &Value| Some(row.field("reserved").as_f64()? / row.number("bytes") - 1.0);
    let fragmentation = mean(&measured.iter().filter_map(reserved).collect::<Vec<_>>());
    let mut figures: Vec<Figure> = measured.iter().map(on_one_gpu).collect();
    for row in run.cases("published.csv")? {
        figures.push(published(&row, fragmentation)?);
    }
    let families = Families { figures, unit: Unit::Bytes };
    Ok(families.findings(&run.bounds()?, families.coverage()))
}

/// Decoders on one H200: the peak of a step, or what a shard of a block or of the output layer keeps.
fn on_one_gpu(row: &Value) -> Figure {
    let [layers, hidden, heads, vocabulary, sequence, micro_batch, tensor] =
        ["layers", "hidden", "heads", "vocabulary", "sequence", "micro_batch", "tensor"]
            .map(|key| row.count(key));
    let (kind, architecture, precision) = (row.text("kind"), row.text("architecture"), row.text("precision"));
    let shape = match architecture {
        "gpt" => Transformer::gpt(layers, hidden, heads, vocabulary, sequence),
        _ => {
            let heads = [heads, row.count("kv_heads")];
            Transformer::llama(layers, hidden, heads, row.count("mlp_width"), vocabulary, sequence)
        }
    };
    let held = MemoryInputs {
        split: Split { tensor, ..Split::WHOLE },
        micro_batch,
        states: if precision == "amp" { States::Fp32 } else { States::Bf16 },
        recompute: if row.is("recompute") { Recompute::Layer } else { Recompute::None }.into(),
        ..MemoryInputs::plain(&shape, Implementation::Pytorch)
    };
    let (family, predicted) = match kind {
        "step" => ("peak of a step, H200", held.rank(0).total()),
        "block" => ("kept by a shard, H200", held.kept_by(LayerKind::default(), held.recompute.what)),
        _ => ("kept by a shard, H200", held.kept_by_head()),
    };
    let name = format!(
        "{kind} {architecture} h {hidden} {precision}, {layers} layers, {micro_batch} x {sequence} tokens, v {vocabulary}, \
         t {tensor}, recompute {}",
        row.is("recompute")
    );
    Figure { family: family.to_owned(), name, predicted: predicted.get(), measured: row.number("bytes") }
}

/// Published peaks: torchtitan (FSDP2) and Megatron-LM. `fragmentation` is what the allocator reserves beyond tensors.
fn published(row: &Value, fragmentation: f64) -> Result<Figure, ValidationError> {
    const GIB: f64 = (1_u64 << 30) as f64;
    let [layers, sequence, micro_batch, micro_batches, tensor, context, pipeline, data] =
        ["layers", "sequence", "micro_batch", "micro_batches", "tensor", "context", "pipeline", "data"]
            .map(|key| row.count(key));
    let damaged = |error: String| ValidationError::Data(format!("transformer-memory: {error}"));
    let model = row.text("model");
    let known = zoo::transformer(model).ok_or_else(|| damaged(format!("there is no model {model}")))?;
    let recompute: Recompute =
        serde_json::from_value(row.field("recompute").clone()).map_err(|error| damaged(error.to_string()))?;
    let shape = Transformer { layers, sequence, ..known };
    let split = Split { tensor, sequence_parallel: tensor > 1, context, pipeline, data, ..Split::WHOLE };
    let run = |implementation| MemoryInputs {
        split,
        micro_batch,
        micro_batches,
        recompute: recompute.into(),
        ..MemoryInputs::plain(&shape, implementation)
    };
    let most = |held: &MemoryInputs<'_>| {
        (0..pipeline).map(|stage| held.rank(stage).total()).fold(Bytes::ZERO, Bytes::max)
    };
    let (family, predicted) = if row.text("software") == "torchtitan" {
        let run = run(Implementation::Pytorch);
        let tensors = most(&MemoryInputs { sharding: Sharding::Zero3, states: States::Fp32, ..run });
        let allowance = Allowance { fragmentation, fixed: Bytes::ZERO };
        ("reserved, torchtitan", allowance.with(tensors))
    } else {
        (
            "peak, Megatron-LM",
            most(&MemoryInputs { sharding: Sharding::Zero1, ..run(Implementation::Megatron) }),
        )
    };
    let name = format!(
        "{model} of {layers} layers, {micro_batch} x {sequence} tokens, t {tensor} c {context} p {pipeline} d {data}, \
         recompute {recompute}"
    );
    Ok(Figure {
        family: family.to_owned(),
        name,
        predicted: predicted.get(),
        measured: row.number("gib") * GIB,
    })
}
