//! Every method on one scenario: answers side by side, and why some methods have none.

use crate::methods;
use schemars::JsonSchema;
use serde::Serialize;
use stepcast_core::method::Inapplicable;
use stepcast_core::prediction::{Bottleneck, Prediction};
use stepcast_core::quantity::{SamplesPerSec, Seconds, number};
use stepcast_core::scenario::{Scenario, ScenarioFile};

/// One scenario, all methods.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Comparison {
    /// The question, every default filled in.
    pub scenario: ScenarioFile,
    /// The method that is taken if none is named; none where no method applies.
    pub chosen: Option<&'static str>,
    /// The methods, the one to prefer first.
    pub rows: Vec<Row>,
}

/// What one method says.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Row {
    /// The method's name.
    pub method: &'static str,
    /// Its answer.
    #[serde(flatten)]
    pub answer: Answer,
}

/// An answer, or why there is none.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// The method applies.
    Predicted(Figures),
    /// It does not.
    Refused(Refusal),
}

/// What can be compared.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct Figures {
    /// Time of one step.
    #[serde(rename = "iteration_s", serialize_with = "number")]
    #[schemars(with = "f64")]
    pub iteration: Seconds,
    /// Samples per second of the whole cluster.
    #[serde(rename = "throughput_samples_per_s", serialize_with = "number")]
    #[schemars(with = "f64")]
    pub throughput: SamplesPerSec,
    /// Throughput against the sum of what all workers would do alone.
    pub scaling_factor: f64,
    /// What limits the step.
    pub bottleneck: Bottleneck,
}

/// Why a method has no answer.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Refusal {
    /// The key of the scenario that asks what the method does not model.
    pub key: &'static str,
    /// What that is.
    pub reason: String,
    /// What to change.
    pub remedy: String,
}

impl From<Prediction> for Figures {
    fn from(prediction: Prediction) -> Self {
        Self {
            iteration: prediction.iteration,
            throughput: prediction.throughput,
            scaling_factor: prediction.scaling_factor,
            bottleneck: prediction.bottleneck,
        }
    }
}

impl From<Inapplicable> for Refusal {
    fn from(Inapplicable { key, reason, remedy }: Inapplicable) -> Self {
        Self { key, reason, remedy }
    }
}

impl Comparison {
    /// Asks every method.
    pub fn new(scenario: &Scenario) -> Self {
        let row = |method: &&'static dyn stepcast_core::method::Method| Row {
            method: method.name(),
            answer: match method.predict(scenario) {
                Ok(prediction) => Answer::Predicted(prediction.into()),
                Err(why) => Answer::Refused(why.into()),
            },
        };
        Self {
            scenario: scenario.to_file(),
            chosen: methods::choose(scenario).ok().map(|method| method.name()),
            rows: methods::all().iter().map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::scenario::Document;

    fn compare(synchronisation: &str) -> Comparison {
        let text = format!(
            "[model]\nzoo = \"alexnet\"\n[strategy]\nsynchronisation = \"{synchronisation}\"\n\
             [methods.simulate]\nruns = 2\nsteps = 20\nwarm-up = 2\n"
        );
        Comparison::new(&Document::new("test", text).scenario(&[]).unwrap())
    }

    fn answering(comparison: &Comparison) -> Vec<&str> {
        let predicted = comparison.rows.iter().filter(|row| matches!(row.answer, Answer::Predicted(_)));
        predicted.map(|row| row.method).collect()
    }

    #[test]
    fn every_method_answers_or_says_why_not() {
        let bulk = compare("bsp");
        assert_eq!(bulk.rows.len(), methods::all().len());
        assert_eq!(answering(&bulk), ["layerwise", "zeng2023", "simulate"]);
        assert_eq!(bulk.chosen, Some("layerwise"));
        let asynchronous = compare("async");
        assert_eq!(answering(&asynchronous), ["simulate", "cynthia2019", "cynthia2019-half", "lin2018"]);
        assert_eq!(asynchronous.chosen, Some("simulate"));
        for row in bulk.rows.iter().chain(&asynchronous.rows) {
            match &row.answer {
                Answer::Predicted(figures) => {
                    let product = figures.throughput.get() * figures.iteration.get();
                    assert!((product / 128.0 - 1.0).abs() < 1e-9, "{row:?}");
                }
                Answer::Refused(why) => assert!(!why.reason.is_empty() && !why.remedy.is_empty(), "{row:?}"),
            }
        }
    }

    #[test]
    fn rows_are_flat_for_programs() {
        let value = serde_json::to_value(compare("async")).unwrap();
        assert_eq!(value["rows"][0]["key"], "strategy.synchronisation");
        let rows = value["rows"].as_array().unwrap();
        let simulated = rows.iter().find(|row| row["method"] == "simulate").unwrap();
        assert!(simulated["iteration_s"].as_f64().unwrap() > 0.0);
    }
}
