//! Asynchronous training of a small network by up to 8 workers, equal and unequal, with one and two parameter servers,
//! predicted from the throughput of single workers and of one saturated server.

use super::one_worker::OneWorker;
use super::throughput::{Description, ThroughputCase, ThroughputPredictions};
use crate::embedded::rows;
use crate::{Options, Progress, Report, Set, ValidationError};
use serde::Deserialize;
use stepcast_core::model::zoo;
use stepcast_core::quantity::{Bytes, SamplesPerSec, Seconds};
use stepcast_study::predict::interval::Case;
use stepcast_validation_data::cakelab::RUNS;

const NAME: &str = "cakelab";

/// Bytes of a parameter.
const ELEMENT: f64 = 4.0;

const DESCRIPTION: Description = Description {
    set: NAME,
    method: "simulate",
    about: "ResNet-32 on Google Compute Engine, asynchronous, 2 to 8 workers with K80, P100 and V100 GPUs, one or two \
            servers (Li et al. 2019). Neither the network nor what a server does is stated: what a step takes a server is \
            fitted on one row, eight V100 with one server, which it saturates; computing is what single workers take \
            beside that.",
    unit: "steps/s",
    left_out: "Transient (spot) clusters: workers come and go. Runs across regions: their latency is not stated.",
};

/// The set.
pub(in crate::sets) struct Cakelab;

impl Set for Cakelab {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        predict()?.report()
    }
}

#[derive(Debug, Deserialize)]
struct Run {
    group: String,
    servers: u32,
    k80: u32,
    p100: u32,
    v100: u32,
    steps_per_s: f64,
}

impl Run {
    fn counts(&self) -> [u32; 3] {
        [self.k80, self.p100, self.v100]
    }

    fn workers(&self) -> u32 {
        self.counts().iter().sum()
    }

    /// The machines in words.
    fn what(&self) -> String {
        let names = ["K80", "P100", "V100"].into_iter().zip(self.counts());
        let machines: Vec<String> =
            names.filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
        let servers = if self.servers == 1 { "1 server" } else { "2 servers" };
        format!("{}, {servers} ({})", machines.join(" + "), self.group)
    }

    /// Whether this is the row on which the time of a server is fitted.
    fn saturates(&self) -> bool {
        self.counts() == [0, 0, 8] && self.servers == 1
    }
}

fn find(runs: &[Run], is_it: impl Fn(&Run) -> bool) -> Result<Seconds, ValidationError> {
    let found = runs.iter().find(|run| is_it(run));
    let found =
        found.ok_or_else(|| ValidationError::Data(format!("{NAME}: a run to start from is missing")))?;
    Ok(Seconds::new(1.0 / found.steps_per_s))
}

pub(super) fn predict() -> Result<ThroughputPredictions, ValidationError> {
    let runs: Vec<Run> = rows(RUNS)?;
    let serving = find(&runs, Run::saturates)?;
    let computing =
        |counts: [u32; 3]| Ok::<_, ValidationError>(find(&runs, |run| run.counts() == counts)? - serving);
    let alone = [computing([1, 0, 0])?, computing([0, 1, 0])?, computing([0, 0, 1])?];
    let model = zoo::build("resnet32").map_err(|error| ValidationError::Data(error.to_string()))?;
    let pulled = Bytes::new(model.parameters() as f64 * ELEMENT);
    // One rate stands for network and processor of a server: that at which it would send the parameters in that time.
    let port = pulled / serving;
    let mut found = Vec::new();
    for run in runs.iter().filter(|run| run.workers() > 1) {
        let one = OneWorker { pulled, computing: alone[0], servers: run.servers, batch: 1 };
        let speeds: Vec<(u32, f64)> =
            run.counts().into_iter().zip(alone.map(|time| alone[0] / time)).collect();
        let (prediction, regime) = one.predict(&speeds, port)?;
        let case = Case {
            set: NAME,
            group: run.group.clone(),
            method: DESCRIPTION.method.to_owned(),
            regime,
            workers: run.workers(),
            bandwidth: None,
            parameters: Some(model.parameters()),
            predicted: prediction.throughput,
            measured: SamplesPerSec::new(run.steps_per_s),
            run_spread: prediction.simulation.and_then(|simulation| simulation.run_spread).unwrap_or(0.0),
        };
        found.push(ThroughputCase::new(run.what(), case, run.saturates()));
    }
    ThroughputPredictions::new(&DESCRIPTION, found)
}
