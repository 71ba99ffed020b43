//! From a scenario and a profile to the engine's program.

use stepcast_analytic::placement::{self, Machine};
use stepcast_analytic::servers::{self, Service};
use stepcast_core::compute;
use stepcast_core::machine::{Placement, ServerSoftware};
use stepcast_core::profile::{Operation, Profile, Resource};
use stepcast_core::quantity::{BitsPerSec, Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::{self, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{
    LinkSharing, ParseLane, Parsing, Replay, ReplayWorker, Requeue, StreamOrder, Streams, TcpSpec,
};

/// Computing time of a group relative to the profile's: by batch and speed, or by its device's time for the model, with copies
/// of batches.
fn slowness(scenario: &Scenario, index: usize) -> f64 {
    // Stragglers among workers that wait for each other, as in the closed form.
    let waits = scenario.strategy.synchronisation != Synchronisation::Async;
    let kind = scenario.cluster.groups[index].device.kind;
    let losses = match waits && is_served(scenario) {
        true => servers::losses(&scenario.priors.servers, kind, scenario.cluster.workers()),
        false => 1.0,
    };
    if scenario.profile().is_some() {
        return scenario.slowness(index) * losses;
    }
    let step = |index: usize| -> Seconds {
        let speed = Speed::of_group(scenario, index);
        let layers = scenario.workload.layers.iter();
        let computing: Seconds = layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
        compute::host_to_device(scenario, index) + computing
    };
    step(index) / step(0) * losses
}

/// Whether the software of servers costs time.
fn is_served(scenario: &Scenario) -> bool {
    scenario.server_software() != ServerSoftware::None
}

/// The part of the backward pass in which gradients are pushed.
pub(super) fn hides(scenario: &Scenario) -> f64 {
    let servers = &scenario.cluster.servers;
    match servers.overlap.unwrap_or(servers.copies == 1) {
        true if is_served(scenario) => scenario.priors.servers.hideable_backward,
        true => 1.0,
        false => 0.0,
    }
}

/// Rate of a port for payload: the wire less framing and copies of hosts, or BytePS's achieved rate.
fn payload(scenario: &Scenario, port: BitsPerSec) -> BytesPerSec {
    let cluster = &scenario.cluster;
    match scenario.server_software() {
        ServerSoftware::Byteps => {
            let port = port.to_bytes_per_sec();
            servers::byteps_rate(&scenario.priors.servers, port, cluster.workers(), cluster.network.transport)
        }
        _ => cluster.network.payload_rate(port),
    }
}

/// Rate of the ports of a simulated server for payload.
pub(super) fn server_port(scenario: &Scenario) -> BytesPerSec {
    payload(scenario, placement::server_port(&scenario.cluster)) * f64::from(slices(scenario))
}

pub(in crate::simulate) fn simulated_servers(scenario: &Scenario) -> u32 {
    scenario.cluster.servers.count / slices(scenario)
}

/// Number of servers that one simulated server stands for: servers that hold a slice of every tensor behave alike, unless
/// they run on the machines of workers, some of which are nearer than others.
fn slices(scenario: &Scenario) -> u32 {
    let servers = &scenario.cluster.servers;
    match servers.placement {
        Placement::Even if !is_colocated(scenario) => servers.count,
        _ => 1,
    }
}

/// Whether servers use the ports of the workers' machines. BytePS's rate already includes this.
fn is_colocated(scenario: &Scenario) -> bool {
    scenario.cluster.servers.colocated && scenario.server_software() != ServerSoftware::Byteps
}

/// Seconds of a server's software for each operation that pushes gradients: it receives them, and sends the parameters
/// to which they are added. Their sum equals the closed form's time; workers that wait for each other share
/// the update.
fn software(scenario: &Scenario, profile: &Profile) -> Option<Vec<f64>> {
    let service = Service::from_scenario(scenario)?;
    let copies = f64::from(scenario.cluster.servers.copies);
    let workers = scenario.cluster.workers() as f64;
    let waits =
        matches!(scenario.strategy.synchronisation, Synchronisation::Bsp | Synchronisation::LocalSgd(_));
    // The layers of a model are pushed in backward order; a push of a profile is one tensor.
    let mut layers = scenario.workload.layers.iter().rev();
    let mut exchanged = |operation: &Operation| {
        if operation.resource != Resource::Uplink {
            return (Bytes::ZERO, 0.0);
        }
        let layer = scenario.profile().map_or_else(|| layers.next(), |_| None);
        let tensors = layer.map_or(1, |layer| layer.tensors.len());
        (operation.size(), tensors as f64)
    };
    let exchanged: Vec<(Bytes, f64)> = profile.operations.iter().map(&mut exchanged).collect();
    let parts = |(bytes, tensors): (Bytes, f64)| {
        service.parts(bytes * (1.0 + copies), tensors * (1.0 + copies), workers)
    };
    let all = exchanged.iter().fold((Bytes::ZERO, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let [copying, dispatching] = parts(all);
    let side_by_side =
        copying.max(dispatching) / (copying + dispatching).max(Seconds::new(f64::MIN_POSITIVE));
    let time = |&(bytes, tensors): &(Bytes, f64)| {
        let [copying, dispatching] = parts((bytes, tensors));
        let update = if waits { service.update(bytes) / workers } else { Seconds::ZERO };
        (((copying + dispatching) * side_by_side + update) / f64::from(slices(scenario))).get()
    };
    Some(exchanged.iter().map(time).collect())
}

fn server_machines(scenario: &Scenario, machines: u32) -> Option<Vec<u32>> {
    let servers = 0..scenario.cluster.servers.count;
    is_colocated(scenario).then(|| servers.map(|server| server % machines.max(1)).collect())
}

pub(super) fn replay<'a>(scenario: &Scenario, profile: &'a Profile) -> Replay<'a> {
    let cluster = &scenario.cluster;
    let network = &cluster.network;
    let shared = cluster.nodes.is_some() || cluster.servers.colocated;
    let mut workers = Vec::with_capacity(cluster.workers() as usize);
    let mut machines = 0;
    for (index, group) in cluster.groups.iter().enumerate() {
        let machine = Machine::new(scenario, index);
        let (port, slowness) = (payload(scenario, machine.rate), slowness(scenario, index));
        for worker in 0..group.count {
            let machine = shared.then_some(machines + worker / machine.workers);
            workers.push(ReplayWorker { slowness, port, machine });
        }
        machines += group.count.div_ceil(machine.workers);
    }
    let servers = simulated_servers(scenario);
    let server_port = server_port(scenario);
    let options = scenario.methods.simulate;
    Replay {
        profile,
        workers,
        servers,
        slices: slices(scenario),
        server_of: server_of_operations(scenario, profile, servers),
        server_port,
        server_machines: server_machines(scenario, machines),
        software: software(scenario, profile),
        copies: f64::from(cluster.servers.copies),
        startup: network.latency + network.startup,
        parsing: Parsing {
            per_byte: options.parse_rate.map_or(Seconds::ZERO, |rate| Seconds::new(1.0 / rate.get())),
            fixed: options.parse_fixed,
            lane: if options.parse_while_computing { ParseLane::Shared } else { ParseLane::Beside },
        },
        sharing: match options.transport {
            scenario::SharingRule::Uneven | scenario::SharingRule::Fair => LinkSharing::Shared {
                streams: Streams {
                    window: options.window.map_or(f64::INFINITY, |window| window.get()),
                    requeue: Requeue::OnSelection,
                    order: StreamOrder::Fifo,
                },
                unevenness: match options.transport {
                    scenario::SharingRule::Uneven => options.unevenness,
                    _ => 0.0,
                },
            },
            scenario::SharingRule::Tcp => {
                LinkSharing::Tcp(TcpSpec::linux(server_port.get(), options.queue.get()))
            }
        },
        header: 0.0,
        order: options.order,
        seed: options.seed,
        coordination: scenario.strategy.synchronisation,
        shared_cores: None,
    }
}

/// The server of every operation: parameters greedily in the order in which they come down, gradients with the parameters
/// of the same size, server operations with the transfer next to them. A model's parameters count by their size, of which
/// sparse tables send a part; those of a profile by what comes down.
fn server_of_operations(scenario: &Scenario, profile: &Profile, servers: u32) -> Vec<u32> {
    let count = profile.operations.len();
    let mut server_of = vec![0; count];
    if servers == 1 {
        return server_of;
    }
    let downlinks: Vec<usize> =
        (0..count).filter(|&op| profile.operations[op].resource == Resource::Downlink).collect();
    let sizes: Vec<u64> = match scenario.profile() {
        Some(_) => downlinks.iter().map(|&op| profile.operations[op].bytes).collect(),
        None => scenario.workload.layers.iter().map(|layer| layer.parameters).collect(),
    };
    let placed = placement::greedy_sizes(&sizes, servers);
    let mut free: Vec<(u64, u32)> = Vec::new();
    for (&op, &server) in downlinks.iter().zip(&placed) {
        server_of[op] = server;
        free.push((profile.operations[op].bytes, server));
    }
    for op in (0..count).filter(|&op| profile.operations[op].resource == Resource::Uplink) {
        let twin = free.iter().rposition(|(bytes, _)| *bytes == profile.operations[op].bytes);
        server_of[op] = twin.map_or(0, |twin| free.swap_remove(twin).1);
    }
    for op in 0..count {
        let operation = &profile.operations[op];
        if operation.resource != Resource::Server {
            continue;
        }
        let before = operation
            .after
            .iter()
            .copied()
            .find(|&before| profile.operations[before as usize].resource == Resource::Uplink);
        let behind =
            || downlinks.iter().copied().find(|&down| profile.operations[down].after.contains(&(op as u32)));
        server_of[op] = before
            .map(|before| server_of[before as usize])
            .or_else(|| behind().map(|down| server_of[down]))
            .unwrap_or(0);
    }
    server_of
}
