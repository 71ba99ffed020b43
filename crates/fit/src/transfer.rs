//! Times of transfers by their size, from columns bytes and a time: a line, or a logarithm up to a threshold and a line
//! from there.

use crate::measurements::{MeasurementFile, Split};
use crate::report::{FitErrorRow, FitErrors, FitReport, artefact, stopped};
use crate::{FitError, Quality, nnls_while};
use std::path::Path;
use stepcast_core::fault::Fault;
use stepcast_core::fitted::artefact::ArtefactKind;
use stepcast_core::fitted::transfer::{LogLinear, TransferCurve, TransferModel};
use stepcast_core::method::{CancelCheck, Stopped};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// Names of the coefficients of a line, in the order of the columns of a fit.
const COEFFICIENTS: [&str; 2] = ["bandwidth", "startup"];

/// Size and time of a transfer.
pub type Transfer = (Bytes, Seconds);

/// Work budget of a fit, in transfers read: it limits how many bends are tried.
const MOST_WORK: usize = 50_000_000;

/// Fewest bends that are tried for any number of transfers.
const FEWEST_BENDS: usize = 16;

/// The curve with the smaller median error; the line where no bend can be determined. Bends are tried at every measured
/// size, or at as many of them as time allows; a given threshold is the only bend. The fit can be cancelled.
pub fn fit(
    measured: &[Transfer],
    threshold: Option<Bytes>,
    wanted: &CancelCheck<'_>,
) -> Result<TransferCurve, FitError> {
    if let Some(threshold) = threshold {
        let bent = LogLinear::fit(threshold, measured).map(TransferCurve::LogLinear);
        return bent.ok_or(FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0] });
    }
    let mut best = line(measured, wanted)?;
    let error =
        |curve: &TransferCurve| quality(curve, measured).map_or(f64::INFINITY, |quality| quality.median);
    let mut least = error(&best);
    for bend in bends(measured) {
        if wanted().is_break() {
            return Err(FitError::Cancelled);
        }
        let Some(bent) = LogLinear::fit(bend, measured).map(TransferCurve::LogLinear) else { continue };
        let own = error(&bent);
        if own < least {
            (best, least) = (bent, own);
        }
    }
    Ok(best)
}

/// Sizes at which bends are tried: all in the order in which they were measured or, of too many, some from the smallest
/// to the largest.
pub fn bends(measured: &[Transfer]) -> Vec<Bytes> {
    let mut sizes: Vec<Bytes> = measured.iter().map(|(size, _)| *size).collect();
    let most = (MOST_WORK / measured.len().max(1)).max(FEWEST_BENDS);
    if sizes.len() <= most {
        return sizes;
    }
    sizes.sort_by(|a, b| a.get().total_cmp(&b.get()));
    (0..most).map(|place| sizes[place * (sizes.len() - 1) / (most - 1)]).collect()
}

/// α and β by relative errors.
fn line(measured: &[Transfer], wanted: &CancelCheck<'_>) -> Result<TransferCurve, FitError> {
    let row = |(size, time): &Transfer| vec![size.get() / time.get(), time.get().recip()];
    let rows: Vec<Vec<f64>> = measured.iter().map(row).collect();
    let fit = nnls_while(&rows, &vec![1.0; measured.len()], wanted)?;
    if fit.coefficients[0] <= 0.0 {
        return Err(FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0] });
    }
    let bandwidth = BytesPerSec::new(fit.coefficients[0].recip());
    Ok(TransferCurve::Line { startup: Seconds::new(fit.coefficients[1]), bandwidth })
}

fn quality(curve: &TransferCurve, measured: &[Transfer]) -> Option<Quality> {
    Quality::from_pairs(measured.iter().map(|(size, time)| (curve.time(*size), *time)))
}

fn read(path: &Path, wanted: &CancelCheck<'_>) -> Result<Split<Transfer>, Stopped> {
    let file = MeasurementFile::read(path, wanted)?;
    let (bytes, times) = (file.column("bytes")?, file.time_column()?);
    file.split(wanted, |row| {
        let transfer = (Bytes::new(row.amount(bytes)?), row.time(times)?);
        Ok((format!("a transfer of {} bytes", transfer.0.get()), transfer))
    })
}

/// Fits the transfers of `data`, with a bend at `threshold` if that is given; `test`, if given, replaces its held-out
/// rows.
pub fn run(
    data: &Path,
    test: Option<&Path>,
    threshold: Option<Bytes>,
    date: String,
    wanted: &CancelCheck<'_>,
) -> Result<FitReport, Stopped> {
    let measured = read(data, wanted)?;
    let test = test.map(|test| read(test, wanted)).transpose()?;
    let Split { fit: measured, held } = measured.tested_with(test);
    let curve = fit(&measured, threshold, wanted).map_err(|error| {
        match threshold.filter(|_| error != FitError::Cancelled) {
            Some(threshold) => {
                let reason =
                    format!("a curve with a bend at {} does not fit its transfers", threshold.human());
                let remedy =
                    "give a threshold with several measured sizes below and above it, or leave it out";
                Fault::in_file(data.display().to_string(), reason, remedy).into()
            }
            None => stopped(data, "the transfer", &error, &COEFFICIENTS),
        }
    })?;
    let extreme = |pick: fn(Bytes, Bytes) -> Bytes| measured.iter().map(|(size, _)| *size).reduce(pick);
    let (least, most) = (extreme(Bytes::min), extreme(Bytes::max));
    let (Some(on_fit), Some(least), Some(most)) = (quality(&curve, &measured), least, most) else {
        let name = data.display().to_string();
        return Err(Fault::in_file(name, "it holds no transfers to fit", "add fit rows").into());
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
    let artefact = artefact(ArtefactKind::Transfer, data, measured.len(), &date, &errors, &model)?;
    let rows = FitErrorRow::rows("transfer", &errors).collect();
    Ok(FitReport { rows, left_out: Vec::new(), notes, artefact })
}
