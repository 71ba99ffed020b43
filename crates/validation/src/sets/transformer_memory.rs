//! Memory of transformers: peaks of real steps on one GPU, what shards keep, and published peaks of parallel runs, all
//! from shapes alone.

use crate::ValidationError;
use crate::families::{Families, Figure, Unit};
use crate::records::Fields;
use crate::report::Findings;
use crate::set::Run;
use serde_json::Value;
use stepcast_analytic::transformer::LayerKind;
use stepcast_analytic::transformer::memory::{Allowance, MemoryInputs};
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::model::zoo;
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{Division, Implementation, Plan, PlanSection, Recompute, Sharding, States};
use stepcast_stats::mean;

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let measured: Vec<Value> = run.cases("h200.csv")?;
    // What the allocator reserves beyond tensors, as a share of them: the mean over all steps.
    let reserved = |row: &Value| Some(row.field("reserved").as_f64()? / row.number("bytes") - 1.0);
    let fragmentation = mean(&measured.iter().filter_map(reserved).collect::<Vec<_>>());
    let usual = PlanSection::default().resolve(&NoFiles)?;
    let mut figures: Vec<Figure> = measured.iter().map(|row| on_one_gpu(row, &usual)).collect();
    for row in run.cases("published.csv")? {
        figures.push(published(&row, &usual, fragmentation)?);
    }
    let families = Families { figures, unit: Unit::Bytes };
    Ok(families.findings(&run.bounds()?, families.coverage()))
}

/// Decoders on one H200: the peak of a step, or what a shard of a block or of the output layer keeps.
fn on_one_gpu(row: &Value, usual: &Plan) -> Figure {
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
    let plan = Plan {
        tensor,
        micro_batch,
        states: if precision == "amp" { States::Fp32 } else { States::Bf16 },
        implementation: Some(Implementation::Pytorch),
        ..usual.recomputing(if row.is("recompute") { Recompute::Layer } else { Recompute::None })
    };
    let division = Division { data: 1, micro_batches: 1, global_batch: micro_batch };
    let held = MemoryInputs::new(&shape, &plan, &division);
    let (family, predicted) = match kind {
        "step" => ("peak of a step, H200", held.rank(0).total()),
        "block" => ("kept by a shard, H200", held.kept_by(LayerKind::default(), held.choice.recompute.what)),
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
fn published(row: &Value, usual: &Plan, fragmentation: f64) -> Result<Figure, ValidationError> {
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
    let division = Division { data, micro_batches, global_batch: data * micro_batch * micro_batches };
    let most = |implementation, sharding, states| {
        let plan = Plan {
            tensor,
            sequence_parallel: tensor > 1,
            context,
            pipeline,
            micro_batch,
            implementation: Some(implementation),
            sharding,
            states,
            ..usual.recomputing(recompute)
        };
        let held = MemoryInputs::new(&shape, &plan, &division);
        (0..pipeline).map(|stage| held.rank(stage).total()).fold(Bytes::ZERO, Bytes::max)
    };
    let (family, predicted) = if row.text("software") == "torchtitan" {
        let tensors = most(Implementation::Pytorch, Sharding::Zero3, States::Fp32);
        let allowance = Allowance { fragmentation, fixed: Bytes::ZERO };
        ("reserved, torchtitan", allowance.with(tensors))
    } else {
        ("peak, Megatron-LM", most(Implementation::Megatron, Sharding::Zero1, usual.states))
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
