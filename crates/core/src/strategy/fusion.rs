//! Which gradients travel together in one all-reduce.

use crate::quantity::{Bytes, Seconds};
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
