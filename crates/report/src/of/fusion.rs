//! The plot of a comparison of fusion rules.

use crate::plots::fusion::{FusionComparison, Plan, Standing};
use stepcast_study::fuse::{Family, FusionReport, Line};

/// All rules that were compared.
pub fn fusion(report: &FusionReport, name: &str) -> FusionComparison {
    let plan = |line: &Line| Plan {
        rule: line.rule.clone(),
        step: line.iteration,
        exposed: line.communication.exposed,
        messages: line.messages,
        standing: match line.family {
            Family::Own => Standing::Own,
            Family::Optimum => Standing::Best,
            _ => Standing::Other,
        },
    };
    FusionComparison {
        title: format!("Fusion of the gradients of {name}"),
        plans: report.lines.iter().map(plan).collect(),
    }
}
