//! The event engine on the plan that was chosen.

use crate::simulate::Simulate;
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::method::Method;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_core::scenario::Scenario;

/// A difference up to which the engine confirms a step.
pub const CONFIRMED: f64 = 0.03;

/// What the event engine says of a step that a closed form predicts.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Confirmation {
    /// Its step, without variation; none if it does not run the plan.
    #[serde(rename = "step_s", skip_serializing_if = "Option::is_none")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub step: Option<Seconds>,
    /// By how much that is longer, as a share of the closed form's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// Whether both agree within 3 %.
    pub confirmed: bool,
    /// Why the engine does not run the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// One step of `scenario` by the engine beside `step` seconds.
pub(super) fn by_engine(scenario: &Scenario, step: f64) -> Confirmation {
    let mut steady = scenario.clone();
    steady.methods.simulate.jitter = 0.0;
    match Simulate.predict(&steady) {
        Ok(simulated) => {
            let difference = simulated.iteration.get() / step - 1.0;
            Confirmation {
                step: Some(simulated.iteration),
                difference: Some(difference),
                confirmed: difference.abs() <= CONFIRMED,
                refused: None,
            }
        }
        Err(fault) => {
            Confirmation { step: None, difference: None, confirmed: false, refused: Some(fault.reason) }
        }
    }
}
