//! One step from the throughput of one GPU, by the recursion of Liu 2022 (eq. 8).

use super::data::{PublishedThroughput, Scheme};
use crate::ValidationError;
use stepcast_analytic::collectives::{Fabric, ring_update};
use stepcast_analytic::liu2022::{Layer, Pass, Schedule, osf};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::machine::Network;
use stepcast_core::machine::catalog;
use stepcast_core::model::{Counting, zoo};
use stepcast_core::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};
use stepcast_core::workload::Workload;

/// GPUs of one node.
pub(super) const PER_NODE: u32 = 4;

/// Backward operations per forward operation (Liu 2022, eq. 4).
const BACKWARD_PER_FORWARD: f64 = 2.0;

/// Training on one GPU.
pub(super) struct OneGpu {
    pass: Pass,
    /// Samples a second.
    pub(super) throughput: f64,
    pub(super) parameters: u64,
}

impl OneGpu {
    /// From a row with one GPU.
    pub(super) fn of(row: &PublishedThroughput) -> Result<Self, ValidationError> {
        let workload = workload(row)?;
        Ok(Self {
            pass: pass(&workload, Seconds::new(f64::from(row.batch) / row.throughput)),
            throughput: row.throughput,
            parameters: workload.parameters,
        })
    }
}

/// The networks that join the GPUs.
#[derive(Debug, Clone)]
pub(super) struct Testbed {
    within: Network,
    between: Network,
    /// Rate that a ring reaches within a node.
    pub(super) within_rate: BytesPerSec,
}

impl Testbed {
    /// The catalog's PCIe and 10 Gigabit Ethernet.
    pub(super) fn of_catalog() -> Result<Self, ValidationError> {
        let (within, between) = (catalog::network("pcie3-x16")?, catalog::network("10gbe")?);
        Ok(Self { within_rate: rate(&within), within, between })
    }

    /// The testbed with the rate within a node for which `row`, an all-reduce after the backward pass on one node, is
    /// predicted exactly: the step exceeds that of one GPU by the time of the all-reduce, which gives the rate (eq. 7 of
    /// Liu 2022, solved for β).
    pub(super) fn fitted(self, row: &PublishedThroughput, one: &OneGpu) -> Self {
        let batch = f64::from(row.batch);
        let workers = f64::from(row.gpus);
        let exposed = Seconds::new(batch * workers / row.throughput) - one.pass.computing();
        let steps = self.within.latency * (2.0 * (workers - 1.0));
        let bytes = one.pass.gradients() * (2.0 * (workers - 1.0) / workers);
        Self { within_rate: bytes / (exposed - steps), ..self }
    }

    /// Time of an exchange as a function of its size.
    fn curve(&self, row: &PublishedThroughput) -> Curve {
        let nodes = row.gpus.div_ceil(PER_NODE);
        match row.servers {
            // Push, then pull; a server's port carries the transfers of all nodes. Summing gradients within a node is
            // taken to be hidden behind the transfers of others.
            Some(servers) if nodes > 1 => {
                let load = (f64::from(nodes) / f64::from(servers.max(1))).max(1.0);
                Curve::AlphaBeta {
                    startup: self.between.latency * 2.0,
                    bandwidth: rate(&self.between) * (1.0 / (2.0 * load)),
                }
            }
            _ if nodes > 1 => ring(&self.between, rate(&self.between), row.gpus),
            _ => ring(&self.within, self.within_rate, row.gpus),
        }
    }

    /// Samples a second.
    pub(super) fn throughput(&self, row: &PublishedThroughput, one: &OneGpu) -> f64 {
        let update = self.curve(row);
        let schedule = match row.method {
            Scheme::BspAllReduce | Scheme::BspServers => Schedule::AtEnd,
            Scheme::WfbpAllReduce | Scheme::WfbpServers => Schedule::PerLayer,
            Scheme::MgWfbp => Schedule::MgWfbp { overhead: update.startup() },
        };
        let step = osf(&one.pass, &update, &schedule).iteration();
        f64::from(row.batch) * f64::from(row.gpus) / step.get()
    }
}

fn rate(network: &Network) -> BytesPerSec {
    network.bandwidth.to_bytes_per_sec() * network.efficiency
}

/// A ring through all GPUs is as fast as its slowest link, and each of its steps has the latency of that link. Additions
/// take no time: the source does not name the GPU, and any GPU needs microseconds only.
fn ring(network: &Network, bandwidth: BytesPerSec, workers: u32) -> Curve {
    let fabric = Fabric {
        step: network.latency,
        bandwidth,
        reduce: FlopsPerSec::new(f64::INFINITY),
        element: Bytes::new(4.0),
    };
    ring_update(&fabric, workers, network.latency * (2.0 * (f64::from(workers) - 1.0)))
}

/// The zoo's network, BERT with as many tokens as it was measured with.
fn workload(row: &PublishedThroughput) -> Result<Workload, ValidationError> {
    let name = match row.model.as_str() {
        "ResNet-50" => "resnet50",
        "BERT-Base" => "bert-base",
        _ => "bert-large",
    };
    let model = zoo::build_for(name, row.tokens);
    let model = model.map_err(|error| ValidationError::Data(error.to_string()))?;
    Ok(Workload::of(&model, Counting::default()))
}

/// A pass that takes `computing`, split by operations, with one entry for each gradient.
fn pass(workload: &Workload, computing: Seconds) -> Pass {
    let all: Flops = workload.layers.iter().map(|work| work.forward).sum();
    let backward = computing * (BACKWARD_PER_FORWARD / (1.0 + BACKWARD_PER_FORWARD));
    let mut layers = Vec::new();
    for work in workload.layers.iter().rev() {
        let mut time = backward * (work.forward / all);
        for tensor in &work.tensors {
            layers.push(Layer { backward: time, gradients: tensor.bytes() });
            time = Seconds::ZERO;
        }
    }
    Pass::new(layers)
}
