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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantity::SamplesPerSec;

    fn scenario(cluster: &str) -> Result<Scenario, Fault> {
        let file: ScenarioFile = toml::from_str(&format!("[model]\nzoo = \"vgg16\"\n{cluster}")).unwrap();
        file.resolve()
    }

    const RANGES: &str = include_str!("ranges.toml");

    #[test]
    fn ranges_are_found_and_the_centre_is_asked() {
        let scenario = scenario(RANGES).unwrap();
        let keys: Vec<String> = scenario.uncertain.iter().map(|input| input.key().to_string()).collect();
        assert_eq!(
            keys,
            [
                "cluster.network.bandwidth",
                "cluster.network.efficiency",
                "cluster.servers.bandwidth",
                "cluster.workers[0].device.efficiency",
                "cluster.workers[1].speed",
                "input.rate",
            ]
        );
        assert!((scenario.cluster.network.bandwidth.get() / 90e18_f64.sqrt() - 1.0).abs() < 1e-12);
        let [low, high] = scenario.at_ends(&scenario.uncertain[3]);
        assert_eq!(low.cluster.groups[0].device.efficiency, Some(0.4));
        assert_eq!(high.cluster.groups[0].device.efficiency, Some(0.5));
        assert_eq!(high.cluster.groups[1], scenario.cluster.groups[1]);
        let rates =
            scenario.at_ends(&scenario.uncertain[5]).map(|end| end.input.rate.map(SamplesPerSec::get));
        assert_eq!(rates, [Some(2000.0), Some(3000.0)]);
    }

    #[test]
    fn ranges_are_written_back() {
        let first = scenario(RANGES).unwrap();
        let again = first.to_file().resolve().unwrap();
        assert_eq!(again.uncertain, first.uncertain);
        assert_eq!(again.to_file(), first.to_file());
    }

    #[test]
    fn every_end_must_be_possible() {
        let network = |keys: &str| format!("[cluster.network]\nbase = \"10gbe\"\n{keys}");
        let wrong = scenario(&network("efficiency = \"0.9..1.1\"")).unwrap_err();
        assert_eq!(wrong.key.to_string(), "cluster.network.efficiency");
        let wrong = scenario(&network("bandwidth = \"1e-90..1e90 Gbit/s\"")).unwrap_err();
        assert!(wrong.reason.contains("too small to be meant"), "{wrong:?}");
    }
}
