//! Coefficients of [`StepModel`] from measured steps.
//!
//! Classes of layers are fitted to the layers' own times, the host and the phases' factors to whole steps. The same data
//! give the same model.

mod artefact;
mod classes;
mod comparison;
mod guess;
mod host;
mod measured;
mod prepared;
#[cfg(test)]
mod tests;

pub use artefact::{StepErrors, to_toml};
pub use comparison::{StepComparison, StepGroup, StepPart, groups};

pub use measured::MeasuredStep;

use crate::FitError;
use classes::{ClassCoefficients, CoefficientTable};
use host::Host;
use prepared::PreparedStep;
use std::collections::BTreeSet;
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::{
    Class, Coefficients, Nominal, Phase, PhaseModel, PrecisionModel, StepModel,
};
use stepcast_core::method::CancelCheck;
use stepcast_core::precision::Precision;

/// Measured steps, made ready to be fitted.
pub struct PreparedSteps<'a> {
    nominal: Nominal,
    products: Option<&'a GemmModel>,
    rows: Vec<PreparedStep<'a>>,
}

impl<'a> PreparedSteps<'a> {
    /// Of these steps; features are measured in `nominal`, and where matrix products were fitted by themselves, in their
    /// times.
    pub fn new(steps: &'a [MeasuredStep], nominal: Nominal, products: Option<&'a GemmModel>) -> Self {
        Self {
            nominal,
            products,
            rows: steps.iter().map(|step| PreparedStep::new(step, &nominal, products)).collect(),
        }
    }

    /// Fits the steps that `keep` is true of.
    pub fn fit(
        &self,
        keep: impl Fn(&MeasuredStep) -> bool,
        wanted: &CancelCheck<'_>,
    ) -> Result<StepModel, FitError> {
        let rows: Vec<&PreparedStep<'_>> = self.rows.iter().filter(|row| keep(row.step)).collect();
        let table = CoefficientTable::fit(&rows, self.products.is_some(), wanted)?;
        let host = Host::fit(&rows, &table, &self.nominal, wanted)?;
        let measured: BTreeSet<Precision> = rows.iter().map(|row| row.step.precision).collect();
        let of = |precision| {
            let [forward, backward] = host.factors(precision);
            let forward = phase_model(&table, precision, Phase::Forward, forward);
            let batches = rows.iter().filter(|row| row.step.precision == precision).map(|row| row.step.batch);
            PrecisionModel {
                batches: [batches.clone().min().unwrap_or(0), batches.max().unwrap_or(0)],
                forward,
                backward: phase_model(&table, precision, Phase::Backward, backward),
            }
        };
        Ok(StepModel {
            nominal: self.nominal,
            launch: host.costs(),
            precision: measured.into_iter().map(|precision| (precision, of(precision))).collect(),
            products: self.products.cloned(),
        })
    }
}

fn phase_model(table: &CoefficientTable, precision: Precision, phase: Phase, factor: f64) -> PhaseModel {
    let coefficients = |class: Class| {
        let ClassCoefficients { values, clean } = table.get(class, precision, phase);
        let per = class.features(precision, phase, table.products()).iter().copied().zip(values).collect();
        (class, Coefficients { samples: clean, per })
    };
    PhaseModel { factor, class: Class::FITTED.into_iter().map(coefficients).collect() }
}
