//! Published runs of several workers from 13 sources, each predicted from names and the throughput of one worker alone by
//! the method that a user gets: no figure of a cluster is fitted. The set `papers` has runs of papers, predicted from names.
//!
//! The constants of what machines reach (catalog/priors.toml) were fitted to most of these runs, so this is how well one
//! set of constants describes all of them. research/priors says how errors grow when a source is left out.

use super::zoo_model;
use crate::coverage::Coverage;
use crate::priors::Observation;
use crate::records::{Fields, cases};
use crate::report::Findings;
use crate::set::{Run, report_progress};
use crate::template::Recipe;
use crate::{Errors, Evidence, Progress, ValidationError};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_core::model::ModelFile;
use stepcast_core::scenario::{Document, Scenario};
use stepcast_study::predict::{interval, methods};

/// Runs that are this much faster than linear are not fitted: their throughput alone is that of something else.
const BEYOND_LINEAR: f64 = 1.15;

/// Least share of a worker's step with its server that is computing, as in research/priors.
const LEAST_COMPUTING: f64 = 0.3;

/// Families are averaged by place: all-reduce inside one machine or between machines, and parameter servers.
const PLACES: [(&str, &str); 4] = [
    ("one-machine", "one machine"),
    ("several-machines", "several machines"),
    ("servers", "servers"),
    ("servers-unstated", "servers, network not stated"),
];

/// Beginnings of families with servers whose source does not state the network that their runs depend on.
const UNSTATED: [&str; 2] = ["tf_logs", "paddle"];

/// The scenario of a run. Throughput alone is that of one worker without communication, except where a server was part of
/// it: then computing is what is left.
fn scenario(recipe: &Recipe, run: &Value) -> Result<Scenario, ValidationError> {
    if run.get("single_throughput").is_none() {
        return Ok(recipe.scenario_file(run)?.resolve()?);
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

fn place(run: &Value) -> &'static str {
    let family = run.text("family");
    match (run.text("architecture"), family.contains("one machine")) {
        ("parameter-server", _) if UNSTATED.iter().any(|unstated| family.starts_with(unstated)) => {
            "servers-unstated"
        }
        ("parameter-server", _) => "servers",
        ("stand-alone", _) | (_, true) => "one-machine",
        (_, false) => "several-machines",
    }
}

/// All-reduce runs that the priors are fitted to and judged by, and runs with parameter servers.
pub(crate) fn observations() -> Result<(Vec<Observation>, Vec<Observation>), ValidationError> {
    let set = crate::find("published-scaling")?;
    let recipe = set.definition()?.recipe.as_ref();
    let recipe = recipe.ok_or_else(|| ValidationError::Data("published-scaling has no recipe".to_owned()))?;
    let runs: Vec<Value> = cases(&format!("published-scaling/{}", recipe.cases))?;
    let observed: Vec<(bool, Observation)> = runs
        .par_iter()
        .map(|run| Ok((place(run).starts_with("servers"), observation(recipe, run)?)))
        .collect::<Result<_, ValidationError>>()?;
    let (served, reduced): (Vec<_>, Vec<_>) = observed.into_iter().partition(|(served, _)| *served);
    let only = |runs: Vec<(bool, Observation)>| runs.into_iter().map(|(_, run)| run).collect();
    Ok((only(reduced), only(served)))
}

fn observation(recipe: &Recipe, run: &Value) -> Result<Observation, ValidationError> {
    let scenario = scenario(recipe, run)?;
    let method = methods::choose(&scenario)?;
    let samples = method.predict(&scenario)?.samples as f64;
    let linear = run.number("single_throughput") * run.number("workers");
    let is_in_line = run.text("trust") == "full" && run.number("throughput") < BEYOND_LINEAR * linear;
    Ok(Observation {
        family: run.text("family").to_owned(),
        source: run.text("family").split([' ', ',']).next().unwrap_or_default().to_owned(),
        is_fitted: place(run) == "servers" || run.text("software") == "grpc-mpi" || is_in_line,
        measured: (samples / run.number("throughput")).ln(),
        predict: Box::new(move |priors| {
            let moved = Scenario { priors: Arc::new(priors.clone()), ..scenario.clone() };
            Ok(method.step(&moved)?.get().ln())
        }),
    })
}

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let recipe = run.recipe()?;
    let all: Vec<Value> = run.cases(&recipe.cases)?;
    let done = AtomicUsize::new(0);
    let predicted = |row: &Value| {
        let predicted = predicted(recipe, row);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        report_progress(run.observer, Progress::Points { done, of: all.len() })?;
        predicted
    };
    let runs: Vec<Value> = all.par_iter().map(predicted).collect::<Result<_, _>>()?;
    let mut by_family: BTreeMap<(usize, &str), Vec<&Value>> = BTreeMap::new();
    for run in &runs {
        let place = PLACES.iter().position(|(place, _)| run.text("place") == *place).unwrap_or(0);
        by_family.entry((place, run.text("family"))).or_default().push(run);
    }
    let families: Vec<Value> = by_family.iter().map(|((_, name), runs)| family(name, runs)).collect();
    let over = |(place, words): (&str, &str)| {
        let own: Vec<&Value> = families.iter().filter(|family| family.text("place") == place).collect();
        mean_over_families(words, &own)
    };
    let places = PLACES.map(over);
    let inside = runs.iter().filter(|run| is_inside(run)).count();
    let coverage = Coverage { cases: runs.len(), inside, ..Coverage::default() };
    let evidence = Evidence::Judged {
        cases: runs.len(),
        coverage,
        errors: Errors::from_ratios("predicted", runs.iter().map(ratio)),
        bound: String::new(),
    };
    let figures = json!({
        "_coverage": coverage.share(),
        "_limits": run.bounds::<Value>()?,
        "left_out": run.definition.left_out,
        "families": families,
        "places": places,
        "bounds": null,
        "runs": runs,
    });
    Ok(Findings::new(figures, evidence))
}

/// One run and its prediction, in samples per second.
fn predicted(recipe: &Recipe, run: &Value) -> Result<Value, ValidationError> {
    let scenario = scenario(recipe, run)?;
    let method = methods::choose(&scenario)?;
    let prediction = method.predict(&scenario)?;
    let interval = interval::of(&scenario, method, &prediction)?;
    Ok(json!({
        "id": run.field("id"),
        "family": run.field("family"),
        "place": place(run),
        // Whether nothing had to be assumed.
        "trusted": run.text("trust") == "full",
        "measured": run.number("throughput"),
        "predicted": prediction.throughput.get(),
        "interval": interval.map(|interval| interval.throughput_samples_per_s.map(|end| end.get())),
    }))
}

fn ratio(run: &Value) -> f64 {
    run.number("predicted") / run.number("measured")
}

fn is_inside(run: &Value) -> bool {
    let ends = run.numbers("interval");
    ends.len() == 2 && (ends[0]..=ends[1]).contains(&run.number("measured"))
}

fn family(name: &str, runs: &[&Value]) -> Value {
    let count = runs.len().max(1) as f64;
    let mean = |of: &dyn Fn(&Value) -> f64| runs.iter().map(|run| of(run)).sum::<f64>() / count;
    let width = |run: &Value| match run.numbers("interval").as_slice() {
        [low, high] => 0.5 * (high / low).ln(),
        _ => 0.0,
    };
    summary(
        name,
        runs[0].field("place"),
        runs.iter().any(|run| !run.is("trusted")),
        runs.len() as u64,
        [
            100.0 * mean(&|run| (ratio(run) - 1.0).abs()),
            100.0 * mean(&|run| ratio(run).ln()),
            mean(&|run| f64::from(is_inside(run))),
            mean(&width),
        ],
    )
}

fn mean_over_families(name: &str, families: &[&Value]) -> Value {
    let count = families.len().max(1) as f64;
    let mean = |key: &str| families.iter().map(|family| family.number(key)).sum::<f64>() / count;
    summary(
        name,
        families.first().map_or(&Value::Null, |family| family.field("place")),
        families.iter().any(|family| family.is("assumed")),
        families.iter().map(|family| family.count("runs")).sum(),
        ["mean", "bias", "coverage", "half_width"].map(mean),
    )
}

/// Mean absolute error and bias in percent, share inside the 90 % interval, and its mean half-width as a logarithm.
fn summary(
    name: &str,
    place: &Value,
    assumed: bool,
    runs: u64,
    [mean, bias, coverage, half_width]: [f64; 4],
) -> Value {
    json!({
        "name": name,
        "place": place,
        // Whether network, GPUs or machines had to be assumed.
        "assumed": assumed,
        "runs": runs,
        "mean": mean,
        "bias": bias,
        "coverage": coverage,
        "half_width": half_width,
        "_mark": if assumed { " *" } else { "" },
    })
}
