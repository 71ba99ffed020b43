//! What the last stage of a plan to finish waits for.

use stepcast_core::prediction::{PartKind, Prediction};
use stepcast_core::quantity::Seconds;

/// Parts below this share of the step are left out.
const LEAST: f64 = 0.005;

/// What the stage waits for in a part of the breakdown.
fn awaited(part: PartKind) -> &'static str {
    match part {
        PartKind::Host => "its host to issue kernels",
        PartKind::Offload => "its host's memory",
        PartKind::PipelineSends => "its own sends",
        PartKind::Gradients => "the sum of gradients",
        PartKind::PipelineBubble => "other stages",
        PartKind::OuterGradients => "the exchange of outer gradients",
        other => other.name(),
    }
}

/// What takes most of the step of a plan, and what its last stage waits for, the longest first.
pub(super) fn sentence(prediction: &Prediction) -> String {
    let share = |time: Seconds| time / prediction.iteration;
    let percent = |share: f64| format!("{:.0} %", (100.0 * share).max(1.0));
    let [compute, again] = [PartKind::Compute, PartKind::Recompute].map(|kind| share(prediction.part(kind)));
    let computes = |kind: PartKind| matches!(kind, PartKind::Compute | PartKind::Recompute);
    let waits = prediction.breakdown.iter().filter(|part| !computes(part.kind));
    let mut waits: Vec<(PartKind, f64)> = waits.map(|part| (part.kind, share(part.time))).collect();
    waits.retain(|(_, share)| *share >= LEAST);
    waits.sort_by(|a, b| b.1.total_cmp(&a.1));
    let lead = match waits.first() {
        Some((kind, most)) if *most > compute + again => match kind {
            PartKind::PipelineBubble => "Stages wait for each other most of all".to_owned(),
            PartKind::Host => "The host is the bottleneck".to_owned(),
            PartKind::Offload => "Offloading is the bottleneck".to_owned(),
            kind => {
                let name = kind.name();
                let mut letters = name.chars();
                let first = letters.next().into_iter().flat_map(char::to_uppercase).collect::<String>();
                let verb = if name.ends_with('s') { "are" } else { "is" };
                format!("{first}{} {verb} the bottleneck", letters.as_str())
            }
        },
        _ => "Computing is the bottleneck".to_owned(),
    };
    let mut text = format!("{lead}. The last stage to finish computes {} of the step", percent(compute));
    if again >= LEAST {
        text.push_str(&format!(" and recomputes {}", percent(again)));
    }
    for (index, (kind, share)) in waits.iter().enumerate() {
        let joint = if index == 0 { "; it waits for" } else { ", for" };
        text.push_str(&format!("{joint} {} {}", awaited(*kind), percent(*share)));
    }
    text + "."
}
