//! How much of a step the exchange of each layer's gradients is to blame for.

use serde::Serialize;
use serde_with::serde_as;
use stepcast_analytic::collectives::curve;
use stepcast_analytic::liu2022::{Outcome, Schedule, osf, passes, schedule};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::pass::Pass;
use stepcast_core::quantity::{Bytes, InBaseUnits, Seconds};
use stepcast_core::scenario::Scenario;

/// A layer and what its gradients cost.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExposedLayer {
    /// Its name.
    pub name: String,
    /// Size of its gradients.
    #[serde(rename = "gradient_bytes")]
    #[serde_as(as = "InBaseUnits")]
    pub size: Bytes,
    /// Their share of the gradients of all layers.
    pub share: f64,
    /// How much shorter the step would be if they needed no exchange. What several layers cost together is not the sum:
    /// behind the gradients of one, those of another still have to wait.
    #[serde(rename = "exposed_s")]
    #[serde_as(as = "InBaseUnits")]
    pub exposed: Seconds,
}

/// A mean step under the scenario's own rule.
pub(super) struct Step {
    pass: Pass,
    update: Curve,
    schedule: Schedule,
}

impl Step {
    pub(super) fn of(scenario: &Scenario) -> Result<Self, Fault> {
        let passes = passes(scenario).map_err(|fault| Fault::in_key("model", fault.reason, fault.remedy))?;
        let update = curve(scenario);
        Ok(Self {
            pass: Pass::slowest(&passes).unwrap_or_else(|| Pass::new(Vec::new())),
            schedule: schedule(scenario, &scenario.strategy.exchange.fusion, &update),
            update,
        })
    }

    pub(super) fn outcome(&self) -> Outcome {
        osf(&self.pass, &self.update, &self.schedule)
    }

    /// All layers with gradients, the one that costs most first.
    pub(super) fn layers(&self, scenario: &Scenario) -> Vec<ExposedLayer> {
        let whole = scenario.workload.bytes();
        let now = self.outcome().iteration();
        let mut first = 0;
        let mut layers: Vec<ExposedLayer> = Vec::new();
        for work in scenario.workload.layers.iter().rev() {
            let own = first..first + work.tensors.len();
            first = own.end;
            let mut without = self.pass.clone();
            for layer in without.layers.get_mut(own).into_iter().flatten() {
                layer.gradients = Bytes::ZERO;
            }
            let then = osf(&without, &self.update, &self.schedule).iteration();
            layers.push(ExposedLayer {
                name: work.name.clone(),
                size: work.bytes(),
                share: work.bytes() / whole,
                // A rule may make less of what is left than of everything.
                exposed: (now - then).max(Seconds::ZERO),
            });
        }
        layers.sort_by(|a, b| b.exposed.get().total_cmp(&a.exposed.get()));
        layers
    }
}
