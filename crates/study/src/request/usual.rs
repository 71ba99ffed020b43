//! What a request leaves open and only a prediction can fill in: the plan of a transformer.

use super::{Folder, Request, Source};
use crate::explore::plan::{UsualPlan, usual_plan};
use std::path::Path;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::files::Files;
use stepcast_core::model::transformer::BaseFormat;
use stepcast_core::scenario::{Document, Edit, ModelSection, Scenario, ScenarioFile};
use stepcast_core::strategy::{Architecture, Plan, PlanSection, Synchronisation};

/// Keys of a plan that say nothing about how the model is split: batches, kernels and number formats.
const UNDIVIDED: [&str; 11] = [
    "global-batch",
    "micro-batch",
    "attention",
    "recipe",
    "graphs",
    "dropout",
    "mask",
    "loss",
    "states",
    "implementation",
    "overlap",
];

/// Shortest sequences, in tokens, that are advised where longer ones do not fit.
const SHORTEST: u64 = 1024;

/// Whether a key says how a model is split.
pub(super) fn divides(key: &str) -> bool {
    key.strip_prefix("strategy.plan").is_some_and(|own| !UNDIVIDED.contains(&own.trim_start_matches('.')))
}

/// The plan of a transformer that has none: alike workers that sum their gradients, nothing of whose exchange is given.
pub(super) fn plan(file: &ScenarioFile, scenario: &Scenario, files: &dyn Files) -> Option<UsualPlan> {
    let strategy = &file.strategy;
    let mut given = strategy.plan.clone().unwrap_or_default();
    let keys = toml::Table::try_from(&given).ok()?;
    let open = keys.keys().all(|key| UNDIVIDED.contains(&key.as_str()))
        && strategy.all_reduce.is_none()
        && strategy.fusion.is_none()
        && strategy.accumulation.is_none();
    let summed = scenario.strategy.architecture == Architecture::AllReduce
        && scenario.strategy.synchronisation == Synchronisation::Bsp;
    let alike = match scenario.cluster.groups.as_slice() {
        [group] => group.throughput.is_none() && group.step_time.is_none() && group.batch.is_none(),
        _ => false,
    };
    if scenario.source.transformer().is_none() || !(open && summed && alike) {
        return None;
    }
    let each = strategy.batch.map(|batch| u64::from(batch) * scenario.cluster.workers());
    given.global_batch = given.global_batch.or(each);
    // With a plan, other precisions are usual.
    let scenario = resolve_for_planning(file.clone(), files).ok()?;
    usual_plan(&scenario, &given).ok()
}

/// The scenario of a search over plans: a transformer has a plan, which need not divide the workers.
pub(super) fn resolve_for_planning(mut file: ScenarioFile, files: &dyn Files) -> Result<Scenario, Fault> {
    if resolve_any_plan(file.clone(), files)?.source.transformer().is_some() {
        file.strategy.plan.get_or_insert_default();
    }
    resolve_any_plan(file, files)
}

pub(super) fn resolve_any_plan(file: ScenarioFile, files: &dyn Files) -> Result<Scenario, Fault> {
    let scenario = file.resolve_unchecked(files)?;
    match scenario.check_together() {
        Err(fault) if !fault.key.to_string().starts_with("strategy.plan") => Err(fault),
        _ => Ok(scenario),
    }
}

/// The scenario of a file with its usual plan, where it has none.
pub(super) fn resolve_with_usual_plan(file: ScenarioFile, files: &dyn Files) -> Result<Scenario, Fault> {
    let plain = resolve_any_plan(file.clone(), files)?;
    match plan(&file, &plain, files) {
        Some(plan) => with_plan(file, plan.section).resolve_unchecked(files),
        None => Ok(plain),
    }
}

/// The file with a plan. Samples of each worker, if given, say how many sequences a step has.
pub(super) fn with_plan(mut file: ScenarioFile, plan: PlanSection) -> ScenarioFile {
    let global_batch = plan.global_batch.filter(|_| file.strategy.batch.is_none());
    file.strategy.plan = Some(PlanSection { global_batch, ..plan });
    file
}

/// The edit that gives a scenario this plan, with the sequences of a step or without.
pub(super) fn edit(plan: &Plan, with_batch: bool) -> Option<Edit> {
    let section = plan.section();
    let global_batch = section.global_batch.filter(|_| with_batch);
    let table = toml::Value::try_from(PlanSection { global_batch, ..section }).ok()?;
    Some(Edit::set("strategy.plan", table))
}

impl<F: Source> Request<F> {
    /// The plan that this number of workers gets where none is given.
    pub(crate) fn usual_plan(&self, number: u32) -> Result<Option<Plan>, Fault> {
        let mut edits = self.edits.clone();
        edits.push(Edit::set("cluster.workers.count", number));
        let file = self.document.file(&edits)?;
        Ok(resolve_with_usual_plan(file, &self.files)?.strategy.plan)
    }

    /// What makes a usual plan fit on the same workers: shorter sequences, where their length is assumed, or frozen matrices in
    /// 4 bits.
    pub(crate) fn fits_after(&self, scenario: &Scenario) -> Option<Remedy> {
        let shape = scenario.source.transformer()?;
        let shorter = std::iter::successors(Some(shape.sequence / 2), |length| Some(length / 2))
            .take_while(|length| *length >= SHORTEST)
            .filter(|_| self.assumed().is_ok_and(|assumed| assumed.sequence))
            .map(|length| ("model.sequence", length.to_string()));
        let packed = shape.tuning.adapters.filter(|adapters| adapters.base == BaseFormat::default());
        let packed = packed.map(|_| ("model.adapters.base", "nf4".to_owned()));
        let fits = |(key, value): &(&str, String)| {
            let mut edits = self.edits.clone();
            edits.push(Edit::from_form(key, Some(value)));
            let found = self.document.file(&edits).and_then(|file| {
                let plain = resolve_any_plan(file.clone(), &self.files)?;
                Ok(plan(&file, &plain, &self.files))
            });
            found.is_ok_and(|plan| plan.is_some_and(|plan| plan.fits))
        };
        shorter.chain(packed).find(fits).map(|(key, value)| Remedy::set(key, value))
    }
}

impl Request {
    /// The scenario of a model of the zoo, an ONNX file or a `config.json`.
    pub fn from_model(model: &str, edits: Vec<Edit>) -> Self {
        let file = ScenarioFile { model: ModelSection::named(model), ..ScenarioFile::default() };
        Self::new(Document::from_file(model, file), Folder::new(Path::new("").to_owned()), edits)
    }
}
