//! Plans as flags or files of frameworks; which plans a framework runs, and with which kernels, states and overlap.
//!
//! A plan that a framework cannot run is refused, with a change that excludes such plans from the search.

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
use stepcast_core::strategy::{
    ContextExchange, Division, Framework, Implementation, Loss, OverlapPreset, Plan, PlanChoice, Recipe,
    States,
};

/// The best plan of a search as settings of a framework: with stages that differ if these are better and the framework
/// supports them. A search that was not for this framework is repeated, because another plan may be best there.
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

/// The settings that the plan of an entry determines in a recipe of a framework, with their values in the scenario's own plan.
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

/// A plan on machines, with its derived replicas and micro-batches.
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

/// A plan that a framework is asked to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proposal<'a> {
    /// The transformer.
    pub(crate) shape: &'a Transformer,
    /// Dimensions that a search does not vary.
    pub(crate) base: &'a Plan,
    /// Dimensions that it varies.
    pub(crate) choice: &'a PlanChoice,
    /// Workers of a machine.
    pub(crate) node: u64,
}

/// A feature that a framework does not run, and the change of a scenario that excludes it.
pub(super) type Refusal = (&'static str, &'static str);

impl Proposal<'_> {
    /// The feature of the plan that a framework does not run; none if it runs the plan.
    pub(super) fn refusal(&self, framework: Framework) -> Option<Refusal> {
        let decoders = [
            (self.shape.tuning.adapters.is_some(), ("adapters", "plan.frameworks=[\"fsdp\"]")),
            (self.shape.target > 0, ("an encoder with its decoder here", "plan.frameworks=[\"fsdp\"]")),
            (self.shape.signal.is_some(), ("patches or frames here", "plan.frameworks=[\"fsdp\"]")),
        ];
        match framework {
            Framework::Megatron | Framework::Torchtitan if decoders.iter().any(|(found, _)| *found) => {
                first(decoders)
            }
            Framework::Megatron => megatron::refusal(self),
            Framework::Torchtitan => torchtitan::refusal(self),
            Framework::Deepspeed => deepspeed::refusal(self),
            Framework::Fsdp => accelerate::refusal(self),
            _ if self.shape.signal.is_some() => first(decoders),
            _ => recipes::refusal(framework, self),
        }
    }

    /// The refusal as an error.
    pub(crate) fn refused(&self, framework: Framework) -> Option<Fault> {
        self.refusal(framework).map(|(what, change)| cannot(framework, what, change))
    }

    /// Whether a framework runs it.
    pub(crate) fn runs_on(&self, framework: Framework) -> bool {
        self.refusal(framework).is_none()
    }
}

/// The first of some refusals that applies.
pub(super) fn first<const N: usize>(cases: [(bool, Refusal); N]) -> Option<Refusal> {
    cases.into_iter().find_map(|(found, refusal)| found.then_some(refusal))
}

/// The number format in which a framework runs a model: Accelerate's mixed precision is autocast, as in recipes that it runs, and
/// no other has autocast.
pub(crate) fn adopted_precision(framework: Framework, precision: Precision) -> Precision {
    let autocast = match framework {
        Framework::Megatron | Framework::Torchtitan | Framework::Deepspeed | Framework::Torchtune => false,
        Framework::Fsdp | Framework::Axolotl | Framework::LlamaFactory | Framework::Trl => true,
    };
    match precision.of_products() {
        Precision::Bf16 if autocast => Precision::AmpBf16,
        Precision::Fp16 if autocast => Precision::AmpFp16,
        own => own,
    }
}

/// A plan adapted to a framework that computes in this format: properties without an option get the framework's values.
pub(crate) fn adopted(framework: Framework, plan: &Plan, precision: Precision) -> Plan {
    let own = Plan {
        sends: None,
        implementation: None,
        logit_bytes: None,
        overlap_tensor: None,
        overlap_products: plan.overlap_products && framework == Framework::Megatron,
        overlap_gradients: None,
        overlap_weights: None,
        overlap_prefetch: None,
        overlap_sends: None,
        overlap_context: None,
        stage_layers: None,
        stage_recompute: None,
        shares: None,
        reduce_bits: None,
        ..plan.clone()
    };
    let states = |known: &[States]| if known.contains(&plan.states) { plan.states } else { known[0] };
    match framework {
        Framework::Megatron => Plan {
            overlap: OverlapPreset::Megatron,
            states: states(&[States::MegatronBf16, States::MegatronFp16, States::MixedFp16, States::Fp32]),
            offload: Vec::new(),
            loss: plan.loss.filter(|loss| *loss == Loss::Compiled),
            ..own
        },
        Framework::Torchtitan => Plan {
            overlap: OverlapPreset::Torchtitan,
            states: states(&[States::Fp32, States::Bf16]),
            context_exchange: ContextExchange::AllGather,
            attention: None,
            offload: Vec::new(),
            bucket: None,
            dropout: false,
            loss: plan.loss.or(Some(Loss::Chunked)),
            ..own
        },
        Framework::Deepspeed => Plan {
            overlap: OverlapPreset::Deepspeed,
            implementation: Some(Implementation::HuggingFace),
            states: states(&[States::MixedFp16, States::Fp32]),
            context_exchange: ContextExchange::AllToAll,
            attention: None,
            recipe: Recipe::None,
            dropout: false,
            loss: None,
            ..own
        },
        Framework::Fsdp => Plan {
            overlap: OverlapPreset::Fsdp2,
            implementation: Some(Implementation::HuggingFace),
            states: States::Fp32,
            reduce_bits: accelerate::reduce_bits(precision),
            context_exchange: ContextExchange::Ring,
            attention: None,
            offload: Vec::new(),
            bucket: None,
            recipe: Recipe::None,
            dropout: false,
            loss: None,
            ..own
        },
        _ => recipes::adopted(framework, &Plan { implementation: plan.implementation, ..own }, precision),
    }
}
