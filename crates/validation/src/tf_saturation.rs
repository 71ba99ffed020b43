//! One parameter server that is pulled from by 1 to 8 workers, from the throughput of one worker and of eight.

use super::one_worker::OneWorker;
use super::published::{About, Report, Row};
use super::{ValidationError, bounds, rows};
use serde::Deserialize;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{Bytes, BytesPerSec, SamplesPerSec, Seconds};
use stepcast_study::predict::interval::Case;

pub(super) const SET: &str = "tf-saturation";

const THROUGHPUT: &str = include_str!("../../../validation/tf-saturation/throughput.csv");

/// Samples of a step.
const BATCH: u32 = 32;

/// Bytes of a parameter.
const ELEMENT: f64 = 4.0;

const ABOUT: About = About {
    set: SET,
    method: "simulate",
    about: "Inception-v3 with one parameter server and 1 to 8 workers. The network is not stated: the rate of the server's \
            port is what eight workers pull through it, computing is what one worker takes beside that; two and four \
            workers are predicted.",
    unit: "images/s",
    left_out: "One and eight workers: they are what the others are predicted from.",
};

#[derive(Debug, Deserialize)]
struct Published {
    workers: u32,
    images_per_s: f64,
}

fn several(workers: u32) -> String {
    format!("{workers} worker{}", if workers == 1 { "" } else { "s" })
}

pub(super) fn run() -> Result<Report, ValidationError> {
    let published: Vec<Published> = rows(THROUGHPUT)?;
    let of = |workers: u32| {
        let found = published.iter().find(|row| row.workers == workers);
        let found = found.ok_or_else(|| ValidationError::Data(format!("{SET}: no {workers} workers")))?;
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
            set: SET,
            group: "inception-v3".to_owned(),
            method: ABOUT.method.to_owned(),
            regime,
            workers: row.workers,
            bandwidth: Some(port.to_bits_per_sec()),
            parameters: Some(model.parameters()),
            predicted: prediction.throughput,
            measured: SamplesPerSec::new(row.images_per_s),
            run_spread: prediction.simulation.and_then(|simulation| simulation.run_spread).unwrap_or(0.0),
        };
        found.push(Row::new(several(row.workers), case, [1, 8].contains(&row.workers)));
    }
    Ok(Report::new(ABOUT, found, bounds::read()?.tf_saturation))
}
