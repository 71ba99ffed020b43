//! Every printed and measured figure with its predictions, and their errors.

use super::bounds::{self, Bounds};
use super::calibrated::Calibration;
use super::data::{self, Config, PrintedCell};
use super::{NAME, published};
use crate::{BoundCheck, ValidationError};
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::quantity::{InBaseUnits, Seconds};

/// Operations of a network, recomputed: one row of Table 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperationCount {
    /// The preset.
    pub model: String,
    /// Forward operations of one sample, recomputed.
    pub forward: u64,
    /// As the authors' workbook has them.
    pub published_forward: u64,
    /// Backward operations of one iteration, recomputed.
    pub backward: u64,
    /// As the authors' workbook has them.
    pub published_backward: u64,
    /// Whether both agree to the integer, and with print to five digits.
    pub exact: bool,
}

/// One cell of Tables 2-7 and its predictions.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellPrediction {
    /// Number of the table.
    pub table: u8,
    /// Network.
    pub model: String,
    /// Machines.
    pub config: Config,
    /// Samples per worker and step.
    pub batch: u32,
    /// Predicted time as printed.
    #[serde(rename = "printed_s")]
    #[serde_as(as = "InBaseUnits")]
    pub printed: Seconds,
    /// Recomputed with the authors' inputs.
    #[serde(rename = "authors_s")]
    #[serde_as(as = "InBaseUnits")]
    pub authors: Seconds,
    /// Recomputed with the printed formulas.
    #[serde(rename = "literal_s")]
    #[serde_as(as = "InBaseUnits")]
    pub literal: Seconds,
    /// Predicted by the calibrated model, fitted on the other networks.
    #[serde(rename = "calibrated_s")]
    #[serde_as(as = "InBaseUnits")]
    pub calibrated: Seconds,
    /// Share of the step in which workers compute, by the calibrated model.
    pub computing_share: f64,
    /// Measured time.
    #[serde(rename = "measured_s")]
    #[serde_as(as = "InBaseUnits")]
    pub measured: Seconds,
    /// Accuracy as printed.
    pub printed_accuracy: f64,
    /// 1 − |PT − MT| / PT, which Tables 2, 4 and 5 print.
    pub accuracy_over_pt: f64,
    /// 1 − |PT − MT| / MT, which Tables 6 and 7 print.
    pub accuracy_over_mt: f64,
    /// Whether the authors' inputs give the printed time within the bound.
    pub reproduced: bool,
    /// "misprint", "typed", or nothing.
    pub note: String,
}

/// One measured time of the workbook and its predictions.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepPoint {
    /// Machines.
    pub config: Config,
    /// Network.
    pub model: String,
    /// Samples per worker and step.
    pub batch: u32,
    /// Predicted by the calibrated model, fitted on the other networks.
    #[serde(rename = "calibrated_s")]
    #[serde_as(as = "InBaseUnits")]
    pub calibrated: Seconds,
    /// Predicted by the printed formulas.
    #[serde(rename = "literal_s")]
    #[serde_as(as = "InBaseUnits")]
    pub literal: Seconds,
    /// Measured time.
    #[serde(rename = "measured_s")]
    #[serde_as(as = "InBaseUnits")]
    pub measured: Seconds,
}

/// Errors of the three models on one table or sweep, in percent of the measured time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableErrors {
    /// The table or sweep: "table4", "tables4-7", "workbook, E5-2620".
    pub set: String,
    /// Number of cells.
    pub cells: usize,
    /// Mean and worst of the printed formulas.
    pub literal: [f64; 2],
    /// Mean and worst of the authors' inputs; none for the workbook's sweeps.
    pub authors: Option<[f64; 2]>,
    /// Mean and worst of the calibrated model.
    pub calibrated: [f64; 2],
}

/// All predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TablePredictions {
    /// Table 1.
    pub table1: Vec<OperationCount>,
    /// Tables 2-7.
    pub cells: Vec<CellPrediction>,
    /// The workbook's batch sweeps.
    pub sweeps: Vec<SweepPoint>,
    /// Errors by table and sweep.
    pub errors: Vec<TableErrors>,
    /// The fitted coefficients, by the network that was left out; the last ones are fitted on all networks.
    pub calibrations: Vec<Calibration>,
    /// The bounds, checked.
    pub bounds: Vec<BoundCheck>,
}

impl TablePredictions {
    /// Whether every bound is kept.
    pub fn holds(&self) -> bool {
        self.bounds.iter().all(|bound| bound.holds)
    }
}

/// Networks of Tables 2-7.
const MODELS: [&str; 5] = ["alexnet", "vgg11", "vgg16", "vgg19", "resnet50"];

/// Predicts every figure.
pub fn predict() -> Result<TablePredictions, ValidationError> {
    let bounds: Bounds = crate::bounds::of(NAME)?;
    let (published_cells, workbook) = (data::cells()?, data::workbook()?);
    let mut calibrations = Vec::new();
    for left_out in MODELS.map(Some).into_iter().chain([None]) {
        calibrations.push(Calibration::fit(left_out, &workbook, &published_cells)?);
    }
    let without = |model: &str| {
        let found = calibrations.iter().find(|calibration| calibration.left_out.as_deref() == Some(model));
        found.ok_or_else(|| ValidationError::Data(format!("no calibration without {model}")))
    };

    let table1 = data::counts()?.into_iter().map(operation_count).collect::<Result<Vec<_>, _>>()?;
    let mut cells = Vec::new();
    for cell in &published_cells {
        cells.push(cell_prediction(cell, without(&cell.model)?, bounds.cells.within)?);
    }
    let mut sweeps = Vec::new();
    for row in &workbook {
        sweeps.push(SweepPoint {
            config: row.config,
            model: row.model.clone(),
            batch: row.batch,
            calibrated: without(&row.model)?.predict(&row.model, row.config, row.batch)?,
            literal: published::literal(&row.model, row.config, row.batch)?,
            measured: Seconds::new(row.mt),
        });
    }
    let errors = errors(&cells, &sweeps);
    let bounds = bounds::check(&bounds, &table1, &cells, &errors);
    Ok(TablePredictions { table1, cells, sweeps, errors, calibrations, bounds })
}

fn operation_count(count: data::PrintedCount) -> Result<OperationCount, ValidationError> {
    let model = stepcast_core::model::zoo::build(&count.model)
        .map_err(|error| ValidationError::Data(error.to_string()))?;
    let operations = published::operations(&model);
    let (forward, backward) = (operations.forward.get() as u64, operations.backward.get() as u64);
    let as_printed = |value: u64, print: f64| (value as f64 / print - 1.0).abs() <= 5e-5;
    let exact = forward == count.forward
        && backward == count.backward
        && as_printed(forward, count.print_forward)
        && as_printed(backward, count.print_backward);
    Ok(OperationCount {
        model: count.model,
        forward,
        published_forward: count.forward,
        backward,
        published_backward: count.backward,
        exact,
    })
}

fn cell_prediction(
    cell: &PrintedCell,
    calibration: &Calibration,
    within: Seconds,
) -> Result<CellPrediction, ValidationError> {
    let authors = published::authors(cell)?;
    let calibrated = calibration.prediction(&cell.model, cell.config, cell.batch)?;
    let (printed, measured) = (Seconds::new(cell.pt), Seconds::new(cell.mt));
    Ok(CellPrediction {
        table: cell.table,
        model: cell.model.clone(),
        config: cell.config,
        batch: cell.batch,
        printed,
        authors,
        literal: published::literal(&cell.model, cell.config, cell.batch)?,
        calibrated: calibrated.iteration,
        computing_share: calibrated.scaling_factor,
        measured,
        printed_accuracy: cell.accuracy,
        accuracy_over_pt: 1.0 - (cell.pt - cell.mt).abs() / cell.pt,
        accuracy_over_mt: 1.0 - (cell.pt - cell.mt).abs() / cell.mt,
        reproduced: (authors.get() - printed.get()).abs() <= within.get(),
        note: cell.note.clone(),
    })
}

/// Mean and worst absolute error in percent.
fn mean_and_worst(pairs: impl Iterator<Item = (Seconds, Seconds)>) -> [f64; 2] {
    let errors: Vec<f64> =
        pairs.map(|(predicted, measured)| 100.0 * (predicted / measured - 1.0).abs()).collect();
    let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    [mean, errors.iter().copied().fold(0.0, f64::max)]
}

fn errors(cells: &[CellPrediction], sweeps: &[SweepPoint]) -> Vec<TableErrors> {
    let tables = (2..=7u8).map(|table| (format!("table{table}"), table..=table));
    let together = [("tables4-7".to_owned(), 4..=7u8)];
    let mut rows: Vec<TableErrors> = Vec::new();
    for (set, numbers) in tables.chain(together) {
        let chosen: Vec<&CellPrediction> =
            cells.iter().filter(|cell| numbers.contains(&cell.table)).collect();
        let of = |time: fn(&CellPrediction) -> Seconds| {
            mean_and_worst(chosen.iter().map(|cell| (time(cell), cell.measured)))
        };
        rows.push(TableErrors {
            set,
            cells: chosen.len(),
            literal: of(|cell| cell.literal),
            authors: Some(of(|cell| cell.authors)),
            calibrated: of(|cell| cell.calibrated),
        });
    }
    for config in Config::ALL {
        let chosen: Vec<&SweepPoint> = sweeps.iter().filter(|row| row.config == config).collect();
        let of = |time: fn(&SweepPoint) -> Seconds| {
            mean_and_worst(chosen.iter().map(|row| (time(row), row.measured)))
        };
        rows.push(TableErrors {
            set: format!("workbook, {config}"),
            cells: chosen.len(),
            literal: of(|row| row.literal),
            authors: None,
            calibrated: of(|row| row.calibrated),
        });
    }
    rows
}
