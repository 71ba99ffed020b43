//! The lanes of workers and servers, and the connections between them.

use super::{Replay, ReplayWorker};
use crate::engine::lane::{Discipline, LaneSpec, Station, Streams};
use crate::engine::stations::links::Route;
use crate::engine::stations::tcp::TcpSpec;
use crate::program::{PoolSpec, Program};
use std::collections::BTreeMap;
use stepcast_core::profile::{Profile, Resource};

/// Local lanes of one worker: its computing lanes, its parser, then downlink, uplink, computing and parsing of every
/// server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalLanes {
    /// Computing lanes: as many operations as ran at once in the recording.
    pub computing: u16,
    pub servers: u16,
}

impl LocalLanes {
    const PER_SERVER: u16 = 4;

    pub fn parser(self) -> u16 {
        self.computing
    }

    pub fn down(self, server: u32) -> u16 {
        self.computing + 1 + server as u16 * Self::PER_SERVER
    }

    pub fn up(self, server: u32) -> u16 {
        self.down(server) + 1
    }

    pub fn server(self, server: u32) -> u16 {
        self.down(server) + 2
    }

    pub fn server_parser(self, server: u32) -> u16 {
        self.down(server) + 3
    }

    pub fn count(self) -> u16 {
        self.computing + 1 + self.servers * Self::PER_SERVER
    }

    pub fn names(self) -> Vec<String> {
        let mut names: Vec<String> =
            (0..self.computing).map(|lane| format!("worker, thread {lane}")).collect();
        names.push("worker, parsing".to_owned());
        for server in 0..self.servers {
            for lane in ["downlink", "uplink", "computing", "parsing"] {
                names.push(format!("server {server}, {lane}"));
            }
        }
        names
    }
}

impl Replay<'_> {
    pub fn local_lanes(&self) -> LocalLanes {
        let computing = computing_lanes(self.profile).into_iter().max().map_or(1, |lane| lane + 1);
        LocalLanes { computing, servers: self.servers as u16 }
    }

    /// Computing and parsing of one worker and of the servers for it, with `connections` between them.
    fn lanes(
        &self,
        lanes: LocalLanes,
        shared: Shared,
        connections: impl Fn(u32, bool) -> LaneSpec,
    ) -> Vec<LaneSpec> {
        let station = shared.cores.map_or(Station::Own(1.0), Station::Pool);
        let computing = LaneSpec { discipline: Discipline::Ranked, station, ..LaneSpec::own(1.0) };
        let parsing = LaneSpec { discipline: Discipline::Delay, ..LaneSpec::own(1.0) };
        let mut specs = vec![computing; usize::from(lanes.computing)];
        specs.push(parsing);
        for server in 0..self.servers {
            let software =
                |first: u32| LaneSpec { station: Station::Pool(first + server), ..LaneSpec::own(1.0) };
            let at_server = shared.software.map_or(parsing, software);
            specs.extend([connections(server, false), connections(server, true), computing, at_server]);
        }
        specs
    }

    /// Adds the pools that workers share: cores, and the software of each server.
    fn add_shared(&self, program: &mut Program) -> Shared {
        let cores = self.shared_cores.map(|capacity| {
            program.pools.push(PoolSpec { capacity, cap: 1.0, weighted: false });
            program.pools.len() as u32 - 1
        });
        let software = self.software.as_ref().map(|_| {
            let first = program.pools.len() as u32;
            program.pools.extend(std::iter::repeat_n(PoolSpec::equal(1.0), self.servers as usize));
            first
        });
        Shared { cores, software }
    }

    /// Adds workers of these kinds whose connections share links. With one server and workers' ports at least as
    /// fast as its own, a pool does what max-min sharing would do, faster.
    pub(super) fn connect_by_links(
        &self,
        program: &mut Program,
        lanes: LocalLanes,
        kinds: &[usize],
        streams: Streams,
    ) {
        let server_port = self.server_port.get();
        let simple = self.servers == 1
            && self.server_machines.is_none()
            && self.workers.iter().all(|worker| worker.machine.is_none() && worker.port >= self.server_port);
        let mut ports = Ports::default();
        if simple {
            program.pools = vec![PoolSpec { weighted: true, ..PoolSpec::equal(server_port) }; 2];
        } else {
            for worker in &self.workers {
                ports.worker(program, worker);
            }
            for server in 0..self.servers as usize {
                let machine = self.server_machines.as_ref().map(|machines| machines[server]);
                ports.server(program, machine, server_port);
            }
        }
        let shared = self.add_shared(program);
        for (worker, &kind) in kinds.iter().enumerate() {
            let specs = self.lanes(lanes, shared, |server, up| LaneSpec {
                discipline: Discipline::Streams(streams),
                station: match simple {
                    true => Station::Pool(u32::from(up)),
                    false => ports.between(server as usize, worker, up),
                },
                startup: self.startup.get(),
                startup_pool: None,
            });
            program.add_worker_with_own_lanes(kind, specs);
        }
    }

    pub(super) fn connect_by_tcp(
        &self,
        program: &mut Program,
        lanes: LocalLanes,
        kinds: &[usize],
        spec: TcpSpec,
    ) {
        program.tcp = Some(spec);
        let shared = self.add_shared(program);
        for (worker, &kind) in (0..).zip(kinds) {
            let specs = self.lanes(lanes, shared, |_, up| LaneSpec {
                discipline: if up { Discipline::Fifo } else { Discipline::Ranked },
                station: Station::Tcp { worker, up },
                startup: 0.0,
                startup_pool: None,
            });
            program.add_worker_with_own_lanes(kind, specs);
        }
    }
}

/// Pools that workers share.
#[derive(Debug, Clone, Copy)]
struct Shared {
    cores: Option<u32>,
    /// The first of one pool for each server: its software.
    software: Option<u32>,
}

/// Rate of a connection inside a machine: no network limits it.
const INSIDE: f64 = f64::MAX;

/// The two ports, in and out, of every machine.
#[derive(Debug, Default)]
struct Ports {
    /// Ports of machines that several share.
    machines: BTreeMap<u32, u32>,
    /// By server, then by worker: the first of its machine's ports.
    servers: Vec<u32>,
    workers: Vec<u32>,
}

impl Ports {
    fn of(&mut self, program: &mut Program, machine: Option<u32>, rate: f64) -> u32 {
        let mut add = || {
            program.ports.extend([rate; 2]);
            program.ports.len() as u32 - 2
        };
        match machine {
            Some(machine) => *self.machines.entry(machine).or_insert_with(add),
            None => add(),
        }
    }

    fn worker(&mut self, program: &mut Program, worker: &ReplayWorker) {
        let ports = self.of(program, worker.machine, worker.port.get());
        self.workers.push(ports);
    }

    fn server(&mut self, program: &mut Program, machine: Option<u32>, rate: f64) {
        let ports = self.of(program, machine, rate);
        self.servers.push(ports);
    }

    fn between(&self, server: usize, worker: usize, up: bool) -> Station {
        let (server, worker) = (self.servers[server], self.workers[worker]);
        if server == worker {
            return Station::Own(INSIDE);
        }
        let up = u32::from(up);
        Station::Links(Route::new(&[server + 1 - up, worker + up]))
    }
}

/// The computing lane of every worker operation: as many lanes as operations ran at once in the first recorded step, each
/// operation on the first that was free.
pub(super) fn computing_lanes(profile: &Profile) -> Vec<u16> {
    let mut lanes = vec![0; profile.operations.len()];
    let Some(step) = profile.steps.first() else { return lanes };
    let is_worker = |&op: &usize| profile.operations[op].resource == Resource::Worker;
    let mut order: Vec<usize> = (0..profile.operations.len()).filter(is_worker).collect();
    order.sort_by(|&a, &b| step.start[a].total_cmp(&step.start[b]));
    let mut free_at: Vec<f64> = vec![0.0];
    for op in order {
        let free = free_at.iter().position(|free| *free <= step.start[op]);
        let lane = free.unwrap_or(free_at.len());
        if lane == free_at.len() {
            free_at.push(0.0);
        }
        free_at[lane] = step.end[op];
        lanes[op] = lane as u16;
    }
    lanes
}
