//! From a scenario and a profile to what the engine replays.

use super::placement::servers;
use stepcast_core::profile::Profile;
use stepcast_core::quantity::{BitsPerSec, BytesPerSec, Seconds};
use stepcast_core::scenario::{self, Scenario};
use stepcast_core::speed::Speed;
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{
    Coordination, ParseLane, Parsing, Replay, ReplayWorker, Requeue, StreamOrder, Streams, TcpSpec,
    TransferOrder, Transport,
};

/// Computing time of a group against the profile's: by batch and speed, or by what the device makes of the model.
fn slowness(scenario: &Scenario, index: usize) -> f64 {
    if scenario.profile().is_some() {
        return scenario.slowness(index);
    }
    let step = |index: usize| -> Seconds {
        let speed = Speed::of(scenario, index);
        scenario.workload.layers.iter().map(|layer| speed.forward(layer) + speed.backward(layer)).sum()
    };
    step(index) / step(0)
}

/// The profile on the workers and servers of a scenario.
pub(super) fn replay<'a>(scenario: &Scenario, profile: &'a Profile) -> Replay<'a> {
    let cluster = &scenario.cluster;
    let network = &cluster.network;
    let payload = |rate: BitsPerSec| (rate * network.efficiency).to_bytes_per_sec();
    let mut workers = Vec::with_capacity(cluster.workers() as usize);
    for (index, group) in cluster.groups.iter().enumerate() {
        let port = payload(group.bandwidth.unwrap_or(network.bandwidth));
        let worker = ReplayWorker { slowness: slowness(scenario, index), port };
        workers.extend(std::iter::repeat_n(worker, group.count as usize));
    }
    let server_port = payload(cluster.servers.bandwidth.unwrap_or(network.bandwidth));
    let options = scenario.simulate;
    let per_byte =
        |rate: Option<BytesPerSec>| rate.map_or(Seconds::ZERO, |rate| Seconds::new(1.0 / rate.get()));
    Replay {
        profile,
        workers,
        servers: cluster.servers.count,
        server_of: servers(profile, cluster.servers.count),
        server_port,
        startup: network.latency + network.startup,
        parsing: Parsing {
            per_byte: per_byte(options.parse_rate) + per_byte(network.host_rate),
            fixed: options.parse_fixed,
            lane: if options.parse_while_computing { ParseLane::Shared } else { ParseLane::Beside },
        },
        transport: match options.transport {
            scenario::Transport::Fair => Transport::Fair(Streams {
                window: options.window.map_or(f64::INFINITY, |window| window.get()),
                requeue: Requeue::OnSelection,
                order: StreamOrder::Fifo,
            }),
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
