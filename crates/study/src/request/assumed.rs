//! What of a scenario nobody gave: the assumptions that decide its forecast.

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::machine::catalog::{self, MachinePrice};
use stepcast_core::scenario::{Edit, Scenario, ScenarioFile};
use stepcast_core::strategy::{OverlapPreset, PlanSection};

use crate::explore::plan::UsualPlan;

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
    /// Whose kernels compute: PyTorch's, as Hugging Face's modules do not.
    pub kernels: bool,
    /// What all machines cost in an hour, in US dollars, where the scenario has no prices: as the catalog says.
    pub price: Option<AssumedRent>,
    /// Whether no usual plan fits.
    pub nothing_fits: bool,
}

/// What machines cost in an hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct AssumedRent {
    /// The price of all of them.
    pub hour: f64,
    /// What others pay.
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
    /// The price of the machine that is named, or of devices one by one; none if the scenario has prices or no data set.
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

/// The edits that give a scenario without prices those of the catalog: of the machine that is named, or of each device.
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
    /// What the scenario of a file assumes, with the plan that it was given.
    pub(super) fn new(file: &ScenarioFile, scenario: &Scenario, plan: Option<&UsualPlan>) -> Self {
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
