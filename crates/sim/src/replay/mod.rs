//! From a profile of one worker to a program for many (Li 2020, section 3).
//!
//! Every worker draws steps from the profile. Transfers get new durations from their sizes; behind each one stands the
//! work of parsing what has arrived (section 3.2.1), on the receiver. What a step's recording does not explain, the time
//! from its last operation to the next step, is kept as work of the worker.

mod recorded;

use crate::coordinate::Coordination;
use crate::graph::{GraphError, OpSpec, StepGraph};
use crate::lane::{Discipline, LaneSpec, Station, Streams};
use crate::network::Route;
use crate::program::{PoolSpec, Program, StepWork};
use crate::sample::Sampler;
use crate::tcp::TcpSpec;
use recorded::{computing_lanes, needed};
use stepcast_core::profile::{Profile, Resource, Step};
use stepcast_core::quantity::{BytesPerSec, Seconds};

/// Where receivers parse what has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParseLane {
    /// On the unit that also computes.
    Shared,
    /// Beside it: nobody waits for anybody's parsing.
    #[default]
    Beside,
}

/// Cost of parsing a transfer: fixed + per byte.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parsing {
    /// For each byte.
    pub per_byte: Seconds,
    /// For each transfer.
    pub fixed: Seconds,
    /// Where.
    pub lane: ParseLane,
}

/// How transfers share the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Transport {
    /// Links are shared fairly at all times; streams share a connection (Li 2020, section 3).
    Fair(Streams),
    /// TCP connections find their rates (one server; all ports alike).
    Tcp(TcpSpec),
}

/// In which order downlink transfers are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TransferOrder {
    /// As recorded, step by step.
    #[default]
    Recorded,
    /// The transfer first that computing waits for first, by the number of operations before its first use (TIC).
    FewestBefore,
    /// The same by the time of those operations (TAC).
    EarliestNeeded,
    /// The opposite of what is recorded.
    Reverse,
    /// Another one for every recorded step, by this seed.
    Random(u64),
}

/// One worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayWorker {
    /// Time of its computing against the profile's: 2 is twice as slow.
    pub slowness: f64,
    /// Rate of its port, for payload.
    pub port: BytesPerSec,
}

/// How to replay a profile.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The workers.
    pub workers: Vec<ReplayWorker>,
    /// The server that holds each operation's tensor; only those of transfers and server operations count.
    pub server_of: Vec<u32>,
    /// Number of servers.
    pub servers: u32,
    /// Rate of each server's port, for payload.
    pub server_port: BytesPerSec,
    /// Start-up cost of a transfer.
    pub startup: Seconds,
    /// Cost of parsing a transfer.
    pub parsing: Parsing,
    /// How transfers share the network.
    pub transport: Transport,
    /// Bytes that a transfer carries beside its payload.
    pub header: f64,
    /// Order of downlink transfers.
    pub order: TransferOrder,
    /// When workers wait for each other.
    pub coordination: Coordination,
    /// Cores that all workers and servers share, where they run on one host.
    pub shared_cores: Option<f64>,
}

/// Local lanes of one worker: its computing lanes, its parser, then downlink, uplink, computing and parsing of every
/// server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalLanes {
    /// Computing lanes: as many operations as ran at once in the recording.
    pub computing: u16,
    /// Servers.
    pub servers: u16,
}

impl LocalLanes {
    const PER_SERVER: u16 = 4;

    /// Where the worker parses.
    pub fn parser(self) -> u16 {
        self.computing
    }

    /// Connection from a server.
    pub fn down(self, server: u32) -> u16 {
        self.computing + 1 + server as u16 * Self::PER_SERVER
    }

    /// Connection to a server.
    pub fn up(self, server: u32) -> u16 {
        self.down(server) + 1
    }

    /// Computing of a server for this worker.
    pub fn server(self, server: u32) -> u16 {
        self.down(server) + 2
    }

    /// Where a server parses.
    pub fn server_parser(self, server: u32) -> u16 {
        self.down(server) + 3
    }

    /// How many there are.
    pub fn count(self) -> u16 {
        self.computing + 1 + self.servers * Self::PER_SERVER
    }
}

impl Replay {
    /// The local lanes of every worker.
    pub fn local_lanes(&self, profile: &Profile) -> LocalLanes {
        let computing = computing_lanes(profile).into_iter().max().map_or(1, |lane| lane + 1);
        LocalLanes { computing, servers: self.servers as u16 }
    }

    /// The program.
    pub fn program(&self, profile: &Profile) -> Result<Program, GraphError> {
        let lanes = self.local_lanes(profile);
        let graph = self.graph(profile, lanes)?;
        let mut slownesses: Vec<f64> = self.workers.iter().map(|worker| worker.slowness).collect();
        slownesses.sort_unstable_by(f64::total_cmp);
        slownesses.dedup();
        let kind = |worker: &ReplayWorker| {
            slownesses.iter().position(|slowness| slowness.total_cmp(&worker.slowness).is_eq()).unwrap_or(0)
        };
        let steps = slownesses.iter().map(|&slowness| {
            let numbered = profile.steps.iter().enumerate();
            numbered.map(|(number, step)| self.work(profile, &graph, step, number, slowness)).collect()
        });
        let mut program = Program {
            steps: steps.collect(),
            kind: self.workers.iter().map(kind).collect(),
            coordination: self.coordination,
            silent_when_local: (0..lanes.count()).map(|lane| lane > lanes.parser()).collect(),
            lanes: Vec::new(),
            lane_of: Vec::new(),
            pools: Vec::new(),
            ports: Vec::new(),
            gatherings: Vec::new(),
            coupling: None,
            tcp: None,
            graph,
        };
        match self.transport {
            Transport::Fair(streams) => self.connect_fairly(&mut program, lanes, streams),
            Transport::Tcp(spec) => self.connect_by_tcp(&mut program, lanes, spec),
        }
        Ok(program)
    }

    /// Operations 0..n are the profile's; then one that parses for every transfer, in order; then what comes between
    /// steps. Downlink transfers wait for nothing: servers hold all parameters ready.
    fn graph(&self, profile: &Profile, lanes: LocalLanes) -> Result<StepGraph, GraphError> {
        let count = profile.operations.len() as u32;
        let computing = computing_lanes(profile);
        let transfers = profile.operations.iter().enumerate().filter(|(_, op)| op.resource.is_transfer());
        let mut parser_of: Vec<Option<u32>> = vec![None; count as usize];
        for (parser, (index, _)) in (count..).zip(transfers) {
            parser_of[index] = Some(parser);
        }
        let arrived = |before: u32| parser_of[before as usize].unwrap_or(before);
        let mut specs: Vec<OpSpec> = Vec::new();
        for (index, operation) in profile.operations.iter().enumerate() {
            let server = self.server_of[index];
            let (lane, waits) = match operation.resource {
                Resource::Worker => (computing[index], true),
                Resource::Downlink => (lanes.down(server), false),
                Resource::Uplink => (lanes.up(server), true),
                Resource::Server => (lanes.server(server), true),
            };
            let after = operation.after.iter().copied().filter(|_| waits).map(arrived).collect();
            specs.push(OpSpec { name: operation.name.clone(), lane, after, releases: None });
        }
        for (index, operation) in profile.operations.iter().enumerate() {
            if parser_of[index].is_none() {
                continue;
            }
            let server = self.server_of[index];
            let lane = match (operation.resource, self.parsing.lane) {
                (Resource::Downlink, ParseLane::Shared) => 0,
                (Resource::Downlink, ParseLane::Beside) => lanes.parser(),
                (_, ParseLane::Shared) => lanes.server(server),
                (_, ParseLane::Beside) => lanes.server_parser(server),
            };
            let name = format!("parse {}", operation.name);
            specs.push(OpSpec { name, lane, after: vec![index as u32], releases: None });
        }
        let mut is_last = vec![true; specs.len()];
        for &before in specs.iter().flat_map(|spec| &spec.after) {
            is_last[before as usize] = false;
        }
        let after = (0..specs.len() as u32).filter(|&op| is_last[op as usize]).collect();
        specs.push(OpSpec { name: "between steps".to_owned(), lane: 0, after, releases: None });
        StepGraph::new(&specs, lanes.count())
    }

    fn work(
        &self,
        profile: &Profile,
        graph: &StepGraph,
        step: &Step,
        number: usize,
        slowness: f64,
    ) -> StepWork {
        let mut work = Vec::with_capacity(graph.len());
        for (index, operation) in profile.operations.iter().enumerate() {
            work.push(match operation.resource {
                Resource::Downlink | Resource::Uplink => operation.size().get() + self.header,
                Resource::Worker => step.duration(index).get() * slowness,
                Resource::Server => step.duration(index).get(),
            });
        }
        let mut first_request = f64::INFINITY;
        for (index, operation) in
            profile.operations.iter().enumerate().filter(|(_, op)| op.resource.is_transfer())
        {
            let parsing = self.parsing.per_byte * operation.size().get() + self.parsing.fixed;
            work.push(parsing.get());
            if operation.resource == Resource::Downlink {
                first_request = first_request.min(step.start[index]);
            }
        }
        // What a recording does not explain: until transfers are asked for, and from the last operation to the next step.
        let end = step.end.iter().copied().fold(0.0, f64::max);
        let before = if first_request.is_finite() { first_request } else { 0.0 };
        work.push((step.length - end).max(0.0) + before);
        let rank = self.ranks(profile, graph, step, number);
        let mut sources = graph.sources().to_vec();
        sources.sort_by_key(|&op| rank[op as usize]);
        StepWork { work, sources, rank }
    }

    /// The order in which operations that wait for the same lane are served. Computing: in the order of the recording.
    /// Transfers: in the order in which they arrived, which is the order in which they were sent; or as prescribed.
    fn ranks(&self, profile: &Profile, graph: &StepGraph, step: &Step, number: usize) -> Vec<u32> {
        let count = profile.operations.len();
        let needed = match self.order {
            TransferOrder::Recorded | TransferOrder::Reverse => None,
            TransferOrder::Random(seed) => {
                let mut sampler = Sampler::new(seed.wrapping_add(number as u64), 1);
                Some((0..count).map(|_| sampler.uniform(0)).collect())
            }
            TransferOrder::FewestBefore => Some(needed(profile, |_| 1.0)),
            TransferOrder::EarliestNeeded => Some(needed(profile, |op| step.duration(op).get())),
        };
        let key = |op: usize| match (profile.operations[op].resource, &needed, self.order) {
            (Resource::Downlink, Some(needed), _) => needed[op],
            (Resource::Downlink, None, TransferOrder::Reverse) => -step.end[op],
            (Resource::Downlink | Resource::Uplink, _, _) => step.end[op],
            _ => step.start[op],
        };
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        let mut rank = vec![count as u32; graph.len()];
        for (position, op) in order.into_iter().enumerate() {
            rank[op] = position as u32;
        }
        rank
    }

    /// Computing and parsing of one worker and of the servers for it, with `connections` between.
    fn lanes(
        &self,
        lanes: LocalLanes,
        cores: Option<u32>,
        connections: impl Fn(u32, bool) -> LaneSpec,
    ) -> Vec<LaneSpec> {
        let station = cores.map_or(Station::Own(1.0), Station::Pool);
        let computing = LaneSpec { discipline: Discipline::Ranked, station, ..LaneSpec::own(1.0) };
        let parsing = LaneSpec { discipline: Discipline::Delay, ..LaneSpec::own(1.0) };
        let mut specs = vec![computing; usize::from(lanes.computing)];
        specs.push(parsing);
        for server in 0..self.servers {
            specs.extend([connections(server, false), connections(server, true), computing, parsing]);
        }
        specs
    }

    /// The pool of cores, where they are shared.
    fn add_cores(&self, program: &mut Program) -> Option<u32> {
        let capacity = self.shared_cores?;
        program.pools.push(PoolSpec { capacity, cap: 1.0 });
        Some(program.pools.len() as u32 - 1)
    }

    fn add_worker(program: &mut Program, specs: Vec<LaneSpec>) {
        let first = program.lanes.len() as u32;
        program.lanes.extend(specs);
        program.lane_of.push((first..program.lanes.len() as u32).collect());
    }

    /// With one server and workers' ports at least as fast as its own, a pool does what max-min sharing would do, faster.
    fn connect_fairly(&self, program: &mut Program, lanes: LocalLanes, streams: Streams) {
        let server_port = self.server_port.get();
        let simple = self.servers == 1 && self.workers.iter().all(|worker| worker.port >= self.server_port);
        if simple {
            program.pools = vec![PoolSpec { capacity: server_port, cap: server_port }; 2];
        } else {
            // Two ports, down and up, for each server, then for each worker.
            program.ports = vec![server_port; 2 * self.servers as usize];
        }
        let cores = self.add_cores(program);
        for worker in &self.workers {
            let worker_port = program.ports.len() as u32;
            if !simple {
                program.ports.extend([worker.port.get(); 2]);
            }
            let specs = self.lanes(lanes, cores, |server, up| LaneSpec {
                discipline: Discipline::Streams(streams),
                station: match simple {
                    true => Station::Pool(u32::from(up)),
                    false => {
                        Station::Links(Route::new(&[2 * server + u32::from(up), worker_port + u32::from(up)]))
                    }
                },
                startup: self.startup.get(),
                startup_pool: None,
            });
            Self::add_worker(program, specs);
        }
    }

    fn connect_by_tcp(&self, program: &mut Program, lanes: LocalLanes, spec: TcpSpec) {
        program.tcp = Some(spec);
        let cores = self.add_cores(program);
        for worker in 0..self.workers.len() as u32 {
            let specs = self.lanes(lanes, cores, |_, up| LaneSpec {
                discipline: if up { Discipline::Fifo } else { Discipline::Ranked },
                station: Station::Tcp { worker, up },
                startup: 0.0,
                startup_pool: None,
            });
            Self::add_worker(program, specs);
        }
    }
}
