//! Training with parameter servers: from a profile of one worker to a program for many (Li 2020, section 3).
//!
//! Every worker draws steps from the profile. Transfers get new durations from their sizes; each is followed
//! by parsing on the receiver (section 3.2.1). The unexplained time of a recorded step, from its last operation to the next
//! step, is kept as work of the worker.

mod lanes;

use crate::engine::lane::Streams;
use crate::engine::stations::tcp::TcpSpec;
use crate::engine::steps::Sampler;
use crate::graph::{GraphError, OpSpec, StepGraph};
use crate::program::{Program, ProgramError, StepWork};
pub use lanes::LocalLanes;
use lanes::computing_lanes;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::{BytesPerSec, Seconds};
use stepcast_core::scenario::TransferOrder;
use stepcast_core::strategy::Synchronisation;

/// Least number of steps to draw from if shares of links differ.
const SHARES: usize = 64;

/// Where receivers parse transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParseLane {
    /// On the unit that also computes.
    Shared,
    /// On a separate unit: parsing delays only operations that wait for it.
    #[default]
    Beside,
}

/// Cost of parsing a transfer: fixed + per byte.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Parsing {
    pub per_byte: Seconds,
    /// For each transfer.
    pub fixed: Seconds,
    pub lane: ParseLane,
}

/// How transfers share the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LinkSharing {
    /// Links are shared at all times, and streams share a connection (Li 2020, section 3). The shares of workers differ by
    /// `unevenness`, their relative standard deviation, and change with every step; 0 is exactly fair.
    Shared { streams: Streams, unevenness: f64 },
    /// TCP connections find their rates (one server; all ports alike).
    Tcp(TcpSpec),
}

/// One worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReplayWorker {
    /// Computing time relative to the profile's: 2 is twice as slow.
    pub slowness: f64,
    /// Rate of its machine's ports, for payload.
    pub port: BytesPerSec,
    /// The machine, where workers or servers share it and its ports.
    pub machine: Option<u32>,
}

/// Training with parameter servers: a profile of one worker, and the workers and servers to replay it on.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay<'a> {
    pub profile: &'a Profile,
    pub workers: Vec<ReplayWorker>,
    /// The server that holds each operation's tensor; used only for transfers and server operations.
    pub server_of: Vec<u32>,
    pub servers: u32,
    /// Number of machines that each simulated server stands for: machines with an equal slice of each of its tensors behave
    /// identically.
    pub slices: u32,
    /// Rate of each server's port, for payload; of all its machines together.
    pub server_port: BytesPerSec,
    /// The machine of each server, where servers run on the machines of workers; they then use the ports of these.
    pub server_machines: Option<Vec<u32>>,
    /// Seconds of a server's software for each operation, on one of its machines, shared by all workers; used only for
    /// uplink transfers.
    pub software: Option<Vec<f64>>,
    /// Copies of the parameters that a worker pulls.
    pub copies: f64,
    /// Start-up cost of a transfer.
    pub startup: Seconds,
    pub parsing: Parsing,
    pub sharing: LinkSharing,
    /// Bytes that a transfer carries beside its payload.
    pub header: f64,
    /// Order in which parameters are pulled.
    pub order: TransferOrder,
    /// Seed of random orders, one for every recorded step.
    pub seed: u64,
    pub coordination: Synchronisation,
    /// Cores that all workers and servers share, where they run on one host.
    pub shared_cores: Option<f64>,
}

impl<'a> Replay<'a> {
    /// Equal workers and one server whose ports have the same rate; nothing but computing and transfers takes time.
    pub fn new(profile: &'a Profile, workers: usize, port: BytesPerSec, sharing: LinkSharing) -> Self {
        Self {
            profile,
            workers: vec![ReplayWorker { slowness: 1.0, port, machine: None }; workers],
            server_of: vec![0; profile.operations.len()],
            servers: 1,
            slices: 1,
            server_port: port,
            server_machines: None,
            software: None,
            copies: 1.0,
            startup: Seconds::ZERO,
            parsing: Parsing::default(),
            sharing,
            header: 0.0,
            order: TransferOrder::Profile,
            seed: 0,
            coordination: Synchronisation::Async,
            shared_cores: None,
        }
    }

    pub fn program(&self) -> Result<Program, ProgramError> {
        let lanes = self.local_lanes();
        let graph = self.graph(lanes)?;
        let (slownesses, kinds) = self.kinds();
        let shares = self.shares();
        let steps = |&slowness: &f64| {
            let work = |(place, &share): (usize, &f64)| {
                let index = place % self.profile.steps.len();
                StepWork { share, ..self.work(&graph, index, slowness) }
            };
            shares.iter().enumerate().map(work).collect()
        };
        let steps = slownesses.iter().map(steps).collect();
        let mut program = Program::new(graph, steps);
        program.coordination = self.coordination;
        program.silent_when_local = (0..lanes.count()).map(|lane| lane > lanes.parser()).collect();
        match self.sharing {
            LinkSharing::Shared { streams, .. } => {
                self.connect_by_links(&mut program, lanes, &kinds, streams)
            }
            LinkSharing::Tcp(spec) => self.connect_by_tcp(&mut program, lanes, &kinds, spec),
        }
        Ok(program)
    }

    /// The shares of links of all steps that workers draw: one for each recorded step, or several where there are few, so
    /// that a share does not stand for a step.
    fn shares(&self) -> Vec<f64> {
        let recorded = self.profile.steps.len();
        let LinkSharing::Shared { unevenness, .. } = self.sharing else { return vec![1.0; recorded] };
        if unevenness <= 0.0 || recorded == 0 {
            return vec![1.0; recorded];
        }
        let count = recorded * SHARES.div_ceil(recorded);
        let mut sampler = Sampler::new(count as u64, 1);
        let spread = (1.0 + unevenness.powi(2)).ln().sqrt();
        (0..count).map(|_| (spread * sampler.normal(0)).exp()).collect()
    }

    /// One kind of worker for every slowness: the slownesses, and the kind of every worker.
    fn kinds(&self) -> (Vec<f64>, Vec<usize>) {
        let mut slownesses: Vec<f64> = self.workers.iter().map(|worker| worker.slowness).collect();
        slownesses.sort_unstable_by(f64::total_cmp);
        slownesses.dedup();
        let kind = |worker: &ReplayWorker| {
            slownesses.iter().position(|slowness| slowness.total_cmp(&worker.slowness).is_eq()).unwrap_or(0)
        };
        let kinds = self.workers.iter().map(kind).collect();
        (slownesses, kinds)
    }

    /// Operations 0..n are the profile's; then one that parses for every transfer, in order; then the work between
    /// steps. Downlink transfers wait for nothing: servers hold all parameters ready.
    fn graph(&self, lanes: LocalLanes) -> Result<StepGraph, GraphError> {
        let profile = self.profile;
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
                (_, ParseLane::Shared) if self.software.is_none() => lanes.server(server),
                _ => lanes.server_parser(server),
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

    fn work(&self, graph: &StepGraph, index: usize, slowness: f64) -> StepWork {
        let (profile, step) = (self.profile, &self.profile.steps[index]);
        let slices = f64::from(self.slices);
        let mut work = Vec::with_capacity(graph.len());
        for (index, operation) in profile.operations.iter().enumerate() {
            work.push(match operation.resource {
                Resource::Downlink => operation.size().get() * self.copies + self.header,
                Resource::Uplink => operation.size().get() + self.header,
                Resource::Worker => step.duration(index).get() * slowness,
                Resource::Server => step.duration(index).get() / slices,
            });
        }
        let mut first_request = f64::INFINITY;
        for (index, operation) in
            profile.operations.iter().enumerate().filter(|(_, op)| op.resource.is_transfer())
        {
            // Slices are parsed beside each other, unless by the unit that computes.
            let (size, messages) = match (operation.resource, self.parsing.lane) {
                (Resource::Downlink, ParseLane::Shared) => (operation.size().get(), slices),
                _ => (operation.size().get() / slices, 1.0),
            };
            let parsing = self.parsing.per_byte * size + self.parsing.fixed * messages;
            let software = self.software.as_ref().filter(|_| operation.resource == Resource::Uplink);
            work.push(parsing.get() + software.map_or(0.0, |software| software[index]));
            if operation.resource == Resource::Downlink {
                first_request = first_request.min(step.start[index]);
            }
        }
        // Unexplained time of a recording: before the first transfer, and from the last operation to the next
        // step.
        let end = step.end.iter().copied().fold(0.0, f64::max);
        let before = if first_request.is_finite() { first_request } else { 0.0 };
        work.push((step.length - end).max(0.0) + before);
        let rank = self.ranks(graph, index);
        let mut sources = graph.sources().to_vec();
        sources.sort_by_key(|&op| rank[op as usize]);
        StepWork { work, sources, rank, share: 1.0 }
    }

    /// By operation, for the recorded step at `index`: its place among operations that wait for the same lane. Computing
    /// goes in the order of the recording; transfers in the order in which they were sent, streams in turns of `window` bytes,
    /// or as prescribed.
    fn ranks(&self, graph: &StepGraph, index: usize) -> Vec<u32> {
        let (profile, step) = (self.profile, &self.profile.steps[index]);
        let count = profile.operations.len();
        let needed = match self.order {
            TransferOrder::Profile | TransferOrder::Reverse => None,
            TransferOrder::Random => {
                let mut sampler = Sampler::new(self.seed.wrapping_add(index as u64), 1);
                Some((0..count).map(|_| sampler.uniform(0)).collect())
            }
            TransferOrder::Tic => Some(needed(profile, |_| 1.0)),
            TransferOrder::Tac => Some(needed(profile, |op| step.duration(op).get())),
        };
        let key = |op: usize| match (profile.operations[op].resource, &needed, self.order) {
            (Resource::Downlink, Some(needed), _) => needed[op],
            (Resource::Downlink, None, TransferOrder::Reverse) => -step.end[op],
            (Resource::Downlink | Resource::Uplink, _, _) => step.end[op],
            _ => step.start[op],
        };
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
        if self.order == TransferOrder::Profile {
            let window = match self.sharing {
                LinkSharing::Shared { streams, .. } => streams.window,
                LinkSharing::Tcp(_) => f64::INFINITY,
            };
            let is_down = |op: usize| profile.operations[op].resource == Resource::Downlink;
            let down = order.iter().copied().filter(|&op| is_down(op)).collect();
            let mut sent = profile.sending_order(step, down, window).into_iter();
            order.iter_mut().filter(|op| is_down(**op)).zip(&mut sent).for_each(|(op, next)| *op = next);
        }
        let mut rank = vec![count as u32; graph.len()];
        for (position, op) in order.into_iter().enumerate() {
            rank[op] = position as u32;
        }
        rank
    }
}

/// By operation: the least cost of computing that must precede an operation that waits for it.
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
