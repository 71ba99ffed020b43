//! The fitted step as a TOML text.

use crate::artefact::{self, FitErrors, Provenance};
use serde::Serialize;
use stepcast_core::fitted::artefact::Kind;
use stepcast_core::fitted::steps::StepModel;

const FORMULA: &str = "\
layer = factor * (sum of coefficient * feature + counted); \
end = max(end, issued) + layer, layers forward in order, then backward in reverse; \
forward = end of the forward pass; backward = max(end - forward, host's time of the backward pass), never falling with the \
batch; iteration = max(end, host's time + 40 us) + 12 B * parameters / memory + 0.25 us * tensors + 8 us";
const MEANING: [(&str, &str); 16] = [
    ("factor", "what a whole phase takes against layers timed one by one"),
    ("samples", "layers measured while the device was busy; 0: the coefficients are guesses"),
    ("compute", "multiple of operations / peak rate"),
    ("memory", "multiple of bytes of inputs and output / memory rate"),
    ("product", "multiple of the layer's matrix products as fitted by themselves"),
    ("products", "matrix products, fitted by themselves"),
    (
        "reduction",
        "multiple of the reduction over pixels behind a 64x32 tile of a weight gradient, on one multiprocessor",
    ),
    ("wave", "multiple of a 128x64 tile of the output on one multiprocessor"),
    ("weights", "multiple of the bytes of the weights / memory rate"),
    ("channel", "ns for each element of a channel, one block for each channel"),
    ("launch.forward", "host time of a kernel of the forward pass"),
    ("launch.backward", "host time of a kernel of the backward pass"),
    ("launch.gradient", "host time of a gradient of parameters"),
    ("launch.forward-cast", "host time of a cast in the forward pass"),
    ("launch.backward-cast", "host time of a cast in the backward pass"),
    ("nominal", "the rates that features are measured in: units, not fitted"),
];

/// Errors of the three times of a step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct StepErrors {
    /// Forward pass.
    pub forward: FitErrors,
    /// Backward pass.
    pub backward: FitErrors,
    /// The whole step.
    pub iteration: FitErrors,
}

/// The text of a TOML file with a fitted step.
pub fn to_toml(
    model: &StepModel,
    errors: StepErrors,
    source: String,
    date: String,
) -> Result<String, toml::ser::Error> {
    artefact::to_toml(Kind::Steps, Provenance::new(FORMULA, source, date, &MEANING), errors, model)
}
