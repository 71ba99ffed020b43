//! Zeng 2023: Table 1 recomputed to the integer, Tables 2-7 recomputed to the printed precision, and three models
//! compared with the measured times:
//! * the printed formulas as they stand (simd 2, Table 1's counts, Algorithms 1 and 2);
//! * the authors' own inputs, recovered from their workbook (errata 1.2);
//! * the layer-wise model, calibrated on the other networks: neither measurements of the predicted network nor
//!   coefficients that belong to a single network enter the fit.

mod calibrated;
mod published;

use super::zoo_model;
use crate::records::{Fields, rows};
use crate::report::Findings;
use crate::set::Run;
use crate::{ErrorBounds, Evidence, ValidationError};
use calibrated::{Calibration, layout};
use serde::Deserialize;
use serde_json::{Value, json};
use stepcast_core::machine::catalog;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Limit, Machines as MachineCount, Pace, Regime};

/// Networks of Tables 2-7.
const MODELS: [&str; 5] = ["alexnet", "vgg11", "vgg16", "vgg19", "resnet50"];

#[derive(Debug, Clone, Default, Deserialize)]
struct Machines {
    config: String,
    words: String,
    devices: String,
    network: String,
}

impl Machines {
    /// Catalog names of the workers' devices.
    fn devices(&self) -> Vec<&str> {
        self.devices.split(' ').collect()
    }

    fn is_stand_alone(&self) -> bool {
        !self.devices.contains(' ')
    }
}

/// A printed cell of Tables 2-7, or a measured time of the authors' workbook.
#[derive(Debug, Clone, Deserialize)]
struct Experiment {
    #[serde(default)]
    table: u8,
    model: String,
    config: String,
    #[serde(skip)]
    machines: Machines,
    batch: u32,
    /// Predicted time as printed, in seconds.
    #[serde(default)]
    pt: f64,
    /// Measured time in seconds.
    mt: f64,
    #[serde(default)]
    accuracy: f64,
    /// Fitted by the authors.
    simd: Option<f64>,
    /// Computing time in seconds that the authors typed in.
    typed: Option<f64>,
    /// "misprint", "typed", or nothing.
    #[serde(default)]
    note: String,
}

fn machines() -> Result<Vec<Machines>, ValidationError> {
    rows("zeng2023/machines.csv")
}

fn experiments(file: &str) -> Result<Vec<Experiment>, ValidationError> {
    let (machines, mut runs) = (machines()?, rows::<Experiment>(&format!("zeng2023/{file}"))?);
    for run in &mut runs {
        let known = machines.iter().find(|machines| machines.config == run.config);
        let unknown = || ValidationError::Data(format!("zeng2023: there are no machines \"{}\"", run.config));
        run.machines = known.ok_or_else(unknown)?.clone();
    }
    Ok(runs)
}

#[derive(Debug, Deserialize)]
struct Bounds {
    #[serde(flatten)]
    errors: ErrorBounds,
    /// How near a recomputed time must be to the printed one.
    within: Seconds,
}

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let (bounds, recipe): (Bounds, _) = (run.bounds()?, run.recipe()?);
    let (published, workbook) = (experiments("tables2-7.csv")?, experiments("workbook.csv")?);
    let mut calibrations = Vec::new();
    for left_out in MODELS.map(Some).into_iter().chain([None]) {
        calibrations.push(Calibration::fit(recipe, left_out, &workbook, &published)?);
    }
    let without = |model: &str| {
        let found = calibrations.iter().find(|calibration| calibration.left_out == Some(model));
        found.ok_or_else(|| ValidationError::Data(format!("no calibration without {model}")))
    };
    let table1 = run.cases("table1.csv")?.iter().map(operation_count).collect::<Result<Vec<_>, _>>()?;
    let (mut cells, mut cases, mut other_cases) = (Vec::new(), Vec::new(), Vec::new());
    for experiment in &published {
        let cell = cell(experiment, without(&experiment.model)?, bounds.within)?;
        cases.push(case(run.set, experiment, &cell, "layerwise", "calibrated_s")?);
        other_cases.push(case(run.set, experiment, &cell, "zeng2023", "literal_s")?);
        cells.push(cell);
    }
    let mut sweeps = Vec::new();
    for row in &workbook {
        sweeps.push(json!({
            "config": row.config,
            "model": row.model,
            "batch": row.batch,
            "calibrated_s": without(&row.model)?.predict(row)?.iteration.get(),
            "literal_s": published::literal(row)?.get(),
            "measured_s": row.mt,
            "_set": format!("workbook, {}", row.machines.words),
        }));
    }
    let exact = table1.iter().filter(|row| row.is("exact")).count();
    // Table 3 is a repetition of Table 2 in print.
    let is_reproduced = |cell: &&Value| cell.count("table") != 3 && cell.is("reproduced");
    let figures = json!({
        "_exact": exact,
        "_reproduced": cells.iter().filter(is_reproduced).count(),
        "_within": bounds.within.to_string(),
        "_sweeps": sweeps.len(),
        "table1": table1,
        "cells": cells,
        "sweeps": sweeps,
        "errors": null,
        "calibrations": calibrations.iter().map(Calibration::to_value).collect::<Vec<_>>(),
        "bounds": null,
    });
    let evidence = Evidence::Measured { cases, other_cases, bounds: bounds.errors, bounded_by_group: false };
    Ok(Findings::new(figures, evidence))
}

/// Operations of a network, recomputed, and as the authors' workbook has them: one row of Table 1. `exact`: both agree to the
/// integer, and with print to five digits.
fn operation_count(row: &Value) -> Result<Value, ValidationError> {
    let operations = published::operations(&zoo_model(row.text("model"))?);
    let (forward, backward) = (operations.forward.get() as u64, operations.backward.get() as u64);
    let as_printed = |value: u64, print: f64| (value as f64 / print - 1.0).abs() <= 5e-5;
    let exact = forward == row.count("forward")
        && backward == row.count("backward")
        && as_printed(forward, row.number("print_forward"))
        && as_printed(backward, row.number("print_backward"));
    Ok(json!({
        "model": row.field("model"),
        "forward": forward,
        "published_forward": row.field("forward"),
        "backward": backward,
        "published_backward": row.field("backward"),
        "exact": exact,
    }))
}

/// One cell of Tables 2-7 and its predictions.
fn cell(cell: &Experiment, calibration: &Calibration<'_>, within: Seconds) -> Result<Value, ValidationError> {
    let authors = published::authors(cell)?.get();
    let calibrated = calibration.predict(cell)?;
    let reproduced = (authors - cell.pt).abs() <= within.get();
    let mark = if cell.note.is_empty() && !reproduced { "not reproduced" } else { &cell.note };
    // Two decimals, as the paper prints; more where the figure is the workbook's.
    let hundredths = cell.pt * 100.0;
    let digits = if (hundredths - hundredths.round()).abs() < 1e-6 { 2 } else { 3 };
    Ok(json!({
        "table": cell.table,
        "model": cell.model,
        "config": cell.config,
        "batch": cell.batch,
        "printed_s": cell.pt,
        "authors_s": authors,
        "literal_s": published::literal(cell)?.get(),
        "calibrated_s": calibrated.iteration.get(),
        "computing_share": calibrated.scaling_factor,
        "measured_s": cell.mt,
        "printed_accuracy": cell.accuracy,
        // Which Tables 2, 4 and 5 print.
        "accuracy_over_pt": 1.0 - (cell.pt - cell.mt).abs() / cell.pt,
        // Which Tables 6 and 7 print.
        "accuracy_over_mt": 1.0 - (cell.pt - cell.mt).abs() / cell.mt,
        "reproduced": reproduced,
        "note": cell.note,
        "_words": cell.machines.words,
        "_late": cell.table >= 4,
        "_printed": format!("{:.digits$}", cell.pt),
        "_off": authors - cell.pt,
        "_mark": mark,
    }))
}

fn case(
    set: &'static str,
    run: &Experiment,
    cell: &Value,
    method: &str,
    predicted: &str,
) -> Result<Case, ValidationError> {
    let alone = run.machines.is_stand_alone();
    let workers = run.machines.devices().len() as u32;
    let rate =
        |key: &str| SamplesPerSec::from_time(f64::from(run.batch * workers), Seconds::new(cell.number(key)));
    Ok(Case {
        set,
        group: run.model.clone(),
        method: method.to_owned(),
        regime: Regime {
            architecture: if alone { Architecture::StandAlone } else { Architecture::ParameterServer },
            pace: Pace::Synchronous,
            limit: Limit::of(cell.number("computing_share")),
            machines: if alone { MachineCount::One } else { MachineCount::Several },
        },
        workers,
        bandwidth: (!alone).then_some(catalog::network(&run.machines.network)?.bandwidth),
        parameters: zoo_model(layout(&run.model)).ok().map(|model| model.parameters()),
        predicted: rate(predicted),
        measured: rate("measured_s"),
        run_spread: 0.0,
    })
}
