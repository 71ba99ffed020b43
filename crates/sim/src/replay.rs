//! From a profile of one worker to a program for many (Li 2020, section 3).
//!
//! Every worker draws steps from the profile. Transfers get new durations from their sizes; behind each one stands the
//! work of parsing what has arrived (section 3.2.1), on the receiver. What a step's recording does not explain, the time
//! from its last operation to the next step, is kept as work of the worker.

use crate::coordinate::Coordination;
use crate::graph::{GraphError, OpSpec, StepGraph};
use crate::lane::{Discipline, LaneSpec, Station, Streams};
use crate::network::Route;
use crate::program::{PoolSpec, Program, StepWork};
use stepcast_core::profile::{Profile, Resource, Step};
use stepcast_core::quantity::{BytesPerSec, Seconds};

/// Where receivers parse what has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParseLane {
    /// On the unit that also computes.
    #[default]
    Shared,
    /// On a unit of its own, one transfer after the other.
    Own,
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
    /// How streams share a connection.
    pub streams: Streams,
    /// Order of downlink transfers.
    pub order: TransferOrder,
    /// When workers wait for each other.
    pub coordination: Coordination,
}

/// Lanes of one worker, in the order of its local lanes.
struct Lanes {
    servers: u16,
}

impl Lanes {
    const WORKER: u16 = 0;
    const WORKER_PARSER: u16 = 1;
    const PER_SERVER: u16 = 4;

    fn down(server: u32) -> u16 {
        2 + server as u16 * Self::PER_SERVER
    }

    fn up(server: u32) -> u16 {
        Self::down(server) + 1
    }

    fn server(server: u32) -> u16 {
        Self::down(server) + 2
    }

    fn server_parser(server: u32) -> u16 {
        Self::down(server) + 3
    }

    fn count(&self) -> u16 {
        2 + self.servers * Self::PER_SERVER
    }
}

impl Replay {
    /// The program.
    pub fn program(&self, profile: &Profile) -> Result<Program, GraphError> {
        let lanes = Lanes { servers: self.servers as u16 };
        let graph = self.graph(profile, &lanes)?;
        let mut slownesses: Vec<f64> = self.workers.iter().map(|worker| worker.slowness).collect();
        slownesses.sort_unstable_by(f64::total_cmp);
        slownesses.dedup();
        let kind = |worker: &ReplayWorker| {
            slownesses.iter().position(|slowness| slowness.total_cmp(&worker.slowness).is_eq()).unwrap_or(0)
        };
        let steps = slownesses.iter().map(|&slowness| {
            profile.steps.iter().map(|step| self.work(profile, &graph, step, slowness)).collect()
        });
        let mut program = Program {
            steps: steps.collect(),
            kind: self.workers.iter().map(kind).collect(),
            coordination: self.coordination,
            silent_when_local: (0..lanes.count()).map(|lane| lane > Lanes::WORKER_PARSER).collect(),
            lanes: Vec::new(),
            lane_of: Vec::new(),
            pools: Vec::new(),
            ports: Vec::new(),
            graph,
        };
        self.connect(&mut program, &lanes);
        Ok(program)
    }

    /// Operations 0..n are the profile's; then one that parses for every transfer, in order; then what comes between
    /// steps.
    fn graph(&self, profile: &Profile, lanes: &Lanes) -> Result<StepGraph, GraphError> {
        let count = profile.operations.len() as u32;
        let transfers = profile.operations.iter().enumerate().filter(|(_, op)| op.resource.is_transfer());
        let mut parser_of: Vec<Option<u32>> = vec![None; count as usize];
        for (parser, (index, _)) in (count..).zip(transfers) {
            parser_of[index] = Some(parser);
        }
        let arrived = |before: u32| parser_of[before as usize].unwrap_or(before);
        let mut specs: Vec<OpSpec> = Vec::new();
        for (index, operation) in profile.operations.iter().enumerate() {
            let server = self.server_of[index];
            specs.push(OpSpec {
                name: operation.name.clone(),
                lane: match operation.resource {
                    Resource::Worker => Lanes::WORKER,
                    Resource::Downlink => Lanes::down(server),
                    Resource::Uplink => Lanes::up(server),
                    Resource::Server => Lanes::server(server),
                },
                after: operation.after.iter().copied().map(arrived).collect(),
                releases: None,
            });
        }
        for (index, operation) in profile.operations.iter().enumerate() {
            if parser_of[index].is_none() {
                continue;
            }
            let server = self.server_of[index];
            let lane = match (operation.resource, self.parsing.lane) {
                (Resource::Downlink, ParseLane::Shared) => Lanes::WORKER,
                (Resource::Downlink, ParseLane::Own) => Lanes::WORKER_PARSER,
                (_, ParseLane::Shared) => Lanes::server(server),
                (_, ParseLane::Own) => Lanes::server_parser(server),
            };
            let name = format!("parse {}", operation.name);
            specs.push(OpSpec { name, lane, after: vec![index as u32], releases: None });
        }
        let mut is_last = vec![true; specs.len()];
        for &before in specs.iter().flat_map(|spec| &spec.after) {
            is_last[before as usize] = false;
        }
        let after = (0..specs.len() as u32).filter(|&op| is_last[op as usize]).collect();
        specs.push(OpSpec { name: "between steps".to_owned(), lane: Lanes::WORKER, after, releases: None });
        StepGraph::new(&specs, lanes.count())
    }

    fn work(&self, profile: &Profile, graph: &StepGraph, step: &Step, slowness: f64) -> StepWork {
        let mut work = Vec::with_capacity(graph.len());
        for (index, operation) in profile.operations.iter().enumerate() {
            work.push(match operation.resource {
                Resource::Downlink | Resource::Uplink => operation.size().get(),
                Resource::Worker => step.duration(index).get() * slowness,
                Resource::Server => step.duration(index).get(),
            });
        }
        for operation in profile.operations.iter().filter(|op| op.resource.is_transfer()) {
            let parsing = self.parsing.per_byte * operation.size().get() + self.parsing.fixed;
            work.push(parsing.get());
        }
        let end = step.end.iter().copied().fold(0.0, f64::max);
        work.push((step.length - end).max(0.0));
        StepWork { work, sources: self.sources(profile, graph, step) }
    }

    /// Sources in the order in which they are asked for; those that compute keep their recorded times.
    fn sources(&self, profile: &Profile, graph: &StepGraph, step: &Step) -> Vec<u32> {
        let mut sources = graph.sources().to_vec();
        let recorded = |op: u32| step.start.get(op as usize).copied().unwrap_or(0.0);
        sources.sort_by(|&a, &b| recorded(a).total_cmp(&recorded(b)));
        let needed = match self.order {
            TransferOrder::Recorded => return sources,
            TransferOrder::Reverse => {
                sources.reverse();
                return sources;
            }
            TransferOrder::FewestBefore => needed(profile, |_| 1.0),
            TransferOrder::EarliestNeeded => needed(profile, |op| step.duration(op).get()),
        };
        let key = |op: u32| needed.get(op as usize).copied().unwrap_or(0.0);
        sources.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        sources
    }

    /// Lanes and what serves them. With one server and workers' ports at least as fast as its own, a pool does what
    /// max-min sharing would do, faster.
    fn connect(&self, program: &mut Program, lanes: &Lanes) {
        let server_port = self.server_port.get();
        let simple = self.servers == 1 && self.workers.iter().all(|worker| worker.port >= self.server_port);
        if simple {
            program.pools = vec![PoolSpec { capacity: server_port, cap: server_port }; 2];
        } else {
            // Two ports, down and up, for each server, then for each worker.
            program.ports = vec![server_port; 2 * self.servers as usize];
        }
        for worker in &self.workers {
            let worker_port = program.ports.len() as u32;
            if !simple {
                program.ports.extend([worker.port.get(); 2]);
            }
            let first = program.lanes.len() as u32;
            program.lanes.extend([LaneSpec::own(1.0), LaneSpec::own(1.0)]);
            for server in 0..self.servers {
                for direction in 0..2 {
                    let station = match simple {
                        true => Station::Pool(direction),
                        false => {
                            Station::Links(Route::new(&[2 * server + direction, worker_port + direction]))
                        }
                    };
                    program.lanes.push(LaneSpec {
                        discipline: Discipline::Streams(self.streams),
                        station,
                        startup: self.startup.get(),
                    });
                }
                program.lanes.extend([LaneSpec::own(1.0), LaneSpec::own(1.0)]);
            }
            program.lane_of.push((first..first + u32::from(lanes.count())).collect());
        }
    }
}

/// For every operation: the least cost of worker operations that must run before its first use can.
fn needed(profile: &Profile, cost: impl Fn(usize) -> f64) -> Vec<f64> {
    let count = profile.operations.len();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut waiting: Vec<usize> = Vec::with_capacity(count);
    for (index, operation) in profile.operations.iter().enumerate() {
        waiting.push(operation.after.len());
        for &before in &operation.after {
            followers[before as usize].push(index);
        }
    }
    // Cost of all computing on the longest way to each operation.
    let mut before = vec![0.0f64; count];
    let mut ready: Vec<usize> = (0..count).filter(|&op| waiting[op] == 0).collect();
    while let Some(op) = ready.pop() {
        let own = if profile.operations[op].resource == Resource::Worker { cost(op) } else { 0.0 };
        for &next in &followers[op] {
            before[next] = before[next].max(before[op] + own);
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(next);
            }
        }
    }
    let first_use = |op: usize| followers[op].iter().map(|&next| before[next]).fold(f64::INFINITY, f64::min);
    (0..count).map(first_use).collect()
}
