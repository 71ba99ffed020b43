//! Measures SPRINT's threads: lengths of iterations, waits, and the gradients that enter each update.

use super::Operations;
use super::{Exchange, Sprint};
use crate::engine::observe::Observer;

#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Iteration of a GPU thread, in seconds: T_GPU.
    pub gpu: f64,
    /// Iteration of an update thread: T_Update.
    pub update: f64,
    /// Waits of a GPU thread in an iteration: for the weights, for its buffer.
    pub gpu_waits: [f64; 2],
    /// Waits of an update thread: for buffers, for the other nodes or the servers, for the weights.
    pub update_waits: [f64; 3],
    /// Copying new weights, of a GPU thread's iteration.
    pub fetch_weights: f64,
    /// Summing buffers, of an update thread's iteration.
    pub sum_gradients: f64,
    /// Gradients of all nodes that enter one update of all, or of one node with parameter servers.
    pub gradients: f64,
    /// By gradient: updates between the one whose weights it was computed with and the one it enters.
    pub staleness: Vec<u32>,
    /// Gradients that enter each update, of all nodes, or of one node with parameter servers.
    pub entered: Vec<u32>,
    /// Lengths of all iterations of GPU threads that count.
    pub lengths: Vec<f64>,
}

/// Time and waiting before it, by operation and kind of thread.
#[derive(Debug, Clone, Copy, Default)]
struct Spent {
    waiting: f64,
    working: f64,
}

#[derive(Debug, Clone)]
pub struct Watch {
    sprint: Sprint,
    operations: Operations,
    warm_up: u64,
    /// By thread: iterations ended, end of its last operation.
    done: Vec<u64>,
    free_since: Vec<f64>,
    /// Iterations that count and their time, of GPU and update threads.
    counted: [u64; 2],
    length: [f64; 2],
    lengths: Vec<f64>,
    spent: Vec<Spent>,
    /// By thread: time spent in its current iteration.
    current: Vec<Vec<(u32, Spent)>>,
    /// Updates so far: of each node, or of all at the servers.
    updates: Vec<u32>,
    /// By node: the update whose weights its update thread has received, and has published.
    received: Vec<u32>,
    published: Vec<u32>,
    /// By GPU thread: the update whose weights it computes with, and the updates of gradients in its buffer.
    fetched: Vec<u32>,
    buffered: Vec<Vec<u32>>,
    /// By node: the updates of gradients that its update thread has summed.
    summed: Vec<Vec<u32>>,
    staleness: Vec<u32>,
    /// By counted update: the numbers of nodes and of gradients that have entered.
    entered: Vec<(u32, u32)>,
}

impl Watch {
    /// Measures threads of `sprint` after their first `warm_up` iterations.
    pub fn new(sprint: &Sprint, warm_up: u64) -> Self {
        let (threads, nodes) = (sprint.threads() as usize, sprint.nodes as usize);
        let operations = Operations::new(sprint.gpus);
        Self {
            sprint: *sprint,
            operations,
            warm_up,
            done: vec![0; threads],
            free_since: vec![0.0; threads],
            counted: [0; 2],
            length: [0.0; 2],
            lengths: Vec::new(),
            spent: vec![Spent::default(); operations.update_weights() as usize + 1],
            current: vec![Vec::new(); threads],
            updates: vec![0; nodes],
            received: vec![0; nodes],
            published: vec![0; nodes],
            fetched: vec![0; threads],
            buffered: vec![Vec::new(); threads],
            summed: vec![Vec::new(); nodes],
            staleness: Vec::new(),
            entered: Vec::new(),
        }
    }

    /// Node of a thread, and its place there; the last is the update thread.
    fn place(&self, thread: u32) -> (usize, u32) {
        let per_node = self.sprint.gpus + 1;
        ((thread / per_node) as usize, thread % per_node)
    }

    /// The mean figures; none if no iteration of one kind of thread counts.
    pub fn figures(&self) -> Option<Figures> {
        if self.counted.contains(&0) {
            return None;
        }
        let operations = self.operations;
        let per = |kind: usize, time: f64| time / self.counted[kind] as f64;
        let spent = |op: u32| self.spent[op as usize];
        let sums = (0..self.sprint.gpus).map(|gpu| spent(operations.sum(gpu)));
        let (waited, summed) =
            sums.fold((0.0, 0.0), |(waited, summed), sum| (waited + sum.waiting, summed + sum.working));
        let per_update = match self.sprint.how {
            Exchange::AllReduce => f64::from(self.sprint.nodes),
            Exchange::ParameterServer => 1.0,
        };
        Some(Figures {
            gpu: per(0, self.length[0]),
            update: per(1, self.length[1]),
            gpu_waits: [Operations::FETCH, Operations::UPDATE_GRADIENT].map(|op| per(0, spent(op).waiting)),
            update_waits: [
                per(1, waited),
                per(1, spent(operations.exchange()).waiting),
                per(1, spent(operations.update_weights()).waiting),
            ],
            fetch_weights: per(0, spent(Operations::FETCH).working),
            sum_gradients: per(1, summed),
            gradients: per(1, self.staleness.len() as f64) * per_update,
            staleness: self.staleness.clone(),
            entered: self
                .entered
                .iter()
                .filter(|(nodes, _)| *nodes == per_update as u32)
                .map(|(_, count)| *count)
                .collect(),
            lengths: self.lengths.clone(),
        })
    }
}

impl Observer for Watch {
    fn chunk(&mut self, thread: u32, op: u32, _lane: u32, since: f64, until: f64) {
        let (node, place) = self.place(thread);
        let index = thread as usize;
        let is_update = place == self.sprint.gpus;
        let counts = self.done[index] >= self.warm_up;
        // Operations of the other kind of thread take no time.
        let own = is_update == (op > Operations::UPDATE_GRADIENT);
        if !own {
            return;
        }
        let spent = Spent { waiting: since - self.free_since[index], working: until - since };
        self.current[index].push((op, spent));
        self.free_since[index] = until;
        if op == Operations::FETCH {
            self.fetched[index] = self.published[node];
        } else if op == Operations::UPDATE_GRADIENT {
            self.buffered[index].push(self.fetched[index]);
        } else if let Some(gpu) = self.operations.summed(op) {
            let buffer = (thread - place + gpu) as usize;
            let gradients = std::mem::take(&mut self.buffered[buffer]);
            self.summed[node].extend(gradients);
        } else if op == self.operations.exchange() {
            let counter = if self.sprint.how == Exchange::AllReduce { node } else { 0 };
            let entered = self.updates[counter];
            let gradients = self.summed[node].drain(..);
            if counts {
                if self.entered.len() <= entered as usize {
                    self.entered.resize(entered as usize + 1, (0, 0));
                }
                let (nodes, all) = &mut self.entered[entered as usize];
                *nodes += 1;
                *all += gradients.len() as u32;
                self.staleness.extend(gradients.map(|version| entered.saturating_sub(version)));
            }
            self.updates[counter] += 1;
            self.received[node] = self.updates[counter];
        } else if op == self.operations.update_weights() {
            self.published[node] = self.received[node];
        }
    }

    fn step(&mut self, thread: u32, since: f64, until: f64, _stale: u64) {
        let index = thread as usize;
        let counts = self.done[index] >= self.warm_up;
        for (op, spent) in self.current[index].drain(..).filter(|_| counts) {
            self.spent[op as usize].waiting += spent.waiting;
            self.spent[op as usize].working += spent.working;
        }
        if counts {
            let kind = usize::from(self.place(thread).1 == self.sprint.gpus);
            self.counted[kind] += 1;
            self.length[kind] += until - since;
            if kind == 0 {
                self.lengths.push(until - since);
            }
        }
        self.done[index] += 1;
    }
}
