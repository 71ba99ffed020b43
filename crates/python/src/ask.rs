//! One function for each command of the command line.

use crate::answer::{Answer, Content};
use crate::border::{interruptible, on_pool, until};
use crate::problem::Problem;
use crate::scenario::Scenario;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::MAX_WORKERS;
use stepcast_fit::streams::measure_link;
use stepcast_fit::{efficiency, gemm, kernels, machine, sprint, steps, today, transfer};
use stepcast_study::MethodChoice;
use stepcast_study::check::{self as checking, Known, Reading};
use stepcast_study::contract::{Outcome, Terms};
use stepcast_study::explore::search as searching;
use stepcast_study::explore::search::{Constraint, Effort, Goal};
use stepcast_study::explore::sweep::Axis;
use stepcast_study::predict::compare::Comparison;
use stepcast_study::{ForecastOptions, Observer, Progress, forecast, fuse as fusion};
use stepcast_trace::{Options, usual_name};

/// Largest number of rows of a scaling table.
const MAX_POINTS: usize = 4096;

fn checked(mut workers: Vec<u32>) -> Result<Vec<u32>, Problem> {
    workers.sort_unstable();
    workers.dedup();
    if let Some(wrong) = workers.iter().find(|&&workers| !(1..=MAX_WORKERS).contains(&workers.into())) {
        let reason = format!("a number of workers is from 1 to {MAX_WORKERS}, not {wrong}");
        return Err(Problem::input(reason, "use numbers such as [1, 2, 4, 8]").at_key("workers"));
    }
    if workers.len() > MAX_POINTS {
        let reason = format!("more than {MAX_POINTS} numbers of workers");
        return Err(Problem::input(reason, "give fewer, such as [1, 2, 4, 8]").at_key("workers"));
    }
    Ok(workers)
}

/// A forecast of one scenario by one method.
#[pyfunction]
pub(crate) fn predict(
    py: Python<'_>,
    scenario: Py<Scenario>,
    method: &str,
    workers: Option<Vec<u32>>,
    worth: f64,
) -> PyResult<Answer> {
    if !(0.0..=10.0).contains(&worth) {
        let reason = format!("a gain is a share between 0 and 10, not {worth}");
        return Err(Problem::input(reason, "0.05 is 5 %").at_key("worth").into());
    }
    let choice = MethodChoice::named(method).map_err(Problem::from)?;
    let options = ForecastOptions { method: choice, workers: workers.map(checked).transpose()?, worth };
    let resolved = Arc::clone(&scenario.get().resolved);
    let forecast = interruptible(py, move |stop| {
        let watch = |_: Progress<'_>| until(stop);
        Ok(on_pool(None, || forecast(&scenario.get().request, &options, &Observer::watching(&watch)))?)
    })?;
    let name = resolved.name().to_owned();
    Ok(Answer { content: Content::Forecast { forecast: Box::new(forecast), scenario: resolved }, name })
}

/// Measured steps against the forecast of a scenario.
#[pyfunction]
pub(crate) fn check(
    py: Python<'_>,
    scenario: Py<Scenario>,
    method: &str,
    steps: Vec<f64>,
    steps_left: Option<u64>,
) -> PyResult<Answer> {
    if steps.is_empty() {
        return Err(Problem::input("no step was measured", "give times in seconds").at_key("steps").into());
    }
    if let Some(wrong) = steps.iter().find(|time| !(time.is_finite() && **time > 0.0)) {
        let reason = format!("{wrong} is no time of a step");
        return Err(Problem::input(reason, "give positive times in seconds").at_key("steps").into());
    }
    let choice = MethodChoice::named(method).map_err(Problem::from)?;
    let name = scenario.get().resolved.name().to_owned();
    let checked = interruptible(py, move |stop| {
        let request = &scenario.get().request;
        let method = request.method(choice)?;
        let readings: Vec<Reading> =
            steps.into_iter().map(|time| Reading::Step(Seconds::new(time))).collect();
        let watch = |_: Progress<'_>| until(stop);
        let known = Known { steps_left, ..Known::default() };
        Ok(on_pool(None, || checking::check(request, method, &readings, known, &watch))?)
    })?;
    Ok(Answer { content: Content::Check(Box::new(checked)), name })
}

/// Whether steps keep the terms of a contract, given as TOML: kept, broken or open.
#[pyfunction]
pub(crate) fn acceptance(terms: &str, steps: Vec<f64>) -> PyResult<&'static str> {
    let terms = Terms::from_toml("contract", terms).map_err(Problem::from)?;
    let steps: Vec<Seconds> = steps.into_iter().map(Seconds::new).collect();
    Ok(match terms.test(&steps).outcome {
        Outcome::Kept => "kept",
        Outcome::Broken => "broken",
        Outcome::Open => "open",
    })
}

/// Predictions of one scenario by every method.
#[pyfunction]
pub(crate) fn compare(py: Python<'_>, scenario: &Scenario, workers: Option<u32>) -> PyResult<Answer> {
    let workers = workers.map(|workers| checked(vec![workers])).transpose()?;
    let mut asked = scenario.resolved.as_ref().clone();
    let compared = interruptible(py, move |_| {
        if let Some(&[workers]) = workers.as_deref() {
            asked = asked.on(asked.cluster.resized(workers));
        }
        Ok(on_pool(None, || Comparison::new(&asked)))
    })?;
    Ok(Answer { content: Content::Comparison(Box::new(compared)), name: scenario.resolved.name().to_owned() })
}

/// The best tensor fusion.
#[pyfunction]
pub(crate) fn fuse(py: Python<'_>, scenario: Py<Scenario>) -> PyResult<Answer> {
    let name = scenario.get().resolved.name().to_owned();
    let report = interruptible(py, move |stop| {
        let request = scenario.get().request.about_fusion();
        let asked = request.scenario()?;
        let report = on_pool(None, || fusion::fuse_while(&asked, &|| until(stop)));
        Ok(report.map_err(|why| request.refused(why))?)
    })?;
    Ok(Answer { content: Content::Fusion(Box::new(report)), name })
}

/// The best configuration within constraints.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a flag of the command")]
pub(crate) fn search(
    py: Python<'_>,
    scenario: Py<Scenario>,
    minimize: &str,
    vary: Vec<String>,
    subject_to: Vec<String>,
    method: &str,
    how: Option<&str>,
    budget: Option<u64>,
    seed: u64,
    threads: Option<u16>,
) -> PyResult<Answer> {
    let unknown = |key: &str, reason: String| Problem::input(reason, "see docs/search.md").at_key(key);
    let objective = minimize.parse().map_err(|reason: String| unknown("minimize", reason))?;
    let how = how.map(str::parse).transpose().map_err(|reason: String| unknown("how", reason))?;
    let constraint = |text: &String| {
        let wrong = |fault: Fault| Problem::from(fault).at(format!("subject_to: {text}"));
        Constraint::parse(text).map_err(wrong)
    };
    let constraints = subject_to.iter().map(constraint).collect::<Result<_, _>>()?;
    let asked = MethodChoice::named(method).map_err(Problem::from)?;
    let axes = Axis::parse_all(&vary).map_err(Problem::from)?;
    let goal = Goal { objective, constraints };
    let name = scenario.get().resolved.name().to_owned();
    let report = interruptible(py, move |stop| {
        let variants = scenario.get().request.variants(axes)?;
        let effort = Effort { how, budget, seed };
        let found = on_pool(threads, || {
            searching::search(&variants, asked, &goal, effort, &|| until(stop), &mut |_| ())
        });
        Ok(found?)
    })?;
    Ok(Answer { content: Content::Search(report), name })
}

/// Fits an artefact to measurements.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a flag of the command")]
pub(crate) fn fit(
    py: Python<'_>,
    what: String,
    data: PathBuf,
    output: Option<PathBuf>,
    force: bool,
    test: Option<PathBuf>,
    device: Option<String>,
    multiprocessors: Option<u32>,
    gemm: Option<PathBuf>,
) -> PyResult<Answer> {
    let written = output.as_ref().map(|path| path.display().to_string());
    if let Some(path) = output.as_ref().filter(|path| path.exists() && !force) {
        let problem = Problem::input("it exists already", "choose another name, or use force=True");
        return Err(problem.at_key("output").at(path.display().to_string()).into());
    }
    let name = what.clone();
    let fitted = interruptible(py, move |stop| {
        let (test, gemm, date) = (test.as_deref(), gemm.as_deref(), today());
        let wanted = || until(stop);
        let fitted = on_pool(None, || match what.as_str() {
            "efficiency" => {
                let device = device.as_deref().ok_or_else(|| {
                    Problem::input("the device is missing", "name one of the catalog").at_key("device")
                })?;
                Ok(efficiency::run(&data, test, device, date, &wanted)?)
            }
            "gemm" => Ok(gemm::run(&data, test, multiprocessors, date, &wanted)?),
            "kernels" => Ok(kernels::run(&data, test, date, &wanted)?),
            "machine" => {
                let attention = machine::AttentionChoice::default();
                Ok(machine::run(&data, test, device.as_deref(), attention, date, &wanted)?)
            }
            "sprint" => Ok(sprint::run(&data, test, date, &wanted)?),
            "steps" => Ok(steps::run(&data, test, gemm, date, &wanted)?),
            "transfer" => Ok(transfer::run(&data, test, None, date, &wanted)?),
            _ => {
                let remedy = "use efficiency, gemm, kernels, machine, sprint, steps or transfer";
                Err(Problem::input(format!("there is no fit of \"{what}\""), remedy).at_key("what"))
            }
        })?;
        if let Some(path) = output.as_ref().filter(|_| until(stop).is_continue()) {
            fitted.write(path)?;
        }
        Ok(fitted)
    })?;
    Ok(Answer { content: Content::Fit { fitted, written }, name })
}

/// Imports recordings as a profile or a model.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "each is a flag of the command")]
pub(crate) fn import_trace(
    py: Python<'_>,
    files: Vec<PathBuf>,
    batch: Option<u32>,
    graphs: Option<PathBuf>,
    sizes: BTreeMap<String, u64>,
    name: Option<String>,
    output: Option<PathBuf>,
    max_memory: Option<u64>,
) -> PyResult<Answer> {
    let written = output.as_ref().map(|path| path.display().to_string());
    let name = name.or_else(|| files.first().and_then(|file| usual_name(file)));
    let called = name.clone();
    let imported = interruptible(py, move |stop| {
        let watch = |_: stepcast_trace::Progress| until(stop);
        let options = Options { batch, graphs: graphs.as_deref(), sizes: &sizes, watch: &watch, max_memory };
        let mut imported = stepcast_trace::import(&files, &options)?;
        measure_link(&mut imported);
        if let Some(name) = called {
            imported.content.rename(name);
        }
        if let Some(path) = output.as_ref().filter(|_| until(stop).is_continue()) {
            imported.content.write(path)?;
        }
        Ok(imported)
    })?;
    Ok(Answer { content: Content::Import { imported, written }, name: name.unwrap_or_default() })
}

/// Recomputes published figures and predicts measured runs.
#[pyfunction]
pub(crate) fn validate(
    py: Python<'_>,
    set: Option<&str>,
    data: Option<PathBuf>,
    held_out: bool,
    gemm: Option<PathBuf>,
) -> PyResult<Answer> {
    let content = match set {
        Some(name) => {
            let set =
                stepcast_validation::find(name).map_err(|fault| Problem::from(fault).in_argument("set"))?;
            Content::Validation(Box::new(interruptible(py, move |stop| {
                let options =
                    stepcast_validation::Options { data: data.as_deref(), held_out, gemm: gemm.as_deref() };
                Ok(on_pool(None, || set.run(&options, &|_| until(stop)))?)
            })?))
        }
        None => Content::Overview(interruptible(py, move |stop| {
            let folder = data.as_deref().unwrap_or(Path::new("validation"));
            Ok(on_pool(None, || stepcast_validation::overview::run(folder, &|_| until(stop)))?)
        })?),
    };
    Ok(Answer { content, name: set.unwrap_or("all sets").to_owned() })
}

/// Names of the methods, in order of preference.
#[pyfunction]
pub(crate) fn methods() -> Vec<&'static str> {
    stepcast_study::predict::methods::all().iter().map(|method| method.name()).collect()
}
