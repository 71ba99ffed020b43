//! Values that can be set in a resolved scenario without resolving the document again.
//!
//! There is no second parser and no second check of values: a setting is a field of the scenario that the document
//! resolves to, copied to another scenario. Callers must ensure that the key has no other effect (see `variants`).

use super::axis::Axis;
use stepcast_core::keys::{Effect, Value};
use stepcast_core::scenario::{Field, Scenario};

/// One value of one key.
#[derive(Debug, Clone)]
pub(crate) struct Setting {
    field: Field,
    value: Value,
}

impl Setting {
    /// The value in `scenario` of the key of `axis`; `None` for keys that require resolving the document.
    pub(crate) fn of(axis: &Axis, scenario: &Scenario) -> Option<Self> {
        let path: Vec<&str> = axis.parts().collect();
        let field = Field::find(&path).filter(|field| field.effect() != Effect::Resolved)?;
        // Resolving the document checks whether a fitted device is consistent with other keys of its group.
        let fitted = scenario.cluster.groups.iter().any(|group| group.device.fitted.is_some());
        if fitted && path.last() == Some(&"device") {
            return None;
        }
        Some(Self { field, value: field.get(scenario)? })
    }

    /// The effect of larger values on a step.
    pub(crate) fn effect(&self) -> Effect {
        self.field.effect()
    }

    /// The value, if it is a number.
    pub(crate) fn number(&self) -> Option<f64> {
        self.value.number()
    }

    /// The same setting with another whole number; `None` if the value is not a whole number.
    pub(crate) fn with_number(&self, number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        matches!(self.value, Value::Count(_))
            .then(|| Self { field: self.field, value: Value::Count(number.into()) })
    }

    /// Whether the value is this whole number.
    pub(crate) fn is_number(&self, number: u64) -> bool {
        matches!(self.value, Value::Count(count) if count == number)
    }

    /// Writes the value into a scenario.
    pub(crate) fn apply(&self, scenario: &mut Scenario) {
        self.field.set(scenario, &self.value);
    }
}
