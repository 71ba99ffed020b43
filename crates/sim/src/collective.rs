//! Collectives step by step: every send of every worker is an operation, which waits for what its neighbours sent before.
//!
//! Workers have one full-duplex port each and combine what arrives before they pass it on. With equal workers the times
//! are the closed forms of collective costs; with unequal ones they show how a slow port or a slow worker spreads.

use crate::coordinate::Coordination;
use crate::graph::{GraphError, LocalLane, OpId, OpSpec, StepGraph};
use crate::lane::{LaneSpec, Station};
use crate::network::Route;
use crate::program::{Program, StepWork};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// Which collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collective {
    /// Every worker ends up with its share of the sum, around a ring.
    ReduceScatter,
    /// Every worker gets all shares, around a ring.
    AllGather,
    /// Both, one after the other.
    Ring,
    /// Recursive halving, then recursive doubling; a power of two workers.
    HalvingDoubling,
    /// From the first worker to all others along a binomial tree.
    Broadcast,
    /// To the first worker and back along a binomial tree.
    Tree,
}

/// The workers of a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct Machines {
    /// Rate of every worker's port, one direction.
    pub ports: Vec<BytesPerSec>,
    /// What every send costs beside its bytes.
    pub step: Seconds,
    /// Combining a byte that arrived with an own one.
    pub combine_byte: Seconds,
}

/// Local lanes: combining, then sending to every neighbour.
const COMBINING: LocalLane = 0;
const SENDING: LocalLane = 1;

/// One round: everybody sends to a neighbour, and combines what comes from another.
struct Round {
    neighbour: u16,
    /// Share of the data that each worker sends.
    sent: Vec<f64>,
    combines: bool,
}

impl Collective {
    /// A program of one step: this collective of `size` bytes on every worker.
    pub fn program(self, machines: &Machines, size: Bytes) -> Result<Program, GraphError> {
        let workers = machines.ports.len();
        let (neighbours, rounds) = self.rounds(workers);
        let mut specs = vec![spec("begin", COMBINING, vec![])];
        let mut told: Vec<(OpId, u16, OpId)> = Vec::new();
        // What a worker has to have sent and combined before it may send in the next round.
        let mut before: Vec<OpId> = vec![0];
        for (number, round) in rounds.iter().enumerate() {
            let send = specs.len() as OpId;
            specs.push(spec(&format!("send {number}"), SENDING + round.neighbour, before));
            specs.push(spec(&format!("combine {number}"), COMBINING, vec![]));
            told.push((send, round.neighbour, send + 1));
            before = vec![send, send + 1];
        }
        let sending = neighbours.first().map_or(0, Vec::len) as LocalLane;
        let graph = StepGraph::new(&specs, SENDING + sending)?.with_neighbours(&told)?;
        let work = |worker: usize| {
            let mut work = vec![0.0];
            for round in &rounds {
                // What a worker combines is what the one whose neighbour it is sent.
                let from =
                    neighbours.iter().position(|row| row[usize::from(round.neighbour)] as usize == worker);
                let arrived = from.map_or(0.0, |from| round.sent[from]) * size.get();
                work.push(round.sent[worker] * size.get());
                work.push(if round.combines { arrived * machines.combine_byte.get() } else { 0.0 });
            }
            StepWork { work, sources: graph.sources().to_vec(), rank: Vec::new() }
        };
        // Workers that send alike share a kind.
        let mut kinds: Vec<Vec<StepWork>> = Vec::new();
        let mut kind = Vec::with_capacity(workers);
        let alike = !matches!(self, Self::Broadcast | Self::Tree);
        for worker in 0..workers {
            if kinds.is_empty() || !alike {
                kinds.push(vec![work(worker)]);
            }
            kind.push(kinds.len() - 1);
        }
        let mut lanes = Vec::new();
        for (worker, row) in neighbours.iter().enumerate() {
            lanes.push(LaneSpec::own(1.0));
            lanes.extend(row.iter().map(|&to| {
                // Where nobody sends to a worker who receives already, every send has its rate to itself.
                let port = machines.ports[worker].min(machines.ports[to as usize]);
                let station = match alike {
                    true => Station::Own(port.get()),
                    false => Station::Links(Route::new(&[2 * worker as u32, 2 * to + 1])),
                };
                LaneSpec { station, startup: machines.step.get(), ..LaneSpec::own(1.0) }
            }));
        }
        let per_worker = u32::from(SENDING + sending);
        let own = |worker: u32| (per_worker * worker..per_worker * (worker + 1)).collect();
        Ok(Program {
            graph,
            lanes,
            lane_of: (0..workers as u32).map(own).collect(),
            neighbours,
            pools: Vec::new(),
            // Out and in, of every worker.
            ports: machines.ports.iter().flat_map(|port| [port.get(); 2]).collect(),
            gatherings: Vec::new(),
            coupling: None,
            tcp: None,
            steps: kinds,
            kind,
            coordination: Coordination::Bounded(0),
            silent_when_local: vec![true; usize::from(SENDING + sending)],
        })
    }

    /// Everybody's neighbours, and what is sent to them.
    fn rounds(self, workers: usize) -> (Vec<Vec<u32>>, Vec<Round>) {
        match self {
            Self::ReduceScatter => ring(workers, &[true]),
            Self::AllGather => ring(workers, &[false]),
            Self::Ring => ring(workers, &[true, false]),
            Self::HalvingDoubling => halving_doubling(workers),
            Self::Broadcast => tree(workers, false),
            Self::Tree => tree(workers, true),
        }
    }
}

fn spec(name: &str, lane: LocalLane, after: Vec<OpId>) -> OpSpec {
    OpSpec { name: name.to_owned(), lane, after, releases: None }
}

/// One way around the ring for each of `combines`: a share of the data in every round.
fn ring(workers: usize, combines: &[bool]) -> (Vec<Vec<u32>>, Vec<Round>) {
    let next = (0..workers as u32).map(|worker| vec![(worker + 1) % workers as u32]).collect();
    let share = vec![1.0 / workers as f64; workers];
    let round = |&combines: &bool| {
        let share = share.clone();
        (1..workers).map(move |_| Round { neighbour: 0, sent: share.clone(), combines })
    };
    (next, combines.iter().flat_map(round).collect())
}

/// With the worker whose number differs in one bit: half of what is left, then everything back.
fn halving_doubling(workers: usize) -> (Vec<Vec<u32>>, Vec<Round>) {
    let bits = workers.max(1).ilog2() as u16;
    let neighbours =
        (0..workers as u32).map(|worker| (0..bits).map(|bit| worker ^ (1 << bit)).collect()).collect();
    let round = |neighbour: u16, level: i32, combines| {
        let share = 0.5_f64.powi(level);
        Round { neighbour, sent: vec![share; workers], combines }
    };
    let halving = (0..bits).map(|bit| round(bit, i32::from(bit) + 1, true));
    let doubling = (0..bits).rev().map(|bit| round(bit, i32::from(bit) + 1, false));
    (neighbours, halving.chain(doubling).collect())
}

/// Along a binomial tree: whole messages, from those who have heard to those who have not, and before that the other way
/// round if everything is summed up first. Those without a partner in a round only tell themselves that it is over.
fn tree(workers: usize, reduces: bool) -> (Vec<Vec<u32>>, Vec<Round>) {
    let bits = (usize::BITS - workers.saturating_sub(1).leading_zeros()) as u16;
    let partner = |worker: u32, bit: u16| {
        let other = worker ^ (1 << bit);
        if (other as usize) < workers { other } else { worker }
    };
    let neighbours =
        (0..workers as u32).map(|worker| (0..bits).map(|bit| partner(worker, bit)).collect()).collect();
    // In round `bit`, of numbers that are multiples of 2^bit, the odd multiples talk to the even ones.
    let round = |bit: u16, up: bool| {
        let sends = |worker: u32| {
            let takes_part = worker.is_multiple_of(1 << bit) && partner(worker, bit) != worker;
            takes_part && ((worker >> bit) & 1 == 1) == up
        };
        let sent = (0..workers as u32).map(|worker| if sends(worker) { 1.0 } else { 0.0 }).collect();
        Round { neighbour: bit, sent, combines: up }
    };
    let up = (0..bits).filter(|_| reduces).map(|bit| round(bit, true));
    let down = (0..bits).rev().map(|bit| round(bit, false));
    (neighbours, up.chain(down).collect())
}
