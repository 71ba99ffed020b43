//! Tables 2 and 3: operations, layers and parameters of the networks.

use super::data::TableCase;
use super::models::model;
use crate::{ExactCheck, ValidationError};
use serde::Serialize;
use stepcast_core::model::{Model, Op};

const MIB: f64 = 1024.0 * 1024.0;

/// A printed figure, recomputed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct PrintedFigure {
    /// "T2" or "T3".
    pub(super) table: String,
    /// The network or layer.
    pub(super) row: String,
    /// The column.
    pub(super) field: String,
    /// As printed.
    pub(super) published: f64,
    /// Recomputed.
    pub(super) found: f64,
    /// Whether that rounds to the printed figure.
    pub(super) as_printed: bool,
}

pub(super) fn check(
    cases: &[TableCase],
    tolerance: f64,
) -> Result<(Vec<PrintedFigure>, ExactCheck), ValidationError> {
    let mut check = ExactCheck::new("Tables 2 and 3, recomputed", tolerance);
    let mut rows = Vec::new();
    for case in cases {
        let (found, as_printed) = match (case.table.as_str(), case.field.as_str()) {
            ("T3", _) => {
                let found = weights(&case.row)?;
                (found, (found - case.published).abs() < 0.05)
            }
            // Giga-MACs, rounded up in all five rows (errata 4.4).
            (_, "GFLOPs") => {
                let found = model(&case.row)?.cost().multiply_add as f64 / 2.0 / 1e9;
                (found, same(found.ceil(), case.published))
            }
            (_, "# Tensors") => {
                let found = keras_layers(&model(&case.row)?) as f64;
                (found, same(found, case.published))
            }
            _ => {
                let found = keras_parameters(&model(&case.row)?) as f64 * 4.0 / MIB;
                (found, same(found.round(), case.published))
            }
        };
        check.cases += 1;
        check.figure(found, case.recomputed);
        rows.push(PrintedFigure {
            table: case.table.clone(),
            row: case.row.clone(),
            field: case.field.clone(),
            published: case.published,
            found,
            as_printed,
        });
    }
    Ok((rows, check))
}

fn same(found: f64, published: f64) -> bool {
    (found - published).abs() < 1e-9
}

/// MiB of weights, without biases, of a layer of Table 3.
fn weights(row: &str) -> Result<f64, ValidationError> {
    let (network, layer) = match row {
        "fc1" => ("VGG16", "classifier.0"),
        "fc2" => ("VGG16", "classifier.3"),
        "fc3" => ("VGG16", "classifier.6"),
        "conv1x1x512" => ("VGG16-repl", "head.conv1"),
        _ => ("VGG16-repl", "head.conv2"),
    };
    let model = model(network)?;
    let layer = model.layers().iter().find(|found| found.name == layer);
    let layer = layer.ok_or_else(|| ValidationError::Data(format!("there is no layer {row}")))?;
    Ok(layer.cost.weights as f64 * 4.0 / MIB)
}

/// Parameters of the Keras layouts, whose ResNets have biases in convolutions: one for each channel, as many as shifts.
fn keras_parameters(model: &Model) -> u64 {
    let norms = model.layers().iter().filter(|layer| matches!(layer.op, Op::Normalise(_)));
    model.parameters() + norms.map(|layer| layer.cost.biases).sum::<u64>()
}

/// Keras layers without the input: padding is one, twice in a ResNet, which has no flattening; in VGG, non-linearities
/// belong to their layer, and there is no dropout.
fn keras_layers(model: &Model) -> usize {
    let count = |keep: fn(&Op) -> bool| model.layers().iter().filter(|layer| keep(&layer.op)).count();
    let inputs = count(|op| matches!(op, Op::Input));
    if model.name.starts_with("resnet") {
        model.layers().len() - inputs - count(|op| matches!(op, Op::Flatten)) + 2
    } else {
        model.layers().len() - inputs - count(|op| matches!(op, Op::Activate(_) | Op::Dropout))
    }
}
