//! `stepcast fit`: measurements to a fitted artefact, and how well it does.

use super::json;
use crate::Answer;
use crate::args::{Fit, FitFiles};
use crate::render::error::Complaint;
use crate::render::{Screen, fit as text};
use indicatif::ProgressBar;
use serde_json::json;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stepcast_study::fit::{DataError, Fitted, efficiency, gemm, kernels, steps, transfer};

pub(super) fn run(what: &Fit, as_json: bool, screen: &Screen) -> anyhow::Result<Answer> {
    let (Fit::Efficiency { files, .. }
    | Fit::Gemm { files, .. }
    | Fit::Kernels { files }
    | Fit::Steps { files, .. }
    | Fit::Transfer { files }) = what;
    let FitFiles { data, output, test, force } = files;
    let written = output.display().to_string();
    if output.exists() && !force {
        let remedy = "choose another name, or add --force to write over it";
        return Err(Complaint::new("it exists already", remedy).at(format!("-o {written}")).into());
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
    let fitted =
        fitted.map_err(|DataError { place, reason, remedy }| Complaint::new(reason, remedy).at(place))?;
    write(output, &fitted).map_err(|error| {
        let remedy = "check that the folder exists and can be written to";
        Complaint::new(error.to_string(), remedy).at(format!("-o {written}"))
    })?;
    if as_json {
        return json(
            &json!({ "written": written, "errors": fitted.rows, "left-out": fitted.left_out, "notes": fitted.notes }),
        );
    }
    Ok(text::render(&fitted, &written, screen).into())
}

/// Writes beside and then renames, so that the artefact is never half written.
fn write(path: &Path, fitted: &Fitted) -> io::Result<()> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.ok_or_else(|| io::Error::other("it is not the name of a file"))?;
    let beside = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
    let written = std::fs::write(&beside, &fitted.artefact).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // The reason is what counts; that the rest could not be removed would hide it.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

/// The date in Greenwich: year-month-day.
fn today() -> String {
    let days = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Year, month and day of a number of days since 1970-01-01, by eras of 400 years from March on (Hinnant 2013).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_454), (2026, 1, 1));
    }
}
