//! From a scenario and a profile to what the engine replays.

use super::placement::servers;
use stepcast_core::compute;
use stepcast_core::profile::Profile;
use stepcast_core::quantity::{BitsPerSec, BytesPerSec, Seconds};
use stepcast_core::scenario::{self, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{
    Coordination, ParseLane, Parsing, Replay, ReplayWorker, Requeue, StreamOrder, Streams, TcpSpec,
    TransferOrder, Transport,
};

/// Computing time of a group against the profile's: by batch and speed, or by what the device makes of the model, copies
/// of batches included.
fn slowness(scenario: &Scenario, index: usize) -> f64 {
    if scenario.profile().is_some() {
        return scenario.slowness(index);
    }
    let step = |index: usize| -> Seconds {
        let speed = Speed::of(scenario, index);
        let layers = scenario.workload.layers.iter();
        let computing: Seconds = layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
        compute::host_to_device(scenario, index) + computing
    };
    step(index) / step(0)
}

/// Rate of a server's port for payload.
pub(super) fn server_port(scenario: &Scenario) -> BytesPerSec {
    let (network, servers) = (&scenario.cluster.network, &scenario.cluster.servers);
    network.payload_rate(servers.bandwidth.unwrap_or(network.bandwidth))
}

/// The profile on the workers and servers of a scenario.
pub(super) fn replay<'a>(scenario: &Scenario, profile: &'a Profile) -> Replay<'a> {
    let cluster = &scenario.cluster;
    let network = &cluster.network;
    // Hosts copy payload in series with the wire, as in the closed forms.
    let payload = |rate: BitsPerSec| network.payload_rate(rate);
    let mut workers = Vec::with_capacity(cluster.workers() as usize);
    for (index, group) in cluster.groups.iter().enumerate() {
        let port = payload(group.bandwidth.unwrap_or(network.bandwidth));
        let worker = ReplayWorker { slowness: slowness(scenario, index), port };
        workers.extend(std::iter::repeat_n(worker, group.count as usize));
    }
    let server_port = server_port(scenario);
    let options = scenario.simulate;
    Replay {
        profile,
        workers,
        servers: cluster.servers.count,
        server_of: servers(profile, cluster.servers.count),
        server_port,
        startup: network.latency + network.startup,
        parsing: Parsing {
            per_byte: options.parse_rate.map_or(Seconds::ZERO, |rate| Seconds::new(1.0 / rate.get())),
            fixed: options.parse_fixed,
            lane: if options.parse_while_computing { ParseLane::Shared } else { ParseLane::Beside },
        },
        transport: match options.transport {
            scenario::Transport::Uneven | scenario::Transport::Fair => Transport::Shared {
                streams: Streams {
                    window: options.window.map_or(f64::INFINITY, |window| window.get()),
                    requeue: Requeue::OnSelection,
                    order: StreamOrder::Fifo,
                },
                unevenness: match options.transport {
                    scenario::Transport::Uneven => options.unevenness,
                    _ => 0.0,
                },
            },
            scenario::Transport::Tcp => {
                Transport::Tcp(TcpSpec::linux(server_port.get(), options.queue.get()))
            }
        },
        header: 0.0,
        order: match options.order {
            scenario::TransferOrder::Profile => TransferOrder::Recorded,
            scenario::TransferOrder::Tic => TransferOrder::FewestBefore,
            scenario::TransferOrder::Tac => TransferOrder::EarliestNeeded,
            scenario::TransferOrder::Reverse => TransferOrder::Reverse,
            scenario::TransferOrder::Random => TransferOrder::Random(options.seed),
        },
        coordination: match scenario.strategy.synchronisation {
            Synchronisation::Bsp => Coordination::Bounded(0),
            Synchronisation::Async => Coordination::Async,
            Synchronisation::Ssp(bound) => Coordination::Bounded(bound),
            Synchronisation::LocalSgd(steps) => Coordination::Local(steps),
        },
        shared_cores: None,
    }
}
