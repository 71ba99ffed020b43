//! Transformers split over many devices: computing, communication and memory, and their schedule.
//!
//! - [`compute`]: computing time of the shard of a layer on a device;
//! - [`flops`]: operations of a layer and of a step, forward and the two halves of backward apart;
//! - [`traffic`]: collectives by group (tensor, context, pipeline, data, expert), with their bytes;
//! - [`placement`]: which ranks of a group share a node, and the time of its collectives on both levels;
//! - [`loads`]: how uneven the loads of experts are;
//! - [`memory`]: memory of a rank, part by part, and how parallelism divides it;
//! - [`units`]: traffic of sharded weights, gradients and optimiser states, unit by unit, and its exposed part;
//! - [`schedules`]: the order of operations of every pipeline stage, and its execution;
//! - [`spent`], [`stages`], `vocabulary`, [`step`] and [`tail`]: the closed form of a step, of which [`Transformer`] makes predictions;
//! - [`plans`]: step and memory of many plans, a few hundred nanoseconds each;
//! - [`outer`]: replicas that exchange outer gradients after some steps;
//! - [`unequal`]: workers of two kinds in one plan;
//! - [`stagewise`]: layers and recomputation of every stage by itself.
//!
//! Counts are whole numbers and exact. Symbols in formulas: s tokens of a sequence, b sequences of a micro-batch, h
//! hidden width, a heads, g key-value heads, e width of a head, f width of the MLP, V vocabulary, L layers; t, c, p, v,
//! d, x tensor, context, pipeline ranks, chunks on a stage, data and expert ranks; m micro-batches of a replica.

pub mod compute;
mod ends;
pub mod flops;
mod kinds;
pub mod loads;
pub mod memory;
mod method;
mod offload;
pub mod outer;
pub mod placement;
pub mod plans;
pub mod schedules;
pub mod spent;
pub mod stages;
pub mod stagewise;
pub mod step;
pub mod tail;
pub mod traffic;
pub mod unequal;
pub mod units;
mod vocabulary;
mod warnings;

pub use kinds::LayerKind;
pub use method::{Planned, Transformer, on_machines, outer_part, planned};

use stepcast_core::strategy::PlanChoice;

/// How many ranks divide a transformer, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// t: tensor-parallel ranks.
    pub tensor: u64,
    /// Whether tensor-parallel ranks also divide what they otherwise repeat (Korthikanti 2022).
    pub sequence_parallel: bool,
    /// c: context-parallel ranks.
    pub context: u64,
    /// p: pipeline stages.
    pub pipeline: u64,
    /// v: chunks of layers on each stage.
    pub chunks: u64,
    /// d: replicas.
    pub data: u64,
    /// x: expert-parallel ranks, taken from those of tensor, context and data parallelism.
    pub expert: u64,
}

impl Split {
    /// One rank.
    pub const WHOLE: Self =
        Self { tensor: 1, sequence_parallel: false, context: 1, pipeline: 1, chunks: 1, data: 1, expert: 1 };

    /// The ranks of a plan that a search tries.
    pub const fn from_choice(choice: &PlanChoice) -> Self {
        Self {
            tensor: choice.tensor,
            sequence_parallel: choice.sequence_parallel,
            context: choice.context,
            pipeline: choice.pipeline,
            chunks: choice.virtual_stages,
            data: choice.data,
            expert: choice.expert,
        }
    }

    /// All ranks.
    pub const fn world(&self) -> u64 {
        self.tensor * self.context * self.pipeline * self.data
    }

    /// D = d·c: ranks that share one copy of the dense weights.
    pub const fn replicas(&self) -> u64 {
        self.data * self.context
    }

    /// Ranks that share one copy of an expert, expert tensor parallelism being 1.
    pub const fn expert_replicas(&self) -> u64 {
        self.tensor * self.replicas() / self.expert
    }

    /// Ranks that divide the tokens between the matrices of a layer: t with sequence parallelism, otherwise 1.
    pub const fn token_ranks(&self) -> u64 {
        if self.sequence_parallel { self.tensor } else { 1 }
    }
}
