//! The exposed communication of each layer's gradients.

use crate::cost::pass;
use crate::simulate::BUDGET;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_analytic::collectives::curve;
use stepcast_analytic::contention::Contention;
use stepcast_analytic::liu2022::{Outcome, passes, rule};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::pass::Pass;
use stepcast_core::prediction::Warning;
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Fusion;

/// A layer and the communication cost of its gradients.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct ExposedLayer {
    /// Its name.
    pub name: String,
    /// Size of its gradients on the wire.
    #[serde(rename = "gradient_bytes")]
    #[serde_as(as = "InBaseUnits")]
    pub size: Bytes,
    /// Their share of the gradients of all layers.
    pub share: f64,
    /// How much shorter the step would be if they needed no exchange. The costs of several layers do not add up:
    /// after the gradients of one are removed, those of another may still have to wait.
    #[serde(rename = "exposed_s")]
    #[serde_as(as = "InBaseUnits")]
    pub exposed: Seconds,
}

/// A mean step under the scenario's own rule.
pub(super) struct Step {
    pub(super) pass: Pass,
    update: Curve,
    rule: Fusion,
    contention: Contention,
}

impl Step {
    pub(super) fn of(scenario: &Scenario) -> Result<Self, Fault> {
        let passes = passes(scenario).map_err(|fault| Fault::in_key("model", fault.reason, fault.remedy))?;
        let update = curve(scenario);
        Ok(Self {
            pass: Pass::slowest(&passes).unwrap_or_else(|| Pass::new(Vec::new())),
            rule: rule(scenario, &scenario.strategy.exchange.fusion),
            update,
            contention: Contention::from_scenario(scenario),
        })
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.contention.mean(&self.pass, &self.update, &self.rule).outcome
    }

    /// All layers with gradients, the most expensive first, and what is left out: where the budget does not pay for a step
    /// without each of them, those with the most gradients are looked at.
    pub(super) fn layers(
        &self,
        scenario: &Scenario,
        wanted: &CancelCheck<'_>,
    ) -> Result<(Vec<ExposedLayer>, Option<Warning>), Fault> {
        let whole = self.pass.gradients();
        let now = self.outcome().iteration();
        let work = &scenario.workload.layers;
        let affordable = (scenario.methods.simulate.budget / pass(scenario)).max(1) as usize;
        let mut by_size: Vec<usize> = (0..work.len()).collect();
        by_size.sort_by(|&a, &b| work[b].bytes().get().total_cmp(&work[a].bytes().get()));
        let mut is_tried = vec![false; work.len()];
        by_size.into_iter().take(affordable).for_each(|place| is_tried[place] = true);
        let mut first = 0;
        let mut layers: Vec<ExposedLayer> = Vec::new();
        for (work, is_tried) in work.iter().zip(is_tried).rev() {
            let own = first..first + work.tensors.len();
            first = own.end;
            if !is_tried {
                continue;
            }
            if wanted().is_break() {
                return Err(Stopped::Cancelled.into());
            }
            let mut without = self.pass.clone();
            let mut size = Bytes::ZERO;
            for layer in without.layers.get_mut(own).into_iter().flatten() {
                size += std::mem::replace(&mut layer.gradients, Bytes::ZERO);
            }
            let then = self.contention.mean(&without, &self.update, &self.rule).outcome.iteration();
            layers.push(ExposedLayer {
                name: work.name.clone(),
                size,
                share: size / whole,
                // A rule may fuse the remaining gradients less well than all of them.
                exposed: (now - then).max(Seconds::ZERO),
            });
        }
        layers.sort_by(|a, b| b.exposed.get().total_cmp(&a.exposed.get()));
        let left_out = (work.len() > affordable).then(|| Warning {
            code: "left-out",
            message: format!(
                "too many layers and groups for the budget: of {} layers, the {affordable} with the most gradients are \
                 listed; use a larger `{BUDGET}`",
                work.len()
            ),
        });
        Ok((layers, left_out))
    }
}
