//! Settings for PyTorch and Horovod.

use super::{Family, Line};
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::Fusion;

const MIB: f64 = 1024.0 * 1024.0;

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
        Fusion::Horovod { threshold, cycle } => {
            let cycle = (1e6 * cycle.get()).round() / 1e3;
            format!("HOROVOD_FUSION_THRESHOLD={:.0} HOROVOD_CYCLE_TIME={cycle}", threshold.get())
        }
        _ => String::new(),
    }
}
