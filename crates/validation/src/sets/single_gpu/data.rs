//! The runs, as the sources print them.

use crate::ValidationError;
use crate::embedded::rows;
use flate2::read::GzDecoder;
use serde::Deserialize;
use std::io::Read;
use stepcast_core::precision::Precision;
use stepcast_core::strategy::Optimiser;
use stepcast_validation_data::single_gpu::RUNS;

/// A published run.
#[derive(Debug, Deserialize)]
pub(super) struct Run {
    pub(super) id: String,
    pub(super) family: String,
    pub(super) model: String,
    pub(super) sequence: Option<u64>,
    pub(super) device: String,
    pub(super) precision: Precision,
    pub(super) batch: u32,
    pub(super) optimiser: Optimiser,
    pub(super) compiled: bool,
    pub(super) channels_last: bool,
    pub(super) real: bool,
    /// Samples per second.
    pub(super) throughput: f64,
}

pub(super) fn runs() -> Result<Vec<Run>, ValidationError> {
    let mut text = String::new();
    let read = GzDecoder::new(RUNS).read_to_string(&mut text);
    read.map_err(|error| ValidationError::Data(format!("single-gpu: {error}")))?;
    rows(&text)
}
