//! `stepcast fit`: fits an artefact to measurements and reports its errors.

use super::json;
use crate::Answer;
use crate::args::{Fit, FitFiles};
use crate::render::fit as text;
use crate::render::screen::Screen;
use indicatif::ProgressBar;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_study::fit::{efficiency, gemm, kernels, steps, today, transfer};

pub(super) fn run(what: &Fit, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let (Fit::Efficiency { files, .. }
    | Fit::Gemm { files, .. }
    | Fit::Kernels { files }
    | Fit::Steps { files, .. }
    | Fit::Transfer { files }) = what;
    let FitFiles { data, output, test, force } = files;
    let written = output.display().to_string();
    if output.exists() && !force {
        let remedy = "choose another name, or add --force to overwrite it";
        return Err(Fault::new("the file exists already", remedy).at(format!("-o {written}")).into());
    }
    let progress = ProgressBar::new_spinner().with_message("fitting");
    progress.enable_steady_tick(Duration::from_millis(100));
    let (test, date) = (test.as_deref(), today());
    let fitted = match what {
        Fit::Efficiency { device, .. } => efficiency::run(data, test, device, date),
        Fit::Gemm { multiprocessors, .. } => gemm::run(data, test, *multiprocessors, date),
        Fit::Kernels { .. } => kernels::run(data, test, date),
        Fit::Steps { gemm, .. } => steps::run(data, test, gemm.as_deref(), date),
        Fit::Transfer { .. } => transfer::run(data, test, date),
    };
    progress.finish_and_clear();
    let fitted = fitted?;
    fitted
        .write(output)
        .map_err(|error| Fault::new(error.reason, error.remedy).at(format!("-o {written}")))?;
    if as_json {
        return json(&fitted.summary(Some(&written)));
    }
    Ok(text::render(&fitted, &written, screen).into())
}
