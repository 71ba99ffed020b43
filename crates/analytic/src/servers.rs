//! What the software of parameter servers costs, and how much of it shows (docs/priors.md, section 4).
//!
//! A server serves one worker after the other: every byte that it receives or sends passes through one process, and
//! every tensor of an update costs it time. The wire is busy meanwhile, so the larger of the two counts, not their
//! sum. All figures are priors of the scenario, fitted to published runs.

use stepcast_core::machine::{DeviceKind, ServerSoftware};
use stepcast_core::prediction::Warning;
use stepcast_core::prior;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// Code of the warning that the software of servers is assumed.
pub const ASSUMED_SOFTWARE: &str = "assumed-software";

/// Sharpness of the smaller of two rates.
const NORM: f64 = 4.0;

/// Server time of software for which one process per server handles all bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    rate: BytesPerSec,
    tensor: Seconds,
}

impl Service {
    /// The service of `software`; none where there is no such process: BytePS spreads its work over all machines.
    pub fn from_software(software: ServerSoftware, priors: &prior::Servers) -> Option<Self> {
        let rate = match software {
            ServerSoftware::Grpc => priors.grpc,
            ServerSoftware::GrpcMpi => priors.grpc_mpi,
            ServerSoftware::Byteps | ServerSoftware::None => return None,
        };
        Some(Self { rate: rate.into(), tensor: priors.tensor })
    }

    /// The service of a scenario's servers.
    pub fn from_scenario(scenario: &Scenario) -> Option<Self> {
        Self::from_software(scenario.server_software(), &scenario.priors.servers)
    }

    /// Time of a server for a worker's update: `moved` bytes in and out, of so many tensors.
    pub fn time(self, moved: Bytes, tensors: f64) -> Seconds {
        moved / self.rate + self.tensor * tensors
    }
}

/// Rate of a machine's traffic through BytePS, both directions together, given the nominal rate of its port in one
/// direction: the port, or what the flows to all other workers reach.
pub fn byteps_rate(priors: &prior::Servers, port: BytesPerSec, workers: u64) -> BytesPerSec {
    let port = port * (2.0 * priors.bps_wire);
    let flows = BytesPerSec::from(priors.bps_flow) * (workers.max(2) as f64 - 1.0).sqrt();
    port * (1.0 + (port.get() / flows.get()).powf(NORM)).powf(-1.0 / NORM)
}

/// Factor by which a computing device of this kind slows down among so many workers: stragglers.
pub fn losses(priors: &prior::Servers, kind: DeviceKind, workers: u64) -> f64 {
    let loss = match kind {
        DeviceKind::Cpu => priors.loss_per_doubling_cpu,
        DeviceKind::Gpu => priors.loss_per_doubling,
    };
    1.0 + loss * (workers.max(1) as f64).log2()
}

/// The part of a backward pass that can hide communication.
pub fn hidden(priors: &prior::Servers, backward: Seconds) -> Seconds {
    backward * priors.hideable_backward.min(1.0)
}

/// Communication that shows although there is time to hide it.
pub fn least_exposed(priors: &prior::Servers, communication: Seconds) -> Seconds {
    communication * priors.exposed.min(1.0)
}

/// Warns that nothing is known about the software, where it is assumed.
pub fn assumption(scenario: &Scenario) -> Option<Warning> {
    let servers = &scenario.cluster.servers;
    let assumed =
        scenario.strategy.architecture == Architecture::ParameterServer && servers.software.is_none();
    let service = Service::from_scenario(scenario).filter(|_| assumed)?;
    Some(Warning {
        code: ASSUMED_SOFTWARE,
        message: format!(
            "nothing was measured of the servers: they are assumed to run gRPC, {} a server and {} a tensor; set \
             `software` in [cluster.servers]",
            service.rate.human(),
            service.tensor.human()
        ),
    })
}
