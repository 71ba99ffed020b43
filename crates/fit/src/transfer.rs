//! Times of transfers by their size: a line, or a logarithm up to a threshold and a line from there.

use crate::artefact::{self, FitErrors, Provenance};
use crate::{FitError, Quality, nnls};
use stepcast_core::fitted::artefact::Kind;
use stepcast_core::fitted::transfer::{LogLinear, TransferCurve, TransferModel};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

const FORMULA: &str = "line: time = startup + size / bandwidth; log-linear (Liu 2022, eq. 18): \
time = below + per_doubling * log2(size) below threshold, overhead + size / bandwidth from there on";
const MEANING: [(&str, &str); 6] = [
    ("bandwidth", "rate of large transfers"),
    ("below", "time of one byte"),
    ("overhead", "time beside the bytes of a large transfer"),
    ("per-doubling", "time for each doubling of a small transfer"),
    ("startup", "time whatever the size"),
    ("threshold", "size from which on a transfer is large"),
];
/// Names of the coefficients of a line, in the order of the columns of a fit.
pub const COEFFICIENTS: [&str; 2] = ["bandwidth", "startup"];

/// One measured transfer.
pub type Transfer = (Bytes, Seconds);

/// The curve with the smaller median error; the line where no bend can be determined.
pub fn fit(measured: &[Transfer]) -> Result<TransferCurve, FitError> {
    let line = line(measured)?;
    let bent =
        measured.iter().filter_map(|(size, _)| LogLinear::fit(*size, measured)).map(TransferCurve::LogLinear);
    let error =
        |curve: &TransferCurve| quality(curve, measured).map_or(f64::INFINITY, |quality| quality.median);
    let best = bent.min_by(|a, b| error(a).total_cmp(&error(b)));
    Ok(best.filter(|bent| error(bent) < error(&line)).unwrap_or(line))
}

/// α and β by relative errors.
pub fn line(measured: &[Transfer]) -> Result<TransferCurve, FitError> {
    let row = |(size, time): &Transfer| vec![size.get() / time.get(), time.get().recip()];
    let rows: Vec<Vec<f64>> = measured.iter().map(row).collect();
    let fit = nnls(&rows, &vec![1.0; measured.len()])?;
    if fit.coefficients[0] <= 0.0 {
        return Err(FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0] });
    }
    let bandwidth = BytesPerSec::new(fit.coefficients[0].recip());
    Ok(TransferCurve::Line { startup: Seconds::new(fit.coefficients[1]), bandwidth })
}

/// Errors on some transfers.
pub fn quality(curve: &TransferCurve, measured: &[Transfer]) -> Option<Quality> {
    Quality::from_pairs(measured.iter().map(|(size, time)| (curve.time(*size), *time)))
}

/// The text of a TOML file with a fitted curve.
pub fn to_toml(
    model: &TransferModel,
    errors: &FitErrors,
    source: String,
    date: String,
) -> Result<String, toml::ser::Error> {
    artefact::to_toml(Kind::Transfer, Provenance::new(FORMULA, source, date, &MEANING), errors, model)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes() -> impl Iterator<Item = Bytes> {
        (6..28).map(|power| Bytes::new(f64::from(power).exp2()))
    }

    #[test]
    fn lines_and_bends_are_found_again() {
        let truth = TransferCurve::Line { startup: Seconds::new(3e-5), bandwidth: BytesPerSec::new(1e9) };
        let measured: Vec<Transfer> = sizes().map(|size| (size, truth.time(size))).collect();
        assert!(quality(&fit(&measured).unwrap(), &measured).unwrap().worst < 1e-6);
        let threshold = Bytes::new(65536.0);
        let truth =
            LogLinear::continuous(threshold, Seconds::new(4e-6), BytesPerSec::new(2e9), Seconds::new(5e-5));
        let measured: Vec<Transfer> = sizes().map(|size| (size, truth.time(size))).collect();
        let found = fit(&measured).unwrap();
        assert!(matches!(found, TransferCurve::LogLinear(_)), "{found:?}");
        assert!(quality(&found, &measured).unwrap().worst < 1e-6);
    }

    #[test]
    fn one_size_tells_no_line() {
        let same = [(Bytes::new(8.0), Seconds::new(1.0)); 3];
        assert!(matches!(fit(&same), Err(FitError::Collinear { .. })));
    }
}
