//! `stepcast predict`: one scenario, one method, one forecast.

use super::json;
use crate::Answer;
use crate::args::Predict;
use crate::render::error::Complaint;
use crate::render::{Screen, forecast};
use std::fs::{self, File};
use std::io::{self, Read};
use stepcast_core::cluster::Cluster;
use stepcast_core::method::Method;
use stepcast_core::scenario::{Document, MAX_WORKERS, Override};
use stepcast_core::suggest;
use stepcast_study::{Forecast, methods};

/// Scenario of `stepcast predict` without a file.
const QUICK_START: &str = include_str!("../../../../examples/quickstart.toml");
const QUICK_START_NAME: &str = "quickstart.toml (built in)";

/// A scenario beyond this is a mistake.
const MAX_FILE: u64 = 16 << 20;

/// Scaling tables go at least this far.
const SCALING_TO: u64 = 16;

pub(super) fn run(flags: &Predict, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let document = document(flags.scenario.as_deref())?;
    let from_flag = |error| Complaint::in_document(error, &flags.overrides);
    let overrides: Vec<Override> = flags
        .overrides
        .iter()
        .map(|text| Override::parse(text))
        .collect::<Result<_, _>>()
        .map_err(from_flag)?;
    let scenario = document.scenario(&overrides).map_err(from_flag)?;
    let refused = |why| from_flag(document.refused(why, &overrides));
    let method = match flags.method.as_str() {
        "auto" => methods::choose(&scenario).map_err(refused)?,
        name => method(name)?,
    };
    let workers = match &flags.workers {
        Some(workers) => workers.0.clone(),
        None => usual_workers(&scenario.cluster),
    };
    let forecast = Forecast::new(&scenario, method, &workers).map_err(refused)?;
    if as_json {
        return json(&forecast);
    }
    Ok(forecast::render(&scenario, method, &forecast, screen).into())
}

/// The scenario's text: a file, standard input, or the quick start.
fn document(path: Option<&str>) -> Result<Document, Complaint> {
    let (name, text) = match path {
        None => (QUICK_START_NAME, QUICK_START.to_owned()),
        Some("-") => ("<stdin>", text("<stdin>", io::stdin().lock())?),
        Some(path) => {
            let cannot = |error: io::Error| {
                let remedy = "check the path; `stepcast predict` alone runs the built-in quick start";
                Complaint::new(format!("cannot read the scenario: {error}"), remedy).at(path)
            };
            if fs::metadata(path).map_err(cannot)?.is_dir() {
                let remedy = "name a file in it";
                return Err(Complaint::new("the scenario is a directory", remedy).at(path));
            }
            (path, text(path, File::open(path).map_err(cannot)?)?)
        }
    };
    Ok(Document::new(name, text))
}

fn text(name: &str, reader: impl Read) -> Result<String, Complaint> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| {
        Complaint::new(format!("cannot read the scenario: {error}"), "check the file").at(name)
    })?;
    if bytes.len() as u64 > MAX_FILE {
        let reason = format!("the scenario is larger than {} MiB", MAX_FILE >> 20);
        return Err(Complaint::new(reason, "a scenario has a few dozen lines: check the file").at(name));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count();
        Complaint::new("the scenario is not UTF-8 text", "save it as UTF-8").at(format!("{name}:{line}"))
    })
}

fn method(name: &str) -> Result<&'static dyn Method, Complaint> {
    methods::find(name).ok_or_else(|| {
        let known: Vec<&str> =
            std::iter::once("auto").chain(methods::all().iter().map(|method| method.name())).collect();
        let list = format!("the methods are {}", known.join(", "));
        let remedy = suggest::remedy(name, known.iter().copied(), &list);
        Complaint::new(format!("there is no method \"{name}\""), remedy).at(format!("--method {name}"))
    })
}

/// Powers of two up to 16, or up to twice the cluster, and the cluster itself.
fn usual_workers(cluster: &Cluster) -> Vec<u32> {
    let own = cluster.workers();
    let last = (2 * own).clamp(SCALING_TO, MAX_WORKERS);
    let powers = (0..u32::BITS).map(|exponent| 1_u32 << exponent);
    let mut workers: Vec<u32> = powers.take_while(|workers| u64::from(*workers) <= last).collect();
    workers.extend(u32::try_from(own));
    workers.sort_unstable();
    workers.dedup();
    workers
}
