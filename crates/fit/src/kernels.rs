//! Kernels whose time is linear in the elements they touch: t = α·elements + β (Oyama 2016, eq. 5).

use crate::artefact::{Errors, Provenance};
use crate::{FitError, Quality, nnls};
use serde::{Deserialize, Serialize};
use stepcast_core::quantity::Seconds;

const KIND: &str = "kernels";
const FORMULA: &str = "time = per_element * elements + start";
const MEANING: [(&str, &str); 2] =
    [("per-element", "time for each element touched"), ("start", "time whatever the number of elements")];
/// Names of the coefficients, in the order of the columns of a fit.
pub const COEFFICIENTS: [&str; 2] = ["per-element", "start"];

/// One measured run of a kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelRun {
    /// Elements touched.
    pub elements: f64,
    /// Time of the run.
    pub time: Seconds,
}

/// A fitted kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinearKernel {
    /// α.
    pub per_element: Seconds,
    /// β.
    pub start: Seconds,
    /// Fewest elements that were measured.
    pub least: f64,
    /// Most elements that were measured.
    pub most: f64,
}

impl LinearKernel {
    /// Fits the coefficients to relative errors.
    pub fn fit(runs: &[KernelRun]) -> Result<Self, FitError> {
        let rows: Vec<Vec<f64>> =
            runs.iter().map(|run| vec![run.elements / run.time.get(), run.time.get().recip()]).collect();
        let fit = nnls(&rows, &vec![1.0; runs.len()])?;
        let extreme = |pick: fn(f64, f64) -> f64| runs.iter().map(|run| run.elements).reduce(pick);
        Ok(Self {
            per_element: Seconds::new(fit.coefficients[0]),
            start: Seconds::new(fit.coefficients[1]),
            least: extreme(f64::min).unwrap_or(0.0),
            most: extreme(f64::max).unwrap_or(0.0),
        })
    }

    /// The time for `elements`, and whether that many lie within what was measured.
    pub fn time(&self, elements: f64) -> (Seconds, bool) {
        (self.per_element * elements + self.start, (self.least..=self.most).contains(&elements))
    }

    /// Errors on some runs.
    pub fn quality(&self, runs: &[KernelRun]) -> Option<Quality> {
        Quality::of(runs.iter().map(|run| (self.time(run.elements).0, run.time)))
    }
}

/// One kernel in an artefact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KernelEntry {
    /// What it is called.
    pub name: String,
    /// What was fitted.
    pub coefficients: LinearKernel,
    /// How well.
    pub errors: Errors,
}

#[derive(Serialize)]
struct File<'a> {
    kind: &'a str,
    provenance: Provenance,
    kernel: &'a [KernelEntry],
}

/// The text of a TOML file with fitted kernels.
pub fn to_toml(kernels: &[KernelEntry], source: String, date: String) -> Result<String, toml::ser::Error> {
    let provenance = Provenance::new(FORMULA, source, date, &MEANING);
    toml::to_string(&File { kind: KIND, provenance, kernel: kernels })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_again() {
        let line = |elements: f64| KernelRun { elements, time: Seconds::new(2e-9 * elements + 5e-6) };
        let runs: Vec<KernelRun> = [1e3, 1e4, 1e5, 1e6].map(line).into();
        let kernel = LinearKernel::fit(&runs).unwrap();
        assert!((kernel.per_element.get() / 2e-9 - 1.0).abs() < 1e-9, "{kernel:?}");
        assert!((kernel.start.get() / 5e-6 - 1.0).abs() < 1e-9, "{kernel:?}");
        assert!(!kernel.time(1e7).1);
        assert!(kernel.quality(&runs).unwrap().worst < 1e-9);
    }

    #[test]
    fn one_size_cannot_tell_two_coefficients() {
        let same = [KernelRun { elements: 8.0, time: Seconds::new(1.0) }; 4];
        let expected = FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0, 1] };
        assert_eq!(LinearKernel::fit(&same), Err(expected));
    }
}
