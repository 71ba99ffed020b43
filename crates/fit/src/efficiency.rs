//! Shares of a device's rates that training reaches, from measured steps.
//!
//! Two figures: time = fixed + compute/share + memory/share, with the times that operations and weights take at the full
//! rates. One figure: time = operations/(share·rate). Both by least squares on relative errors. No weight moves faster
//! than memory does, so that the share of the memory rate is at most 1; fast convolutions lift that of the peak rate above.

use crate::artefact::{self, FitErrors, Provenance};
use crate::{FitError, Quality, nnls_while};
use std::collections::BTreeMap;
use stepcast_core::compute::ASSUMED_MEMORY_EFFICIENCY;
use stepcast_core::fitted::artefact::Kind;
use stepcast_core::fitted::efficiency::EfficiencyModel;
use stepcast_core::method::CancelCheck;
use stepcast_core::quantity::Seconds;

const FORMULA: &str = "\
step = 3 * forward operations * batch / (compute * peak) + 32 B * parameters / (memory * memory_rate); \
zeng2023 (eqs. 27, 28, 33): step = (forward operations * batch + 85 * weights) / (zeng2023 * rate), \
rate = clock * units on a GPU, 2 * clock on a CPU";
const MEANING: [(&str, &str); 6] = [
    ("compute", "share of the peak rate that training reaches"),
    ("memory", "share of the memory rate that the work on every weight reaches"),
    ("zeng2023", "share of the rate of Zeng 2023 that training reaches"),
    ("peak", "peak rate of the device by its data sheet"),
    ("memory-rate", "memory rate of the device by its data sheet"),
    ("device", "the device whose rates these are shares of"),
];
/// Names of the two figures, in the order of the columns of a fit.
pub const COEFFICIENTS: [&str; 2] = ["compute", "memory"];

/// Least share of a measured step that is computing, where the work on weights seems to take all of it.
const LEAST_COMPUTING: f64 = 0.05;

/// A measured step, and what its parts would take at the full rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepWork {
    /// Time that does not depend on the shares: copies.
    pub fixed: Seconds,
    /// All operations at the peak rate.
    pub compute: Seconds,
    /// The work on every weight at the memory rate.
    pub memory: Seconds,
    /// The whole step as measured.
    pub measured: Seconds,
}

/// Shares of the peak rate and of the memory rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoShares {
    /// Of the peak rate.
    pub compute: f64,
    /// Of the memory rate.
    pub memory: f64,
}

impl TwoShares {
    /// Fits both, as long as that is wanted. Steps that do not tell them apart, such as a single one, give the share of the
    /// peak rate; that of the memory rate is then assumed.
    pub fn fit(steps: &[StepWork], wanted: &CancelCheck<'_>) -> Result<Self, FitError> {
        match Self::fit_both(steps, wanted) {
            Err(FitError::TooFew { .. } | FitError::Collinear { .. }) if !steps.is_empty() => {
                Self::with_memory(steps, ASSUMED_MEMORY_EFFICIENCY, wanted)
            }
            fitted => fitted,
        }
    }

    /// The share of the peak rate that fits best if the share of the memory rate is `memory`.
    fn with_memory(steps: &[StepWork], memory: f64, wanted: &CancelCheck<'_>) -> Result<Self, FitError> {
        let left = |step: &StepWork| {
            let rest = step.measured - step.fixed - step.memory / memory;
            (step.compute, rest.max(step.measured * LEAST_COMPUTING))
        };
        Ok(Self { compute: one_share(&steps.iter().map(left).collect::<Vec<_>>(), wanted)?, memory })
    }

    fn fit_both(steps: &[StepWork], wanted: &CancelCheck<'_>) -> Result<Self, FitError> {
        let row = |step: &StepWork| vec![step.compute / step.measured, step.memory / step.measured];
        let rows: Vec<Vec<f64>> = steps.iter().map(row).collect();
        // What weights take beyond the full rate is never negative.
        let target = |step: &StepWork| (step.measured - step.fixed - step.memory) / step.measured;
        let fit = nnls_while(&rows, &steps.iter().map(target).collect::<Vec<f64>>(), wanted)?;
        if fit.coefficients[0] <= 0.0 {
            return Err(FitError::Collinear { rank: 1, columns: 2, undetermined: vec![0] });
        }
        Ok(Self { compute: fit.coefficients[0].recip(), memory: (1.0 + fit.coefficients[1]).recip() })
    }

    /// The step that they make.
    pub fn time(&self, step: &StepWork) -> Seconds {
        step.fixed + step.compute / self.compute + step.memory / self.memory
    }

    /// Errors on some steps.
    pub fn quality(&self, steps: &[StepWork]) -> Option<Quality> {
        Quality::from_pairs(steps.iter().map(|step| (self.time(step), step.measured)))
    }
}

/// The one share of steps that take pairs of (time at the full rate, measured time).
pub fn one_share(steps: &[(Seconds, Seconds)], wanted: &CancelCheck<'_>) -> Result<f64, FitError> {
    let rows: Vec<Vec<f64>> = steps.iter().map(|(full, measured)| vec![*full / *measured]).collect();
    Ok(nnls_while(&rows, &vec![1.0; rows.len()], wanted)?.coefficients[0].recip())
}

/// The text of a TOML file with fitted shares; `errors` by what they are of.
pub fn to_toml(
    model: &EfficiencyModel,
    errors: &BTreeMap<String, FitErrors>,
    source: String,
    date: String,
) -> Result<String, toml::ser::Error> {
    artefact::to_toml(Kind::Efficiency, Provenance::new(FORMULA, source, date, &MEANING), errors, model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepcast_core::method::never_cancelled;

    fn steps(compute: f64, memory: f64) -> Vec<StepWork> {
        let step = |(flops, bytes): (f64, f64)| {
            let [fixed, work, moved] = [0.01, flops, bytes].map(Seconds::new);
            let measured = fixed + work / compute + moved / memory;
            StepWork { fixed, compute: work, memory: moved, measured }
        };
        [(1.0, 0.1), (2.0, 0.1), (4.0, 0.1), (1.0, 0.3), (8.0, 0.3)].map(step).into()
    }

    #[test]
    fn two_shares_are_found_again() {
        let found = TwoShares::fit(&steps(0.6, 0.25), &never_cancelled).unwrap();
        assert!((found.compute - 0.6).abs() < 1e-9 && (found.memory - 0.25).abs() < 1e-9, "{found:?}");
        assert!(found.quality(&steps(0.6, 0.25)).unwrap().worst < 1e-9);
    }

    /// Weights that seem to move faster than memory are held at its rate, and the rest goes to computing.
    #[test]
    fn memory_is_never_faster_than_its_rate() {
        let found = TwoShares::fit(&steps(0.6, 4.0), &never_cancelled).unwrap();
        assert!((found.memory - 1.0).abs() < 1e-12 && found.compute > 0.6, "{found:?}");
    }

    /// min Σ (x/(s·t) − 1)²: 1/s = Σ x/t / Σ (x/t)².
    #[test]
    fn one_share_has_a_closed_form() {
        let pairs = [(1.0, 2.0), (3.0, 4.0), (2.0, 10.0)].map(|(x, t)| (Seconds::new(x), Seconds::new(t)));
        let ratios = pairs.map(|(x, t)| x / t);
        let expected = ratios.map(|r| r * r).iter().sum::<f64>() / ratios.iter().sum::<f64>();
        assert!((one_share(&pairs, &never_cancelled).unwrap() - expected).abs() < 1e-12);
    }

    #[test]
    fn one_kind_of_step_tells_the_share_of_the_peak_rate() {
        for same in [vec![steps(0.6, 0.5)[0]; 4], vec![steps(0.6, 0.5)[0]]] {
            let found = TwoShares::fit(&same, &never_cancelled).unwrap();
            assert!((found.compute - 0.6).abs() < 1e-9, "{found:?}");
            assert!((found.memory - ASSUMED_MEMORY_EFFICIENCY).abs() < 1e-12);
        }
        assert!(TwoShares::fit(&[], &never_cancelled).is_err());
    }
}
