//! Missing parts of a scenario: the assumptions that decide its forecast, and the default plan of a transformer, which needs
//! predictions.

use super::{Folder, Request, Source};
use crate::explore::plan::{UsualPlan, usual_plan};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;
use std::path::Path;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::files::Files;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::machine::catalog::{self, MachinePrice};
use stepcast_core::model::transformer::BaseFormat;
use stepcast_core::scenario::{Document, Edit, ModelSection, Scenario, ScenarioFile};
use stepcast_core::strategy::{
    Architecture, DIMENSIONS, Dimension, OverlapPreset, Plan, PlanSection, Synchronisation,
};

/// Which of the choices that decide a forecast are assumed.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, JsonSchema)]
pub struct Assumed {
    /// The device of workers.
    pub device: bool,
    /// Their number.
    pub workers: bool,
    /// Which of them share a machine.
    pub layout: bool,
    /// The network between machines.
    pub network: bool,
    /// The number format.
    pub precision: bool,
    /// The tokens of a sample.
    pub sequence: bool,
    /// Samples of a step.
    pub batch: bool,
    /// How a transformer is split.
    pub plan: bool,
    /// The sequences of its micro-batch.
    pub micro_batch: bool,
    /// Software whose kernels compute: PyTorch's, not Hugging Face's.
    pub kernels: bool,
    /// Price of all machines for an hour, in US dollars, from the catalog; none if the scenario has prices.
    pub price: Option<AssumedRent>,
    /// Whether no usual plan fits.
    pub nothing_fits: bool,
}

/// Assumed price of machines for an hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct AssumedRent {
    /// The price of all of them.
    pub hour: f64,
    /// Range of prices on the market.
    pub range: [f64; 2],
}

fn is_priced(scenario: &Scenario) -> bool {
    scenario.price.is_some() || scenario.cluster.groups.iter().any(|group| group.price.is_some())
}

/// The machine that all workers are part of.
fn named_machine(file: &ScenarioFile) -> Option<&str> {
    file.cluster.machine.as_deref().filter(|_| file.cluster.beside.is_none())
}

impl AssumedRent {
    /// The price of the named machine, or of single devices; none if the scenario has prices or no data set.
    fn new(file: &ScenarioFile, scenario: &Scenario) -> Option<Self> {
        if is_priced(scenario) || scenario.data.is_none() || scenario.profile().is_some() {
            return None;
        }
        let parts: Option<Vec<(MachinePrice, u64)>> = match named_machine(file) {
            Some(machine) => {
                let machine = catalog::machine(machine).ok()?;
                let machines = scenario.cluster.workers().div_ceil(u64::from(machine.gpus));
                machine.price.map(|price| vec![(price, machines)])
            }
            None => {
                let part =
                    |group: &WorkerGroup| Some((catalog::device_price(&group.device)?, group.count.into()));
                scenario.cluster.groups.iter().map(part).collect()
            }
        };
        let parts = parts?;
        let sum = |of: fn(&MachinePrice) -> f64| -> f64 {
            parts.iter().map(|(price, count)| of(price) * *count as f64).sum()
        };
        Some(Self {
            hour: sum(|price| price.hour),
            range: [sum(|price| price.range[0]), sum(|price| price.range[1])],
        })
    }
}

/// The edits that give a scenario the prices of the catalog: of the named machine, or of each device.
pub(crate) fn catalog_prices(file: &ScenarioFile, scenario: &Scenario) -> Option<Vec<Edit>> {
    if is_priced(scenario) {
        return None;
    }
    if let Some(machine) = named_machine(file) {
        let price = catalog::machine(machine).ok()?.price?;
        return Some(vec![Edit::set("price.node-hour", price.hour)]);
    }
    let price = |group: &WorkerGroup| Some(catalog::device_price(&group.device)?.hour);
    match scenario.cluster.groups.as_slice() {
        [group] => Some(vec![Edit::set("price.worker-hour", price(group)?)]),
        several => {
            let of =
                |(index, group)| Some(Edit::set(format!("cluster.workers.{index}.price"), price(group)?));
            several.iter().enumerate().map(of).collect()
        }
    }
}

impl Assumed {
    fn new(file: &ScenarioFile, scenario: &Scenario, plan: Option<&UsualPlan>) -> Self {
        let ScenarioFile { model, cluster, strategy, .. } = file;
        let named = cluster.machine.is_some();
        let groups = cluster.workers.as_deref().unwrap_or_default();
        let profile = scenario.profile().is_some();
        let several = scenario.cluster.workers() > 1;
        let batches = |plan: &PlanSection| plan.global_batch.is_some();
        let in_group = groups.iter().any(|group| group.batch.is_some());
        Self {
            device: !profile && !named && groups.iter().all(|group| group.device.is_none()),
            workers: cluster.machines.is_none() && groups.iter().all(|group| group.count.is_none()),
            layout: several && !named && cluster.nodes.is_none(),
            network: several
                && !named
                && cluster.network.is_none()
                && scenario.profile().is_none_or(|profile| profile.link_rate.is_none()),
            precision: !profile && strategy.precision.is_none(),
            sequence: scenario.source.transformer().is_some() && model.sequence.is_none(),
            batch: !profile
                && !in_group
                && strategy.batch.is_none()
                && !strategy.plan.as_ref().is_some_and(batches),
            plan: plan.is_some(),
            micro_batch: plan.is_some()
                && strategy.plan.as_ref().is_none_or(|plan| plan.micro_batch.is_none()),
            kernels: plan.is_some_and(|plan| {
                let given = strategy.plan.as_ref();
                let named = given.is_some_and(|it| it.implementation.is_some() || it.overlap.is_some());
                let section = &plan.section;
                !named && section.implementation.is_none() && section.overlap == Some(OverlapPreset::Fsdp2)
            }),
            price: AssumedRent::new(file, scenario),
            nothing_fits: plan.is_some_and(|plan| !plan.fits),
        }
    }
}

/// Keys of a plan that say how the model is split, beside those that every search varies.
const DIVIDING: [&str; 5] = ["stage-layers", "data", "outer-replicas", "recompute-layers", "stage-recompute"];

/// Shortest sequence, in tokens, that is recommended if longer ones do not fit.
const SHORTEST: u64 = 1024;

/// Whether a key divides the model.
pub(super) fn divides(key: &str) -> bool {
    let Some(own) = key.strip_prefix("strategy.plan") else { return false };
    let own = own.trim_start_matches('.');
    own.is_empty() || is_dividing(own)
}

/// Whether a key of a plan divides the model; batches, kernels and number formats do not.
fn is_dividing(key: &str) -> bool {
    let varied = |dimension: &Dimension| dimension.each && dimension.key() == key;
    DIVIDING.contains(&key) || key != "micro-batch" && DIMENSIONS.iter().any(varied)
}

/// A resolved file. Its plan need not divide the workers.
pub(super) struct AnyPlan<'a> {
    file: ScenarioFile,
    files: &'a dyn Files,
    scenario: Scenario,
    /// The fault of its plan.
    wrong: Option<Fault>,
}

impl<'a> AnyPlan<'a> {
    pub(super) fn new(file: ScenarioFile, files: &'a dyn Files) -> Result<Self, Fault> {
        let scenario = file.clone().resolve_unchecked(files)?;
        match scenario.check_together().err() {
            Some(fault) if !fault.key.is_within("strategy.plan") => Err(fault),
            wrong => Ok(Self { file, files, scenario, wrong }),
        }
    }

    /// The scenario of a search over plans: a transformer has a plan.
    pub(super) fn for_planning(&self) -> Result<Scenario, Fault> {
        if self.file.strategy.plan.is_some() || self.scenario.source.transformer().is_none() {
            return Ok(self.scenario.clone());
        }
        let mut file = self.file.clone();
        file.strategy.plan = Some(PlanSection::default());
        Ok(Self::new(file, self.files)?.scenario)
    }

    /// The default plan of a transformer without one, for equal workers that sum their gradients and whose exchange is not given.
    pub(super) fn usual_plan(&self) -> Option<UsualPlan> {
        let (strategy, scenario) = (&self.file.strategy, &self.scenario);
        let mut given = strategy.plan.clone().unwrap_or_default();
        let keys = toml::Table::try_from(&given).ok()?;
        let open = !keys.keys().any(|key| is_dividing(key))
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
        // With a plan, another precision is the default.
        usual_plan(&self.for_planning().ok()?, &given).ok()
    }

    /// The file with a plan, if there is one. Samples of each worker, if given, determine the sequences of a step.
    pub(super) fn with_plan(self, plan: Option<UsualPlan>) -> Result<Self, Fault> {
        let Some(UsualPlan { section, .. }) = plan else { return Ok(self) };
        let mut file = self.file;
        let global_batch = section.global_batch.filter(|_| file.strategy.batch.is_none());
        file.strategy.plan = Some(PlanSection { global_batch, ..section });
        Self::new(file, self.files)
    }

    /// The scenario, if its plan divides the workers.
    pub(super) fn divided(self) -> Result<Scenario, Fault> {
        self.wrong.map_or(Ok(self.scenario), Err)
    }

    /// The assumptions of the file's scenario, with its default plan.
    pub(super) fn assumed(&self, plan: Option<&UsualPlan>) -> Assumed {
        Assumed::new(&self.file, &self.scenario, plan)
    }
}

/// The scenario of a file, with its default plan if it has none. The plan need not divide the workers.
pub(super) fn resolve_with_usual_plan(file: ScenarioFile, files: &dyn Files) -> Result<Scenario, Fault> {
    let plain = AnyPlan::new(file, files)?;
    let plan = plain.usual_plan();
    Ok(plain.with_plan(plan)?.scenario)
}

/// The edit that gives a scenario this plan, with the sequences of a step or without.
pub(super) fn edit(plan: &Plan, with_batch: bool) -> Option<Edit> {
    let section = plan.section();
    let global_batch = section.global_batch.filter(|_| with_batch);
    let table = toml::Value::try_from(PlanSection { global_batch, ..section }).ok()?;
    Some(Edit::set("strategy.plan", table))
}

impl<F: Source> Request<F> {
    /// The default plan for this number of workers, if none is given.
    pub(crate) fn usual_plan(&self, number: u32) -> Result<Option<Plan>, Fault> {
        let mut edits = self.edits.clone();
        edits.push(Edit::set("cluster.workers.count", number));
        let file = self.document.file(&edits)?;
        Ok(resolve_with_usual_plan(file, &self.files)?.strategy.plan)
    }

    /// Change that makes a usual plan fit on the same workers: shorter sequences, if their length is assumed, or frozen matrices
    /// in 4 bits.
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
            let found =
                self.document.file(&edits).and_then(|file| Ok(AnyPlan::new(file, &self.files)?.usual_plan()));
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
