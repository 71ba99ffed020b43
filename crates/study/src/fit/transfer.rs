//! Measured transfers: columns bytes and a time.

use super::fault::{stopped, unprintable};
use super::measured::MeasurementFile;
use super::report::{FitErrorRow, FitReport, source};
use std::collections::BTreeSet;
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::transfer::{TransferCurve, TransferModel};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::quantity::Bytes;
use stepcast_fit::artefact::FitErrors;
use stepcast_fit::transfer::{COEFFICIENTS, Transfer, fit as fit_curve, quality, to_toml};

#[derive(Default)]
struct Transfers {
    fit: Vec<Transfer>,
    held: Vec<Transfer>,
}

fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Transfers, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let bytes = file.column("bytes")?;
    let (times, set) = (file.time_column()?, file.optional_column("set"));
    let mut transfers = Transfers::default();
    let mut seen = BTreeSet::new();
    for row in file.rows(wanted) {
        let row = row?;
        let transfer = (Bytes::new(row.amount(bytes)?), row.time(times)?);
        let held = row.is_held(set)?;
        if !seen.insert((held, transfer.0.get().to_bits())) {
            return Err(row.duplicate(&format!("a transfer of {} bytes", transfer.0.get())).into());
        }
        if held { transfers.held.push(transfer) } else { transfers.fit.push(transfer) }
    }
    Ok(transfers)
}

/// Fits the transfers of `data`; those of `test`, if given, are tested with instead of its held rows.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let Transfers { fit, mut held } = read(data, wanted)?;
    if let Some(test) = test {
        let other = read(test, wanted)?;
        held = [other.fit, other.held].concat();
    }
    let fit_fault = |error| stopped(data, "the transfer", &error, &COEFFICIENTS);
    let curve = fit_curve(&fit, wanted).map_err(fit_fault)?;
    let extreme = |pick: fn(Bytes, Bytes) -> Bytes| fit.iter().map(|(size, _)| *size).reduce(pick);
    let (least, most) = (extreme(Bytes::min), extreme(Bytes::max));
    let (Some(on_fit), Some(least), Some(most)) = (quality(&curve, &fit), least, most) else {
        return Err(Fault::in_file(
            data.display().to_string(),
            "it holds no transfers to fit",
            "add fit rows",
        )
        .into());
    };
    let errors = FitErrors { fit: on_fit, held: quality(&curve, &held) };
    let outside = held.iter().filter(|(size, _)| *size < least || *size > most).count();
    let mut notes = vec![match curve {
        TransferCurve::Line { startup, bandwidth } => {
            format!("A line: {} and {}.", startup.human(), bandwidth.human())
        }
        TransferCurve::LogLinear(_) => "A logarithm for small transfers, a line for large ones.".to_owned(),
    }];
    if outside > 0 {
        notes.push(format!("{outside} held transfers are outside the fitted sizes: extrapolated."));
    }
    let model = TransferModel { least, most, curve };
    let artefact =
        to_toml(&model, &errors, source(data, fit.len()), date).map_err(|error| unprintable(data, &error))?;
    let rows = FitErrorRow::rows("transfer", &errors).collect();
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}
