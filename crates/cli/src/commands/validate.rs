//! `stepcast validate`: published figures recomputed, measured ones predicted, bounds kept.
//!
//! One list of sets; to add one, add it to [`sets`], an arm to [`run_set`] and a rendering, and to the table of all.

use super::{json, plot};
use crate::args::Validate;
use crate::render::error::Complaint;
use crate::render::{
    Screen, ddp_gloo as ddp_gloo_text, hkbu as hkbu_text, liu2022 as liu2022_text,
    published as published_text, steps as steps_text, tf_ps as tf_ps_text, validation,
    validation_table as table_text,
};
use crate::{Answer, End};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use serde_json::Value;
use std::path::Path;
use stepcast_core::suggest;
use stepcast_report::of;
use stepcast_study::fit::DataError;
use stepcast_study::interval::Case;
use stepcast_study::validate::{
    ValidationError, ddp_gloo, hkbu, liu2022, published, steps, table, tf_ps, zeng2023,
};
use stepcast_trace::TraceError;

/// Figures in the binary.
const ZENG2023: &str = "zeng2023";
const LIU2022: &str = "liu2022";
const HKBU: &str = "hkbu";
/// Measured runs in a folder.
const TF_PS: &str = "tf-ps";
/// Measured jobs in a file.
const DDP_GLOO: &str = "ddp-gloo";
/// Measured steps in a file.
const STEPS: &str = "steps";

/// Where measurements lie that are not in the binary, unless `--data` says otherwise.
const DATA: &str = "validation";

fn sets() -> Vec<&'static str> {
    let mut sets = vec![ZENG2023, LIU2022, HKBU];
    sets.extend(published::SETS);
    sets.extend([TF_PS, DDP_GLOO, STEPS]);
    sets
}

pub(super) fn run(flags: &Validate, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    flags.plot.as_deref().map(plot::check).transpose()?;
    let Some(set) = flags.set.as_deref() else { return all(flags, as_json, screen) };
    let sets = sets();
    let Some(set) = sets.iter().find(|known| **known == set) else {
        let list = format!("the sets are {}", sets.join(", "));
        let remedy = suggest::remedy(set, sets.iter().copied(), &list);
        return Err(Complaint::new(format!("there is no validation set \"{set}\""), remedy).into());
    };
    let outcome = run_set(set, flags, screen)?;
    let note = draw(flags, &outcome.cases, screen)?;
    let values = serde_json::Map::from_iter([((*set).to_owned(), outcome.value)]);
    let text = if as_json { json(&values)?.text } else { outcome.text + &note };
    Ok(Answer { text, end: end(outcome.holds) })
}

/// Every set whose data are at hand, in one table.
fn all(flags: &Validate, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let folder = flags.data.as_deref().unwrap_or(Path::new(DATA));
    let table = with_progress(|progress| table::run(folder, progress))?.map_err(|error| match error {
        ValidationError::Runs(error) => unreadable(error).into(),
        ValidationError::Measurements(error) => wrong(error).into(),
        error => anyhow::Error::new(error).context(FAILED),
    })?;
    if let Some(path) = &flags.markdown {
        write(path, "--markdown", &table_text::markdown(&table))?;
    }
    if let Some(path) = &flags.errors {
        write(path, "--errors", &errors_file(&table)?)?;
    }
    let note = draw(flags, &table.cases, screen)?;
    let text = if as_json { json(&table)?.text } else { table_text::render(&table, screen) + &note };
    Ok(Answer { text, end: end(table.holds()) })
}

/// Draws the runs if that is asked for, and says so.
fn draw(flags: &Validate, cases: &[Case], screen: &Screen) -> Result<String, Complaint> {
    let Some(path) = &flags.plot else { return Ok(String::new()) };
    if cases.is_empty() {
        let remedy = "draw another set, or leave --plot out";
        return Err(Complaint::new("nothing of this set was measured: there is nothing to draw", remedy)
            .at(format!("--plot {}", path.display())));
    }
    plot::write(path, &of::predicted_measured(cases).svg())?;
    Ok(plot::note(path, screen))
}

fn end(holds: bool) -> End {
    if holds { End::Done } else { End::BoundMissed }
}

/// The residuals as the file that intervals are made from.
fn errors_file(table: &table::Table) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(ERRORS_HEADER.as_bytes().to_vec());
    for row in &table.residuals {
        writer.serialize(row)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

const ERRORS_HEADER: &str = "\
# What methods got wrong on measured runs that they had not seen: ln(measured / predicted) of the throughput, by method,
# regime, set, and network or configuration. Made by `stepcast validate --errors validation/errors.csv`; the model error of
# every interval comes from here (docs/intervals.md). square: mean square, less that of what simulated runs differ by.
";

fn write(path: &Path, flag: &str, text: &str) -> Result<(), Complaint> {
    stepcast_trace::write_text(path, text)
        .map_err(|error| Complaint::new(error.reason, error.remedy).at(format!("{flag} {}", path.display())))
}

fn unreadable(error: TraceError) -> Complaint {
    Complaint::new(error.reason, error.remedy).at(error.place)
}

fn wrong(error: DataError) -> Complaint {
    Complaint::new(error.reason, error.remedy).at(error.place)
}

/// Shows how many points of the longest set are done.
fn with_progress<T>(run: impl FnOnce(&(dyn Fn(usize, usize) + Sync)) -> T) -> anyhow::Result<T> {
    let bar = ProgressBar::new(0).with_style(
        ProgressStyle::with_template("{pos} of {len} points {wide_bar} {eta} left")
            .context("progress bar")?,
    );
    let outcome = run(&|done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    Ok(outcome)
}

const FAILED: &str = "the validation could not run";

struct Outcome {
    cases: Vec<Case>,
    text: String,
    value: Value,
    holds: bool,
}

fn run_set(set: &str, flags: &Validate, screen: &Screen) -> anyhow::Result<Outcome> {
    match set {
        ZENG2023 => {
            let report = zeng2023::run().context(FAILED)?;
            outcome(validation::render(&report, screen), &report, report.holds(), report.cases()?)
        }
        LIU2022 => {
            let report = liu2022::run().context(FAILED)?;
            outcome(liu2022_text::render(&report, screen), &report, report.holds(), Vec::new())
        }
        HKBU => {
            let report = hkbu::run().context(FAILED)?;
            outcome(hkbu_text::render(&report, screen), &report, report.holds(), report.cases())
        }
        _ if published::SETS.contains(&set) => {
            let report = published::run(set).context(FAILED)?;
            outcome(published_text::render(&report, screen), &report, report.holds(), report.cases())
        }
        _ => run_measured(set, flags, screen),
    }
}

fn outcome(text: String, report: &impl Serialize, holds: bool, cases: Vec<Case>) -> anyhow::Result<Outcome> {
    Ok(Outcome { cases, text, value: serde_json::to_value(report)?, holds })
}

/// A set whose data are not in the binary.
fn run_measured(set: &str, flags: &Validate, screen: &Screen) -> anyhow::Result<Outcome> {
    let Some(data) = flags.data.as_deref() else {
        let what = if set == TF_PS { "FOLDER" } else { "FILE" };
        let remedy = format!("add --data {what}; docs/validation.md says what is in it");
        return Err(Complaint::new(format!("the measurements of {set} are not in the binary"), remedy).into());
    };
    if set == DDP_GLOO {
        let report = ddp_gloo::run(data).map_err(unreadable)?;
        return outcome(ddp_gloo_text::render(&report, screen), &report, report.holds(), report.cases());
    }
    if set == STEPS {
        let report = steps::run(data, flags.gemm.as_deref()).map_err(wrong)?;
        return outcome(steps_text::render(&report, screen), &report, report.holds(), report.cases());
    }
    let report =
        with_progress(|progress| tf_ps::run(data, tf_ps::Options { held_out: flags.held_out }, progress))?;
    let report = report.map_err(unreadable)?;
    outcome(tf_ps_text::render(&report, screen), &report, report.holds(), report.cases())
}
