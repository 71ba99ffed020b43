//! Errors of one way to predict over many cases.

use serde::Serialize;

/// Errors of one way to predict, in percent of what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// Which way.
    pub method: &'static str,
    /// Mean of the absolute errors.
    pub mean: f64,
    /// Largest absolute error.
    pub worst: f64,
    /// Mean of the signed errors.
    pub bias: f64,
}

impl Errors {
    /// Over cases whose prediction is so many times what was measured.
    pub fn of(method: &'static str, ratios: impl Iterator<Item = f64>) -> Self {
        let errors: Vec<f64> = ratios.map(|ratio| 100.0 * (ratio - 1.0)).collect();
        let mean = |sum: f64| sum / errors.len().max(1) as f64;
        Self {
            method,
            mean: mean(errors.iter().map(|error| error.abs()).sum()),
            worst: errors.iter().map(|error| error.abs()).fold(0.0, f64::max),
            bias: mean(errors.iter().sum()),
        }
    }
}
