//! Settings for PyTorch and Horovod.

use super::{Family, Line};
use serde::Serialize;
use stepcast_core::strategy::Fusion;

const MIB: f64 = 1024.0 * 1024.0;

/// Settings, each with its gain over the scenario's own rule.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// For PyTorch's `DistributedDataParallel`.
    pub pytorch: Setting,
    /// For Horovod.
    pub horovod: Setting,
}

/// The setting for one framework.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// The setting as it is written in code or in the environment.
    pub text: String,
    /// Gain over the scenario's own rule.
    pub gain: f64,
}

impl Settings {
    pub(super) fn of(lines: &[Line]) -> Self {
        let fastest = |family| {
            let lines = lines.iter().filter(|line| line.family == family);
            // Among equals the first, since defaults come first.
            lines.reduce(|best, line| if line.iteration < best.iteration { line } else { best })
        };
        let setting = |family| match fastest(family) {
            Some(line) => Setting { text: text(&line.fusion), gain: line.gain },
            None => Setting { text: String::new(), gain: 0.0 },
        };
        Self { pytorch: setting(Family::Pytorch), horovod: setting(Family::Horovod) }
    }
}

fn text(fusion: &Fusion) -> String {
    match fusion {
        fusion if *fusion == Fusion::PYTORCH => "leave bucket_cap_mb at its default".to_owned(),
        Fusion::Pytorch { cap, .. } => format!("bucket_cap_mb={}", cap.get() / MIB),
        Fusion::Horovod { threshold, cycle } => {
            format!("HOROVOD_FUSION_THRESHOLD={} HOROVOD_CYCLE_TIME={}", threshold.get(), 1e3 * cycle.get())
        }
        _ => String::new(),
    }
}
