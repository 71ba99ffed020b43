//! TensorFlow's own benchmarks of 2017 with parameter servers: 2 to 8 machines of 8 K80 GPUs, from the throughput of one.

use super::throughput::{Description, ThroughputCase, ThroughputPredictions};
use crate::embedded::rows;
use crate::{Options, Progress, Report, Set, ValidationError};
use serde::Deserialize;
use stepcast_analytic::layerwise::Layerwise;
use stepcast_core::keys::NameOr;
use stepcast_core::machine::{ServerSoftware, ServersSection, WorkersSection};
use stepcast_core::method::Method;
use stepcast_core::quantity::{SamplesPerSec, Seconds};
use stepcast_core::scenario::{ClusterSection, ModelSection, Scenario, ScenarioFile};
use stepcast_core::strategy::Architecture;
use stepcast_core::strategy::StrategySection;
use stepcast_study::predict::interval::{Case, Regime};
use stepcast_validation_data::tf_k80::THROUGHPUT;

const NAME: &str = "tf-k80";

/// GPUs of a machine, and samples of each.
const GPUS: u32 = 8;
const BATCH: u32 = 64;

const DESCRIPTION: Description = Description {
    set: NAME,
    method: "layerwise",
    about: "TensorFlow's benchmarks of 2017 on Amazon p2.8xlarge: 2 to 8 machines of 8 K80 GPUs with parameter servers, \
            predicted from the throughput of one machine. The source does not state the network; Amazon names 10 Gbit/s \
            for these machines.",
    unit: "images/s",
    left_out: "Machines by themselves, with parameters on the host or on GPUs: how the GPUs share PCIe is not stated. \
               ResNet-152 and batches of 32 have no run on several machines.",
};

/// The set.
pub(in crate::sets) struct TfK80;

impl Set for TfK80 {
    fn name(&self) -> &'static str {
        NAME
    }

    fn run(&self, _: &Options<'_>, _: &Progress<'_>) -> Result<Report, ValidationError> {
        predict()?.report()
    }
}

#[derive(Debug, Deserialize)]
struct Published {
    model: String,
    machines: u32,
    servers: u32,
    images_per_s: f64,
}

/// A worker is a machine: the gradients of its GPUs are summed before they leave it.
fn scenario(row: &Published, architecture: Architecture, speed: f64) -> Result<Scenario, ValidationError> {
    let workers = WorkersSection {
        count: Some(if architecture == Architecture::StandAlone { 1 } else { row.machines }),
        device: Some(NameOr::Name("tesla-k80".to_owned())),
        efficiency: Some(1.0.into()),
        speed: Some(speed.into()),
        ..WorkersSection::default()
    };
    let file = ScenarioFile {
        model: ModelSection { zoo: Some(row.model.clone()), ..ModelSection::default() },
        cluster: ClusterSection {
            workers: Some(vec![workers]),
            network: Some(NameOr::Name("10gbe".to_owned())),
            servers: Some(ServersSection {
                count: Some(row.servers),
                software: Some(ServerSoftware::None),
                ..ServersSection::default()
            }),
            ..ClusterSection::default()
        },
        strategy: StrategySection {
            batch: Some(GPUS * BATCH),
            architecture: Some(architecture),
            ..StrategySection::default()
        },
        ..ScenarioFile::default()
    };
    Ok(file.resolve()?)
}

/// The speed at which one machine has its published throughput. A part of the step is inversely proportional to the
/// speed, the rest does not depend on it; two predictions give both parts.
fn speed(one: &Published) -> Result<f64, ValidationError> {
    let time = |speed: f64| -> Result<Seconds, ValidationError> {
        Ok(Layerwise.predict(&scenario(one, Architecture::StandAlone, speed)?)?.iteration)
    };
    let (once, twice) = (time(1.0)?, time(2.0)?);
    let divided = (once - twice) * 2.0;
    let measured = SamplesPerSec::new(one.images_per_s).time_for(f64::from(GPUS * BATCH));
    Ok(divided / (measured - (once - divided)))
}

pub(super) fn predict() -> Result<ThroughputPredictions, ValidationError> {
    let published: Vec<Published> = rows(THROUGHPUT)?;
    let mut found = Vec::new();
    for row in published.iter().filter(|row| row.machines > 1) {
        let one = published.iter().find(|one| one.machines == 1 && one.model == row.model);
        let one = one.ok_or_else(|| ValidationError::Data(format!("{NAME}: no single {}", row.model)))?;
        let scenario = scenario(row, Architecture::ParameterServer, speed(one)?)?;
        let prediction = Layerwise.predict(&scenario)?;
        let case = Case {
            set: NAME,
            group: row.model.clone(),
            method: DESCRIPTION.method.to_owned(),
            regime: Regime::of(&scenario, prediction.scaling_factor),
            workers: row.machines,
            bandwidth: Some(scenario.cluster.network.bandwidth),
            parameters: Some(scenario.workload.parameters),
            predicted: prediction.throughput,
            measured: SamplesPerSec::new(row.images_per_s),
            run_spread: 0.0,
        };
        let what = format!("{}, {} machines, {} servers", row.model, row.machines, row.servers);
        found.push(ThroughputCase::new(what, case, false));
    }
    ThroughputPredictions::new(&DESCRIPTION, found)
}
