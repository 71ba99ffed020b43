//! `stepcast validate`: published figures are recomputed, measured runs are predicted, bounds are checked.

use super::{json, plot, signal};
use crate::args::Validate;
use crate::render::{Screen, validation as render};
use crate::{Answer, End};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_validation::{Observer, Options, Progress, ValidationError, find, overview, predicted_measured};

/// Folder of the measurements that are not in the binary, unless `--data` names another one.
const DATA: &str = "validation";

pub(super) fn run(flags: &Validate, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    flags.plot.as_deref().map(plot::check).transpose()?;
    let Some(name) = flags.set.as_deref() else { return all(flags, as_json, screen) };
    let set = find(name)?;
    let options =
        Options { data: flags.data.as_deref(), held_out: flags.held_out, gemm: flags.gemm.as_deref() };
    let report = match with_progress(|observer| set.run(&options, observer)) {
        Err(ValidationError::Cancelled) => return Ok(signal::stopped(STOPPED)),
        outcome => outcome.map_err(failed)?,
    };
    let note = draw(flags, || report.plot(), screen)?;
    let text = if as_json { json(&report)?.text } else { render::report(&report, screen) + &note };
    Ok(Answer { text, end: end(report.holds) })
}

fn failed(error: ValidationError) -> Fault {
    match error {
        ValidationError::Fault(fault) if fault.key == KeyPath::root() => fault,
        error => Fault::new(format!("the validation could not run: {error}"), ""),
    }
}

/// Every set whose data are available, in one table.
fn all(flags: &Validate, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let folder = flags.data.as_deref().unwrap_or(Path::new(DATA));
    let overview = match with_progress(|observer| overview::run(folder, observer)) {
        Err(ValidationError::Cancelled) => return Ok(signal::stopped(STOPPED)),
        outcome => outcome.map_err(failed)?,
    };
    if let Some(path) = &flags.markdown {
        write(path, "--markdown", &overview.markdown())?;
    }
    if let Some(path) = &flags.errors {
        write(path, "--errors", &overview.errors_csv().map_err(failed)?)?;
    }
    let drawing = || (!overview.cases.is_empty()).then(|| predicted_measured(&overview.cases).svg());
    let note = draw(flags, drawing, screen)?;
    let text = if as_json { json(&overview)?.text } else { render::overview(&overview, screen) + &note };
    Ok(Answer { text, end: end(overview.holds()) })
}

/// Draws the runs if `--plot` is given; the text that says so.
fn draw(
    flags: &Validate,
    drawing: impl FnOnce() -> Option<String>,
    screen: &Screen,
) -> Result<String, Fault> {
    let Some(path) = &flags.plot else { return Ok(String::new()) };
    let Some(svg) = drawing() else {
        let remedy = "draw another set, or leave --plot out";
        return Err(Fault::new("nothing of this set was measured: there is nothing to draw", remedy)
            .at(format!("--plot {}", path.display())));
    };
    plot::write(path, &svg)?;
    Ok(plot::note(path, screen))
}

fn end(holds: bool) -> End {
    if holds { End::Done } else { End::BoundMissed }
}

fn write(path: &Path, flag: &str, text: &str) -> Result<(), Fault> {
    signal::whole(|| stepcast_trace::write_text(path, text))
        .map_err(|error| Fault::new(error.reason, error.remedy).at(format!("{flag} {}", path.display())))
}

/// Shows how many points of the longest set are done.
fn with_progress<T>(run: impl FnOnce(&Observer<'_>) -> T) -> T {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{pos} of {len} points {wide_bar} {eta} left") {
        bar.set_style(style);
    }
    signal::listen(STOPPED);
    let outcome = run(&|progress| {
        if let Progress::Points { done, of } = progress {
            bar.set_length(of as u64);
            bar.set_position(done as u64);
        }
        signal::wanted()
    });
    bar.finish_and_clear();
    outcome
}

/// Said if Ctrl-C comes before all points are done.
const STOPPED: &str = "Stopped before the validation was done; nothing was written.";
