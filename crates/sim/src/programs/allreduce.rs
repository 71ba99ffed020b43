//! All-reduce training as a program: forward and backward pass on every worker, and every message of gradients as one
//! operation that all workers take part in.
//!
//! A step begins with the update by the gradients of the step before and ends when its own gradients have arrived, which is
//! at the same moment for all equal workers.
//!
//! A message may leave when its gradients are ready on all workers; one or more messages are under way at a time. With
//! equal workers, one message at a time and no interference this is the recursion of Liu et al. 2022, to rounding.

use crate::engine::lane::{Discipline, LaneSpec, Station};
use crate::engine::rendezvous::{Launch, RendezvousSpec};
use crate::graph::{GraphError, LocalLane, OpSpec, StepGraph};
use crate::program::{Coupling, PoolSpec, Program, ProgramError, StepWork};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::pass::Pass;
use stepcast_core::profile::{Operation, Resource};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::Synchronisation;

/// Gradients that travel together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// The first of its layers, in backward order.
    pub first: usize,
    pub last: usize,
    /// The layer whose backward pass must be over before it is sent: its last layer, or the next one if only that shows
    /// that it does not fit.
    pub after: usize,
    pub wait: Seconds,
}

/// Which gradients travel together.
#[derive(Debug, Clone, PartialEq)]
pub enum Messages {
    Buckets(Vec<Bucket>),
    /// All gradients that are ready when a cycle begins.
    Cycles {
        /// Shortest time from one cycle to the next.
        length: Seconds,
        /// Largest size of a message.
        threshold: Bytes,
        /// Time that workers need at the beginning of every cycle to agree on what is ready.
        negotiation: Seconds,
        /// The beginning of the first cycle, as a share of the length; drawn for every run if none.
        phase: Option<f64>,
    },
}

/// How communication and computing slow each other down.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interference {
    /// While both are under way, each takes (1 + `slowdown`) times as long. Above 0, the start-ups of messages also go one
    /// at a time: the host is too busy for several.
    pub slowdown: f64,
    /// Time that a worker needs to copy a byte of gradients into a message, and again out of it.
    pub copy_byte: Seconds,
}

#[derive(Debug, Clone, PartialEq)]
pub struct AllReduce {
    /// Steps to draw from, one list for each kind of worker; all with the same layers.
    pub passes: Vec<Vec<Pass>>,
    pub kind: Vec<usize>,
    pub messages: Messages,
    /// Time of a message by its size.
    pub curve: Curve,
    /// The part of that time before the bytes.
    pub startup: Seconds,
    /// Messages that may be under way at once.
    pub channels: u32,
    /// How communication and computing slow each other down.
    pub interference: Interference,
    /// Steps from one exchange to the next: more than one is local SGD.
    pub period: u32,
}

/// Pools: the wire, the start-ups of messages, then computing of every worker.
const WIRE: u32 = 0;
const STARTUP: u32 = 1;
const FIRST_WORKER: u32 = 2;

/// Local lanes of a worker; all channels from the last one on.
const COMPUTING: LocalLane = 0;
const WAITING: LocalLane = 1;
const EXCHANGE: LocalLane = 2;

const FORWARD: &str = "forward";
const UPDATE: &str = "update";

fn backward(layer: usize) -> String {
    format!("backward {layer}")
}

/// Role of an operation of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Computing before or after the backward pass, waiting, copying.
    Other,
    Backward(usize),
    /// A message whose first gradients are those of this layer.
    Message(usize),
}

impl AllReduce {
    /// Roles of all operations of the program.
    pub fn roles(&self) -> Vec<Role> {
        let role = |(_, work): &(OpSpec, Work)| match *work {
            Work::Backward(layer) => Role::Backward(layer),
            Work::Message { first, .. } => Role::Message(first),
            _ => Role::Other,
        };
        self.operations().iter().map(role).collect()
    }

    pub fn lane_names(&self) -> Vec<String> {
        let channel = |channel| format!("all-reduce {channel}");
        let fixed = ["worker", "waiting"].map(str::to_owned);
        fixed.into_iter().chain((0..self.channels()).map(channel)).collect()
    }

    /// The operations of a step as a profile of one worker would record them; computing has the names of the program.
    pub fn profile_operations(&self) -> Vec<Operation> {
        let Some(pass) = self.passes.iter().flatten().next() else { return Vec::new() };
        let mut operations = Vec::new();
        let mut add = |name: String, resource, size: Bytes, after| {
            let bytes = size.get().round() as u64;
            operations.push(Operation { name, resource, bytes, after, server: 0 });
            operations.len() as u32 - 1
        };
        let sent = pass.layers.iter().enumerate().filter(|(_, it)| it.gradients > Bytes::ZERO);
        let weights = sent
            .map(|(layer, it)| add(format!("weights {layer}"), Resource::Downlink, it.gradients, vec![]))
            .collect();
        let mut before = add(FORWARD.to_owned(), Resource::Worker, Bytes::ZERO, weights);
        for (layer, it) in pass.layers.iter().enumerate() {
            before = add(backward(layer), Resource::Worker, Bytes::ZERO, vec![before]);
            if it.gradients > Bytes::ZERO {
                add(format!("gradients {layer}"), Resource::Uplink, it.gradients, vec![before]);
            }
        }
        add(UPDATE.to_owned(), Resource::Worker, Bytes::ZERO, vec![before]);
        operations
    }

    /// Messages that may be under way at once; Horovod sends one at a time.
    fn channels(&self) -> u32 {
        if matches!(self.messages, Messages::Cycles { .. }) { 1 } else { self.channels.max(1) }
    }

    pub fn program(&self) -> Result<Program, ProgramError> {
        let operations = self.operations();
        let graph = self.graph(&operations)?;
        let steps =
            |passes: &Vec<Pass>| passes.iter().map(|pass| self.work(&graph, &operations, pass)).collect();
        let steps = self.passes.iter().map(steps).collect();
        let mut program = Program::new(graph, steps);
        if self.period > 1 {
            program.coordination = Synchronisation::LocalSgd(self.period);
        }
        program.silent_when_local = (0..self.local_lanes()).map(|lane| lane > COMPUTING).collect();
        self.connect(&mut program);
        Ok(program)
    }

    fn local_lanes(&self) -> LocalLane {
        EXCHANGE + self.channels() as LocalLane
    }

    fn graph(&self, operations: &[(OpSpec, Work)]) -> Result<StepGraph, GraphError> {
        let specs: Vec<OpSpec> = operations.iter().map(|(spec, _)| spec.clone()).collect();
        StepGraph::new(&specs, self.local_lanes())
    }

    fn work(&self, graph: &StepGraph, operations: &[(OpSpec, Work)], pass: &Pass) -> StepWork {
        // Gradients are packed as soon as they are ready, before the backward pass continues.
        let rank = |(op, (spec, work)): (usize, &(OpSpec, Work))| match work {
            Work::Pack(_) => spec.after.first().copied().unwrap_or(0),
            _ => op as u32,
        };
        StepWork {
            work: operations.iter().map(|(_, work)| self.amount(work, pass)).collect(),
            sources: graph.sources().to_vec(),
            rank: operations.iter().enumerate().map(rank).collect(),
            share: 1.0,
        }
    }

    /// Adds lanes and stations: channels that all workers share, the lane where messages wait, then computing of every
    /// worker.
    fn connect(&self, program: &mut Program) {
        let workers = self.kind.len() as u32;
        let coupled = self.interference.slowdown > 0.0;
        program.rendezvous =
            vec![RendezvousSpec { parties: workers, launch: self.launch(), curve: self.curve.clone() }];
        program.pools = vec![PoolSpec::equal(1.0); (FIRST_WORKER + workers) as usize];
        if coupled {
            program.couplings.push(Coupling {
                computing: (FIRST_WORKER..FIRST_WORKER + workers).collect(),
                exchange: vec![WIRE],
                slowdown: self.interference.slowdown,
            });
        }
        let channels: Vec<u32> = (0..self.channels()).map(|_| program.add_lane(self.channel())).collect();
        let waiting = program.add_lane(LaneSpec { discipline: Discipline::Delay, ..LaneSpec::own(1.0) });
        for (worker, &kind) in (FIRST_WORKER..).zip(&self.kind) {
            let station = if coupled { Station::Pool(worker) } else { Station::Own(1.0) };
            let computing =
                LaneSpec { discipline: Discipline::Ranked, station, startup: 0.0, startup_pool: None };
            let own = program.add_lane(computing);
            program.add_worker(kind, [own, waiting].into_iter().chain(channels.iter().copied()).collect());
        }
    }

    fn launch(&self) -> Launch {
        match self.messages {
            Messages::Buckets(_) => Launch::AtOnce,
            Messages::Cycles { length, threshold, negotiation, phase } => Launch::Cycles {
                length: length.get(),
                threshold: threshold.get(),
                negotiation: negotiation.get(),
                phase,
            },
        }
    }

    /// A lane that carries messages. The time of a message is known when it begins if it is the only one under way and
    /// nothing slows it down; otherwise messages share the wire.
    fn channel(&self) -> LaneSpec {
        let discipline = Discipline::Rendezvous(0);
        let slowed = self.interference.slowdown > 0.0;
        if self.channels() <= 1 && !slowed {
            return LaneSpec { discipline, ..LaneSpec::own(1.0) };
        }
        LaneSpec {
            discipline,
            station: Station::Pool(WIRE),
            startup: self.startup.get(),
            startup_pool: slowed.then_some(STARTUP),
        }
    }

    fn operations(&self) -> Vec<(OpSpec, Work)> {
        let Some(pass) = self.passes.iter().flatten().next() else { return Vec::new() };
        let mut list = List::default();
        let update = list.add(UPDATE, COMPUTING, vec![], Work::Update);
        let forward = list.add(FORWARD, COMPUTING, vec![update], Work::Forward);
        let mut computed = Vec::with_capacity(pass.layers.len());
        let mut before = forward;
        for layer in 0..pass.layers.len() {
            before = list.add(&backward(layer), COMPUTING, vec![before], Work::Backward(layer));
            computed.push(before);
        }
        let last = before;
        let copies = self.interference.copy_byte > Seconds::ZERO;
        let mut unpacked = last;
        for bucket in self.buckets(pass) {
            let size = pass.layers[bucket.first..=bucket.last].iter().map(|layer| layer.gradients).sum();
            let name = |what: &str| format!("{what} {}-{}", bucket.first, bucket.last);
            let mut ready = computed[bucket.after];
            if bucket.wait > Seconds::ZERO {
                ready = list.add(&name("wait"), WAITING, vec![ready], Work::Wait(bucket.wait));
            }
            if copies {
                ready = list.add(&name("pack"), COMPUTING, vec![ready], Work::Pack(size));
            }
            let sent = list.add(
                &name("all-reduce"),
                EXCHANGE,
                vec![ready],
                Work::Message { first: bucket.first, size },
            );
            if copies {
                unpacked = list.add(&name("unpack"), COMPUTING, vec![sent, unpacked], Work::Unpack(size));
            }
        }
        list.operations
    }

    /// The messages; with cycles, one for every layer's gradients, which the engine fuses.
    fn buckets(&self, pass: &Pass) -> Vec<Bucket> {
        match &self.messages {
            Messages::Buckets(buckets) => buckets.clone(),
            Messages::Cycles { .. } => {
                let layers = pass.layers.iter().enumerate();
                let sent = layers.filter(|(_, layer)| layer.gradients > Bytes::ZERO);
                sent.map(|(layer, _)| Bucket { first: layer, last: layer, after: layer, wait: Seconds::ZERO })
                    .collect()
            }
        }
    }

    fn amount(&self, work: &Work, pass: &Pass) -> f64 {
        match *work {
            Work::Forward => pass.forward.get(),
            Work::Backward(layer) => pass.layers[layer].backward.get(),
            Work::Wait(time) => time.get(),
            Work::Pack(size) | Work::Unpack(size) => self.interference.copy_byte.get() * size.get(),
            Work::Message { size, .. } => size.get(),
            Work::Update => pass.update.get(),
        }
    }
}

/// Work of an operation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Work {
    Forward,
    Backward(usize),
    Wait(Seconds),
    Pack(Bytes),
    Message { first: usize, size: Bytes },
    Unpack(Bytes),
    Update,
}

#[derive(Default)]
struct List {
    operations: Vec<(OpSpec, Work)>,
}

impl List {
    fn add(&mut self, name: &str, lane: LocalLane, after: Vec<u32>, work: Work) -> u32 {
        self.operations.push((OpSpec { name: name.to_owned(), lane, after, releases: None }, work));
        self.operations.len() as u32 - 1
    }
}
