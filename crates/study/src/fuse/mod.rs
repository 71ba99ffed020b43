//! Tensor fusion: every rule side by side, the best plan, and the settings to use.
//!
//! Times are those of a mean step of the slowest worker. If all-reduces run one at a time and without interference,
//! times are closed forms and the best plan is exact; otherwise the event engine computes times, and plans are
//! searched.

mod search;

pub use search::{BestFusion, Evaluator, exhaustive, improved};

use crate::simulate::all_reduce;
use schemars::JsonSchema;
use search::Evaluation;
use serde::Serialize;
use stepcast_core::fault::Fault;
use stepcast_core::method::{CancelCheck, never_cancelled};
use stepcast_core::pass::Pass;
use stepcast_core::prediction::{Communication, Warning};
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::strategy::{
    Architecture, BufferReading, Fusion, HOROVOD_CYCLE, HOROVOD_THRESHOLD, Synchronisation,
};
use stepcast_core::workload::Gradient;

/// One rule.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Line {
    /// "PyTorch, 25 MiB".
    pub rule: String,
    /// The family of rules that differ only in their sizes.
    pub family: Family,
    /// Messages of one step.
    pub messages: usize,
    /// Time of one step.
    #[serde(rename = "iteration_s", with = "InBaseUnits")]
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
    /// Every gradient separately.
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
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Message {
    /// Its gradients.
    pub gradients: Vec<String>,
    /// Their total size.
    #[serde(rename = "bytes", with = "InBaseUnits")]
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

    /// The simplest of the fastest lines of a family.
    pub fn recommended(&self, family: Family) -> Option<&Line> {
        recommended(&self.lines, family)
    }
}

/// Compares all rules on `scenario` and finds the best plan.
pub fn fuse(scenario: &Scenario) -> Result<FusionReport, Fault> {
    fuse_while(scenario, &never_cancelled)
}

/// As [`fuse`], with cancellation.
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

fn line(rule: String, family: Family, fusion: Fusion, found: Evaluation, own: Seconds) -> Line {
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

pub(super) struct Candidate {
    pub(super) rule: String,
    pub(super) family: Family,
    pub(super) fusion: Fusion,
}

const MIB: f64 = 1024.0 * 1024.0;

/// Buffer sizes that are tried, in MiB; sizes larger than the model count once.
const SIZES: [f64; 12] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Horovod's cycle times that are tried, in milliseconds.
const CYCLES: [f64; 4] = [0.5, 1.0, 2.5, 5.0];

/// The scenario's own rule, then all others.
pub(super) fn candidates(scenario: &Scenario, pass: &Pass, reading: BufferReading) -> Vec<Candidate> {
    let mut list = Vec::new();
    let mut add = |rule: String, family, fusion| list.push(Candidate { rule, family, fusion });
    let own = scenario.strategy.exchange.fusion.clone();
    add(format!("as it is: {}", describe(&own)), Family::Own, own);
    add("no fusion".to_owned(), Family::None, Fusion::None);
    add("all at the end".to_owned(), Family::All, Fusion::All);
    let whole = pass.gradients().get() / MIB;
    let below = SIZES.iter().position(|&size| size >= whole).unwrap_or(SIZES.len() - 1);
    let sizes = &SIZES[..=below];
    for &size in sizes {
        let fusion = Fusion::Buffer { size: Bytes::new(size * MIB), timeout: None, reading };
        add(describe(&fusion), Family::Buffer, fusion);
    }
    add(describe(&Fusion::PYTORCH), Family::Pytorch, Fusion::PYTORCH);
    for &size in sizes {
        let cap = Bytes::new(size * MIB);
        // A size that a user sets applies to the first bucket too.
        let fusion = Fusion::Pytorch { first: cap, cap };
        add(describe(&fusion), Family::Pytorch, fusion);
    }
    add(describe(&Fusion::HOROVOD), Family::Horovod, Fusion::HOROVOD);
    for cycle in CYCLES.map(|cycle| Seconds::new(1e-3 * cycle)) {
        for threshold in sizes.iter().map(|&size| Bytes::new(size * MIB)) {
            if threshold == HOROVOD_THRESHOLD && cycle == HOROVOD_CYCLE {
                continue;
            }
            let fusion = Fusion::horovod(threshold, cycle);
            add(describe(&fusion), Family::Horovod, fusion);
        }
    }
    add(describe(&Fusion::MgWfbp), Family::MgWfbp, Fusion::MgWfbp);
    add(describe(&Fusion::Adaptive), Family::Adaptive, Fusion::Adaptive);
    list
}

/// A rule in a few words.
fn describe(fusion: &Fusion) -> String {
    let size = |size: &Bytes| format!("{} MiB", trimmed(size.get() / MIB));
    match fusion {
        Fusion::None => "no fusion".to_owned(),
        Fusion::All => "all at the end".to_owned(),
        Fusion::Buffer { size: buffer, timeout, reading } => {
            let serial = if *reading == BufferReading::Serial { ", serial" } else { "" };
            let timeout = timeout.map_or(String::new(), |timeout| format!(", timeout {}", timeout.human()));
            format!("buffer, {}{timeout}{serial}", size(buffer))
        }
        Fusion::Pytorch { first, cap } if first == cap => format!("PyTorch, {}", size(cap)),
        Fusion::Pytorch { first, cap } => format!("PyTorch, {} after {}", size(cap), size(first)),
        Fusion::Horovod { threshold, cycle, .. } => {
            format!("Horovod, {}, {}", size(threshold), cycle.human())
        }
        Fusion::Adaptive => "adaFusion".to_owned(),
        Fusion::MgWfbp => "MG-WFBP".to_owned(),
        Fusion::Buckets(counts) => format!("{} given messages", counts.len()),
    }
}

fn trimmed(value: f64) -> String {
    format!("{:.2}", value).trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Share of a step within which rules count as equally fast: steps of one job differ by more.
const NOISE: f64 = 0.01;

/// Settings, each with its gain over the scenario's own rule.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Settings {
    /// For PyTorch's `DistributedDataParallel`.
    pub pytorch: Setting,
    /// For Horovod.
    pub horovod: Setting,
}

/// The setting for one framework.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Setting {
    /// The setting as it is written in code or in the environment.
    pub text: String,
    /// Gain over the scenario's own rule.
    pub gain: f64,
}

impl Settings {
    pub(super) fn of(lines: &[Line]) -> Self {
        let setting = |family| match recommended(lines, family) {
            Some(line) => Setting { text: text(&line.fusion), gain: line.gain },
            None => Setting { text: String::new(), gain: 0.0 },
        };
        Self { pytorch: setting(Family::Pytorch), horovod: setting(Family::Horovod) }
    }
}

/// The simplest line of a family among the lines as fast as its fastest within [`NOISE`]: the default, which comes first,
/// or the line with the fewest messages and the longest cycle.
pub(super) fn recommended(lines: &[Line], family: Family) -> Option<&Line> {
    let own = || lines.iter().filter(|line| line.family == family);
    let least = own().map(|line| line.iteration).reduce(Seconds::min)?;
    let mut near = own().filter(|line| line.iteration <= least * (1.0 + NOISE));
    let first = near.next()?;
    if first.fusion == Fusion::PYTORCH || first.fusion == Fusion::HOROVOD {
        return Some(first);
    }
    let cycle = |line: &Line| match line.fusion {
        Fusion::Horovod { cycle, .. } => cycle,
        _ => Seconds::ZERO,
    };
    let plainer = |a: &Line, b: &Line| (a.messages, cycle(b)) < (b.messages, cycle(a));
    Some(near.fold(first, |best, line| if plainer(line, best) { line } else { best }))
}

fn text(fusion: &Fusion) -> String {
    match fusion {
        fusion if *fusion == Fusion::PYTORCH => "leave bucket_cap_mb at its default".to_owned(),
        Fusion::Pytorch { cap, .. } => format!("bucket_cap_mb={}", cap.get() / MIB),
        Fusion::Horovod { threshold, cycle, .. } => {
            let cycle = (1e6 * cycle.get()).round() / 1e3;
            format!("HOROVOD_FUSION_THRESHOLD={:.0} HOROVOD_CYCLE_TIME={cycle}", threshold.get())
        }
        _ => String::new(),
    }
}
