//! Real asynchronous TensorFlow training with one parameter server: from the one-worker profile of each configuration to
//! the throughput of all measured numbers of workers.
//!
//! A folder holds one folder per configuration (`config.json`, `runmetadata.tar.xz`,
//! `partition_graphs_runmetadata.pb.gz`, `run_W<k>.json.gz`, `overhead_W1.csv.gz`, `h2_W<k>_frames.csv.gz`) and
//! `bandwidth/` with iperf results. The testbed's parameters are measured once from all of it, and none is fitted to a
//! single configuration. Two parameters, and parts of the model's structure, were chosen on the runs with several workers
//! of four configurations (docs/validation.md); `--held-out` predicts each configuration with the two parameters
//! chosen on the others.

mod capture;
mod data;
mod held_out;
mod predict;
mod testbed;

use crate::coverage;
use crate::records::Fields;
use crate::report::Findings;
use crate::set::{Run, report_progress};
use crate::{ErrorBounds, Errors, Evidence, Progress, ValidationError};
use data::{Measurement, Recorded};
use rayon::prelude::*;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use stepcast_core::quantity::{BitsPerSec, SamplesPerSec};
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};
use testbed::Testbed;

/// Runs with fewer workers than this are not judged: profiles were taken of them.
const JUDGED_FROM: u32 = 2;

/// Predicts every measured run of the configurations below a folder; with `--held-out`, every configuration is predicted
/// once more with parameters that were chosen on the others only, which takes five times as long.
pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let (bounds, folder, held_out): (ErrorBounds, _, _) = (run.bounds()?, run.data()?, run.options.held_out);
    let configurations = data::configurations(folder)?;
    let testbed = Testbed::measure(folder, &configurations)?;
    let (mut notes, mut failed, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
    for configuration in configurations {
        let measured = configuration.measurements()?;
        match configuration.profile() {
            Ok((profile, repaired)) => {
                notes.extend(repaired.into_iter().map(|note| format!("{}: {note}", configuration.name)));
                recorded.push(Recorded { configuration, profile, measured });
            }
            // A validation with any of them does not hold.
            Err(error) => failed.push(error.to_string()),
        }
    }
    let points: Vec<(&Recorded, &Measurement)> = recorded
        .iter()
        .flat_map(|recorded| recorded.measured.iter().map(move |measurement| (recorded, measurement)))
        .collect();
    let judged = points.iter().filter(|(_, measurement)| measurement.workers >= JUDGED_FROM).count();
    let all = points.len() + if held_out { held_out::rounds() * judged } else { 0 };
    let count = AtomicUsize::new(0);
    report_progress(run.observer, Progress::Points { done: 0, of: all })?;
    let done = || {
        let done = count.fetch_add(1, Ordering::Relaxed) + 1;
        report_progress(run.observer, Progress::Points { done, of: all })
    };
    let mut rows: Vec<Value> = points
        .par_iter()
        .map(|(recorded, measurement)| {
            let row =
                predict::prediction(recorded, &testbed, measurement.workers, measurement.examples_per_s);
            done()?;
            Ok(row?)
        })
        .collect::<Result<_, ValidationError>>()?;
    add_model_error(run.set, &mut rows);
    let choices = match held_out {
        true => held_out::predict(&mut rows, &recorded, &testbed, &done)?,
        false => Vec::new(),
    };
    let errors = |method, key: &str| {
        Errors::from_ratios(method, judged_rows(&rows).map(|row| row.number(key) / row.number("measured")))
    };
    let mut engine = vec![errors("simulate", "predicted")];
    if held_out {
        engine.push(errors("simulate, held out", "held_out"));
    }
    let others = [errors("cynthia2019", "cynthia"), errors("lin2018", "lin")];
    // The engine must have smaller errors than both baselines, in held-out predictions too.
    let keeps = |engine: &Errors| bounds.keeps(engine) && others.iter().all(|other| engine.mean < other.mean);
    let holds = failed.is_empty() && engine.iter().all(keeps);
    let by = |method: &str, key: &str, is_engine: bool| -> Vec<Case> {
        let case = |row: &Value| {
            let case = case(run.set, &rows, row);
            Case {
                method: method.to_owned(),
                predicted: SamplesPerSec::new(row.number(key)),
                run_spread: if is_engine { case.run_spread } else { 0.0 },
                ..case
            }
        };
        judged_rows(&rows).map(case).collect()
    };
    let evidence = Evidence::Measured {
        cases: by("simulate", "predicted", true),
        other_cases: [by("cynthia2019", "cynthia", false), by("lin2018", "lin", false)].concat(),
        bounds,
        bounded_by_group: false,
    };
    let errors: Vec<Errors> = engine.into_iter().chain(others).collect();
    let paragraphs = |texts: &[String]| texts.iter().map(|text| json!({ "text": text })).collect::<Vec<_>>();
    let [coverage, likely_coverage] = ["interval", "likely"].map(|interval| covered(&rows, interval));
    let figures = json!({
        "_errors": errors,
        "_bounded": bounds.to_string(),
        "_failed": paragraphs(&failed),
        "_notes": paragraphs(&notes),
        "testbed": testbed,
        "rows": rows,
        "errors": errors,
        "coverage": coverage,
        "likely_coverage": likely_coverage,
        "choices": choices,
        "bounds": bounds,
        "notes": notes,
        "failed": failed,
    });
    Ok(Findings { holds, ..Findings::new(figures, evidence) })
}

fn judged_rows(rows: &[Value]) -> impl Iterator<Item = &Value> {
    rows.iter().filter(|row| row.small("workers") >= JUDGED_FROM)
}

/// A measured run, predicted by the engine.
fn case(set: &'static str, rows: &[Value], row: &Value) -> Case {
    let is_alone =
        |other: &&Value| other.count("workers") == 1 && other["configuration"] == row["configuration"];
    // Throughput of as many workers that do not slow each other down.
    let together = rows
        .iter()
        .find(is_alone)
        .map_or(f64::INFINITY, |alone| alone.number("predicted") * row.number("workers"));
    Case {
        set,
        group: row.text("configuration").to_owned(),
        method: "simulate".to_owned(),
        regime: Regime {
            architecture: Architecture::ParameterServer,
            pace: Pace::Asynchronous,
            limit: Limit::of(row.number("predicted") / together),
            machines: Machines::Several,
        },
        workers: row.small("workers"),
        bandwidth: Some(BitsPerSec::new(row.number("rate_bits_per_s"))),
        parameters: Some(row.count("parameters")),
        predicted: SamplesPerSec::new(row.number("predicted")),
        measured: SamplesPerSec::new(row.number("measured")),
        run_spread: row.number("run_spread"),
    }
}

/// Adds the model error to the interval of every run, from the errors on the other configurations.
fn add_model_error(set: &'static str, rows: &mut [Value]) {
    let cases: Vec<Case> = judged_rows(rows).map(|row| case(set, rows, row)).collect();
    let widths = coverage::intervals(&cases, &cases);
    for (case, width) in cases.iter().zip(widths) {
        let own = |row: &&mut Value| {
            row.small("workers") == case.workers && row.text("configuration") == case.group
        };
        if let (Some(row), Some(judged)) = (rows.iter_mut().find(own), width) {
            let (predicted, factor) = (row.number("predicted"), judged.half_width.exp());
            row["likely"] = json!([predicted / factor, predicted * factor]);
        }
    }
}

/// Share of the runs with two workers and more that lie in an interval.
fn covered(rows: &[Value], interval: &str) -> f64 {
    let inside = judged_rows(rows).filter(|row| {
        let ends = row.numbers(interval);
        (ends[0]..=ends[1]).contains(&row.number("measured"))
    });
    inside.count() as f64 / judged_rows(rows).count().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::data::configurations;
    use crate::set::test_reports::figures;
    use std::path::Path;

    #[test]
    fn the_testbed_is_what_was_measured() {
        let found = figures("tf-ps");
        let within = |value: &serde_json::Value, least: f64, most: f64| {
            assert!((least..most).contains(&value.as_f64().unwrap()), "{value} of {:#?}", found["testbed"]);
        };
        let testbed = &found["testbed"];
        within(&testbed["spread"][0], 0.2, 0.3);
        within(&testbed["spread"][1], 0.3, 0.5);
        within(&testbed["first_window_b"], 2e5, 4e5);
        within(&testbed["joining"], 0.25, 0.4);
        within(&found["likely_coverage"], 0.8, 1.01);
    }

    #[test]
    fn a_folder_without_configurations_is_refused() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let error = configurations(&folder).unwrap_err().to_string();
        assert!(error.contains("no configuration"), "{error}");
    }
}
