//! Values of a scenario that are given as ranges: their keys, and the scenario at either end of a range.

use super::{Field, Scenario, ScenarioFile};
use crate::fault::{Fault, KeyPath};
use crate::keys::Value;

/// A value that is only known to lie within a range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UncertainInput {
    field: Field,
    /// Lower and upper end in base units.
    ends: [f64; 2],
}

impl UncertainInput {
    /// Path, such as `cluster.workers[0].efficiency`.
    pub fn key(&self) -> KeyPath {
        self.field.key()
    }

    /// Both ends must be valid values of the key.
    fn check(&self) -> Result<(), Fault> {
        let sound = |end: f64| self.field.check(&Value::Real(end));
        let ends = self.ends.into_iter().try_for_each(sound);
        ends.map_err(|fault| Fault { key: self.key(), ..fault })
    }
}

pub(super) fn ranges(file: &ScenarioFile) -> Result<Vec<UncertainInput>, Fault> {
    let inputs = Field::ranges(file).into_iter().map(|(field, ends)| UncertainInput { field, ends });
    inputs.map(|input| input.check().map(|()| input)).collect()
}

impl Scenario {
    /// The same scenario with the uncertain value at the lower and at the upper end of its range.
    pub fn at_ends(&self, input: &UncertainInput) -> [Self; 2] {
        input.ends.map(|value| {
            let mut scenario = self.clone();
            input.field.set(&mut scenario, &Value::Real(value));
            scenario
        })
    }
}

pub(super) fn write(inputs: &[UncertainInput], file: &mut ScenarioFile) {
    for input in inputs {
        input.field.write_range(input.ends, file);
    }
}
