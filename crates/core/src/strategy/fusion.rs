//! Which gradients travel together in one all-reduce.

use crate::keys::{document_keys, unordered};
use crate::quantity::{Bytes, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// PyTorch's `bucket_cap_mb=25`, in MiB.
pub const PYTORCH_CAP: Bytes = Bytes::new(25.0 * 1024.0 * 1024.0);

/// The first bucket of PyTorch's `DistributedDataParallel`.
pub const PYTORCH_FIRST: Bytes = Bytes::new(1024.0 * 1024.0);

/// Horovod's `HOROVOD_FUSION_THRESHOLD`.
pub const HOROVOD_THRESHOLD: Bytes = Bytes::new(64.0 * 1024.0 * 1024.0);

/// Horovod's `HOROVOD_CYCLE_TIME`.
pub const HOROVOD_CYCLE: Seconds = Seconds::new(1e-3);

/// Which gradients travel together.
#[derive(Debug, Clone, PartialEq)]
pub enum Fusion {
    /// None.
    None,
    /// All, after the backward pass.
    All,
    /// Those that fit into a buffer (Liu 2022, eqs. 12-16).
    Buffer {
        /// Q: most that it holds; a larger gradient travels alone.
        size: Bytes,
        /// Longest wait for the next gradient.
        timeout: Option<Seconds>,
    },
    /// As PyTorch's `DistributedDataParallel` does: buckets in the order of the backward pass, each closed by the gradient
    /// that fills it.
    Pytorch {
        /// Size at which the first bucket is full.
        first: Bytes,
        /// Size at which the others are.
        cap: Bytes,
    },
    /// As Horovod does: whatever is ready everywhere when a cycle begins, cut at a threshold.
    Horovod {
        /// Most that travels together.
        threshold: Bytes,
        /// Shortest time from one cycle to the next.
        cycle: Seconds,
    },
    /// adaFusion (Liu 2022, eq. 17).
    Adaptive,
    /// MG-WFBP as Liu 2022 describes it.
    MgWfbp,
    /// As given: the number of gradients in each message, in the order in which they are ready.
    Buckets(Arc<[u32]>),
}

impl Fusion {
    /// PyTorch's with its defaults.
    pub const PYTORCH: Self = Self::Pytorch { first: PYTORCH_FIRST, cap: PYTORCH_CAP };

    /// Horovod's with its defaults.
    pub const HOROVOD: Self = Self::Horovod { threshold: HOROVOD_THRESHOLD, cycle: HOROVOD_CYCLE };
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
    /// Every gradient by itself.
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
    /// A given list.
    Buckets,
}

/// Messages, in the order in which their gradients are ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum BucketList {
    /// How many gradients each has.
    Counts(Vec<u32>),
    /// Which gradients each has.
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
        /// Shortest time between Horovod's cycles.
        cycle: Seconds, "time", "`\"1 ms\"`";
        /// How many gradients each message has (`[2, 8, 13]`), or their names (`[["fc.bias", "fc.weight"], …]`), in the order
        /// in which they are ready, which `stepcast fuse --json` prints; every gradient once.
        buckets: BucketList, "list", "–";
    }
}
