//! The fastest worker alone: what the speed-up compares with.

use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::prediction::{GroupReport, Prediction};
use stepcast_core::quantity::{InBaseUnits, SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// One worker that trains without any communication.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Alone {
    /// Index of its group in the scenario.
    pub group: usize,
    /// Its device, or "worker as profiled".
    pub device: String,
    /// Samples per step.
    pub batch: u32,
    /// Time of one step.
    #[serde(rename = "iteration_s")]
    #[serde_as(as = "InBaseUnits")]
    pub iteration: Seconds,
    /// Samples per second.
    #[serde(rename = "throughput_samples_per_s")]
    #[serde_as(as = "InBaseUnits")]
    pub throughput: SamplesPerSec,
}

impl Alone {
    /// The fastest worker of a cluster; none if it is alone anyway, or if a plan splits the model.
    pub(super) fn of(scenario: &Scenario, prediction: &Prediction) -> Option<Self> {
        if scenario.strategy.architecture == Architecture::StandAlone || scenario.strategy.plan.is_some() {
            return None;
        }
        let rate = |report: &GroupReport| SamplesPerSec::from_time(f64::from(report.batch), report.compute);
        let fastest = prediction.groups.iter().max_by(|a, b| rate(a).get().total_cmp(&rate(b).get()))?;
        let group = scenario.cluster.groups.get(fastest.group)?;
        Some(Self {
            group: fastest.group,
            device: match scenario.profile() {
                Some(_) => "worker as profiled".to_owned(),
                None => group.device.name.clone(),
            },
            batch: fastest.batch,
            iteration: fastest.compute,
            throughput: rate(fastest),
        })
    }

    /// That this worker alone is faster than the whole cluster, if it is.
    pub(super) fn faster_than(&self, prediction: &Prediction) -> Option<String> {
        let factor = self.throughput / prediction.throughput;
        (prediction.workers > 1 && factor > 1.0).then(|| {
            format!(
                "The cluster is slower than one of its workers: one {} alone trains {}, {factor:.1} times as much.",
                self.device,
                self.throughput.human()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::methods;
    use stepcast_core::scenario::Document;

    fn alone(text: &str) -> (Option<Alone>, Prediction) {
        let scenario = Document::new("test", text).scenario(&[]).unwrap();
        let prediction = methods::choose(&scenario).unwrap().predict(&scenario).unwrap();
        (Alone::of(&scenario, &prediction), prediction)
    }

    #[test]
    fn the_speed_up_compares_with_it() {
        let (slow, prediction) = alone(include_str!("../../../../../examples/quickstart.toml"));
        let slow = slow.unwrap();
        assert!((prediction.throughput / slow.throughput / prediction.speedup - 1.0).abs() < 1e-12);
        assert!(slow.device.contains("RTX 4000"), "{slow:?}");
        assert!(slow.faster_than(&prediction).unwrap().contains("slower than one of its workers"));
        let (fast, prediction) = alone(include_str!("../../../../../examples/all-reduce.toml"));
        assert_eq!(fast.unwrap().faster_than(&prediction), None);
        assert_eq!(alone("model.zoo = \"vgg16\"\nstrategy.architecture = \"stand-alone\"\n[[cluster.workers]]\ncount = 1").0, None);
    }
}
