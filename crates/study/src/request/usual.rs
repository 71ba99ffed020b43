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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ForecastOptions, Observer, forecast};
    use stepcast_core::machine::catalog;
    use stepcast_core::strategy::{Recipe, Sharding};

    fn request(model: &str, changes: &[&str]) -> Request {
        let changes = changes.iter().map(|text| Edit::parse(text).unwrap()).collect();
        Request::from_model(model, changes)
    }

    #[test]
    fn a_large_transformer_is_split_until_it_fits() {
        let cluster = ["cluster.machine=dgx-h100", "cluster.machines=8"];
        let large = request("llama3-70b", &cluster);
        assert!(large.assumed().unwrap().plan && !large.assumed().unwrap().nothing_fits);
        assert_ne!(large.scenario().unwrap().strategy.plan.as_ref().unwrap().sharding, Sharding::None);
        let none = request("llama3-70b", &["cluster.workers.device=rtx-4090", "cluster.workers.count=8"]);
        assert!(none.assumed().unwrap().nothing_fits);
    }

    /// A row of the scaling table is the answer for that number of workers.
    #[test]
    fn every_number_of_workers_that_is_asked_for_has_its_plan() {
        let step = |asked: &str| request("llama3-8b", &["cluster.machine=dgx-h100", asked]);
        let several = ForecastOptions { workers: Some(vec![2, 8, 16]), ..ForecastOptions::default() };
        let table = forecast(&step("workers=16"), &several, &Observer::none()).unwrap().scaling;
        for row in &table {
            let alone = step(&format!("workers={}", row.workers));
            let own = forecast(&alone, &ForecastOptions::default(), &Observer::none()).unwrap();
            assert_eq!(row.iteration, own.prediction.iteration, "{} workers", row.workers);
        }
        assert_eq!(table.len(), 3);
    }

    #[test]
    fn a_given_plan_is_kept() {
        let request = request("llama3-8b", &["cluster.machine=dgx-h100", "strategy.plan.tensor=2"]);
        assert_eq!(request.scenario().unwrap().strategy.plan.as_ref().unwrap().tensor, 2);
        assert!(!request.assumed().unwrap().plan);
    }

    #[test]
    fn a_number_format_leaves_the_split_open() {
        let request = request("llama3-8b", &["cluster.machine=dgx-h100", "strategy.plan.recipe=fp8"]);
        let assumed = request.assumed().unwrap();
        assert!(assumed.plan && !assumed.nothing_fits);
        assert_eq!(request.scenario().unwrap().strategy.plan.as_ref().unwrap().recipe, Recipe::Fp8);
    }

    #[test]
    fn samples_of_a_worker_are_sequences_of_the_plan() {
        let sequences = |changes: &[&str]| {
            let all = [&["cluster.machine=dgx-h100"], changes].concat();
            request("gpt2", &all).scenario().unwrap().strategy.plan.as_ref().unwrap().global_batch
        };
        assert_eq!(sequences(&["strategy.batch=8"]), Some(64));
        assert_eq!(sequences(&["strategy.plan.global-batch=16"]), Some(16));
        let both = ["cluster.machine=dgx-h100", "strategy.batch=8", "strategy.plan.global-batch=16"];
        assert_eq!(request("gpt2", &both).scenario().unwrap_err().key.to_string(), "strategy.batch");
    }

    #[test]
    fn other_models_are_trained_by_all_reduce() {
        let scenario = request("resnet50", &["cluster.workers.device=a100"]).scenario().unwrap();
        assert_eq!(scenario.strategy.architecture, Architecture::AllReduce);
        assert_eq!(scenario.strategy.plan, None);
    }

    #[test]
    fn devices_of_whole_machines_share_them() {
        let cluster = |changes: &[&str]| request("llama3-8b", changes).scenario().unwrap().cluster.clone();
        let h100 = "cluster.workers.device=h100";
        let one = cluster(&[h100, "cluster.workers.count=8"]);
        assert_eq!(one.workers_per_node(), 8);
        let several = cluster(&[h100, "cluster.workers.count=512"]);
        assert_eq!(several.workers_per_node(), 8);
        assert_eq!(several.network, catalog::network("infiniband-ndr").unwrap());
        let roce = [h100, "cluster.workers.count=512", "cluster.network=roce-100g"];
        assert_eq!(cluster(&roce).network, catalog::network("roce-100g").unwrap());
        assert_eq!(cluster(&roce).workers_per_node(), 8);
        // A network between so few workers says that each is a machine.
        let apart = cluster(&[h100, "cluster.workers.count=4", "cluster.network=100gbe"]);
        assert_eq!(apart.workers_per_node(), 1);
        // Cards without links of their own fill the slots of machines, so that a row of a scaling table is what its number gives.
        let cards = |count: u32| {
            cluster(&["cluster.workers.device=rtx-4090", &format!("cluster.workers.count={count}")])
        };
        for count in [1, 4, 8, 16] {
            assert_eq!(cards(count).workers_per_node(), 8);
            assert_eq!(cards(4).resized(count), cards(count));
        }
    }
}
