//! The words of a plan: what can be chosen by name.

use crate::keys::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares an enumeration whose variants have names in files.
macro_rules! choice {
    ($(#[$doc:meta])* $type:ident, $written:literal { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        pub enum $type { $($(#[$vdoc])* #[serde(rename = $name)] $variant,)* }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $(Self::$variant => $name,)* })
            }
        }

        plain!($type, $written);
    };
}

choice! {
    /// What data-parallel ranks hold only a part of.
    Sharding, "string" {
        /// Nothing: gradients are all-reduced.
        None = "none",
        /// Optimiser states (ZeRO 1, Megatron's distributed optimiser).
        Zero1 = "zero-1",
        /// Optimiser states and gradients.
        Zero2 = "zero-2",
        /// Optimiser states, gradients and weights; weights are gathered for every pass (FSDP, full shard).
        Zero3 = "zero-3",
        /// As `zero-3`, but gathered weights are kept, and gradients are reduced once, until the end of a step.
        Keep = "fsdp-keep",
        /// As `zero-3` within groups, and gradients are all-reduced between them.
        Hsdp = "hsdp",
    }
}

impl Sharding {
    /// Stage of ZeRO: what is divided. The kept weights of `fsdp-keep` are divided between steps.
    pub const fn stage(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Zero1 => 1,
            Self::Zero2 => 2,
            Self::Zero3 | Self::Keep | Self::Hsdp => 3,
        }
    }
}

choice! {
    /// The order of operations of every pipeline stage.
    ScheduleKind, "string" {
        /// All forwards, then all backwards (Huang 2019).
        Gpipe = "gpipe",
        /// One forward, one backward (Narayanan 2019).
        OneFOneB = "1f1b",
        /// One forward, one backward over several chunks of layers on each stage (Narayanan 2021).
        Interleaved = "interleaved",
        /// 1F1B with the backward split in two (Qi 2023).
        ZbH1 = "zb-h1",
        /// All forwards of all chunks, then all backwards (Lamy-Poirier 2022).
        LoopedBfs = "looped-bfs",
        /// Interleaved with the backward split in two (PyTorch).
        InterleavedZeroBubble = "interleaved-zero-bubble",
        /// Two chunks on each stage, the second in reverse order of stages, with the backward split in two (Qi 2024).
        Zbv = "zbv",
    }
}

choice! {
    /// How a stage hands a tensor to the next.
    Sends, "string" {
        /// It arrives later; the sender goes on.
        Asynchronous = "asynchronous",
        /// The sender is busy until it has arrived.
        Blocking = "blocking",
        /// It moves when the receiver asks for it, which is when it needs it (GPipe and 1F1B of PyTorch over gloo).
        OnDemand = "on-demand",
        /// It moves when the receiver has asked for it, which is as soon as the sender's operation comes before in a
        /// plan of all stages (other schedules of PyTorch over gloo).
        Planned = "planned",
    }
}

choice! {
    /// What is computed again in the backward pass instead of being kept.
    Recompute, "string" {
        /// Nothing.
        None = "none",
        /// Scores, softmax and weighted values (Korthikanti 2022: selective).
        Attention = "attention",
        /// Every other matrix product and all that lies between; attention is kept (torchtitan: selective).
        Operators = "operators",
        /// Whole layers.
        Layer = "layer",
    }
}

choice! {
    /// What is kept in the host's memory.
    Offload, "string" {
        /// Optimiser states; the host updates the weights (Ren 2021).
        Optimiser = "optimiser",
        /// What layers keep for the backward pass.
        Activations = "activations",
    }
}

choice! {
    /// How attention is computed.
    Attention, "string" {
        /// In one kernel that keeps no scores and computes them again (Dao 2022).
        Flash = "flash",
        /// In several kernels that write the scores to memory.
        Unfused = "unfused",
    }
}

choice! {
    /// How context-parallel ranks exchange keys and values.
    ContextExchange, "string" {
        /// Sends around a ring.
        Ring = "ring",
        /// All of them at once (Llama 3, torchtitan).
        AllGather = "all-gather",
        /// Heads for tokens and back (Ulysses).
        AllToAll = "all-to-all",
    }
}

choice! {
    /// Which pairs of query and key count as work.
    Mask, "string" {
        /// All of them.
        None = "none",
        /// Half of them: the usual convention for a causal mask.
        Half = "half",
        /// Exactly those that a causal mask and a window leave.
        Causal = "causal",
    }
}

choice! {
    /// Number formats of weights, gradients and optimiser states.
    States, "string" {
        /// Megatron-LM in bf16: 16-bit weights, 32-bit gradients, 32-bit weights and two moments.
        MegatronBf16 = "megatron-bf16",
        /// Megatron-LM in fp16: 16-bit weights and gradients, 32-bit weights, gradients and two moments.
        MegatronFp16 = "megatron-fp16",
        /// DeepSpeed and the ZeRO paper: 16-bit weights and gradients, 32-bit weights and two moments.
        MixedFp16 = "mixed-fp16",
        /// 32-bit weights and gradients, two moments; also FSDP with 32-bit shards, and autocast.
        Fp32 = "fp32",
        /// Weights, gradients and two moments in 16 bits.
        Bf16 = "bf16",
        /// 32-bit weights and gradients, two moments of 8 bits; their scales, 4 bytes for each block of 2048, are left out
        /// (Dettmers 2022).
        AdamW8Bit = "adamw-8bit",
        /// 32-bit weights and gradients, no first moment, and the second one as sums of rows and columns, which are less than
        /// a hundredth of a byte for each parameter of a matrix and left out (Shazeer and Stern 2018).
        Adafactor = "adafactor",
    }
}

impl States {
    /// Bytes for each parameter: of weights, gradients and the optimiser.
    pub const fn bytes(self) -> [u64; 3] {
        match self {
            Self::MegatronBf16 => [2, 4, 12],
            Self::MegatronFp16 => [2, 2, 16],
            Self::MixedFp16 => [2, 2, 12],
            Self::Fp32 => [4, 4, 8],
            Self::AdamW8Bit => [4, 4, 2],
            Self::Adafactor => [4, 4, 0],
            Self::Bf16 => [2, 2, 4],
        }
    }
}

choice! {
    /// Whose kernels compute a layer, which decides what is kept for the backward pass and what it needs meanwhile.
    Implementation, "string" {
        /// What papers count (Korthikanti 2022): kept tensors of fused kernels, and nothing beside them.
        Textbook = "textbook",
        /// Megatron-LM with Transformer Engine: the same tensors, and what the loss and a backward pass need meanwhile.
        Megatron = "megatron",
        /// PyTorch, operation by operation.
        Pytorch = "pytorch",
    }
}

impl Implementation {
    /// Bytes of a logit: kept until the backward pass, and needed beside them for a while.
    ///
    /// Megatron-LM: 32-bit exponentials; meanwhile the 16-bit logits and their 32-bit copy. PyTorch: the 32-bit
    /// logarithms of the softmax; meanwhile their gradient and that of the logits, both in 32 bits.
    pub const fn logit(self) -> [u64; 2] {
        match self {
            Self::Textbook => [4, 0],
            Self::Megatron => [4, 6],
            Self::Pytorch => [4, 8],
        }
    }
}
