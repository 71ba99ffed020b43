//! A pipeline of stages as a program: passes of micro-batches in the order of a schedule, sends between stages, and what
//! every stage does at the end of a step.
//!
//! All ranks of a stage that do the same at the same moments are one, so that a worker of the program is a whole replica:
//! its local lanes are the computing unit and the kinds of traffic of every stage, and its graph holds the operations of
//! all stages. Replicas meet where they exchange something.
//!
//! A pass computes; traffic that the framework hides begins with it, traffic that it waits for follows one after the
//! other. The host issues its kernels meanwhile. The next pass of the stage begins when all of it has ended. A host whose
//! device is alone in its pipeline issues pass after pass and runs ahead of it; where stages wait for each other, it
//! begins to issue a pass with the pass. Where links are apart, traffic takes its own time
//! whatever else is under way: the step is then that of `analytic::transformer::step`, to rounding. Where they are shared,
//! kinds of traffic of one stage and level of the network divide its rate, and computing beside them may be slower.

mod build;
mod lanes;
mod list;

pub use build::Built;

use crate::graph::OpId;
use crate::program::{LaneSpread, Program, ProgramError};

/// What a stage computes for a micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The forward pass.
    Forward,
    /// The backward pass; with a split backward, the gradients of inputs.
    Backward,
    /// With a split backward, the gradients of weights.
    Weight,
}

impl Phase {
    /// Number of phases.
    pub const COUNT: usize = 3;
}

/// Kinds of traffic of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    /// Of tensor parallelism.
    Tensor,
    /// Of context parallelism.
    Context,
    /// Of expert parallelism.
    Expert,
    /// Sharded weights, and gradients that are reduced with every micro-batch.
    Sharded,
    /// To and from the host's memory.
    Offload,
    /// Activations to the next stage.
    SendForward,
    /// Their gradients to the stage before.
    SendBackward,
    /// Gradients at the end of a step.
    Gradients,
    /// Weights for the next step.
    Weights,
}

impl Traffic {
    /// Number of kinds.
    pub const COUNT: usize = 9;

    /// All kinds, in order.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Tensor,
        Self::Context,
        Self::Expert,
        Self::Sharded,
        Self::Offload,
        Self::SendForward,
        Self::SendBackward,
        Self::Gradients,
        Self::Weights,
    ];

    /// The kinds that belong to a pass, in order.
    pub const OF_A_PASS: [Self; 5] =
        [Self::Tensor, Self::Context, Self::Expert, Self::Sharded, Self::Offload];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Context => "context",
            Self::Expert => "expert",
            Self::Sharded => "sharded",
            Self::Offload => "offload",
            Self::SendForward | Self::SendBackward => "send",
            Self::Gradients => "gradients",
            Self::Weights => "weights",
        }
    }
}

/// One pass of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// What is computed.
    pub phase: Phase,
    /// Of which micro-batch.
    pub micro_batch: u32,
    /// Of which virtual stage.
    pub place: u32,
}

/// Seconds of one pass of a virtual stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Computing again what was not kept, before the rest.
    pub recompute: f64,
    /// Computing.
    pub compute: f64,
    /// Of the host, to issue it.
    pub host: f64,
    /// By kind of a pass: traffic that follows.
    pub exposed: [f64; Traffic::OF_A_PASS.len()],
    /// By kind of a pass: traffic beside it.
    pub hidden: [f64; Traffic::OF_A_PASS.len()],
}

impl Cost {
    /// From its beginning to its end, if all that is hidden fits: the larger of device and host.
    pub fn total(&self) -> f64 {
        (self.recompute + self.compute + self.exposed.iter().sum::<f64>()).max(self.host)
    }
}

/// Seconds of what a stage does once in a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tail {
    /// Layers of the stage, which share gradients and weights equally.
    pub layers: f64,
    /// Gradients, after the last pass.
    pub gradients: f64,
    /// Gradients, beside the last backward passes.
    pub hidden_gradients: f64,
    /// The gradients of a tied embedding, between the first and the last stage.
    pub tied: f64,
    /// Update of the weights.
    pub update: f64,
    /// Update by the host, with what goes there and comes back.
    pub offload: f64,
    /// Weights, after the update.
    pub weights: f64,
    /// Weights, beside the first forward passes of the next step.
    pub hidden_weights: f64,
}

/// All times of one kind of replica, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// By virtual stage and phase.
    pub passes: Vec<[Cost; Phase::COUNT]>,
    /// By stage: one send to another.
    pub sends: Vec<f64>,
    /// By stage.
    pub tails: Vec<Tail>,
}

/// How kinds of traffic that are under way at the same time affect each other and computing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Links {
    /// Not at all.
    Apart,
    /// Those of one stage divide the rate of a level of the network equally; computing and traffic of a stage take
    /// (1 + `slowdown`) times as long while both are under way.
    Shared {
        /// Additional time, as a share of the time alone.
        slowdown: f64,
    },
}

/// A pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// By virtual stage: the stage that has it.
    pub stage_of: Vec<u32>,
    /// By stage: its passes in their order.
    pub orders: Vec<Vec<Task>>,
    /// Number of micro-batches.
    pub micro_batches: u32,
    /// Times, for each kind of replica.
    pub costs: Vec<Costs>,
    /// The kind of every replica.
    pub replicas: Vec<usize>,
    /// Whether a stage waits until what it sends has arrived.
    pub blocking: bool,
    /// How traffic affects other traffic and computing.
    pub links: Links,
    /// By kind of traffic: whether it crosses nodes.
    pub between: [bool; Traffic::COUNT],
    /// By kind of traffic: whether all replicas take part.
    pub joint: [bool; Traffic::COUNT],
    /// Standard deviation of the computing time of a rank in a step against the mean.
    pub jitter: f64,
    /// Ranks that compute a stage of a replica together.
    pub ranks: u32,
}

/// What an operation of the program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Computing of a pass.
    Pass(Phase),
    /// Computing again, before a backward pass.
    Recompute,
    /// Traffic that its stage waits for, or that runs beside its computing.
    Traffic {
        /// Its kind.
        kind: Traffic,
        /// Whether the stage waits for it.
        exposed: bool,
    },
    /// The update of the weights.
    Update,
    /// The host issues a pass.
    Host {
        /// What ends the pass on its device.
        last: OpId,
    },
    /// A wait for other replicas or for a first bucket.
    Wait,
}

/// An operation of the program: what it is, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// What it is.
    pub role: Role,
    /// Its stage.
    pub stage: u32,
    /// The micro-batch that it belongs to.
    pub micro_batch: Option<u32>,
}

impl Pipeline {
    /// The program, and what its operations are.
    pub fn build(&self) -> Result<Built, ProgramError> {
        let list = build::operations(self)?;
        let graph = crate::graph::StepGraph::new(&list.specs, self.local_lanes()?)?;
        let steps = self.costs.iter().map(|costs| vec![list.work(costs, &graph)]).collect();
        let mut program = Program::new(graph, steps);
        self.connect(&mut program);
        if self.jitter > 0.0 {
            let lanes = (0..program.graph.local_lanes()).map(|lane| self.is_computing(lane)).collect();
            program.spread = Some(LaneSpread { jitter: self.jitter, devices: self.ranks, lanes });
        }
        Ok(Built { program, marks: list.marks })
    }
}

#[cfg(test)]
mod tests;
