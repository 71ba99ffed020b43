//! Plans in the words of frameworks: flags, or a file.
//!
//! A plan that a framework cannot run is refused, with what to exclude from the search.

use super::runs::Proposal;
use super::settings::{Settings, cannot};
use super::{accelerate, deepspeed, megatron, recipes, torchtitan};
use crate::explore::plan::{Entry, PlanReport, RecipeSetting, applied, plan};
use serde_json::Value;
use std::ops::ControlFlow;
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::precision::Precision;
use stepcast_core::scenario::{Planning, PlanningSection, Scenario};
use stepcast_core::strategy::{ContextExchange, Division, Framework, Plan};

/// The best plan of a search in the words of a framework: with stages of their own where these are better and the framework
/// has words for them. A search that was not for this framework is made again, because another plan may be best there.
pub fn emit(scenario: &Scenario, report: &PlanReport, framework: Framework) -> Result<String, Fault> {
    if report.framework != Some(framework) {
        let bounds = match &scenario.planning {
            Some(bounds) => bounds.clone(),
            None => PlanningSection::default().resolve(&NoFiles)?,
        };
        let mut own = scenario.clone();
        own.planning = Some(Planning { frameworks: Some(vec![framework]), ..bounds });
        let found = plan(&own, report.objective, &mut |_| ControlFlow::Continue(()))?;
        return written(&own, &found, framework);
    }
    written(scenario, report, framework)
}

fn written(scenario: &Scenario, report: &PlanReport, framework: Framework) -> Result<String, Fault> {
    let Some(stages) = &report.stages else { return entry(scenario, &report.best, framework) };
    entry(scenario, &stages.entry, framework).or_else(|refused| {
        let text = entry(scenario, &report.best, framework)?;
        // JSON has no comments.
        let note = match framework {
            Framework::Deepspeed => String::new(),
            _ => format!(
                "# Stages of their own would save {:.1} %, but {}: {}.\n",
                100.0 * stages.gain,
                refused.reason,
                stages.entry.words
            ),
        };
        Ok(note + &text)
    })
}

fn entry(scenario: &Scenario, entry: &Entry, framework: Framework) -> Result<String, Fault> {
    let shape = scenario.transformer_of_plan()?;
    let applied = applied(scenario, entry)?;
    let workers_per_node = u64::from(applied.cluster.workers_per_node()).min(entry.workers);
    let launch = Launch {
        name: scenario.name(),
        shape: &shape,
        plan: &entry.plan.clone().resolve(&NoFiles)?,
        precision: applied.strategy.precision,
        nodes: entry.workers.div_ceil(workers_per_node),
        workers_per_node,
        data: entry.data,
        micro_batches: entry.micro_batches,
    };
    let text = launch.emit(framework)?;
    let settings = recipe_settings(scenario, entry, framework)?;
    let removed = settings.iter().filter(|setting| setting.best.is_none());
    Ok(text + &removed.map(|setting| format!("{}: null\n", setting.name)).collect::<String>())
}

/// The settings that the plan of an entry decides in a recipe of a framework, beside those of the scenario's own plan.
pub(crate) fn recipe_settings(
    scenario: &Scenario,
    entry: &Entry,
    framework: Framework,
) -> Result<Vec<RecipeSetting>, Fault> {
    if !framework.has_recipes() {
        return Ok(Vec::new());
    }
    let shape = scenario.transformer_of_plan()?;
    let best = entry.plan.clone().resolve(&NoFiles)?;
    let best = recipes::settings(framework, &best, entry.micro_batches);
    let own = scenario.strategy.plan.as_ref().and_then(|plan| {
        let division = plan.divide(&shape, scenario.cluster.workers()).ok()?;
        Some(recipes::settings(framework, plan, division.micro_batches))
    });
    let own = own.unwrap_or_default();
    let mut names: Vec<&str> = best.iter().map(|(name, _)| *name).collect();
    names.extend(own.iter().map(|(name, _)| *name).filter(|name| best.iter().all(|(own, _)| own != name)));
    let value = |all: &[(&str, Value)], name: &str| {
        all.iter().find(|(own, _)| *own == name).map(|(_, value)| value.clone())
    };
    let setting = |name: &str| RecipeSetting {
        name: name.to_owned(),
        scenario: value(&own, name),
        best: value(&best, name),
    };
    Ok(names.into_iter().map(setting).collect())
}

/// A plan on machines, with what it leaves open.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The name of the model.
    pub name: &'a str,
    /// The transformer.
    pub shape: &'a Transformer,
    /// The plan.
    pub plan: &'a Plan,
    /// Its number format.
    pub precision: Precision,
    /// Machines.
    pub nodes: u64,
    /// Workers of each.
    pub workers_per_node: u64,
    /// Replicas.
    pub data: u64,
    /// Micro-batches of a replica.
    pub micro_batches: u64,
}

impl Launch<'_> {
    /// The text for a framework.
    pub fn emit(&self, framework: Framework) -> Result<String, Fault> {
        let mut plan = self.plan.clone();
        plan.global_batch = Some(self.data * self.micro_batches * plan.micro_batch);
        if plan.context == 1 {
            plan.context_exchange = ContextExchange::Ring;
        }
        let (data, micro_batches) = (self.data, self.micro_batches);
        let global_batch = data * micro_batches * plan.micro_batch;
        let choice = plan.choice(&Division { data, micro_batches, global_batch });
        let asked = Proposal { shape: self.shape, base: &plan, choice: &choice, node: self.workers_per_node };
        if let Some(refused) = asked.refused(framework) {
            return Err(refused);
        }
        let settings = Settings::new(&plan, framework)?;
        Ok(match framework {
            Framework::Megatron => megatron::write(self, settings),
            Framework::Torchtitan => {
                if !torchtitan::divides(self) {
                    let what = "stages with different numbers of layers, but for fewer of them at the ends,";
                    return Err(cannot(framework, what, "plan.per-stage=false"));
                }
                torchtitan::write(self, settings, &choice)
            }
            Framework::Deepspeed => deepspeed::write(self, settings)?,
            Framework::Fsdp => accelerate::write(self),
            _ => {
                let settings = recipes::settings(framework, &plan, micro_batches);
                settings.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
            }
        })
    }

    /// Layers of the first stage, of all between, and of the last, where those between are alike.
    pub(super) fn ends(&self) -> Option<[u64; 3]> {
        let (first, rest) = self.plan.given_layers().split_first()?;
        let (last, between) = rest.split_last()?;
        let middle = between.first().copied().unwrap_or(*first.max(last));
        between.iter().all(|layers| *layers == middle).then_some([*first, middle, *last])
    }
}
