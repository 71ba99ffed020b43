//! What is sent while computing goes on, in the manner of a framework.

use crate::keys::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A framework's way to overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverlapPreset {
    /// Everything waits for everything.
    None,
    /// Megatron-LM with `overlap_grad_reduce`, `overlap_param_gather` and, for interleaved schedules,
    /// `overlap_p2p_comm`; without `tp_comm_overlap`.
    Megatron,
    /// torchtitan: FSDP2, asynchronous sends, no asynchronous tensor parallelism.
    Torchtitan,
    /// DeepSpeed: gradients in buckets; the gather of weights at the end of a step is exposed.
    Deepspeed,
    /// PyTorch's FSDP2 alone.
    Fsdp2,
}

plain!(OverlapPreset, "string");

/// What is sent while computing goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlaps {
    /// Tensor-parallel sums of the backward pass run beside the gradients of weights of the same layer.
    pub tensor_backward: bool,
    /// Gradients are reduced layer by layer during the backward pass of the last micro-batch.
    pub gradients: bool,
    /// Weights of ZeRO 1 and 2 are gathered beside the first forward pass.
    pub weights: bool,
    /// Sharded weights of the next layer are gathered beside the computing of this one.
    pub prefetch: bool,
    /// Stages go on while they send.
    pub sends: bool,
    /// Keys and values of the next step around the ring travel beside the attention of this one.
    pub context: bool,
}

impl OverlapPreset {
    /// What is sent while computing goes on, with several chunks on each stage or without.
    pub const fn overlaps(self, interleaved: bool) -> Overlaps {
        let none = Overlaps {
            tensor_backward: false,
            gradients: false,
            weights: false,
            prefetch: false,
            sends: false,
            context: false,
        };
        match self {
            Self::None => none,
            Self::Megatron => Overlaps {
                tensor_backward: true,
                gradients: true,
                weights: true,
                prefetch: true,
                sends: interleaved,
                context: true,
            },
            Self::Torchtitan => Overlaps { gradients: true, prefetch: true, sends: true, ..none },
            Self::Deepspeed => Overlaps { gradients: true, prefetch: true, ..none },
            Self::Fsdp2 => Overlaps { gradients: true, prefetch: true, sends: true, ..none },
        }
    }
}
