//! Cells of the tables as cases: the calibrated model, and the printed formulas.

use super::calibrated::layout;
use super::predictions::{CellPrediction, TablePredictions};
use crate::ValidationError;
use stepcast_core::machine::catalog;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::strategy::Architecture;
use stepcast_study::predict::interval::{Case, Limit, Machines, Pace, Regime};

impl TablePredictions {
    /// Every cell, predicted by the calibrated model without its own network.
    pub(super) fn cases(&self) -> Result<Vec<Case>, ValidationError> {
        self.cells.iter().map(|cell| case(cell, "layerwise", cell.calibrated)).collect()
    }

    /// Every cell, predicted by the printed formulas.
    pub(super) fn other_cases(&self) -> Result<Vec<Case>, ValidationError> {
        self.cells.iter().map(|cell| case(cell, "zeng2023", cell.literal)).collect()
    }
}

fn case(cell: &CellPrediction, method: &str, predicted: Seconds) -> Result<Case, ValidationError> {
    let alone = cell.config.is_stand_alone();
    let workers = cell.config.devices().len() as u32;
    let samples = f64::from(cell.batch * workers);
    let bandwidth = catalog::network(cell.config.network())?.bandwidth;
    Ok(Case {
        set: super::NAME,
        group: cell.model.clone(),
        method: method.to_owned(),
        regime: Regime {
            architecture: if alone { Architecture::StandAlone } else { Architecture::ParameterServer },
            pace: Pace::Synchronous,
            limit: Limit::of(cell.computing_share),
            machines: if alone { Machines::One } else { Machines::Several },
        },
        workers,
        bandwidth: (!alone).then_some(bandwidth),
        parameters: zoo::build(layout(&cell.model)).ok().map(|model| model.parameters()),
        predicted: SamplesPerSec::from_time(samples, predicted),
        measured: SamplesPerSec::from_time(samples, cell.measured),
        run_spread: 0.0,
    })
}
