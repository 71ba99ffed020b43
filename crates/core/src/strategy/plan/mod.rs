//! Plans: how a transformer is split over ranks.
//!
//! [`Plan`] holds the keys of `[strategy.plan]`. [`Plan::divide`] checks them against a transformer and a number of
//! ranks, and derives what they leave open.

mod check;
mod choices;
mod offload;
mod overlap;
mod recompute;
#[cfg(test)]
mod tests;

pub use check::Division;
pub use choices::{
    Attention, ContextExchange, Implementation, Mask, Offload, Recompute, ScheduleKind, Sends, Sharding,
    States,
};
pub use offload::Offloaded;
pub use overlap::{OverlapPreset, Overlaps};
pub use recompute::Recomputation;

use crate::fault::Fault;
use crate::fitted::collectives::MeasuredCollectives;
use crate::keys::{Check, keys, plain, section_of};
use crate::quantity::{Bytes, BytesPerSec, Seconds};

/// Largest number of ranks of one kind.
const MOST: u64 = 1_000_000;

/// Share of all tensors that the allocator loses between them: the median of measured steps (docs/validation.md); an input,
/// because no measurement is general.
const FRAGMENTATION: f64 = 0.1;

/// Context of the device, buffers of the communication library and workspaces, assumed.
const RESERVED: Bytes = Bytes::new(2.0 * (1_u64 << 30) as f64);

/// Rate of the states that the host of a machine updates; assumed. An update in 32 bits moves about 30 bytes for each
/// parameter.
const HOST_MEMORY: BytesPerSec = BytesPerSec::new(100e9);

plain!(Vec<Offload>, "list of strings");
plain!(Vec<u64>, "list of integers");
plain!(Vec<Recompute>, "list of strings");

keys! {
    /// How a transformer is split over ranks.
    #[derive(Debug, Clone, PartialEq)]
    struct Plan;
    /// `[strategy.plan]`: how a transformer is split.
    section PlanSection, missing |key| Fault::new(format!("the plan has no `{key}`"), format!("add `{key}`"));
    before {}
    keys {
        /// Ranks that divide every matrix.
        tensor: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 8"), Resolved;
        /// Whether tensor-parallel ranks divide norms and dropout by tokens.
        sequence_parallel: bool => bool, default(false), Check::Any, Resolved;
        /// Ranks that divide every sequence.
        context: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 2"), Resolved;
        /// How context-parallel ranks exchange keys and values: `"ring"`, `"all-gather"` or `"all-to-all"`.
        context_exchange: ContextExchange => ContextExchange, default(ContextExchange::Ring), Check::Any, Resolved;
        /// Stages of layers.
        pipeline: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 4"), Resolved;
        /// Chunks of layers on each stage.
        virtual_stages: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 2"), Resolved;
        /// Layers of every virtual stage, in order.
        stage_layers: Vec<u64> => Vec<u64>, optional("equal shares"), Check::Any, Resolved;
        /// Order of operations of a stage: `"gpipe"`, `"1f1b"`, `"interleaved"`, `"zb-h1"`, `"looped-bfs"`,
        /// `"interleaved-zero-bubble"` or `"zbv"`.
        schedule: ScheduleKind => ScheduleKind, optional("`\"1f1b\"`, or `\"interleaved\"` with `virtual-stages`"), Check::Any, Resolved;
        /// How stages send: `"asynchronous"`, `"blocking"`, `"on-demand"` or `"planned"`, the last two if a message moves only
        /// once its receiver has asked for it, as over gloo.
        sends: Sends => Sends, optional("as `overlap` says"), Check::Any, Resolved;
        /// Time that the host takes for each operation of a stage to issue its messages.
        issue_time: Seconds => Seconds, default(Seconds::ZERO), Check::NotNegative("a time such as \"0.3 ms\""), Resolved;
        /// File with measured times of collectives, by number of ranks and size, in place of what links allow.
        collectives: String => MeasuredCollectives, optional("what links allow"), Check::Any, Resolved;
        /// Ranks that divide experts, taken from those of tensor, context and data parallelism.
        expert: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 8"), Resolved;
        /// Visits of the busiest expert rank against the mean.
        expert_skew: f64 => f64, default(1.0), Check::Positive("a factor such as 1.2"), Resolved;
        /// Replicas.
        data: u64 => u64, optional("all workers that the other kinds leave"), Check::Between(1, MOST, "a number such as 8"), Resolved;
        /// What replicas hold only a part of: `"none"`, `"zero-1"`, `"zero-2"`, `"zero-3"`, `"fsdp-keep"` or `"hsdp"`.
        sharding: Sharding => Sharding, default(Sharding::None), Check::Any, Resolved;
        /// Ranks of one group of `"hsdp"`.
        sharding_group: u64 => u64, optional("–"), Check::Between(2, MOST, "a number such as 8"), Resolved;
        /// Parameters whose gradients, and with `"zero-1"` also weights, are sent together.
        bucket: u64 => u64, optional("those of a layer"), Check::Between(1, 1_000_000_000_000, "a number such as 40000000"), Resolved;
        /// Sequences of a micro-batch.
        micro_batch: u64 => u64, default(1_u64), Check::Between(1, MOST, "a number such as 1"), Resolved;
        /// Sequences of a step.
        global_batch: u64 => u64, optional("as many micro-batches as stages, on every replica"), Check::Between(1, 1_000_000_000, "a number such as 1024"), Resolved;
        /// What is computed again instead of being kept: `"attention"`, `"operators"`, `"layer"`.
        recompute: Vec<Recompute> => Vec<Recompute>, default(Vec::new()), Check::Any, Resolved;
        /// Layers of every virtual stage, from its first, to which `recompute` applies.
        recompute_layers: u64 => u64, optional("all"), Check::Between(1, MOST, "a number such as 4"), Resolved;
        /// The same for each virtual stage by itself, in order: later stages hold fewer micro-batches.
        stage_recompute: Vec<u64> => Vec<u64>, optional("as `recompute-layers` says"), Check::Any, Resolved;
        /// What is kept in the host's memory: `"optimiser"` states, which the host then updates, or `"activations"`.
        offload: Vec<Offload> => Vec<Offload>, default(Vec::new()), Check::Any, Resolved;
        /// Rate between a device and its host, each direction.
        host_link: BytesPerSec => BytesPerSec, optional("88 % of the device's, or 25 GB/s"), Check::Positive("a rate such as \"25 GB/s\""), Resolved;
        /// Rate at which the host of a machine reads and writes states for an update, of all its devices together.
        host_memory: BytesPerSec => BytesPerSec, default(HOST_MEMORY), Check::Positive("a rate such as \"100 GB/s\""), Resolved;
        /// How attention is computed: `"flash"` or `"unfused"`.
        attention: Attention => Attention, default(Attention::Flash), Check::Any, Resolved;
        /// Whether the layers' products are computed in 8-bit floating point, as torchtitan's `float8` does; the output layer's is
        /// not.
        float8: bool => bool, default(false), Check::Any, Resolved;
        /// Whether dropout keeps masks.
        dropout: bool => bool, default(false), Check::Any, Resolved;
        /// Number formats of weights, gradients and optimiser: `"megatron-bf16"`, `"megatron-fp16"`, `"mixed-fp16"`,
        /// `"fp32"`, `"bf16"`, `"adamw-8bit"` or `"adafactor"`.
        states: States => States, default(States::MegatronBf16), Check::Any, Resolved;
        /// What is sent while computing goes on: `"none"`, `"megatron"`, `"torchtitan"`, `"deepspeed"` or `"fsdp2"`.
        overlap: OverlapPreset => OverlapPreset, default(OverlapPreset::Megatron), Check::Any, Resolved;
        /// Tensor-parallel sums of the backward pass beside the gradients of weights, whatever `overlap` says.
        overlap_tensor: bool => bool, optional("as `overlap` says"), Check::Any, Resolved;
        /// Gradients beside the last backward pass, whatever `overlap` says.
        overlap_gradients: bool => bool, optional("as `overlap` says"), Check::Any, Resolved;
        /// Weights of ZeRO 1 and 2 beside the first forward pass, whatever `overlap` says.
        overlap_weights: bool => bool, optional("as `overlap` says"), Check::Any, Resolved;
        /// Sharded weights of the next layer beside the computing of this one, whatever `overlap` says.
        overlap_prefetch: bool => bool, optional("as `overlap` says"), Check::Any, Resolved;
        /// Sends between stages while these go on, whatever `overlap` says.
        overlap_sends: bool => bool, optional("as `overlap` says"), Check::Any, Resolved;
        /// Keys and values around the context ring beside attention, whatever `overlap` says.
        overlap_context: bool => bool, optional("as `overlap` says"), Check::Any, Resolved;
        /// Whether kinds of traffic of a rank that are under way at the same time divide the rate of a link. Simulated only:
        /// in the closed form they do not meet.
        shared_links: bool => bool, default(true), Check::Any, Resolved;
        /// Additional time of computing and of traffic while both are under way on a rank, as a share. Simulated only.
        interference: f64 => f64, default(0.0), Check::NotNegative("a share such as 0.1"), Resolved;
        /// Pairs of query and key that count in MFU and HFU: `"none"` for all, `"half"`, or `"causal"` for exactly those that
        /// are needed.
        mask: Mask => Mask, default(Mask::None), Check::Any, Resolved;
        /// Whose kernels compute a layer, for memory: `"textbook"`, `"megatron"` or `"pytorch"`.
        implementation: Implementation => Implementation, optional("`\"pytorch\"` with `overlap` of `\"torchtitan\"` or `\"fsdp2\"`, else `\"megatron\"`"), Check::Any, Resolved;
        /// Most bytes that a logit needs, from the loss to its gradient.
        logit_bytes: u64 => u64, optional("4 for `\"textbook\"`, 10 for `\"megatron\"`, 12 for `\"pytorch\"`"), Check::Between(0, 64, "10 for Megatron-LM"), Resolved;
        /// Share of memory that the allocator may lose between tensors.
        fragmentation: f64 => f64, default(FRAGMENTATION), Check::NotNegative("a share such as 0.05"), Resolved;
        /// Memory beside tensors: context of the device, buffers of the communication library, workspaces.
        reserved: Bytes => Bytes, default(RESERVED), Check::NotNegative("a size such as \"2 GiB\""), Resolved;
    }
    after {}
    made {}
}

section_of!(Plan, PlanSection);

impl Plan {
    /// The order of operations of a stage.
    pub fn schedule_kind(&self) -> ScheduleKind {
        self.schedule.unwrap_or(match self.virtual_stages {
            1 => ScheduleKind::OneFOneB,
            _ => ScheduleKind::Interleaved,
        })
    }

    /// What is computed again, the most that the list names, and in how many layers.
    pub fn recomputation(&self) -> Recomputation {
        let what = self.recompute.iter().copied().max().unwrap_or(Recompute::None);
        Recomputation { what, layers: self.recompute_layers }
    }

    /// The same plan in which every layer computes `what` again.
    #[must_use]
    pub fn recomputing(&self, what: Recompute) -> Self {
        let recompute = if what == Recompute::None { Vec::new() } else { vec![what] };
        Self { recompute, recompute_layers: None, stage_recompute: None, ..self.clone() }
    }

    /// How stages send.
    pub fn stage_sends(&self) -> Sends {
        self.sends.unwrap_or(match self.overlaps().sends {
            true => Sends::Asynchronous,
            false => Sends::Blocking,
        })
    }

    /// Whose kernels compute a layer.
    pub fn implemented_by(&self) -> Implementation {
        self.implementation.unwrap_or(match self.overlap {
            OverlapPreset::Torchtitan | OverlapPreset::Fsdp2 => Implementation::Pytorch,
            OverlapPreset::None | OverlapPreset::Megatron | OverlapPreset::Deepspeed => {
                Implementation::Megatron
            }
        })
    }

    /// Bytes of a logit: kept until the backward pass, and needed beside them for a while.
    pub fn logit(&self) -> [u64; 2] {
        let [kept, meanwhile] = self.implemented_by().logit();
        match self.logit_bytes {
            Some(most) => [kept.min(most), most.saturating_sub(kept)],
            None => [kept, meanwhile],
        }
    }

    /// What is sent while computing goes on: what the preset says, but for single switches.
    pub fn overlaps(&self) -> Overlaps {
        self.overlaps_with(self.virtual_stages)
    }

    /// The same with another number of virtual stages.
    pub fn overlaps_with(&self, virtual_stages: u64) -> Overlaps {
        let preset = self.overlap.overlaps(virtual_stages > 1);
        Overlaps {
            tensor_backward: self.overlap_tensor.unwrap_or(preset.tensor_backward),
            gradients: self.overlap_gradients.unwrap_or(preset.gradients),
            weights: self.overlap_weights.unwrap_or(preset.weights),
            prefetch: self.overlap_prefetch.unwrap_or(preset.prefetch),
            sends: self.overlap_sends.unwrap_or(preset.sends),
            context: self.overlap_context.unwrap_or(preset.context),
        }
    }

    /// The plan with everything in turn.
    #[must_use]
    pub fn without_overlap(&self) -> Self {
        Self {
            overlap: OverlapPreset::None,
            overlap_tensor: None,
            overlap_gradients: None,
            overlap_weights: None,
            overlap_prefetch: None,
            overlap_sends: None,
            overlap_context: None,
            ..self.clone()
        }
    }

    /// Layers of every virtual stage that are given.
    pub fn given_layers(&self) -> &[u64] {
        self.stage_layers.as_deref().unwrap_or_default()
    }

    /// Layers of every virtual stage to which `recompute` applies, that are given.
    pub fn given_recompute(&self) -> &[u64] {
        self.stage_recompute.as_deref().unwrap_or_default()
    }
}
