//! Published throughput of several workers, predicted from that of one: cases that a recipe turns into scenarios.

use super::pulling::Pulling;
use crate::recipe::words;
use crate::records::Fields;
use crate::report::Findings;
use crate::set::Run;
use crate::{ErrorBounds, Errors, Evidence, ValidationError};
use serde_json::{Value, json};
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Regime};
use stepcast_study::predict::methods;

/// One published throughput: the machines in words, the run, and whether an input of the prediction was worked out from it.
struct PublishedRun {
    what: String,
    case: Case,
    fitted: bool,
}

fn findings(run: &Run<'_>, method: &'static str, runs: &[PublishedRun]) -> Result<Findings, ValidationError> {
    let judged: Vec<Case> = runs.iter().filter(|run| !run.fitted).map(|run| run.case.clone()).collect();
    let ratio = |case: &Case| case.predicted.get() / case.measured.get();
    let errors = Errors::from_ratios(method, judged.iter().map(ratio));
    let bounds: ErrorBounds = run.bounds()?;
    let row = |PublishedRun { what, case, fitted }: &PublishedRun| json!({ "what": what, "measured": case.measured.get(), "predicted": case.predicted.get(), "fitted": fitted });
    let figures = json!({
        "set": run.set,
        "about": run.definition.about,
        "unit": run.definition.unit,
        "rows": runs.iter().map(row).collect::<Vec<_>>(),
        "errors": errors,
        "bounds": bounds,
        "left_out": run.definition.left_out,
        "_errors": [errors],
        "_bounded": bounds.to_string(),
    });
    let holds = bounds.keeps(&errors);
    Ok(Findings { holds, ..Findings::new(figures, Evidence::measured(judged, bounds)) })
}

fn case(
    run: &Run<'_>,
    group: &str,
    scenario: &Scenario,
    method: &str,
    prediction: &Prediction,
    measured: f64,
) -> Case {
    Case {
        set: run.set,
        group: group.to_owned(),
        method: method.to_owned(),
        regime: Regime::of(scenario, prediction.scaling_factor),
        workers: u32::try_from(scenario.cluster.workers()).unwrap_or(u32::MAX),
        bandwidth: Some(scenario.cluster.network.bandwidth),
        parameters: Some(scenario.workload.parameters),
        predicted: prediction.throughput,
        measured: SamplesPerSec::new(measured),
        run_spread: prediction
            .simulation
            .as_ref()
            .and_then(|simulation| simulation.run_spread)
            .unwrap_or(0.0),
    }
}

pub(super) fn scenarios(run: &Run<'_>) -> Result<Findings, ValidationError> {
    let recipe = run.recipe()?;
    let cases: Vec<Value> = recipe.cases(run.set)?;
    let pulling =
        recipe.pulling.as_ref().map(|spec| Pulling::new(spec, &recipe.measured, &cases)).transpose()?;
    let mut runs = Vec::new();
    let mut methods_used: Vec<&'static str> = Vec::new();
    for row in &cases {
        let (mut row, group) = (row.clone(), words(&recipe.group, row)?);
        if recipe.alone.as_ref().is_some_and(|workers| row.count(workers) == 1) {
            continue;
        }
        let scenario = if let Some(pulling) = &pulling {
            row["port"] = json!(pulling.port().get());
            row["groups"] = json!(pulling.groups(&row));
            recipe.scenario_file(&row)?.resolve_with(&pulling.profile(&row))?
        } else {
            if let Some(workers) = &recipe.alone {
                row["speed"] = json!(speed_of_group(run, &cases, workers, &group)?);
            }
            recipe.scenario(&row)?
        };
        let method = method(run, &scenario)?;
        let prediction = method.predict(&scenario)?;
        methods_used.push(method.name());
        let case = case(run, &group, &scenario, method.name(), &prediction, row.number(&recipe.measured));
        let case = pulling.as_ref().map_or_else(|| case.clone(), |pulling| pulling.case(&case));
        let fitted = !row.text("given").is_empty();
        runs.push(PublishedRun { what: words(&recipe.name, &row)?, case, fitted });
    }
    findings(run, methods_used.first().copied().unwrap_or_default(), &runs)
}

/// The speed of every worker of a group, by its run of one worker.
fn speed_of_group(
    run: &Run<'_>,
    cases: &[Value],
    workers: &str,
    group: &str,
) -> Result<f64, ValidationError> {
    for one in cases.iter().filter(|one| one.count(workers) == 1) {
        if words(&run.recipe()?.group, one)? == group {
            return speed_alone(run, one);
        }
    }
    Err(ValidationError::Data(format!("{}: no run of one worker for {group}", run.set)))
}

fn method(run: &Run<'_>, scenario: &Scenario) -> Result<&'static dyn Method, ValidationError> {
    Ok(match &run.recipe()?.method {
        Some(name) => methods::named(name)?,
        None => methods::choose(scenario)?,
    })
}

/// The speed at which one worker has its published throughput. A part of the step is inversely proportional to the
/// speed, the rest does not depend on it; two predictions give both parts.
fn speed_alone(run: &Run<'_>, one: &Value) -> Result<f64, ValidationError> {
    let recipe = run.recipe()?;
    let predicted = |speed: f64| -> Result<(Seconds, f64), ValidationError> {
        let mut row = one.clone();
        row["speed"] = json!(speed);
        let mut file = recipe.scenario_file(&row)?;
        file.strategy.architecture = Some(Architecture::StandAlone);
        let scenario = file.resolve()?;
        let prediction = method(run, &scenario)?.predict(&scenario)?;
        Ok((prediction.iteration, prediction.samples as f64))
    };
    let ((once, samples), (twice, _)) = (predicted(1.0)?, predicted(2.0)?);
    let divided = (once - twice) * 2.0;
    let measured = SamplesPerSec::new(one.number(&recipe.measured)).time_for(samples);
    Ok(divided / (measured - (once - divided)))
}
