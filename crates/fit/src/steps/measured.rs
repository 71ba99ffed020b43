//! Measured training steps.

use std::collections::BTreeMap;
use std::sync::Arc;
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
