//! SPRINT (Oyama 2016) as events: GPU threads, update threads, mutexes, and the exchange between nodes.
//!
//! [`Sprint`] holds the times of the tasks of both threads; [`Sprint::program`] makes a program of it, [`Watch`] observes a
//! run, and [`Sprint::run`] does both. Nothing is averaged as in the closed form: a mutex is held, a buffer has new
//! gradients or not, weights are new or not, and update threads wait at a barrier for the last of them.

mod watch;

use crate::engine::lane::{Discipline, LaneSpec};
use crate::engine::{Limits, run};
use crate::graph::{GraphError, LocalLane, OpId, OpSpec, StepGraph};
use crate::program::{Program, ProgramError, StepWork};
use crate::programs::synthesise::jitter_factors;
pub use watch::{Figures, Watch};

/// How nodes combine the sums of their update threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// All together, when the last update thread has arrived.
    AllReduce,
    /// Each separately with parameter servers, which serve one node after the other (beyond the paper).
    ParameterServer,
}

/// Times of the tasks, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprint {
    pub nodes: u32,
    pub gpus: u32,
    /// Copying new weights to the device; holds the node's weights.
    pub fetch_weights: f64,
    /// Loading and deforming images, computing the gradient and scaling it: a GPU thread's own work.
    pub compute: f64,
    /// Adding the gradient to its buffer; holds the buffer.
    pub update_gradient: f64,
    /// Summing a buffer with new gradients; holds the buffer.
    pub sum_buffer: f64,
    /// Keeping old weights and adding momentum, before the exchange.
    pub before_exchange: f64,
    /// The exchange, once it has begun.
    pub exchange: f64,
    /// Updating the momentum, after the exchange.
    pub after_exchange: f64,
    /// Publishing new weights; holds the node's weights.
    pub update_weights: f64,
    /// Relative spread of GPU-thread compute time: standard deviation over mean.
    pub jitter: f64,
    /// How nodes combine their sums.
    pub how: Exchange,
}

/// Length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    pub iterations: u64,
    /// Iterations of every thread that do not count.
    pub warm_up: u64,
}

impl Sprint {
    pub fn run(&self, seed: u64, length: Length) -> Result<Figures, ProgramError> {
        let program = self.program(seed)?;
        let mut watch = Watch::new(self, length.warm_up);
        run(&program, seed, Limits::until_slowest(length.iterations), &mut watch)?;
        watch.figures().ok_or_else(|| ProgramError("no iteration ends after the warm-up".to_owned()))
    }

    pub fn threads(&self) -> u32 {
        self.nodes * (self.gpus + 1)
    }
}

const GPU_THREAD: usize = 0;
const UPDATE_THREAD: usize = 1;

// Lanes of a thread. The buffers of a node come after these.
const OWN: LocalLane = 0;
const GPU_WEIGHTS: LocalLane = 1;
const GPU_BUFFER: LocalLane = 2;
const BARRIER: LocalLane = 3;
const EXCHANGE: LocalLane = 4;
const UPDATE_WEIGHTS: LocalLane = 5;
const FIRST_BUFFER: LocalLane = 6;

/// Operations of a graph for this many GPU threads.
#[derive(Debug, Clone, Copy)]
struct Operations {
    gpus: OpId,
}

impl Operations {
    const FETCH: OpId = 1;
    const COMPUTE: OpId = 2;
    const UPDATE_GRADIENT: OpId = 4;
    const LOCK_FIRST: OpId = 5;

    fn new(gpus: u32) -> Self {
        Self { gpus }
    }

    fn sum(self, gpu: u32) -> OpId {
        Self::LOCK_FIRST + 2 * gpu + 1
    }

    /// The GPU thread whose buffer an operation sums.
    fn summed(self, op: OpId) -> Option<u32> {
        let offset = op.checked_sub(Self::LOCK_FIRST).filter(|offset| *offset < 2 * self.gpus)?;
        (offset % 2 == 1).then_some(offset / 2)
    }

    fn before_exchange(self) -> OpId {
        Self::LOCK_FIRST + 2 * self.gpus
    }

    fn exchange(self) -> OpId {
        self.before_exchange() + 2
    }

    fn after_exchange(self) -> OpId {
        self.before_exchange() + 3
    }

    fn update_weights(self) -> OpId {
        self.before_exchange() + 5
    }

    fn count(self) -> usize {
        self.before_exchange() as usize + 6
    }
}

impl Sprint {
    /// The program of all threads: node by node, its GPU threads and then its update thread.
    pub fn program(&self, seed: u64) -> Result<Program, ProgramError> {
        let steps = vec![self.gpu_steps(seed), vec![self.update_step()]];
        let mut program = Program::new(self.graph()?, steps);
        self.connect(&mut program);
        Ok(program)
    }

    /// Adds locks, barriers and threads. A thread has separate locks and a barrier for the operations of the other kind.
    fn connect(&self, program: &mut Program) {
        let add = |program: &mut Program, discipline| {
            program.add_lane(LaneSpec { discipline, ..LaneSpec::own(1.0) })
        };
        let all = add(program, Discipline::Barrier(self.nodes));
        let servers = add(program, Discipline::Fifo);
        for _ in 0..self.nodes {
            let weights = add(program, Discipline::Lock);
            let buffers: Vec<u32> = (0..self.gpus).map(|_| add(program, Discipline::Lock)).collect();
            for &buffer in &buffers {
                let (own, unused) = (add(program, Discipline::Fifo), add(program, Discipline::Lock));
                let alone = add(program, Discipline::Barrier(1));
                let mut lanes = vec![own, weights, buffer, alone, own, unused];
                lanes.extend(std::iter::repeat_n(unused, buffers.len()));
                program.add_worker(GPU_THREAD, lanes);
            }
            let (own, unused) = (add(program, Discipline::Fifo), add(program, Discipline::Lock));
            let (barrier, exchange) = match self.how {
                Exchange::AllReduce => (all, own),
                Exchange::ParameterServer => (add(program, Discipline::Barrier(1)), servers),
            };
            let mut lanes = vec![own, unused, unused, barrier, exchange, weights];
            lanes.extend(&buffers);
            program.add_worker(UPDATE_THREAD, lanes);
        }
    }

    fn graph(&self) -> Result<StepGraph, GraphError> {
        let mut specs: Vec<OpSpec> = Vec::new();
        let mut add = |name: String, lane, releases| {
            let after = specs.len().checked_sub(1).map(|last| last as OpId).into_iter().collect();
            specs.push(OpSpec { name, lane, after, releases });
        };
        add("lock weights".to_owned(), GPU_WEIGHTS, None);
        add("fetch weights".to_owned(), OWN, Some(GPU_WEIGHTS));
        add("compute".to_owned(), OWN, None);
        add("lock gradient".to_owned(), GPU_BUFFER, None);
        add("update gradient".to_owned(), OWN, Some(GPU_BUFFER));
        for gpu in 0..self.gpus {
            let buffer = FIRST_BUFFER + gpu as LocalLane;
            add(format!("lock gradient {gpu}"), buffer, None);
            add(format!("sum gradient {gpu}"), OWN, Some(buffer));
        }
        add("add momentum".to_owned(), OWN, None);
        add("barrier".to_owned(), BARRIER, None);
        add("exchange".to_owned(), EXCHANGE, None);
        add("update momentum".to_owned(), OWN, None);
        add("lock weights to publish".to_owned(), UPDATE_WEIGHTS, None);
        add("update weights".to_owned(), OWN, Some(UPDATE_WEIGHTS));

        let operations = Operations::new(self.gpus);
        let publishing =
            [(Operations::UPDATE_GRADIENT, GPU_BUFFER), (operations.update_weights(), UPDATE_WEIGHTS)];
        let mut subscribing = vec![(Operations::FETCH, GPU_WEIGHTS)];
        subscribing.extend((0..self.gpus).map(|gpu| (operations.sum(gpu), FIRST_BUFFER + gpu as LocalLane)));
        let local_lanes = FIRST_BUFFER + self.gpus as LocalLane;
        Ok(StepGraph::new(&specs, local_lanes)?.with_versions(&publishing, &subscribing))
    }

    fn step(&self, tasks: &[(OpId, f64)]) -> StepWork {
        let mut work = vec![0.0; Operations::new(self.gpus).count()];
        for &(op, time) in tasks {
            work[op as usize] = time;
        }
        StepWork { work, sources: vec![0], rank: Vec::new(), share: 1.0 }
    }

    /// Iterations that differ in the time of a thread's own work; their mean is `compute`.
    fn gpu_steps(&self, seed: u64) -> Vec<StepWork> {
        let factors: Vec<f64> = match self.jitter > 0.0 {
            true => jitter_factors(self.jitter, seed).collect(),
            false => vec![1.0],
        };
        let mean = factors.iter().sum::<f64>() / factors.len() as f64;
        let step = |factor: &f64| {
            self.step(&[
                (Operations::FETCH, self.fetch_weights),
                (Operations::COMPUTE, self.compute * factor / mean),
                (Operations::UPDATE_GRADIENT, self.update_gradient),
            ])
        };
        factors.iter().map(step).collect()
    }

    fn update_step(&self) -> StepWork {
        let operations = Operations::new(self.gpus);
        let mut tasks: Vec<(OpId, f64)> =
            (0..self.gpus).map(|gpu| (operations.sum(gpu), self.sum_buffer)).collect();
        tasks.extend([
            (operations.before_exchange(), self.before_exchange),
            (operations.exchange(), self.exchange),
            (operations.after_exchange(), self.after_exchange),
            (operations.update_weights(), self.update_weights),
        ]);
        self.step(&tasks)
    }
}
