//! Draws the plots of docs/plots.md that no command draws:
//! `cargo run --release -p stepcast-validation --example gallery -- docs/plots`.

use serde_json::Value;
use std::error::Error;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{Document, Edit, Scenario};
use stepcast_report::plots::predicted_measured::{Pair, PredictedMeasured, Set};
use stepcast_report::plots::stacked::StackedBars;
use stepcast_report::plots::staleness::Staleness;
use stepcast_study::predict::methods;
use stepcast_validation::{Options, find};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    fs::write(folder.join("breakdown.svg"), breakdown()?)?;
    fs::write(folder.join("staleness.svg"), staleness()?)?;
    fs::write(folder.join("predicted-measured.svg"), predicted_measured()?)?;
    Ok(())
}

fn quick_start(changes: &[&str]) -> Result<Scenario, Box<dyn Error>> {
    let text = include_str!("../../../examples/quickstart.toml");
    let changes: Result<Vec<Edit>, _> = changes.iter().map(|change| Edit::parse(change)).collect();
    let changes = changes.map_err(|error| error.reason)?;
    Ok(Document::new("quickstart.toml", text).scenario(&changes).map_err(|error| error.reason)?)
}

/// The prediction by the preferred method; an error is the reason of the refusal.
fn predicted(scenario: &Scenario) -> Result<Prediction, Box<dyn Error>> {
    let method = methods::choose(scenario).map_err(|why| why.reason)?;
    Ok(method.predict(scenario).map_err(|why| why.reason)?)
}

fn breakdown() -> Result<String, Box<dyn Error>> {
    let scenario = quick_start(&[])?;
    let on = |workers| predicted(&scenario.on(scenario.cluster.resized(workers)));
    let predictions: Vec<Prediction> = [1, 2, 3, 4, 6, 8].into_iter().map(on).collect::<Result<_, _>>()?;
    let steps = predictions.iter().map(|prediction| (prediction.workers, prediction.breakdown.as_slice()));
    let steps: Vec<_> = steps.collect();
    Ok(StackedBars::from_steps(&steps, predictions[0].method, scenario.name()).svg())
}

fn staleness() -> Result<String, Box<dyn Error>> {
    let changes =
        ["strategy.synchronisation=async", "cluster.network=100gbe", "cluster.servers.software=none"];
    let scenario = quick_start(&changes)?;
    let simulate = methods::named("simulate").map_err(|why| why.reason)?;
    let prediction = simulate.predict(&scenario).map_err(|why| why.reason)?;
    let drawn = Staleness::from_prediction(&prediction, scenario.name());
    Ok(drawn.ok_or("the prediction has no simulation")?.svg())
}

/// Each network is predicted by coefficients that were fitted without it.
fn predicted_measured() -> Result<String, Box<dyn Error>> {
    let set = find("zeng2023").map_err(|fault| fault.reason)?;
    let report =
        set.run(&Options::default(), &|_| ControlFlow::Continue(())).map_err(|error| error.to_string())?;
    let figures = serde_json::to_value(&report)?;
    let cells = figures["zeng2023"]["cells"].as_array().ok_or("there are no cells")?;
    let set = |table: u64| {
        let time = |cell: &Value, key: &str| Seconds::new(cell[key].as_f64().unwrap_or(f64::NAN));
        let pair = |cell: &Value| Pair::<Seconds> {
            name: format!("{}, batch {}", cell["model"].as_str().unwrap_or_default(), cell["batch"]),
            measured: time(cell, "measured_s"),
            predicted: time(cell, "calibrated_s"),
        };
        let own = cells.iter().filter(|cell| cell["table"] == table);
        Set { name: format!("Table {table}"), pairs: own.map(pair).collect() }
    };
    let drawn = PredictedMeasured {
        title: "Step times of Zeng 2023, predicted and measured".to_owned(),
        quantity: "step time".to_owned(),
        sets: (4..=7).map(set).collect(),
    };
    Ok(drawn.svg())
}
