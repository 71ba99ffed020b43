//! Measured steps: one JSON object a line, plain or compressed.

use super::MeasuredStep;
use crate::measurements::read_text;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use stepcast_core::fault::{Fault, Remedy};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::model::{Model, zoo};
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;
use stepcast_trace::json_reason;

/// Prefixes that libraries put before the names of a network's layers.
const WRAPPERS: [&str; 3] = ["m.", "bert.", "transformer."];
/// A parameter outside of any module, and the layer it belongs to.
const LOOSE: [(&str, &str); 1] = [("cls.predictions", "cls.predictions.decoder")];

/// The steps of a file, and notes about those left out.
#[derive(Debug, Default)]
pub struct MeasuredSteps {
    /// Steps of models in the zoo.
    pub steps: Vec<MeasuredStep>,
    /// Reasons for leaving out other steps, one sentence each.
    pub notes: Vec<String>,
}

#[derive(Deserialize)]
struct Line {
    model: String,
    precision: String,
    batch: u32,
    fwd_ms: f64,
    bwd_ms: f64,
    iter_ms: f64,
    params: Option<u64>,
    profile: Profile,
}

#[derive(Deserialize)]
struct Profile {
    layers: Vec<Leaf>,
    grads: Vec<Gradient>,
}

#[derive(Deserialize)]
struct Leaf {
    name: String,
    fwd_ms: f64,
}

#[derive(Deserialize)]
struct Gradient {
    name: String,
    ready_ms: f64,
}

pub fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<MeasuredSteps, Stopped> {
    let text = read_text(path, "give one JSON object for each measured step", wanted)?;
    parse(&path.display().to_string(), &text, wanted)
}

/// Reads measured steps from the text of the file called `name`.
pub fn parse(name: &str, text: &str, wanted: &CancelCheck<'_>) -> Result<MeasuredSteps, Stopped> {
    let mut found = MeasuredSteps::default();
    let mut seen = BTreeSet::new();
    let mut unknown: BTreeMap<String, String> = BTreeMap::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        if wanted().is_break() {
            return Err(Stopped::Cancelled);
        }
        let place = format!("{name}:{}", number + 1);
        let line: Line = serde_json::from_str(line).map_err(|error| unreadable(&place, &error))?;
        let model = match model(&line) {
            Ok(model) => model,
            Err(reason) => {
                unknown.insert(line.model, reason);
                continue;
            }
        };
        let step = step(&place, &line, model)?;
        if !seen.insert((step.model.name.clone(), step.precision, step.batch)) {
            let reason =
                format!("{} {} with batch {} was measured before", line.model, step.precision, step.batch);
            return Err(Fault::in_file(place, reason, "keep one line of each").into());
        }
        found.steps.push(step);
    }
    found.notes.extend(unknown.into_iter().map(|(model, reason)| format!("{model} is left out: {reason}.")));
    if found.steps.is_empty() {
        let reason = match found.notes.first() {
            Some(note) => format!("it holds no step of a model of the zoo; {}", note.trim_end_matches('.')),
            None => "it holds no measured steps".to_owned(),
        };
        let remedy = "give one JSON object for each step; docs/fit.md describes it";
        return Err(Fault::in_file(name, reason, remedy).into());
    }
    Ok(found)
}

fn unreadable(place: &str, error: &serde_json::Error) -> Fault {
    let remedy = "give every step model, precision, batch, fwd_ms, bwd_ms, iter_ms and profile (docs/fit.md)";
    Fault::in_file(format!("{place}:{}", error.column()), json_reason(error), remedy)
}

/// The zoo's model of that name, or a variant of it, with that number of parameters.
fn model(line: &Line) -> Result<Arc<Model>, String> {
    let variant = format!("{}-", line.model.to_lowercase().replace('_', "-"));
    let named = zoo::find(&line.model).into_iter();
    let variants = zoo::names().filter(|name| name.starts_with(&variant)).filter_map(zoo::find);
    let mut other = None;
    for model in named.chain(variants).filter_map(|entry| entry.build().ok()) {
        if line.params.is_none_or(|parameters| parameters == model.parameters()) {
            return Ok(Arc::new(model));
        }
        other.get_or_insert(model.parameters());
    }
    Err(match (other, line.params) {
        (Some(zoo), Some(own)) => format!("it has {own} parameters, the zoo's model {zoo}"),
        _ => "the zoo has no model of that name".to_owned(),
    })
}

fn step(place: &str, line: &Line, model: Arc<Model>) -> Result<MeasuredStep, Fault> {
    let precision = match line.precision.as_str() {
        "fp32" | "f32" | "float32" => Precision::Fp32,
        "bf16" | "bfloat16" => Precision::Bf16,
        other => {
            let reason = format!("precision \"{other}\" is not one that steps are fitted in");
            return Err(Fault::in_file(place, reason, "use fp32 or bf16"));
        }
    };
    if line.batch == 0 {
        return Err(Fault::in_file(place, "a batch has at least one sample", "use a whole number from 1 on"));
    }
    let time = |key: &str, value: f64, least: f64| {
        let sound = value.is_finite() && value >= 0.0 && value > least;
        sound.then(|| Seconds::new(value * 1e-3)).ok_or_else(|| {
            let reason = format!("{key} {value} is not a time");
            Fault::in_file(place, reason, "use a positive number of milliseconds, or leave the line out")
        })
    };
    let names: BTreeSet<&str> = model.layers().iter().map(|layer| layer.name.as_str()).collect();
    let mut leaves = BTreeMap::new();
    for leaf in &line.profile.layers {
        let took = time(&format!("fwd_ms of {}", leaf.name), leaf.fwd_ms, 0.0)?;
        if let Some(layer) = layer(&names, &leaf.name) {
            leaves.insert(layer.to_owned(), took);
        }
    }
    let mut ready = Vec::new();
    for gradient in &line.profile.grads {
        let at = time(&format!("ready_ms of {}", gradient.name), gradient.ready_ms, -1.0)?;
        let module = gradient.name.rsplit_once('.').map_or("", |(module, _)| module);
        if let Some(layer) = layer(&names, module) {
            ready.push((layer.to_owned(), at));
        }
    }
    if leaves.is_empty() || ready.is_empty() {
        let reason = format!("no layer in its profile has the name of a layer of the zoo's {}", model.name);
        let remedy = Remedy::ListLayers { model: Some(model.name.clone()) };
        return Err(Fault::in_file(place, reason, remedy));
    }
    let forward = time("fwd_ms", line.fwd_ms, 0.0)?;
    let backward = time("bwd_ms", line.bwd_ms, 0.0)?;
    let iteration = time("iter_ms", line.iter_ms, 0.0)?;
    Ok(MeasuredStep { precision, batch: line.batch, forward, backward, iteration, leaves, ready, model })
}

/// The layer of the zoo's model that a module corresponds to.
fn layer<'a>(names: &BTreeSet<&'a str>, module: &str) -> Option<&'a str> {
    let bare = WRAPPERS.iter().fold(module, |name, wrapper| name.strip_prefix(wrapper).unwrap_or(name));
    let bare = LOOSE.iter().find(|(loose, _)| *loose == bare).map_or(bare, |(_, layer)| layer);
    names.get(bare).copied()
}
