//! Fusion of gradients into messages, each sent by one all-reduce.

use crate::keys::{document_keys, unordered};
use crate::quantity::{Bytes, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// PyTorch's `bucket_cap_mb=25`, in MiB.
pub const PYTORCH_CAP: Bytes = Bytes::new(25.0 * 1024.0 * 1024.0);

/// Size of the first bucket of PyTorch's `DistributedDataParallel`.
pub const PYTORCH_FIRST: Bytes = Bytes::new(1024.0 * 1024.0);

/// Horovod's `HOROVOD_FUSION_THRESHOLD`.
pub const HOROVOD_THRESHOLD: Bytes = Bytes::new(64.0 * 1024.0 * 1024.0);

/// Horovod's `HOROVOD_CYCLE_TIME`.
pub const HOROVOD_CYCLE: Seconds = Seconds::new(1e-3);

/// Whether the network stays idle while the gradients of a buffer wait to be fused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferReading {
    /// Waiting overlaps other transfers: a message starts when the network is free and the wait is over, whichever is
    /// later (errata 4.2, 5).
    #[default]
    Concurrent,
    /// The wait begins when the network is free: eq. 15 with corrections 1-4 of errata 4.2. In this reading,
    /// disabling fusion is not the limit of small buffers.
    Serial,
}

/// Rule that decides which gradients are fused into one message.
#[derive(Debug, Clone, PartialEq)]
pub enum Fusion {
    None,
    /// All gradients in one message after the backward pass.
    All,
    /// Gradients that fit into a buffer (Liu 2022, eqs. 12-16).
    Buffer {
        /// Q: capacity; a larger gradient is sent alone. May be infinite.
        size: Bytes,
        /// Longest wait for the next gradient: if its backward pass takes this long or longer, the buffer is sent after
        /// this time. `None` means that the buffer always waits.
        timeout: Option<Seconds>,
        /// Whether waiting and sending overlap.
        reading: BufferReading,
    },
    /// PyTorch's `DistributedDataParallel`: buckets in the order of the backward pass, each closed by the gradient
    /// that fills it.
    Pytorch {
        /// Size at which the first bucket is full.
        first: Bytes,
        /// Size at which the other buckets are full.
        cap: Bytes,
    },
    /// Horovod: all gradients that are ready on every worker at the start of a cycle, split at a threshold.
    Horovod {
        /// Largest size of a fused message.
        threshold: Bytes,
        /// Minimum time between the starts of two cycles.
        cycle: Seconds,
        /// Time per cycle for workers to agree on the gradients that are ready: a method finds it from the network.
        negotiation: Seconds,
    },
    /// adaFusion (Liu 2022, eq. 17).
    Adaptive,
    /// MG-WFBP as described by Liu 2022.
    MgWfbp,
    /// Given explicitly: the number of gradients in each message, in the order in which they are ready.
    Buckets(Arc<[u32]>),
}

impl Fusion {
    pub const PYTORCH: Self = Self::Pytorch { first: PYTORCH_FIRST, cap: PYTORCH_CAP };

    pub const HOROVOD: Self = Self::horovod(HOROVOD_THRESHOLD, HOROVOD_CYCLE);

    pub const fn horovod(threshold: Bytes, cycle: Seconds) -> Self {
        Self::Horovod { threshold, cycle, negotiation: Seconds::ZERO }
    }

    /// A buffer that always waits for the next gradient, while others are sent.
    pub const fn buffer(size: Bytes) -> Self {
        Self::Buffer { size, timeout: None, reading: BufferReading::Concurrent }
    }
}

impl Default for Fusion {
    fn default() -> Self {
        Self::PYTORCH
    }
}

unordered!(Fusion);

/// Names of the fusion rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FusionRule {
    /// Every gradient separately.
    None,
    /// All gradients together.
    All,
    /// A buffer of constant size.
    Buffer,
    /// PyTorch's buckets.
    Pytorch,
    /// Horovod's cycles.
    Horovod,
    /// adaFusion.
    Adaptive,
    /// MG-WFBP.
    MgWfbp,
    /// An explicit list of messages.
    Buckets,
}

/// Messages, in the order in which their gradients are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BucketList {
    /// Number of gradients in each message.
    Counts(Vec<u32>),
    /// Names of the gradients in each message.
    Names(Vec<Vec<String>>),
}

document_keys! {
    /// `[strategy.fusion]`: which gradients travel together.
    FusionSection {
        /// `"none"`, `"all"`, `"buffer"`, `"pytorch"`, `"horovod"`, `"adaptive"`, `"mg-wfbp"` or `"buckets"`;
        /// [methods/liu2022.md](methods/liu2022.md) says what they do.
        rule: FusionRule, "string", "`\"pytorch\"`";
        /// Size of a bucket, of a buffer, or most of a Horovod message.
        size: Bytes, "size", "25 MiB; for buffers and Horovod 64 MiB";
        /// Size of PyTorch's first bucket.
        first: Bytes, "size", "`size`, or 1 MiB if that is left out";
        /// Longest wait of a buffer for the next gradient.
        timeout: Seconds, "time", "none";
        /// Whether a buffer waits while others are sent (`"concurrent"`), or only once the network is free (`"serial"`, eq. 15).
        reading: BufferReading, "string", "`\"concurrent\"`; as published `\"serial\"`";
        /// Shortest time between Horovod's cycles.
        cycle: Seconds, "time", "`\"1 ms\"`";
        /// How many gradients each message has (`[2, 8, 13]`), or their names (`[["fc.bias", "fc.weight"], …]`), in the order
        /// in which they are ready, which `stepcast fuse --json` prints; every gradient once.
        buckets: BucketList, "list", "–";
    }
}
