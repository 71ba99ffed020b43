//! Faults of fits.

use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::method::Stopped;
use stepcast_fit::FitError;

/// A fit that is no longer wanted, or measurements that do not determine the coefficients called `names`.
pub(super) fn stopped(path: &Path, what: &str, error: &FitError, names: &[&str]) -> Stopped {
    let (reason, remedy) = match error {
        FitError::Cancelled => return Stopped::Cancelled,
        FitError::TooFew { rows, .. } => (
            format!("{what} has {rows} measurements, too few to determine {}", names.join(" and ")),
            format!("measure at least {} different sizes", names.len() + 1),
        ),
        FitError::Collinear { undetermined, .. } => {
            let confused: Vec<&str> =
                undetermined.iter().filter_map(|&place| names.get(place).copied()).collect();
            (
                format!("the measurements of {what} cannot distinguish {}", confused.join(" from ")),
                "measure sizes that differ by a factor of ten or more".to_owned(),
            )
        }
        FitError::BadRow { row } => {
            (format!("measurement {row} of {what} is not finite"), "check its numbers".to_owned())
        }
    };
    Fault::in_file(path.display().to_string(), reason, remedy).into()
}

/// The artefact cannot be printed: an error of this program.
pub(super) fn unprintable(path: &Path, error: &dyn std::error::Error) -> Fault {
    Fault::in_file(path.display().to_string(), format!("the fit cannot be written: {error}"), "report this")
}
