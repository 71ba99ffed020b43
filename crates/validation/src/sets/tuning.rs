//! Fine-tuning: adapters and frozen layers, compiled and graphed steps, models of Hugging Face, by names and the shipped constants
//! alone. Times are judged as seconds, peaks of memory as bytes.

use super::transformer_steps::half_width;
use crate::judged::{Families, Judged, Unit, coverage};
use crate::recipe::{Recipe, words};
use crate::records::Fields;
use crate::report::Findings;
use crate::set::{Run, check_cancelled};
use crate::{ErrorBounds, ValidationError};
use indexmap::IndexMap;
use rayon::prelude::*;
use serde_json::{Value, json};
use stepcast_analytic::transformer::Transformer;
use stepcast_core::method::Method as _;
use stepcast_core::prediction::Verdict;

/// What families of peaks are called in front of what was run.
const MEMORY: &str = "memory, ";

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let mut cases = Vec::new();
    for recipe in &run.definition.recipe {
        cases.extend(recipe.cases(run.set)?.into_iter().map(|row| (recipe, row)));
    }
    let tuned = |(recipe, row): &(&Recipe, Value)| {
        check_cancelled(run.observer)?;
        Tuned::predict(recipe, row)
    };
    let tuned: Vec<Tuned> = cases.par_iter().map(tuned).collect::<Result<_, _>>()?;
    let figures =
        |of: fn(&Tuned) -> &Option<Judged>| tuned.iter().filter_map(|case| of(case).clone()).collect();
    let times = Families { figures: figures(|case| &case.time), unit: Unit::Seconds };
    let peaks = Families { figures: figures(|case| &case.peak), unit: Unit::Bytes };
    let bounds: IndexMap<String, ErrorBounds> = run.bounds()?;
    let (of_memory, of_time): (IndexMap<_, _>, IndexMap<_, _>) =
        bounds.into_iter().partition(|(family, _)| family.starts_with(MEMORY));
    let mut findings = times.findings(&of_time, coverage(&times.rows()));
    findings.checks.extend(peaks.checks(&of_memory));
    findings.figures["_peaks"] = Value::Array(peaks.rows());
    findings.figures["_refusals"] = tuned.iter().filter_map(|case| case.refusal.clone()).collect();
    Ok(findings)
}

/// What was measured of a case, and predicted.
struct Tuned {
    time: Option<Judged>,
    /// Its peak of memory.
    peak: Option<Judged>,
    /// Whether it ran, and whether it is said not to fit.
    refusal: Option<Value>,
}

impl Tuned {
    fn predict(recipe: &Recipe, row: &Value) -> Result<Self, ValidationError> {
        let scenario = recipe.scenario(row)?;
        let prediction = Transformer.predict(&scenario)?;
        let [name, group] = [words(&recipe.name, row)?, words(&recipe.group, row)?];
        let time = match recipe.seconds(row)? {
            Some(measured) => Some(Judged {
                half_width: Some(half_width(&scenario)?.unwrap_or(0.0)),
                ..Judged::new(&group, &name, prediction.iteration.get(), measured)
            }),
            None => None,
        };
        let (mut peak, mut refusal) = (None, None);
        if let Some(report) = &prediction.transformer {
            let tensors = report.stages.iter().map(|stage| stage.memory.total.get()).fold(0.0, f64::max);
            for (column, predicted) in [("allocated", tensors), ("reserved", report.memory.most.get())] {
                if let Some(measured) = row.field(column).as_f64() {
                    peak = Some(Judged::new(format!("{MEMORY}{group}"), &name, predicted, measured));
                }
            }
            let refused = report.memory.verdict == Verdict::DoesNotFit;
            refusal = row.field("ran").as_bool().map(|ran| json!({ "ran": ran, "refused": refused }));
        }
        Ok(Self { time, peak, refusal })
    }
}
