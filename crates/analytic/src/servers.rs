//! Cost of the software of parameter servers, and its exposed part (docs/priors.md, section 4).
//!
//! A server reads and writes every byte several times to serialise and copy it. Each connection has a thread, and
//! threads work side by side up to the cores of the machine and the rate of its memory. Tensors are dispatched one
//! after the other. The wire is busy meanwhile, but neither waits for the other perfectly: their times add up in
//! quadrature. When all gradients have come, the parameters are updated at the rate of the memory. The figures of
//! software are priors of the scenario, fitted to published runs.

use std::sync::LazyLock;
use stepcast_core::compute::ASSUMED_MEMORY_EFFICIENCY;
use stepcast_core::machine::{Device, DeviceKind, ServerSoftware, Transport, catalog};
use stepcast_core::prediction::Warning;
use stepcast_core::prior::{self, GigabytesPerSec};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Architecture;

/// Code of the warning that the software of servers is assumed.
pub const ASSUMED_SOFTWARE: &str = "assumed-software";

/// Sharpness of the smaller of two rates.
const NORM: f64 = 4.0;

/// The clock in Hz to which rates of threads refer.
const CLOCK: f64 = 2.5e9;

/// Times that a byte that a server receives or sends is read or written: it is serialised, copied to a buffer and to the
/// kernel, each time read and written, and the update reads the gradient and reads and writes the weight.
const PASSES: f64 = 9.0;

/// Bytes that the update of a byte of parameters moves: the mean of the gradients is read and written; it, the weight and
/// the new weight are read, read and written.
const UPDATE_PASSES: f64 = 5.0;

/// The processor that is assumed of a server, by its name in the catalog.
const USUAL_HOST: &str = "xeon-e5-2690-v3";

static HOST: LazyLock<Option<Host>> =
    LazyLock::new(|| catalog::device(USUAL_HOST).ok().map(|device| Host::new(&device)));

/// Speed and memory of a server's machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Host {
    cores: f64,
    /// Speed of a core against one of 2.5 GHz.
    speed: f64,
    memory: BytesPerSec,
}

impl Host {
    pub fn new(device: &Device) -> Self {
        Self {
            cores: f64::from(device.units.max(1)),
            speed: device.clock.get() / CLOCK,
            memory: device.memory_rate * ASSUMED_MEMORY_EFFICIENCY,
        }
    }

    /// The machine of the scenario's servers: the one that it names, the workers' machine if these are CPUs, or a usual one.
    pub fn from_scenario(scenario: &Scenario) -> Option<Self> {
        let own = scenario.cluster.servers.device.as_ref();
        let workers = || {
            let first = scenario.cluster.groups.first().map(|group| &group.device);
            first.filter(|device| device.kind == DeviceKind::Cpu)
        };
        own.or_else(workers).map(Self::new).or(*HOST)
    }

    pub fn update(&self, parameters: Bytes) -> Seconds {
        parameters * UPDATE_PASSES / self.memory
    }
}

/// Server time of software that runs on machines of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    host: Host,
    /// Rate of one thread, bytes received and sent together.
    thread: BytesPerSec,
    tensor: Seconds,
}

impl Service {
    /// The service of `software`, or of any software, on a machine; none where there is no such process: BytePS spreads
    /// its work over all machines.
    pub fn new(software: Option<ServerSoftware>, host: Host, priors: &prior::Servers) -> Option<Self> {
        let grpc = [priors.grpc_10, priors.grpc_15, priors.grpc_2];
        let [first, second, third] = grpc;
        let rate = match software {
            None => {
                GigabytesPerSec::mean([first, second, third, priors.ps_lite, priors.torch_rpc])
                    * priors.unnamed
            }
            Some(ServerSoftware::Grpc) => GigabytesPerSec::mean(grpc) * priors.generation,
            Some(ServerSoftware::Grpc10) => priors.grpc_10,
            Some(ServerSoftware::Grpc15) => priors.grpc_15,
            Some(ServerSoftware::Grpc2) => priors.grpc_2,
            Some(ServerSoftware::GrpcMpi) => priors.grpc_mpi,
            Some(ServerSoftware::GrpcVerbs) => priors.grpc_verbs,
            Some(ServerSoftware::PsLite) => priors.ps_lite,
            Some(ServerSoftware::TorchRpc) => priors.torch_rpc,
            Some(ServerSoftware::Byteps | ServerSoftware::None) => return None,
        };
        Some(Self { host, thread: BytesPerSec::from(rate) * host.speed, tensor: priors.tensor })
    }

    pub fn from_scenario(scenario: &Scenario) -> Option<Self> {
        let named = scenario.cluster.servers.software;
        let software = named.or(Some(scenario.server_software()).filter(|one| *one == ServerSoftware::None));
        Self::new(software, Host::from_scenario(scenario)?, &scenario.priors.servers)
    }

    /// Rate of a server with this number of connections, bytes received and sent together: its threads, or its memory.
    fn rate(&self, connections: f64) -> BytesPerSec {
        let threads = self.thread * connections.clamp(1.0, self.host.cores.max(1.0));
        threads.min(self.host.memory / PASSES)
    }

    /// Time of a server for the update of one worker: `moved` bytes received and sent, in `messages` tensors.
    pub fn time(&self, moved: Bytes, messages: f64, connections: f64) -> Seconds {
        let [copying, dispatching] = self.parts(moved, messages, connections);
        copying.max(dispatching)
    }

    /// The two parts of a server's work, which go on side by side: copying bytes, and dispatching tensors.
    pub fn parts(&self, moved: Bytes, messages: f64, connections: f64) -> [Seconds; 2] {
        [moved / self.rate(connections), self.tensor * messages]
    }

    /// The update of parameters of this size at the end of a round.
    pub fn update(&self, parameters: Bytes) -> Seconds {
        self.host.update(parameters)
    }
}

/// Rate of a machine's traffic through BytePS, both directions together, given the nominal rate of its port in one
/// direction: the port, or over TCP what the flows to all other workers reach.
pub fn byteps_rate(
    priors: &prior::Servers,
    port: BytesPerSec,
    workers: u64,
    transport: Transport,
) -> BytesPerSec {
    if transport == Transport::Rdma {
        return port * (2.0 * priors.bps_rdma);
    }
    let port = port * (2.0 * priors.bps_wire);
    let flows = BytesPerSec::from(priors.bps_flow) * (workers.max(2) as f64 - 1.0).sqrt();
    port * (1.0 + (port.get() / flows.get()).powf(NORM)).powf(-1.0 / NORM)
}

/// Slowdown of a computing device of this kind among this many workers: stragglers.
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

/// Communication that stays exposed although there is time to hide it.
pub fn least_exposed(priors: &prior::Servers, communication: Seconds) -> Seconds {
    communication * priors.exposed.min(1.0)
}

/// Rate of each server's software, received and sent together, where it is assumed rather than given or none.
pub fn assumed_rate(scenario: &Scenario) -> Option<BytesPerSec> {
    let served = scenario.strategy.architecture == Architecture::ParameterServer;
    let service = Service::from_scenario(scenario).filter(|_| served)?;
    Some(service.rate(scenario.cluster.workers() as f64))
}

/// Warns that nothing is known about the software, where it is assumed.
pub fn assumption(scenario: &Scenario) -> Option<Warning> {
    let servers = &scenario.cluster.servers;
    let assumed =
        scenario.strategy.architecture == Architecture::ParameterServer && servers.software.is_none();
    let service = Service::from_scenario(scenario).filter(|_| assumed)?;
    let connections = scenario.cluster.workers() as f64;
    Some(Warning {
        code: ASSUMED_SOFTWARE,
        message: format!(
            "nothing was measured of the servers: their software is assumed to move {} on each, {} a thread, and to take \
             {} a tensor; set `software` in [cluster.servers]",
            service.rate(connections).human(),
            service.thread.human(),
            service.tensor.human()
        ),
    })
}
