//! The plot of a comparison of fusion rules.

use crate::plots::fusion::{FusionComparison, Plan, Standing};
use stepcast_study::fuse::{Family, FusionReport, Line};

/// Rules that differ in their sizes only, from top to bottom.
const FAMILIES: [Family; 9] = [
    Family::Own,
    Family::None,
    Family::All,
    Family::Buffer,
    Family::Pytorch,
    Family::Horovod,
    Family::MgWfbp,
    Family::Adaptive,
    Family::Optimum,
];

/// The fastest rule of every family.
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
        plans: FAMILIES.iter().filter_map(|family| report.recommended(*family)).map(plan).collect(),
    }
}
