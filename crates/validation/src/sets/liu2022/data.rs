//! The figures of `validation/liu2022/`, embedded.

use crate::ValidationError;
use crate::embedded::{Fraction, json, rows};
use serde::Deserialize;
use stepcast_validation_data::liu2022::{CALIBRATION, FUSION, MODELS, TABLES};

/// `[liu2022]` of `validation/bounds.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    pub(super) deviation: Deviations,
    pub(super) print: Print,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Deviations {
    pub(super) fusion: f64,
    pub(super) models: f64,
    pub(super) calibration: f64,
    pub(super) tables: f64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Print {
    pub(super) rows: usize,
}

/// Four layers, from the input (1) to the output (n), and their exact solutions.
#[derive(Debug, Deserialize)]
pub(super) struct FusionCase {
    pub(super) t_backward_layer1_to_n: Vec<Fraction>,
    #[serde(rename = "D")]
    pub(super) sizes: Vec<Fraction>,
    #[serde(rename = "Q")]
    pub(super) buffer: Fraction,
    pub(super) timeout: Fraction,
    pub(super) sec_per_byte: Fraction,
    pub(super) delta: Fraction,
    pub(super) plain: Solution,
    pub(super) fusion_corrected: Solution,
    pub(super) fusion_concurrent_wait: Solution,
    pub(super) fusion_printed: Solution,
}

/// One reading of a case, by layer from the input on.
#[derive(Debug, Deserialize)]
pub(super) struct Solution {
    #[serde(rename = "B")]
    pub(super) buffered: Option<Vec<Fraction>>,
    #[serde(rename = "F")]
    pub(super) flushed: Option<Vec<Fraction>>,
    pub(super) t_wait: Option<Vec<Fraction>>,
    pub(super) tau: Option<Vec<Fraction>>,
    pub(super) start: Option<Vec<Fraction>>,
    #[serde(rename = "Tu")]
    pub(super) update: Fraction,
    #[serde(rename = "Tc")]
    pub(super) computing: Fraction,
    #[serde(rename = "To")]
    pub(super) overlap: Fraction,
    #[serde(rename = "OSF")]
    pub(super) factor: Fraction,
}

/// A network on some machines.
#[derive(Debug, Deserialize)]
pub(super) struct ModelCase {
    pub(super) model: String,
    #[serde(rename = "M_over_c")]
    pub(super) samples: f64,
    #[serde(rename = "N")]
    pub(super) workers: u32,
    #[serde(rename = "beta_Bps")]
    pub(super) bandwidth: f64,
    #[serde(rename = "pi")]
    pub(super) rate: f64,
    #[serde(rename = "delta_s")]
    pub(super) overhead: f64,
    #[serde(rename = "s")]
    pub(super) element: f64,
    #[serde(rename = "OSF")]
    pub(super) osf: f64,
    #[serde(rename = "CSF")]
    pub(super) csf: f64,
    #[serde(rename = "T_comp")]
    pub(super) computing: f64,
    #[serde(rename = "T_update")]
    pub(super) update: f64,
    #[serde(rename = "T_overlap")]
    pub(super) overlap: f64,
    #[serde(rename = "T_comm")]
    pub(super) communication: f64,
}

/// Batch and overhead for which VGG16 has the paper's scaling factor.
#[derive(Debug, Deserialize)]
pub(super) struct CalibrationCase {
    #[serde(rename = "delta_ms")]
    pub(super) overhead: f64,
    #[serde(rename = "M_over_c_2flopMAC")]
    pub(super) samples: f64,
    #[serde(rename = "OSF_VGG16")]
    pub(super) osf: f64,
    #[serde(rename = "CSF_VGG16")]
    pub(super) csf: f64,
    #[serde(rename = "OSF_VGG16_replaced")]
    pub(super) osf_replaced: f64,
    #[serde(rename = "CSF_replaced")]
    pub(super) csf_replaced: f64,
}

/// A figure of Table 2 or 3.
#[derive(Debug, Deserialize)]
pub(super) struct TableCase {
    pub(super) table: String,
    pub(super) row: String,
    pub(super) field: String,
    pub(super) published: f64,
    pub(super) recomputed: f64,
}

pub(super) fn fusion() -> Result<Vec<FusionCase>, ValidationError> {
    json(FUSION)
}

pub(super) fn models() -> Result<Vec<ModelCase>, ValidationError> {
    rows(MODELS)
}

pub(super) fn calibration() -> Result<Vec<CalibrationCase>, ValidationError> {
    rows(CALIBRATION)
}

pub(super) fn tables() -> Result<Vec<TableCase>, ValidationError> {
    rows(TABLES)
}
