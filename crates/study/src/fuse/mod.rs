//! Tensor fusion: every rule side by side, the best plan, and the settings to use.
//!
//! Times are those of a mean step of the slowest worker. If all-reduces run one at a time and without interference,
//! times are closed forms and the best plan is exact; otherwise the event engine computes times, and plans are
//! searched.

mod candidates;
mod evaluate;
mod search;

use crate::simulate::all_reduce;
use candidates::{Candidate, candidates};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, never_cancelled};
use stepcast_core::prediction::{Communication, Warning};
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::strategy::{Architecture, Fusion, Synchronisation};
use stepcast_core::workload::Gradient;

pub use candidates::Settings;
pub use evaluate::Evaluator;
pub use search::{BestFusion, exhaustive, improved};

/// One rule.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Line {
    /// "PyTorch, 25 MiB".
    pub rule: String,
    /// The family of rules that differ only in their sizes.
    pub family: Family,
    /// Messages of one step.
    pub messages: usize,
    /// Time of one step.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// Share of computing in the step.
    pub scaling_factor: f64,
    /// Gain in throughput over the scenario's own rule: 0.1 is 10 % more steps in the same time.
    pub gain: f64,
    /// The parts of the communication time.
    pub communication: Communication,
    #[serde(skip)]
    buckets: Vec<u32>,
    #[serde(skip)]
    fusion: Fusion,
}

impl Line {
    /// The rule as a scenario writes it.
    pub fn fusion(&self) -> &Fusion {
        &self.fusion
    }
}

/// Rules that differ only in their sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The scenario's own rule.
    Own,
    /// Every gradient by itself.
    None,
    /// All gradients together.
    All,
    /// A buffer of constant size (Liu 2022, eqs. 12-16).
    Buffer,
    /// PyTorch's buckets.
    Pytorch,
    /// Horovod's cycles.
    Horovod,
    /// MG-WFBP.
    MgWfbp,
    /// adaFusion (Liu 2022, eq. 17).
    Adaptive,
    /// The best plan.
    Optimum,
}

/// One message of the best plan.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Message {
    /// Its gradients.
    pub gradients: Vec<String>,
    /// Their total size.
    #[serde(rename = "bytes")]
    #[serde_as(as = "InBaseUnits")]
    pub size: Bytes,
}

/// The effect of fusion rules on a scenario.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct FusionReport {
    /// The scenario, every default filled in.
    pub scenario: ScenarioFile,
    /// Number of gradients.
    pub tensors: usize,
    /// The scenario's own rule, then all others.
    pub lines: Vec<Line>,
    /// The messages of the best plan.
    pub plan: Vec<Message>,
    /// Gain of the best plan over the scenario's own rule: 5 % and 95 % quantiles over steps with varying computing
    /// times.
    pub gain_interval: [f64; 2],
    /// How the best plan was found.
    pub search: String,
    /// Settings for PyTorch and Horovod.
    pub settings: Settings,
    /// Warnings about the figures.
    pub warnings: Vec<Warning>,
}

impl FusionReport {
    /// The scenario's own rule.
    pub fn own(&self) -> &Line {
        &self.lines[0]
    }

    /// The best plan.
    pub fn best(&self) -> &Line {
        &self.lines[self.lines.len() - 1]
    }

    /// The plainest of the fastest lines of a family.
    pub fn recommended(&self, family: Family) -> Option<&Line> {
        candidates::recommended(&self.lines, family)
    }
}

/// Compares all rules on `scenario` and finds the best plan.
pub fn fuse(scenario: &Scenario) -> Result<FusionReport, Fault> {
    fuse_while(scenario, &never_cancelled)
}

/// As [`fuse`], as long as it is wanted.
pub fn fuse_while(scenario: &Scenario, wanted: &CancelCheck<'_>) -> Result<FusionReport, Fault> {
    applies(scenario)?;
    let wrong =
        |fault: stepcast_core::fault::Fault| Fault::in_key("model.profile", fault.reason, fault.remedy);
    let evaluator = Evaluator::new(scenario, wanted).map_err(wrong)?;
    let own = evaluator.evaluate(&scenario.strategy.exchange.fusion)?;
    let mut lines = Vec::new();
    for Candidate { rule, family, fusion } in candidates(scenario, evaluator.pass(), evaluator.reading()) {
        let found = evaluator.evaluate(&fusion)?;
        lines.push(line(rule, family, fusion, found, own.iteration));
    }
    let found = search::best(&evaluator, &lines)?;
    let rule = "best plan".to_owned();
    let fusion = Fusion::Buckets(found.counts.clone().into());
    let best = evaluator.evaluate(&fusion)?;
    lines.push(line(rule, Family::Optimum, fusion, best, own.iteration));
    let mut left = scenario.gradients().map_err(wrong)?.into_iter();
    let plan = found.counts.iter().map(|&count| {
        let together: Vec<Gradient> = left.by_ref().take(count as usize).collect();
        let size = together.iter().map(|gradient| gradient.size).sum();
        Message { gradients: together.into_iter().map(|gradient| gradient.name).collect(), size }
    });
    Ok(FusionReport {
        scenario: scenario.to_file(),
        tensors: evaluator.pass().tensors(),
        plan: plan.collect(),
        gain_interval: evaluator.gain_interval(&scenario.strategy.exchange.fusion, &found.counts)?,
        search: found.how,
        settings: Settings::of(&lines),
        warnings: all_reduce::assumptions(scenario),
        lines,
    })
}

fn line(rule: String, family: Family, fusion: Fusion, found: evaluate::Evaluation, own: Seconds) -> Line {
    Line {
        rule,
        family,
        messages: found.buckets.len(),
        iteration: found.iteration,
        scaling_factor: found.scaling_factor,
        gain: own / found.iteration - 1.0,
        communication: found.communication,
        buckets: found.buckets,
        fusion,
    }
}

fn applies(scenario: &Scenario) -> Result<(), Fault> {
    let refuse = |key, reason: &str, remedy: &str| Err(Fault::in_key(key, reason, remedy));
    if scenario.strategy.architecture != Architecture::AllReduce {
        return refuse(
            "strategy.architecture",
            "only all-reduce fuses gradients",
            "use `architecture = \"all-reduce\"`",
        );
    }
    if scenario.strategy.synchronisation != Synchronisation::Bsp {
        return refuse(
            "strategy.synchronisation",
            "fusion is compared for steps that all exchange gradients",
            "use `synchronisation = \"bsp\"`",
        );
    }
    Ok(())
}
