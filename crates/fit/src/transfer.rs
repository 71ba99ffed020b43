//! Times of transfers by their size: a line, or a logarithm up to a threshold and a line from there.

use crate::artefact::{Errors, Provenance};
use crate::{FitError, Quality, nnls};
use serde::{Deserialize, Serialize};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::transfer::LogLinear;

const KIND: &str = "transfer";
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

/// A fitted curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum TransferCurve {
    /// α + D/β.
    Line {
        /// α.
        startup: Seconds,
        /// β.
        bandwidth: BytesPerSec,
    },
    /// Eq. 18 of Liu 2022.
    LogLinear(LogLinear),
}

impl TransferCurve {
    /// The curve with the smaller median error; the line where a bend is not told.
    pub fn fit(measured: &[Transfer]) -> Result<Self, FitError> {
        let line = Self::line(measured)?;
        let bent =
            measured.iter().filter_map(|(size, _)| LogLinear::fit(*size, measured)).map(Self::LogLinear);
        let error = |curve: &Self| curve.quality(measured).map_or(f64::INFINITY, |quality| quality.median);
        let best = bent.min_by(|a, b| error(a).total_cmp(&error(b)));
        Ok(best.filter(|bent| error(bent) < error(&line)).unwrap_or(line))
    }

    /// α and β by relative errors.
    pub fn line(measured: &[Transfer]) -> Result<Self, FitError> {
        let row = |(size, time): &Transfer| vec![size.get() / time.get(), time.get().recip()];
        let rows: Vec<Vec<f64>> = measured.iter().map(row).collect();
        let fit = nnls(&rows, &vec![1.0; measured.len()])?;
        if fit.coefficients[0] <= 0.0 {
            return Err(FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0] });
        }
        let bandwidth = BytesPerSec::new(fit.coefficients[0].recip());
        Ok(Self::Line { startup: Seconds::new(fit.coefficients[1]), bandwidth })
    }

    /// Time of `size` bytes.
    pub fn time(&self, size: Bytes) -> Seconds {
        match self {
            Self::Line { .. } if size <= Bytes::ZERO => Seconds::ZERO,
            Self::Line { startup, bandwidth } => *startup + size / *bandwidth,
            Self::LogLinear(curve) => curve.time(size),
        }
    }

    /// Errors on some transfers.
    pub fn quality(&self, measured: &[Transfer]) -> Option<Quality> {
        Quality::of(measured.iter().map(|(size, time)| (self.time(*size), *time)))
    }
}

/// What an artefact holds of a curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TransferEntry {
    /// Smallest measured transfer.
    pub least: Bytes,
    /// Largest measured transfer.
    pub most: Bytes,
    /// What was fitted.
    pub coefficients: TransferCurve,
    /// How well.
    pub errors: Errors,
}

#[derive(Serialize)]
struct File<'a> {
    kind: &'a str,
    provenance: Provenance,
    curve: &'a TransferEntry,
}

/// The text of a TOML file with a fitted curve.
pub fn to_toml(curve: &TransferEntry, source: String, date: String) -> Result<String, toml::ser::Error> {
    let provenance = Provenance::new(FORMULA, source, date, &MEANING);
    toml::to_string(&File { kind: KIND, provenance, curve })
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
        assert!(TransferCurve::fit(&measured).unwrap().quality(&measured).unwrap().worst < 1e-6);
        let threshold = Bytes::new(65536.0);
        let truth =
            LogLinear::continuous(threshold, Seconds::new(4e-6), BytesPerSec::new(2e9), Seconds::new(5e-5));
        let measured: Vec<Transfer> = sizes().map(|size| (size, truth.time(size))).collect();
        let found = TransferCurve::fit(&measured).unwrap();
        assert!(matches!(found, TransferCurve::LogLinear(_)), "{found:?}");
        assert!(found.quality(&measured).unwrap().worst < 1e-6);
    }

    #[test]
    fn one_size_tells_no_line() {
        let same = [(Bytes::new(8.0), Seconds::new(1.0)); 3];
        assert!(matches!(TransferCurve::fit(&same), Err(FitError::Collinear { .. })));
    }
}
