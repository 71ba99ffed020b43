//! A plan in words, and as a section of a scenario.

use super::setup::Setup;
use stepcast_analytic::transformer::plans::Choice;
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::strategy::{Offloaded, Plan, PlanSection, Recompute, ScheduleKind, Sharding};

/// A plan in few words: what it divides and how.
pub(super) fn words(setup: &Setup, choice: &Choice) -> String {
    let mut words = Vec::new();
    let mut ranks = |name: &str, count: u64| {
        if count > 1 {
            words.push(format!("{name} {count}"));
        }
    };
    ranks("tensor", choice.tensor);
    ranks("context", choice.context);
    ranks("pipeline", choice.pipeline);
    ranks("chunks", choice.chunks);
    ranks("expert", choice.expert);
    ranks("data", choice.data);
    if choice.pipeline > 1 && !matches!(choice.schedule, ScheduleKind::OneFOneB | ScheduleKind::Interleaved) {
        words.push(choice.schedule.to_string());
    }
    match (choice.sharding, choice.sharding_group) {
        (Sharding::None, _) => {}
        (sharding, Some(group)) => words.push(format!("{sharding} of {group}")),
        (sharding, None) => words.push(sharding.to_string()),
    }
    words.push(format!("micro-batch {}", choice.micro_batch));
    if choice.sequence_parallel {
        words.push("sequence parallel".to_owned());
    }
    match (choice.recompute.what, choice.recompute.layers) {
        (Recompute::None, _) => {}
        (what, Some(layers)) => words.push(format!("recomputing {layers} {what}s of a chunk")),
        (what, None) => words.push(format!("recomputing {what}")),
    }
    if setup.offloaded != Offloaded::default() {
        words.push(format!("offloading {}", super::family::offloaded(setup)));
    }
    if let Some(parameters) = setup.bucket {
        words.push(format!("buckets of {parameters} parameters"));
    }
    match setup.prefetch {
        None | Some(true) => {}
        Some(false) => words.push("weights gathered when needed".to_owned()),
    }
    words.join(", ")
}

/// `[strategy.plan]` with all keys that do not have their default.
pub(super) fn section(plan: &Plan) -> Result<String, Fault> {
    let written = |plan: &Plan| {
        toml::Table::try_from(plan.section())
            .map_err(|error| Fault::new(error.to_string(), "report this: a plan cannot be written"))
    };
    let usual = written(&PlanSection::default().resolve(&NoFiles)?)?;
    let mut own = written(plan)?;
    own.retain(|key, value| usual.get(key) != Some(value));
    let keys = toml::to_string(&own)
        .map_err(|error| Fault::new(error.to_string(), "report this: a plan cannot be written"))?;
    Ok(format!("[strategy.plan]\n{keys}"))
}
