//! Values that can be set in a resolved scenario, without reading the document again.
//!
//! There is no second parser and no second check of values: a setting is what the document's own resolution made of the
//! key, copied to where it belongs. Whoever uses one makes sure that this is all the key does (see `variants`).

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
    /// What `scenario` has at the key of `axis`; none for keys that only the document can set.
    pub(crate) fn of(axis: &Axis, scenario: &Scenario) -> Option<Self> {
        let path: Vec<&str> = axis.parts().collect();
        let field = Field::find(&path).filter(|field| field.effect() != Effect::Resolved)?;
        // Whether a fitted device goes with other keys of its group is checked as the document is resolved.
        let fitted = scenario.cluster.groups.iter().any(|group| group.device.fitted.is_some());
        if fitted && path.last() == Some(&"device") {
            return None;
        }
        Some(Self { field, value: field.get(scenario)? })
    }

    /// What larger values do to a step.
    pub(crate) fn effect(&self) -> Effect {
        self.field.effect()
    }

    /// The value, where it is a number.
    pub(crate) fn number(&self) -> Option<f64> {
        self.value.number()
    }

    /// The same with another whole number; none where the value is not one.
    pub(crate) fn with_number(&self, number: u64) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        matches!(self.value, Value::Count(_))
            .then(|| Self { field: self.field, value: Value::Count(number.into()) })
    }

    /// Whether the value is this whole number.
    pub(crate) fn is_number(&self, number: u64) -> bool {
        matches!(self.value, Value::Count(count) if count == number)
    }

    /// Puts the value where it belongs.
    pub(crate) fn apply(&self, scenario: &mut Scenario) {
        self.field.set(scenario, &self.value);
    }
}
