//! Warnings of a forecast of a transformer.

use super::memory::RankMemory;
use super::method::memory_report;
use super::stages::Run;
use stepcast_core::compute;
use stepcast_core::prediction::{MemoryReport, SplitReport, Verdict, Warning};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{Plan, Recompute, States};

pub(super) fn all(scenario: &Scenario, run: &Run<'_>, report: &SplitReport) -> Vec<Warning> {
    let mut warnings = compute::assumptions(scenario);
    if !run.plan.offload.is_empty() {
        let message = "offloading follows from `host-link` and `host-memory`, which are assumed where the plan does not give \
                       them; whether the host has the memory is not checked";
        warnings.push(Warning { code: "offload", message: message.to_owned() });
    }
    if run.plan.optimiser_rank.is_some() {
        let message = "moments of low rank count in memory alone: a step takes longer by the projections of its gradients, and \
                       some steps by finding these projections";
        warnings.push(Warning { code: "optimiser-rank", message: message.to_owned() });
    }
    warnings.extend(run.shape.documents.and_then(|own| padding(own.useful(run.shape.sequence), report)));
    warnings.extend(memory_warning(scenario, run, &report.memory));
    warnings
}

fn padding(useful: f64, report: &SplitReport) -> Option<Warning> {
    (useful < 1.0).then(|| {
        let (padding, rate) = (100.0 * (1.0 - useful), report.tokens_per_s * useful);
        let message = format!("{padding:.0} % of the tokens are padding: {rate:.0} useful tokens in a second; `packing` avoids it");
        Warning { code: "padding", message }
    })
}

/// Warns that a plan does not fit, and names a change that would.
fn memory_warning(scenario: &Scenario, run: &Run<'_>, memory: &MemoryReport) -> Option<Warning> {
    let verdict = match memory.verdict {
        Verdict::Fits => return None,
        Verdict::MayNotFit => "may not fit",
        Verdict::DoesNotFit => "does not fit",
    };
    let remedy = match remedy(scenario, run) {
        Some(remedy) => format!("; {remedy} would fit"),
        None => "; neither a smaller micro-batch, recomputation nor sharding alone would fit".to_owned(),
    };
    let (least, most) = (memory.least.human(), memory.most.human());
    let needs = match memory.saving {
        Some(saving) => format!("{most}, or {least} {},", saving.condition()),
        None => format!("{least} to {most}"),
    };
    let message = format!(
        "stage {} needs {needs} and its devices have {}: it {verdict}{remedy}",
        memory.stage,
        memory.capacity.human()
    );
    Some(Warning { code: "memory", message })
}

/// The first of the usual changes after which a plan fits.
fn remedy(scenario: &Scenario, run: &Run<'_>) -> Option<String> {
    use stepcast_core::strategy::Sharding::{Zero1, Zero3};
    let plan = run.plan;
    let mut changes: Vec<(String, Plan)> = Vec::new();
    if plan.states == States::MegatronBf16 {
        let changed = Plan { states: States::MixedFp16, ..plan.clone() };
        changes.push(("`states = \"mixed-fp16\"` (gradients in 16 bits)".to_owned(), changed));
    }
    let what = plan.recomputation().what;
    if what == Recompute::None && plan.attention_kind().keeps_scores() {
        let changed = plan.recomputing(Recompute::Attention);
        changes.push(("`recompute = [\"attention\"]`".to_owned(), changed));
    }
    if plan.micro_batch > 1 {
        let changed = Plan { micro_batch: 1, ..plan.clone() };
        changes.push(("`micro-batch = 1`".to_owned(), changed));
    }
    for sharding in [Zero1, Zero3] {
        if plan.sharding.stage() < sharding.stage() {
            changes.push((format!("`sharding = \"{sharding}\"`"), Plan { sharding, ..plan.clone() }));
        }
    }
    if what != Recompute::Layer {
        changes.push(("`recompute = [\"layer\"]`".to_owned(), plan.recomputing(Recompute::Layer)));
    }
    let workers = scenario.cluster.workers();
    let fits = |(_, changed): &(String, Plan)| {
        let Ok(division) = changed.divide(run.shape, workers) else { return false };
        let run = Run { plan: changed, division, ..*run };
        let held = run.held();
        let ranks: Vec<RankMemory> = (0..changed.pipeline).map(|stage| held.rank(stage)).collect();
        memory_report(scenario.cluster.smallest_memory(), changed, &ranks).verdict == Verdict::Fits
    };
    changes.into_iter().find(fits).map(|(name, _)| name)
}
