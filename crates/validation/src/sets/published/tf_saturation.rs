//! One parameter server from which 1 to 8 workers pull, predicted from the throughput of one worker and of eight.

use super::one_worker::OneWorker;
use super::throughput::{Description, ThroughputCase, ThroughputPredictions};
use crate::embedded::rows;
use crate::{Options, Progress, Report, Set, ValidationError};
use serde::Deserialize;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{Bytes, BytesPerSec, SamplesPerSec, Seconds};
use stepcast_report::format::several;
use stepcast_study::predict::interval::Case;
use stepcast_validation_data::tf_saturation::THROUGHPUT;

const NAME: &str = "tf-saturation";

/// Samples of a step.
const BATCH: u32 = 32;

/// Bytes of a parameter.
const ELEMENT: f64 = 4.0;

const DESCRIPTION: Description = Description {
    set: NAME,
    method: "simulate",
    about: "Inception-v3 with one parameter server and 1 to 8 workers. The network is not stated: the rate of the server's \
            port is what eight workers pull through it, computing is what one worker takes beside that; two and four \
            workers are predicted.",
    unit: "images/s",
    left_out: "One and eight workers: they are what the others are predicted from.",
};

/// The set.
pub(in crate::sets) struct TfSaturation;

impl Set for TfSaturation {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        predict()?.report()
    }
}

#[derive(Debug, Deserialize)]
struct Published {
    workers: u32,
    images_per_s: f64,
}

pub(super) fn predict() -> Result<ThroughputPredictions, ValidationError> {
    let published: Vec<Published> = rows(THROUGHPUT)?;
    let of = |workers: u32| {
        let found = published.iter().find(|row| row.workers == workers);
        let found = found.ok_or_else(|| ValidationError::Data(format!("{NAME}: no {workers} workers")))?;
        Ok::<f64, ValidationError>(found.images_per_s)
    };
    let model = zoo::build("inception-v3").map_err(|error| ValidationError::Data(error.to_string()))?;
    let parameters = Bytes::new(model.parameters() as f64 * ELEMENT);
    let step = |rate: f64| Seconds::new(f64::from(BATCH) / rate);
    let port: BytesPerSec = parameters / step(of(8)?);
    let one = OneWorker {
        pulled: parameters,
        computing: step(of(1)?) - parameters / port,
        servers: 1,
        batch: BATCH,
    };
    let mut found = Vec::new();
    for row in &published {
        let (prediction, regime) = one.predict(&[(row.workers, 1.0)], port)?;
        let case = Case {
            set: NAME,
            group: "inception-v3".to_owned(),
            method: DESCRIPTION.method.to_owned(),
            regime,
            workers: row.workers,
            bandwidth: Some(port.to_bits_per_sec()),
            parameters: Some(model.parameters()),
            predicted: prediction.throughput,
            measured: SamplesPerSec::new(row.images_per_s),
            run_spread: prediction.simulation.and_then(|simulation| simulation.run_spread).unwrap_or(0.0),
        };
        found.push(ThroughputCase::new(
            several(row.workers.into(), "worker"),
            case,
            [1, 8].contains(&row.workers),
        ));
    }
    ThroughputPredictions::new(&DESCRIPTION, found)
}
