//! Coefficients of [`StepModel`] from measured steps.
//!
//! Classes of layers are fitted to the layers' own times, the host and the phases' factors to whole steps. The same data
//! give the same model.

mod artefact;
mod classes;
mod guess;
mod host;
mod judge;
mod row;
#[cfg(test)]
mod tests;

pub use artefact::{StepErrors, to_toml};
pub use judge::{Group, Judged, Moment, groups};

use crate::FitError;
use classes::{Fitted, Table};
use host::Host;
use row::Row;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stepcast_core::fitted::gemm::GemmModel;
use stepcast_core::fitted::steps::{
    Class, Coefficients, Nominal, Phase, PhaseModel, PrecisionModel, StepModel,
};
use stepcast_core::model::Model;
use stepcast_core::precision::Precision;
use stepcast_core::quantity::Seconds;

/// One measured step.
#[derive(Debug, Clone)]
pub struct MeasuredStep {
    /// What was trained.
    pub model: Arc<Model>,
    /// In which number format.
    pub precision: Precision,
    /// Samples of the step.
    pub batch: u32,
    /// Forward pass.
    pub forward: Seconds,
    /// Backward pass.
    pub backward: Seconds,
    /// The whole step.
    pub iteration: Seconds,
    /// Forward times of layers that were timed one by one, by name.
    pub leaves: BTreeMap<String, Seconds>,
    /// When gradients were ready, counted from the start of the backward pass, in order, with their layers' names.
    pub ready: Vec<(String, Seconds)>,
}

/// Measured steps, made ready to be fitted.
pub struct Recording<'a> {
    nominal: Nominal,
    products: Option<&'a GemmModel>,
    rows: Vec<Row<'a>>,
}

impl<'a> Recording<'a> {
    /// Of these steps; features are measured in `nominal`, and where matrix products were fitted by themselves, in their
    /// times.
    pub fn new(steps: &'a [MeasuredStep], nominal: Nominal, products: Option<&'a GemmModel>) -> Self {
        Self {
            nominal,
            products,
            rows: steps.iter().map(|step| Row::new(step, &nominal, products)).collect(),
        }
    }

    /// Fits the steps that `keep` is true of.
    pub fn fit(&self, keep: impl Fn(&MeasuredStep) -> bool) -> Result<StepModel, FitError> {
        let rows: Vec<&Row<'_>> = self.rows.iter().filter(|row| keep(row.step)).collect();
        let table = Table::fit(&rows, self.products.is_some())?;
        let host = Host::fit(&rows, &table, &self.nominal);
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

fn phase_model(table: &Table, precision: Precision, phase: Phase, factor: f64) -> PhaseModel {
    let coefficients = |class: Class| {
        let Fitted { values, clean } = table.of(class, precision, phase);
        let per = class.features(precision, phase, table.products()).iter().copied().zip(values).collect();
        (class, Coefficients { samples: clean, per })
    };
    PhaseModel { factor, class: Class::FITTED.into_iter().map(coefficients).collect() }
}
