//! Plots of a forecast and of predictions.

use crate::plots::breakdown::{Breakdown, Column};
use crate::plots::scaling_curve::{Point, ScalingCurve};
use crate::plots::staleness::Staleness;
use stepcast_core::prediction::Prediction;
use stepcast_core::quantity::SamplesPerSec;
use stepcast_study::Forecast;

/// Entries of the staleness histogram; the last includes all larger values.
const COUNTED: usize = 64;

/// Throughput over workers.
pub fn scaling_curve(forecast: &Forecast, name: &str) -> ScalingCurve {
    let point = |point: &stepcast_study::ScalingPoint| Point {
        workers: point.workers,
        throughput: point.throughput,
        low_high: point.interval_samples_per_s.map(|ends| ends.map(SamplesPerSec::new)),
        ideal: Some(SamplesPerSec::new(point.throughput.get() / point.scaling_factor)),
    };
    ScalingCurve {
        title: format!("Throughput of {name}"),
        method: forecast.prediction.method.to_owned(),
        points: forecast.scaling.iter().map(point).collect(),
        measured: Vec::new(),
        here: u32::try_from(forecast.prediction.workers).ok(),
        saturates_at: forecast.saturates_at,
    }
}

/// Parts of a step, by predictions for several numbers of workers.
pub fn breakdown(predictions: &[Prediction], name: &str) -> Breakdown {
    let column = |prediction: &Prediction| Column {
        workers: prediction.workers,
        parts: prediction.breakdown.iter().map(|part| (part.kind.to_string(), part.time)).collect(),
    };
    Breakdown {
        title: format!("A step of {name}"),
        method: predictions.first().map_or("", |prediction| prediction.method).to_owned(),
        columns: predictions.iter().map(column).collect(),
    }
}

/// The staleness of gradients, if the prediction is simulated.
pub fn staleness(prediction: &Prediction, name: &str) -> Option<Staleness> {
    let simulation = prediction.simulation.as_ref()?;
    Some(Staleness {
        title: format!("Staleness of {name}"),
        shares: simulation.staleness_histogram.clone(),
        open_ended: simulation.staleness_histogram.len() >= COUNTED,
        mean: Some(simulation.mean_staleness),
    })
}
