//! Kernels whose time is linear in the elements they touch: t = α·elements + β (Oyama 2016, eq. 5).

use crate::artefact::{self, FitErrors, Provenance};
use crate::{FitError, Quality, nnls_while};
use std::collections::BTreeMap;
use stepcast_core::fitted::artefact::Kind;
use stepcast_core::fitted::kernel::LinearKernel;
use stepcast_core::method::CancelCheck;
use stepcast_core::quantity::Seconds;

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

/// Fits the coefficients to relative errors, as long as that is wanted.
pub fn fit(runs: &[KernelRun], wanted: &CancelCheck<'_>) -> Result<LinearKernel, FitError> {
    let rows: Vec<Vec<f64>> =
        runs.iter().map(|run| vec![run.elements / run.time.get(), run.time.get().recip()]).collect();
    let fit = nnls_while(&rows, &vec![1.0; runs.len()], wanted)?;
    let extreme = |pick: fn(f64, f64) -> f64| runs.iter().map(|run| run.elements).reduce(pick);
    Ok(LinearKernel {
        per_element: Seconds::new(fit.coefficients[0]),
        start: Seconds::new(fit.coefficients[1]),
        least: extreme(f64::min).unwrap_or(0.0),
        most: extreme(f64::max).unwrap_or(0.0),
    })
}

/// Errors on some runs.
pub fn quality(kernel: &LinearKernel, runs: &[KernelRun]) -> Option<Quality> {
    Quality::from_pairs(runs.iter().map(|run| (kernel.time(run.elements).0, run.time)))
}

/// The text of a TOML file with fitted kernels, by name.
pub fn to_toml(
    kernels: &BTreeMap<String, LinearKernel>,
    errors: &BTreeMap<String, FitErrors>,
    source: String,
    date: String,
) -> Result<String, toml::ser::Error> {
    artefact::to_toml(Kind::Kernels, Provenance::new(FORMULA, source, date, &MEANING), errors, kernels)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::ControlFlow;
    use stepcast_core::method::never_cancelled;

    #[test]
    fn a_line_is_found_again() {
        let line = |elements: f64| KernelRun { elements, time: Seconds::new(2e-9 * elements + 5e-6) };
        let runs: Vec<KernelRun> = [1e3, 1e4, 1e5, 1e6].map(line).into();
        let kernel = fit(&runs, &never_cancelled).unwrap();
        assert!((kernel.per_element.get() / 2e-9 - 1.0).abs() < 1e-9, "{kernel:?}");
        assert!((kernel.start.get() / 5e-6 - 1.0).abs() < 1e-9, "{kernel:?}");
        assert!(!kernel.time(1e7).1);
        assert!(quality(&kernel, &runs).unwrap().worst < 1e-9);
    }

    #[test]
    fn one_size_cannot_tell_two_coefficients() {
        let same = [KernelRun { elements: 8.0, time: Seconds::new(1.0) }; 4];
        let expected = FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0, 1] };
        assert_eq!(fit(&same, &never_cancelled), Err(expected));
    }

    #[test]
    fn what_is_no_longer_wanted_ends() {
        let same = [KernelRun { elements: 8.0, time: Seconds::new(1.0) }; 4];
        assert_eq!(fit(&same, &|| ControlFlow::Break(())), Err(FitError::Cancelled));
    }
}
