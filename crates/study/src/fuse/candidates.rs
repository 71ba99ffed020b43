//! The rules that are compared, and the settings for PyTorch and Horovod that follow.

use super::{Family, Line};
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::pass::Pass;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{BufferReading, Fusion, HOROVOD_CYCLE, HOROVOD_THRESHOLD};

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

/// The plainest line of a family among those that are as fast as its fastest within [`NOISE`]: the default, which comes
/// first, or the one with the fewest messages and the longest cycle.
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
