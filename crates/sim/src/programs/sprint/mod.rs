//! SPRINT (Oyama 2016) as events: GPU threads, update threads, mutexes, and the exchange between nodes.
//!
//! [`Sprint`] holds the times of the tasks of both threads; [`Sprint::program`] makes a program of it, [`Watch`] observes a
//! run, and [`Sprint::run`] does both. Nothing is averaged as in the closed form: a mutex is held, a buffer has new
//! gradients or not, weights are new or not, and update threads wait at a barrier for the last of them.

mod program;
mod watch;

pub use watch::{Figures, Watch};

use crate::engine::{Limits, run};
use crate::program::ProgramError;

/// How nodes combine what their update threads have summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exchange {
    /// All together, when the last update thread has arrived.
    AllReduce,
    /// Each by itself with parameter servers, which serve one node after the other (beyond the paper).
    ParameterServer,
}

/// Times of the tasks, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sprint {
    /// Number of nodes.
    pub nodes: u32,
    /// GPU threads of a node.
    pub gpus: u32,
    /// Copying new weights to the device; holds the node's weights.
    pub fetch_weights: f64,
    /// Loading and deforming images, computing the gradient and scaling it: what a GPU thread does by itself.
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
    /// Spread of what GPU threads do by themselves: standard deviation against the mean.
    pub jitter: f64,
    /// How nodes combine their sums.
    pub how: Exchange,
}

/// How long a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Length {
    /// Iterations of the slowest thread.
    pub iterations: u64,
    /// Iterations of every thread that do not count.
    pub warm_up: u64,
}

impl Sprint {
    /// Runs the threads and measures them.
    pub fn run(&self, seed: u64, length: Length) -> Result<Figures, ProgramError> {
        let program = self.program(seed)?;
        let mut watch = Watch::new(self, length.warm_up);
        run(&program, seed, Limits::until_slowest(length.iterations), &mut watch)?;
        watch.figures().ok_or_else(|| ProgramError("no iteration ends after the warm-up".to_owned()))
    }

    /// Threads of all nodes.
    pub fn threads(&self) -> u32 {
        self.nodes * (self.gpus + 1)
    }
}
