//! All-reduce training as a program: forward and backward pass on every worker, and every message of gradients as one
//! operation that all workers take part in.
//!
//! A message may leave when its gradients are there on all workers; one or more messages are under way at a time. With
//! equal workers, one message at a time and no interference this is the recursion of Liu et al. 2022, to rounding.

use crate::coordinate::Coordination;
use crate::gather::{GatheringSpec, Launch};
use crate::graph::{GraphError, LocalLane, OpSpec, StepGraph};
use crate::lane::{Discipline, LaneSpec, Station};
use crate::program::{Coupling, PoolSpec, Program, StepWork};
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::pass::Pass;
use stepcast_core::profile::{Operation, Resource};
use stepcast_core::quantity::{Bytes, Seconds};

/// Gradients that travel together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// The first of its layers, in backward order.
    pub first: usize,
    /// The last of its layers.
    pub last: usize,
    /// The layer whose backward pass must be over before it is sent: the last, or the one after it if only then it is
    /// known that it does not fit.
    pub after: usize,
    /// How long it then waits.
    pub wait: Seconds,
}

/// Which gradients travel together.
#[derive(Debug, Clone, PartialEq)]
pub enum Messages {
    /// These.
    Buckets(Vec<Bucket>),
    /// Whatever is ready when a cycle begins.
    Cycles {
        /// Shortest time from one cycle to the next.
        length: Seconds,
        /// Most that travels together.
        threshold: Bytes,
        /// Agreement at the beginning of every cycle.
        negotiation: Seconds,
    },
}

/// What communication and computing cost each other.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interference {
    /// While both are under way, each takes (1 + this) times as long. A host that is that busy also goes through what
    /// precedes the bytes of messages one at a time.
    pub slowdown: f64,
    /// Copying a byte of gradients into a message, and out of it, on the worker.
    pub copy_byte: Seconds,
}

/// All-reduce training.
#[derive(Debug, Clone, PartialEq)]
pub struct AllReduce {
    /// Steps to draw from, one list for each kind of worker; all with the same layers.
    pub passes: Vec<Vec<Pass>>,
    /// The kind of every worker.
    pub kind: Vec<usize>,
    /// Which gradients travel together.
    pub messages: Messages,
    /// How long a message takes by its size.
    pub curve: Curve,
    /// The part of that which precedes the bytes.
    pub startup: Seconds,
    /// Messages that may be under way at once.
    pub channels: u32,
    /// What communication and computing cost each other.
    pub interference: Interference,
    /// Steps from one exchange to the next: more than one is local SGD.
    pub period: u32,
}

/// Local lanes of a worker; all channels from the last one on.
const COMPUTING: LocalLane = 0;
const WAITING: LocalLane = 1;
const EXCHANGE: LocalLane = 2;

/// Names of computing.
const FORWARD: &str = "forward";
const UPDATE: &str = "update";

fn backward(layer: usize) -> String {
    format!("backward {layer}")
}

/// What an operation of the program is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Computing before or after the backward pass, waiting, copying.
    Other,
    /// The backward pass of a layer.
    Backward(usize),
    /// A message whose first gradients are those of this layer.
    Message(usize),
}

impl AllReduce {
    /// What every operation of the program is about.
    pub fn roles(&self) -> Vec<Role> {
        let role = |(_, work): &(OpSpec, Work)| match *work {
            Work::Backward(layer) => Role::Backward(layer),
            Work::Message { first, .. } => Role::Message(first),
            _ => Role::Other,
        };
        self.operations().iter().map(role).collect()
    }

    /// Names of every worker's local lanes.
    pub fn lane_names(&self) -> Vec<String> {
        let channel = |channel| format!("all-reduce {channel}");
        let fixed = ["worker", "waiting"].map(str::to_owned);
        fixed.into_iter().chain((0..self.channels()).map(channel)).collect()
    }

    /// What a worker does in a step when it is alone, as a profile tells it; computing is called as in the program.
    pub fn alone(&self) -> Vec<Operation> {
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

    /// Horovod has one.
    fn channels(&self) -> u32 {
        if matches!(self.messages, Messages::Cycles { .. }) { 1 } else { self.channels.max(1) }
    }

    /// The program.
    pub fn program(&self) -> Result<Program, GraphError> {
        let specs = self.operations();
        let ops: Vec<OpSpec> = specs.iter().map(|(spec, _)| spec.clone()).collect();
        let channels = self.channels();
        let graph = StepGraph::new(&ops, EXCHANGE + channels as LocalLane)?;
        let work = |pass: &Pass| {
            // Gradients are packed as soon as they are there, before the backward pass goes on.
            let rank = |(op, (spec, work)): (usize, &(OpSpec, Work))| match work {
                Work::Pack(_) => spec.after.first().copied().unwrap_or(0),
                _ => op as u32,
            };
            StepWork {
                work: specs.iter().map(|(_, work)| self.amount(work, pass)).collect(),
                sources: graph.sources().to_vec(),
                rank: specs.iter().enumerate().map(rank).collect(),
            }
        };
        let steps = self.passes.iter().map(|kind| kind.iter().map(work).collect()).collect();
        let workers = self.kind.len() as u32;
        let lanes = self.lanes(workers);
        // Pools: what carries messages, what precedes them, then one for every worker.
        let mut pools = vec![PoolSpec { capacity: 1.0, cap: 1.0 }; 2];
        pools.resize(2 + workers as usize, PoolSpec { capacity: 1.0, cap: 1.0 });
        let coupling = (self.interference.slowdown > 0.0).then(|| Coupling {
            computing: (2..2 + workers).collect(),
            exchange: WIRE,
            slowdown: self.interference.slowdown,
        });
        let launch = match self.messages {
            Messages::Buckets(_) => Launch::AtOnce,
            Messages::Cycles { length, threshold, negotiation } => Launch::Cycles {
                length: length.get(),
                threshold: threshold.get(),
                negotiation: negotiation.get(),
            },
        };
        Ok(Program {
            graph,
            lane_of: (0..workers)
                .map(|worker| [channels + 1 + worker, channels].into_iter().chain(0..channels).collect())
                .collect(),
            lanes,
            pools,
            ports: Vec::new(),
            gatherings: vec![GatheringSpec { parties: workers, launch, curve: self.curve.clone() }],
            coupling,
            tcp: None,
            steps,
            kind: self.kind.clone(),
            coordination: if self.period > 1 {
                Coordination::Local(self.period)
            } else {
                Coordination::Async
            },
            silent_when_local: (0..EXCHANGE + channels as LocalLane).map(|lane| lane > COMPUTING).collect(),
        })
    }

    /// One message at a time that nothing gets in the way of: its time is known when it begins.
    fn is_simple(&self) -> bool {
        self.channels() <= 1 && self.interference.slowdown <= 0.0
    }

    /// Channels, then the lane where messages wait, then one for every worker.
    fn lanes(&self, workers: u32) -> Vec<LaneSpec> {
        let discipline = Discipline::Gathering(0);
        let channel = match self.is_simple() {
            true => LaneSpec { discipline, ..LaneSpec::own(1.0) },
            false => LaneSpec {
                discipline,
                station: Station::Pool(WIRE),
                startup: self.startup.get(),
                startup_pool: (self.interference.slowdown > 0.0).then_some(STARTUP),
            },
        };
        let mut lanes = vec![channel; self.channels() as usize];
        lanes.push(LaneSpec { discipline: Discipline::Delay, ..LaneSpec::own(1.0) });
        lanes.extend((0..workers).map(|worker| LaneSpec {
            discipline: Discipline::Ranked,
            station: if self.interference.slowdown > 0.0 {
                Station::Pool(2 + worker)
            } else {
                Station::Own(1.0)
            },
            startup: 0.0,
            startup_pool: None,
        }));
        lanes
    }

    /// All operations of a step, and what their work is.
    fn operations(&self) -> Vec<(OpSpec, Work)> {
        let Some(pass) = self.passes.iter().flatten().next() else { return Vec::new() };
        let mut list = List::default();
        let forward = list.add(FORWARD, COMPUTING, vec![], Work::Forward);
        let mut computed = Vec::with_capacity(pass.layers.len());
        let mut before = forward;
        for layer in 0..pass.layers.len() {
            before = list.add(&backward(layer), COMPUTING, vec![before], Work::Backward(layer));
            computed.push(before);
        }
        let last = before;
        let copies = self.interference.copy_byte > Seconds::ZERO;
        let mut arrived = Vec::new();
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
            } else {
                arrived.push(sent);
            }
        }
        arrived.push(unpacked);
        list.add(UPDATE, COMPUTING, arrived, Work::Update);
        list.operations
    }

    /// The messages; in cycles, every gradient by itself.
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

/// The pool that carries messages.
const WIRE: u32 = 0;

/// The pool of what precedes them.
const STARTUP: u32 = 1;

/// What an operation does.
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
