//! Published throughput, predicted from names by the method that a user gets, with the 90 % interval that a user gets.
//!
//! The constants of what machines reach (catalog/priors.toml) were fitted to most runs of `published-scaling` and `single-gpu`, so that
//! these sets tell how well one set of constants describes all of them. research/priors says how errors grow when a source is left out.

use super::zoo_model;
use crate::judged::{coverage, judge};
use crate::priors::Observation;
use crate::recipe::{Recipe, words};
use crate::records::Fields;
use crate::report::Findings;
use crate::set::{Run, report_progress};
use crate::{Errors, Evidence, Progress, ValidationError};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_core::model::ModelFile;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_study::predict::{interval, methods};

/// Least share of a worker's step with its server that is computing, as in research/priors.
const LEAST_COMPUTING: f64 = 0.3;

/// The scenario of a run. Throughput alone is that of one worker without communication, except where a server was part of
/// it: then computing is what is left.
fn scenario(recipe: &Recipe, run: &Value) -> Result<Scenario, ValidationError> {
    if run.get("computed").is_some() {
        return stored(recipe.scenario(run)?, run);
    }
    if run.get("single_throughput").is_none() {
        return recipe.scenario(run);
    }
    let alone = run.number("single_samples") / run.number("single_throughput");
    let resolved = |alone: f64| -> Result<Scenario, ValidationError> {
        let mut run = run.clone();
        run["alone"] = json!(alone);
        let mut file = recipe.scenario_file(&run)?;
        if run.text("zoo").is_empty() {
            file.model.custom = Some(custom_model(&run)?);
        }
        Ok(file.resolve()?)
    };
    if !run.is("single_with_server") {
        return resolved(alone);
    }
    let mut one = resolved(alone)?;
    one.cluster.groups[0].count = 1;
    one.cluster.servers.count = 1;
    let prediction = methods::choose(&one)?.predict(&one)?;
    let served = prediction.iteration.get() - prediction.groups[0].compute.get();
    resolved((alone - served).max(LEAST_COMPUTING * alone))
}

/// The scenario of a run whose number format is that of storage: where a device has no rate for products of 16 bits, they are computed
/// in 32, which no file can say.
fn stored(mut scenario: Scenario, run: &Value) -> Result<Scenario, ValidationError> {
    let precision = serde_json::from_value(run.field("precision").clone());
    scenario.strategy.precision = precision.map_err(|error| ValidationError::Data(error.to_string()))?;
    Ok(scenario)
}

/// A network that is not in the zoo: the residual network for CIFAR-10, or as many equal layers as the trained one has tensors,
/// with as many parameters.
fn custom_model(run: &Value) -> Result<ModelFile, ValidationError> {
    if run.text("model") == "resnet18-cifar" {
        let mut file = ModelFile::from_model(&zoo_model("resnet18")?);
        if let Some(last) = file.layers.iter_mut().rev().find(|layer| layer.op == "linear") {
            last.out = Some(10.into());
        }
        return Ok(file);
    }
    let width = (run.number("parameters") / run.number("tensors")).sqrt().round();
    let layer = |index| format!("{{ name = \"l{index}\", op = \"linear\", out = {width}, bias = false }}");
    let layers: Vec<String> = (0..run.count("tensors")).map(layer).collect();
    let text = format!(
        "[model.custom]\nname = \"{}\"\ninput = [{width}]\nlayers = [{}]\n",
        run.text("model"),
        layers.join(", ")
    );
    let file = Document::new("made from a row", text).file(&[])?;
    file.model.custom.ok_or_else(|| ValidationError::Data("a row without layers".to_owned()))
}

/// The runs of a set that constants are fitted to and judged by.
pub(crate) fn observations(
    set: &str,
    is_kept: impl Fn(&Value) -> bool,
) -> Result<Vec<Observation>, ValidationError> {
    let mut observations = Vec::new();
    for recipe in &crate::find(set)?.definition()?.recipe {
        let runs: Vec<Value> = recipe.cases(set)?.into_iter().filter(&is_kept).collect();
        let observed = runs.par_iter().map(|run| observation(recipe, run));
        observations.extend(observed.collect::<Result<Vec<_>, ValidationError>>()?);
    }
    Ok(observations)
}

fn observation(recipe: &Recipe, run: &Value) -> Result<Observation, ValidationError> {
    let scenario = scenario(recipe, run)?;
    let method = methods::choose(&scenario)?;
    let samples = method.predict(&scenario)?.samples as f64;
    Ok(Observation {
        family: words(&recipe.group, run)?,
        source: words(&recipe.publisher, run)?,
        is_fitted: words(&recipe.fitted, run)? != "false",
        measured: (samples / run.number(&recipe.measured)).ln(),
        predict: Box::new(move |priors| {
            let moved = Scenario { priors: Arc::new(priors.clone()), ..scenario.clone() };
            Ok(method.step(&moved)?.get().ln())
        }),
    })
}

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let recipe = run.recipe()?;
    let all: Vec<Value> = recipe.cases(run.set)?;
    let done = AtomicUsize::new(0);
    let predicted = |row: &Value| {
        let predicted = predicted(recipe, row);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        report_progress(run.observer, Progress::Points { done, of: all.len() })?;
        predicted
    };
    let runs: Vec<Value> = all.par_iter().map(predicted).collect::<Result<_, _>>()?;
    let coverage = coverage(&runs);
    let ratios = runs.iter().map(|run| run.number("predicted") / run.number("measured"));
    let evidence = Evidence::Judged {
        cases: runs.len(),
        coverage,
        errors: Errors::from_ratios("predicted", ratios),
        bound: String::new(),
    };
    let mut figures = Map::new();
    figures.insert("_coverage".to_owned(), json!(coverage.share()));
    figures.insert("_limits".to_owned(), run.bounds()?);
    figures.insert("left_out".to_owned(), json!(run.definition.left_out));
    // Groups stand in front of the runs that they are made of.
    for group in &run.definition.group {
        figures.insert(group.into.clone(), Value::Null);
    }
    figures.insert("bounds".to_owned(), Value::Null);
    figures.insert("runs".to_owned(), json!(runs));
    Ok(Findings::new(Value::Object(figures), evidence))
}

/// One run and its prediction, in samples per second.
fn predicted(recipe: &Recipe, run: &Value) -> Result<Value, ValidationError> {
    let scenario = scenario(recipe, run)?;
    let method = methods::choose(&scenario)?;
    let prediction = method.predict(&scenario)?;
    let interval = interval::of(&scenario, method, &prediction)?;
    let ends = interval.map(|interval| interval.throughput_samples_per_s.map(|end| end.get()));
    let (predicted, measured) = (prediction.throughput.get(), run.number(&recipe.measured));
    let mut row: Map<String, Value> =
        recipe.shown.iter().map(|column| (column.clone(), run.field(column).clone())).collect();
    row.insert("measured".to_owned(), json!(measured));
    row.insert("predicted".to_owned(), json!(predicted));
    row.insert("interval".to_owned(), json!(ends));
    let mut row = Value::Object(row);
    judge(&mut row, predicted / measured, Some(ends.map_or(0.0, |[low, high]| 0.5 * (high / low).ln())));
    Ok(row)
}
