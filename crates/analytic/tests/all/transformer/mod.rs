//! Transformers against golden cases that were worked out independently, published tables, and slow references.

mod compute;
mod encoder;
mod exchanges;
mod flops;
mod loads;
mod loss;
mod memory;
mod method;
mod mixers;
mod pipelines;
mod placement;
mod plans;
mod schedules;
mod stagewise;
mod traffic;
mod tuning;
mod vtrain;

use serde_json::Value;
use stepcast_analytic::transformer::memory::MemoryInputs;
use stepcast_core::fault::Fault;
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::model::zoo;
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_core::strategy::{Division, Implementation, Plan, PlanSection};

/// Llama 3 8B on 64 H100 in machines of 8, all operations at half the peak rate.
const BASE: &str = include_str!("../../scenarios/transformer.toml");

fn scenario<T: AsRef<str>>(changes: &[T]) -> Result<Scenario, Fault> {
    Document::new("test", BASE).scenario(&Edit::parse_all(changes).unwrap())
}

/// The usual plan with these kernels.
fn plan(implementation: Implementation) -> Plan {
    Plan { implementation: Some(implementation), ..PlanSection::default().resolve(&NoFiles).unwrap() }
}

/// What a rank of one replica holds with one micro-batch.
fn held<'a>(shape: &'a Transformer, plan: &'a Plan) -> MemoryInputs<'a> {
    MemoryInputs::new(shape, plan, &Division { data: 1, micro_batches: 1, global_batch: 1 })
}

fn cases(text: &str) -> Vec<Value> {
    let golden: Value = serde_json::from_str(text).unwrap();
    golden["cases"].as_array().unwrap().clone()
}

fn of_kind(text: &str, kind: &str) -> Vec<Value> {
    let cases: Vec<Value> = cases(text).into_iter().filter(|case| case["kind"] == kind).collect();
    assert!(!cases.is_empty(), "there is no {kind}");
    cases
}

fn shape(case: &Value, sequence: &str) -> Transformer {
    let name = case["model"].as_str().unwrap();
    let shape = zoo::transformer(name).unwrap_or_else(|| panic!("the zoo has no {name}"));
    // The golden cases count every model without a window unless they name one.
    let sequence = case[sequence].as_u64().unwrap_or(shape.sequence);
    Transformer { sequence, window: None, ..shape }
}

fn number(case: &Value, key: &str) -> u64 {
    case[key].as_u64().unwrap_or_else(|| panic!("{key} in {case}"))
}

fn truth(case: &Value, key: &str) -> bool {
    case[key].as_bool().unwrap_or(false)
}

/// A word of a file, in the type that has it.
fn word<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// Equal up to the last digits of a double.
#[track_caller]
fn near(found: f64, expected: &Value, what: &str) {
    let expected = expected.as_f64().unwrap();
    let tolerance = 1e-12 * expected.abs();
    assert!((found - expected).abs() <= tolerance, "{what}: {found} instead of {expected}");
}
