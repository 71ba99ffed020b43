//! `stepcast fit`: fits an artefact to measurements and reports its errors.

use super::busy::busy;
use super::{json, signal, unexpected};
use crate::Answer;
use crate::args::{Fit, FitArtefact, FitAttention, FitFiles};
use crate::render::answers;
use crate::render::screen::Screen;
use crate::render::table;
use indicatif::ProgressBar;
use std::time::Duration;
use stepcast_core::fault::Fault;
use stepcast_core::method::Stopped;
use stepcast_fit::machine::AttentionChoice;
use stepcast_fit::{efficiency, gemm, kernels, machine, steps, today, transfer};
use stepcast_validation::ValidationError;
use stepcast_validation::priors::refit;

/// Said if Ctrl-C comes before a fit is done.
const STOPPED: &str = "Stopped before the fit was done; nothing was written.";

pub(super) fn run(what: &Fit, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    match what {
        Fit::Artefact(what) => artefact(what, as_json, screen),
        Fit::Priors { left_out } => priors(*left_out, as_json, screen),
    }
}

/// Fits an artefact to measurements.
fn artefact(what: &FitArtefact, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let (FitArtefact::Efficiency { files, .. }
    | FitArtefact::Gemm { files, .. }
    | FitArtefact::Kernels { files }
    | FitArtefact::Machine { files, .. }
    | FitArtefact::Steps { files, .. }
    | FitArtefact::Transfer { files }) = what;
    let FitFiles { data, output, test, force } = files;
    let written = output.display().to_string();
    if output.exists() && !force {
        let remedy = "choose another name, or add --force to overwrite it";
        return Err(Fault::new("the file exists already", remedy).at(format!("-o {written}")));
    }
    let (test, date) = (test.as_deref(), today());
    signal::listen(STOPPED);
    let fitted = busy("fitting", || match what {
        FitArtefact::Efficiency { device, .. } => efficiency::run(data, test, device, date, &signal::wanted),
        FitArtefact::Gemm { multiprocessors, .. } => {
            gemm::run(data, test, *multiprocessors, date, &signal::wanted)
        }
        FitArtefact::Kernels { .. } => kernels::run(data, test, date, &signal::wanted),
        FitArtefact::Machine { device, attention, .. } => {
            let attention = match attention {
                FitAttention::Default => AttentionChoice::Default,
                FitAttention::Flash => AttentionChoice::Flash,
            };
            machine::run(data, test, device.as_deref(), attention, date, &signal::wanted)
        }
        FitArtefact::Steps { gemm, .. } => steps::run(data, test, gemm.as_deref(), date, &signal::wanted),
        FitArtefact::Transfer { .. } => transfer::run(data, test, date, &signal::wanted),
    });
    let fitted = match fitted {
        Ok(fitted) => fitted,
        Err(Stopped::Cancelled) => return Ok(signal::stopped(STOPPED)),
        Err(Stopped::Fault(fault)) => return Err(fault),
    };
    signal::whole(|| fitted.write(output))
        .map_err(|error| Fault::new(error.reason, error.remedy).at(format!("-o {written}")))?;
    if as_json {
        return json(&fitted.summary(Some(&written)));
    }
    Ok(answers::fit(&fitted, &written, screen).into())
}

/// Refits the priors to the published runs that come with the program.
fn priors(left_out: bool, as_json: bool, screen: &Screen) -> Result<Answer, Fault> {
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(100));
    signal::listen(STOPPED);
    let refits = refit(left_out, &|what| spinner.set_message(format!("fitting {what}")), &signal::wanted);
    spinner.finish_and_clear();
    let refits = match refits {
        Err(ValidationError::Cancelled) => return Ok(signal::stopped(STOPPED)),
        refits => refits.map_err(unexpected)?,
    };
    if as_json {
        return json(&refits);
    }
    let tables = refits.iter().flat_map(stepcast_validation::priors::tables);
    Ok(tables.map(|table| table::section(&table, screen)).collect::<Vec<_>>().join("\n").into())
}
