//! Launch files of training frameworks: read as scenarios, and written from plans. One file for each framework.
//!
//! A launch file gives the split of a model, but often neither the model nor the machines: overrides give the rest.
//! Unknown settings are named in a note. Settings in the table of plan dimensions are read and written by it (`settings`);
//! the files of frameworks handle the others.

mod accelerate;
mod deepspeed;
mod emit;
mod keys;
mod megatron;
mod recipes;
mod settings;
mod shell;
mod torchtitan;

pub use emit::{Launch, emit};
pub(crate) use emit::{Proposal, adopted, adopted_precision, recipe_settings};
pub use stepcast_core::strategy::Framework;

use super::{Folder, Request};
use keys::Keys;
use serde_json::Value;
use std::path::Path;
use stepcast_core::fault::{Fault, Remedy, RequestOption};
use stepcast_core::machine::{NodesSection, WorkersSection, catalog};
use stepcast_core::model::transformer::{AdaptersSection, Packing, TransformerSection, hugging_face};
use stepcast_core::model::zoo;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Amount;
use stepcast_core::scenario::{
    ClusterSection, DataSection, Document, Edit, ModelSection, PlanningSection, ScenarioFile,
};
use stepcast_core::strategy::{Architecture, ContextExchange, PlanSection, StrategySection, Synchronisation};
use stepcast_core::text;

/// Keys of a scenario that name the model.
const MODELS: [&str; 6] =
    ["model.zoo", "model.config", "model.transformer", "model.custom", "model.onnx", "model.profile"];

/// Most unknown names that a note lists.
const LISTED: usize = 12;

/// The key that lets a file be read even if it has unknown settings that change the answer.
pub const IGNORE_UNKNOWN: &str = "launch.ignore-unknown";

/// Prefixes of unknown settings that change the time of a step or the memory.
const WITH_EFFECT: &str = include_str!("launch_with_effect.txt");

/// Content of a launch file.
#[derive(Debug, Default)]
struct Launched {
    framework: &'static str,
    /// The framework whose settings a search writes, if the file is a recipe.
    recipe: Option<Framework>,
    /// A model of the zoo.
    zoo: Option<String>,
    /// A model that the zoo does not have.
    named: Option<String>,
    shape: Option<TransformerSection>,
    adapters: Option<AdaptersSection>,
    sequence: Option<u64>,
    plan: PlanSection,
    group: Option<Group>,
    /// Sequences of a replica in a step, for files that do not give the global batch.
    replica_batch: Option<u64>,
    precision: Option<Precision>,
    workers: Option<u64>,
    per_machine: Option<u64>,
    steps: Option<u64>,
    samples: Option<u64>,
    epochs: Option<f64>,
    /// How documents share a sequence.
    packing: Option<Packing>,
    compiled: bool,
    /// Keys that were not understood.
    unknown: Vec<String>,
    notes: Vec<String>,
}

impl Launched {
    /// The settings that the table of dimensions finds in a file of a framework called `name`.
    fn read(name: &'static str, keys: &mut Keys, framework: Framework) -> Result<Self, Fault> {
        let mut unknown = Vec::new();
        let plan = settings::read(keys, framework, &mut unknown)?;
        Ok(Self { framework: name, plan, unknown, ..Self::default() })
    }

    /// Adds the names of unread keys, except those without effect.
    fn without(mut self, mut keys: Keys, no_effect: &str) -> Self {
        keys.forget(no_effect);
        self.unknown.extend(keys.rest());
        self
    }

    /// Ranks that divide tensors, sequences and layers.
    fn ranks(&self) -> [u64; 3] {
        [self.plan.tensor, self.plan.context, self.plan.pipeline].map(|ranks| ranks.unwrap_or(1).max(1))
    }

    /// Replicas on this many workers.
    fn replicas(&self, workers: u64) -> u64 {
        self.ranks().iter().fold(workers, |left, ranks| left / ranks)
    }

    /// Default exchange of keys and values between context-parallel ranks.
    fn exchange(&mut self, usual: ContextExchange) {
        let given = self.plan.context_exchange.take();
        let context = self.plan.context.filter(|ranks| *ranks > 1);
        self.plan.context_exchange = context.map(|_| given.unwrap_or(usual));
    }
}

/// The ranks of one group of hybrid sharding.
#[derive(Debug, Clone, Copy)]
enum Group {
    /// This number.
    Of(u64),
    /// The ranks divided by this number of groups.
    Count(u64),
    /// The ranks of one machine.
    Machine,
}

/// A format, with the data parsed to recognise it.
enum LaunchKind {
    Megatron,
    Torchtitan(toml::Table),
    Python,
    Deepspeed(Value),
    Accelerate,
    Nemo,
    Recipe(Framework),
    Adapters(Value),
}

fn kind(content: &str) -> Option<LaunchKind> {
    if content.trim_start().starts_with('{') {
        let tree: Value = serde_json::from_str(content).ok()?;
        if recipes::is_adapters(&tree) {
            return Some(LaunchKind::Adapters(tree));
        }
        return deepspeed::recognises(&tree).then_some(LaunchKind::Deepspeed(tree));
    }
    if let Ok(table) = text::parse::<toml::Table>(content) {
        return torchtitan::recognises(&table).then_some(LaunchKind::Torchtitan(table));
    }
    if torchtitan::recognises_python(content) {
        return Some(LaunchKind::Python);
    }
    if let Some(framework) = recipes::recognises(content) {
        return Some(LaunchKind::Recipe(framework));
    }
    if accelerate::recognises(content) {
        return Some(LaunchKind::Accelerate);
    }
    if megatron::recognises_nemo(content) {
        return Some(LaunchKind::Nemo);
    }
    megatron::recognises(content).then_some(LaunchKind::Megatron)
}

/// Whether a text is a launch file of a framework.
pub(crate) fn recognises(content: &str) -> bool {
    kind(content).is_some()
}

/// Whether a text is the `config.json` of a Hugging Face model.
pub(crate) fn is_config(content: &str) -> bool {
    let tree: Option<Value> = serde_json::from_str(content).ok();
    tree.is_some_and(|tree| tree.get("model_type").is_some() && tree.get("operations").is_none())
}

impl Request {
    /// The scenario of a launch file, if the text is one.
    pub(super) fn from_launch(name: &str, content: &str, overrides: &[Edit]) -> Result<Option<Self>, Fault> {
        let Some(kind) = kind(content) else { return Ok(None) };
        let launched = read(kind, content, overrides).map_err(|fault| fault.at(name))?;
        let files = Folder::new(Path::new("").to_owned());
        for note in &launched.notes {
            files.note(format!("{name}: {note}."));
        }
        let ignored = overrides.iter().any(|change| change.key() == IGNORE_UNKNOWN);
        let overrides: Vec<Edit> =
            overrides.iter().filter(|change| change.key() != IGNORE_UNKNOWN).cloned().collect();
        let overrides = overrides.as_slice();
        let changes = |name: &&String| WITH_EFFECT.split_whitespace().any(|known| name.starts_with(known));
        let matter: Vec<String> = launched.unknown.iter().filter(changes).cloned().collect();
        if !matter.is_empty() && !ignored {
            let reason = format!("not understood, although it changes the answer: {}", list(&matter));
            let ignore = Remedy::option_to(RequestOption::IgnoreUnknown, "to leave it out");
            return Err(Fault::in_file(name, reason, [Remedy::advice("remove it from the file"), ignore]));
        }
        if !launched.unknown.is_empty() {
            files.note(format!("{name}: not understood and left out: {}.", list(&launched.unknown)));
        }
        let document = document(name, launched, overrides).map_err(|fault| fault.at(name))?;
        // The file determines the split of the model, even if it has none.
        Ok(Some(Self { gives_plan: false, ..Self::new(document, files, overrides.to_vec()) }))
    }
}

fn list(names: &[String]) -> String {
    let mut shown: Vec<String> = names.iter().take(LISTED).map(|name| printable(name)).collect();
    if names.len() > LISTED {
        shown.push(format!("and {} more", names.len() - LISTED));
    }
    shown.join(", ")
}

fn printable(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

fn read(kind: LaunchKind, content: &str, overrides: &[Edit]) -> Result<Launched, Fault> {
    match kind {
        LaunchKind::Megatron => megatron::read(shell::flags(content)),
        LaunchKind::Nemo => megatron::read(megatron::nemo_keys(content)?),
        LaunchKind::Deepspeed(tree) => deepspeed::read(Keys::of_tree(tree)),
        LaunchKind::Recipe(framework) => recipes::read(framework, keys::of_yaml(content)?),
        LaunchKind::Adapters(tree) => recipes::adapters(Keys::of_tree(tree)),
        LaunchKind::Accelerate => accelerate::read(keys::of_yaml(content)?, content),
        LaunchKind::Python => torchtitan::read(torchtitan::python_keys(content), layers(overrides)),
        LaunchKind::Torchtitan(table) => {
            let tree = serde_json::to_value(table)
                .map_err(|error| Fault::new(error.to_string(), "report this: a table cannot be read"))?;
            torchtitan::read(Keys::of_tree(tree), layers(overrides))
        }
    }
}

/// Layers of the model that overrides name.
fn layers(overrides: &[Edit]) -> Option<u64> {
    let named = |key: &str| overrides.iter().rfind(|change| change.key() == key)?.value()?.as_str();
    match (named("model.zoo"), named("model.config")) {
        (Some(name), _) => zoo::transformer(name).map(|shape| shape.layers),
        (None, Some(path)) => {
            let text = std::fs::read_to_string(path).ok()?;
            hugging_face::read(&text).ok().map(|(_, shape)| shape.layers)
        }
        (None, None) => None,
    }
}

fn document(name: &str, launched: Launched, overrides: &[Edit]) -> Result<Document, Fault> {
    let framework = launched.framework;
    let given = |beginning: &str| overrides.iter().any(|change| change.key().starts_with(beginning));
    if !["cluster.workers.device", "cluster.workers.0", "cluster.machine"].iter().any(|key| given(key)) {
        let reason = format!("a launch file of {framework} does not say on what it runs");
        let device = Remedy::option(RequestOption::Device, "a100");
        return Err(Fault::new(reason, [Remedy::option(RequestOption::Machine, "dgx-h100"), device]));
    }
    let workers = workers(overrides, launched.recipe.is_some()).or(launched.workers).ok_or_else(|| {
        let reason = "it does not say how many workers there are";
        let remedy = Remedy::GiveOption {
            option: RequestOption::Workers,
            value: Some("4x8".to_owned()),
            purpose: "for four machines of eight".to_owned(),
        };
        Fault::new(reason, remedy)
    })?;
    let planning =
        launched.recipe.map(|own| PlanningSection { frameworks: Some(vec![own]), ..Default::default() });
    let file = ScenarioFile {
        plan: planning,
        model: model(&launched, overrides)?,
        cluster: cluster(&launched, workers, overrides),
        data: data(&launched, workers, given("data.")),
        strategy: StrategySection {
            architecture: Some(Architecture::AllReduce),
            synchronisation: Some(Synchronisation::Bsp),
            precision: launched.precision,
            compiled: launched.compiled.then_some(true),
            plan: Some(plan(launched, workers)),
            ..StrategySection::default()
        },
        ..ScenarioFile::default()
    };
    Ok(Document::from_file(name, file))
}

/// Workers that overrides give; one machine's if neither the file nor the overrides give a number.
fn workers(overrides: &[Edit], open: bool) -> Option<u64> {
    let value = |key: &str| overrides.iter().rfind(|change| change.key() == key)?.value();
    let number = |key: &str| u64::try_from(value(key)?.as_integer()?).ok();
    number("cluster.workers.count").or_else(|| {
        let machine = catalog::machine(value("cluster.machine")?.as_str()?).ok()?;
        let machines = number("cluster.machines").or(open.then_some(1))?;
        Some(machines.saturating_mul(machine.gpus.into()))
    })
}

fn model(launched: &Launched, overrides: &[Edit]) -> Result<ModelSection, Fault> {
    let given = ModelSection {
        sequence: launched.sequence,
        adapters: launched.adapters.clone(),
        ..ModelSection::default()
    };
    if overrides.iter().any(|change| MODELS.contains(&change.key())) {
        return Ok(given);
    }
    if let Some(shape) = &launched.shape {
        let name = shape.name.clone().unwrap_or_else(|| format!("{} model", launched.framework));
        let transformer = Some(TransformerSection { name: Some(name), ..shape.clone() });
        return Ok(ModelSection { transformer, sequence: None, ..given });
    }
    if let Some(name) = &launched.zoo {
        return Ok(ModelSection { zoo: Some(name.clone()), ..given });
    }
    let reason = match &launched.named {
        Some(name) => format!("the shape of its model, {}, is not known", printable(name)),
        None => "it does not say what is trained".to_owned(),
    };
    let config = Remedy::GiveOption {
        option: RequestOption::Model,
        value: Some("config.json".to_owned()),
        purpose: "of Hugging Face".to_owned(),
    };
    Err(Fault::new(reason, [Remedy::option(RequestOption::Model, "llama3-8b"), config]))
}

fn cluster(launched: &Launched, workers: u64, overrides: &[Edit]) -> ClusterSection {
    let given = |key: &str| overrides.iter().any(|change| change.key() == key);
    let counted = given("cluster.machines") || workers > u64::from(u32::MAX);
    let group = WorkersSection {
        count: u32::try_from(workers).ok().filter(|_| !counted),
        ..WorkersSection::default()
    };
    let each = launched.per_machine.and_then(|each| u32::try_from(each).ok()).filter(|each| *each > 1);
    let nodes = each.map(|each| NodesSection { workers: Some(each), ..NodesSection::default() });
    ClusterSection { workers: Some(vec![group]), nodes, ..ClusterSection::default() }
}

/// The plan, completed for the number of workers.
fn plan(launched: Launched, workers: u64) -> PlanSection {
    let (replicas, [_, context, _]) = (launched.replicas(workers), launched.ranks());
    let mut plan = launched.plan;
    // Its recipes for one device do not shard.
    if launched.recipe == Some(Framework::Torchtune) && replicas == 1 {
        plan.sharding = None;
    }
    plan.sharding_group = launched.group.map(|group| match group {
        Group::Of(ranks) => ranks,
        Group::Count(groups) => replicas.saturating_mul(context) / groups.max(1),
        Group::Machine => launched.per_machine.unwrap_or(workers),
    });
    if plan.global_batch.is_none() {
        plan.global_batch = launched.replica_batch.map(|batch| batch.saturating_mul(replicas.max(1)));
    }
    plan
}

/// The data set, if the number of steps or samples is given, or overrides describe it. Steps count once, regardless of epochs.
fn data(launched: &Launched, workers: u64, is_given: bool) -> Option<DataSection> {
    let replicas = launched.replicas(workers);
    let batch = || launched.plan.global_batch.or(launched.replica_batch?.checked_mul(replicas));
    let in_steps = launched.steps.and_then(|steps| steps.checked_mul(batch()?)).filter(|all| *all > 0);
    let epochs = launched.epochs.filter(|epochs| in_steps.is_none() && *epochs > 0.0);
    let whole = epochs.filter(|epochs| epochs.fract() == 0.0).map(|epochs| epochs as u64);
    // A part of an epoch counts in samples.
    let part = if whole.is_some() { 1.0 } else { epochs.unwrap_or(1.0) };
    let samples = in_steps.or(launched.samples).filter(|samples| *samples > 0);
    let samples = samples.map(|samples| Amount::new((samples as f64 * part).ceil()));
    (samples.is_some() || is_given).then(|| DataSection {
        samples,
        epochs: whole,
        packing: launched.packing,
        ..DataSection::default()
    })
}
