//! `stepcast validate`: published figures recomputed, measured ones predicted, bounds kept.
//!
//! The list of sets is in `study::validate`; a new one needs a rendering here.

use super::{json, plot};
use crate::args::Validate;
use crate::render::{
    Screen, ddp_gloo as ddp_gloo_text, hkbu as hkbu_text, liu2022 as liu2022_text,
    published as published_text, steps as steps_text, tf_ps as tf_ps_text, validation,
    validation_table as table_text,
};
use crate::{Answer, End};
use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fault::KeyPath;
use stepcast_report::adapters;
use stepcast_study::predict::interval::Case;
use stepcast_validation::{Options, Report, ValidationError, table};

/// Where measurements lie that are not in the binary, unless `--data` says otherwise.
const DATA: &str = "validation";

pub(super) fn run(flags: &Validate, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    flags.plot.as_deref().map(plot::check).transpose()?;
    let Some(name) = flags.set.as_deref() else { return all(flags, as_json, screen) };
    let name = stepcast_validation::set(name)?;
    let options =
        Options { data: flags.data.as_deref(), held_out: flags.held_out, gemm: flags.gemm.as_deref() };
    let report =
        with_progress(|progress| stepcast_validation::run(name, options, progress))?.map_err(failed)?;
    let cases = if flags.plot.is_some() { report.cases().map_err(failed)? } else { Vec::new() };
    let note = draw(flags, &cases, screen)?;
    let text = match as_json {
        true => json(&serde_json::Map::from_iter([(name.to_owned(), serde_json::to_value(&report)?)]))?.text,
        false => render(&report, screen) + &note,
    };
    Ok(Answer { text, end: end(report.holds()) })
}

fn render(report: &Report, screen: &Screen) -> String {
    match report {
        Report::Zeng2023(report) => validation::render(report, screen),
        Report::Liu2022(report) => liu2022_text::render(report, screen),
        Report::Hkbu(report) => hkbu_text::render(report, screen),
        Report::Published(report) => published_text::render(report, screen),
        Report::TfPs(report) => tf_ps_text::render(report, screen),
        Report::DdpGloo(report) => ddp_gloo_text::render(report, screen),
        Report::Steps(report) => steps_text::render(report, screen),
    }
}

fn failed(error: ValidationError) -> anyhow::Error {
    match error {
        ValidationError::Fault(fault) if fault.key == KeyPath::root() => fault.into(),
        error => anyhow::Error::new(error).context(FAILED),
    }
}

/// Every set whose data are at hand, in one table.
fn all(flags: &Validate, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let folder = flags.data.as_deref().unwrap_or(Path::new(DATA));
    let table = with_progress(|progress| table::run(folder, progress))?.map_err(failed)?;
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
fn draw(flags: &Validate, cases: &[Case], screen: &Screen) -> Result<String, Fault> {
    let Some(path) = &flags.plot else { return Ok(String::new()) };
    if cases.is_empty() {
        let remedy = "draw another set, or leave --plot out";
        return Err(Fault::new("nothing of this set was measured: there is nothing to draw", remedy)
            .at(format!("--plot {}", path.display())));
    }
    plot::write(path, &adapters::predicted_measured(cases).svg())?;
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

fn write(path: &Path, flag: &str, text: &str) -> Result<(), Fault> {
    stepcast_trace::write_text(path, text)
        .map_err(|error| Fault::new(error.reason, error.remedy).at(format!("{flag} {}", path.display())))
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
