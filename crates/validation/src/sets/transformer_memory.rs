//! Memory of transformers: peaks of real steps on one GPU, what shards keep, and published peaks of parallel runs, all
//! from shapes alone.

use crate::ValidationError;
use crate::judged::{Families, Judged, Unit};
use crate::recipe::{Recipe, words};
use crate::records::Fields;
use crate::report::Findings;
use crate::set::Run;
use serde_json::Value;
use stepcast_analytic::transformer::memory::{Allowance, MemoryInputs};
use stepcast_analytic::transformer::{LayerKind, Transformer as Method};
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::method::Method as _;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{Division, Implementation, Plan, PlanSection, Recompute, States};
use stepcast_stats::mean;

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let measured: Vec<Value> = run.cases("h200.csv")?;
    // What the allocator reserves beyond tensors, as a share of them: the mean over all steps.
    let reserved = |row: &Value| Some(row.field("reserved").as_f64()? / row.number("bytes") - 1.0);
    let fragmentation = mean(&measured.iter().filter_map(reserved).collect::<Vec<_>>());
    let usual = PlanSection::default().resolve(&NoFiles)?;
    let mut figures: Vec<Judged> = measured.iter().map(|row| on_one_gpu(row, &usual)).collect();
    let recipe = run.recipe()?;
    for row in recipe.cases(run.set)? {
        figures.push(published(recipe, &row, fragmentation)?);
    }
    let families = Families { figures, unit: Unit::Bytes };
    Ok(families.findings(&run.bounds()?, families.coverage()))
}

/// Decoders on one H200: the peak of a step, or what a shard of a block or of the output layer keeps.
fn on_one_gpu(row: &Value, usual: &Plan) -> Judged {
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
    Judged::new(family, name, predicted.get(), row.number("bytes"))
}

/// A published peak, as a scenario. `fragmentation` is what the allocator reserves beyond tensors.
fn published(recipe: &Recipe, row: &Value, fragmentation: f64) -> Result<Judged, ValidationError> {
    const GIB: f64 = (1_u64 << 30) as f64;
    let prediction = Method.predict(&recipe.scenario(row)?)?;
    let stages = prediction.transformer.iter().flat_map(|report| &report.stages);
    let tensors = stages.map(|stage| stage.memory.total).fold(Bytes::ZERO, Bytes::max);
    let family = words(&recipe.group, row)?;
    let predicted = match family.starts_with("reserved") {
        true => Allowance { fragmentation, fixed: Bytes::ZERO }.with(tensors),
        false => tensors,
    };
    Ok(Judged::new(family, words(&recipe.name, row)?, predicted.get(), row.number(&recipe.measured) * GIB))
}
