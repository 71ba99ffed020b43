//! What of a scenario nobody gave: the assumptions that decide its forecast.

use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::scenario::{Scenario, ScenarioFile};
use stepcast_core::strategy::{OverlapPreset, PlanSection};

use crate::explore::plan::UsualPlan;

/// Which of the choices that decide a forecast are assumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, JsonSchema)]
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
    /// Whose kernels compute: PyTorch's, as Hugging Face's modules do not.
    pub kernels: bool,
    /// Whether no usual plan fits.
    pub nothing_fits: bool,
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
            kernels: plan.is_some_and(|plan| {
                let given = strategy.plan.as_ref();
                let named = given.is_some_and(|it| it.implementation.is_some() || it.overlap.is_some());
                let section = &plan.section;
                !named && section.implementation.is_none() && section.overlap == Some(OverlapPreset::Fsdp2)
            }),
            nothing_fits: plan.is_some_and(|plan| !plan.fits),
        }
    }
}
