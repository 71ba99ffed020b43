//! Offloading from the device to its host, and the exposed time of it.
//!
//! Optimiser states on the host (Ren 2021, ZeRO-Offload): gradients go there when they are reduced, beside the backward
//! pass if that is with every micro-batch; then the host updates its shard, and the weights come back. Activations on the
//! host (Isaev 2023): what a layer keeps goes there beside the computing of the next and comes back before its own backward
//! pass. Both directions of the link are used at once. Transfers share nothing with collectives.

use super::LayerKind;
use super::memory::MemoryInputs;
use super::spent::uncovered;
use super::stages::Run;
use stepcast_core::machine::Cluster;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::strategy::{Plan, Recomputed, Sharding};

/// Share of the nominal rate of PCIe that large copies of pinned memory reach: 55.4 of 63 GB/s on an H200.
const REACHED: f64 = 0.88;

/// Default for devices without a stated link: most of one direction of PCIe 4.0 with 16 lanes.
const USUAL: BytesPerSec = BytesPerSec::new(25e9);

/// Rate between the slowest device and its host, one direction.
pub(super) fn host_link(plan: &Plan, cluster: &Cluster) -> BytesPerSec {
    let of_device = cluster.groups.iter().filter_map(|group| group.device.host_link);
    let reached = of_device.map(|nominal| nominal * REACHED).reduce(BytesPerSec::min);
    plan.host_link.or(reached).unwrap_or(USUAL)
}

/// Exposed time of transfers of activations, each way, and of gradients, in the forward pass and both halves of the
/// backward pass. With a split backward, activations come back before its first half and gradients leave with its second.
pub(super) fn exposed(
    [activations, gradients]: [Seconds; 2],
    beside: [Seconds; 3],
    split: bool,
    overlapped: bool,
) -> [Seconds; 3] {
    let sent = match split {
        true => [activations, activations, gradients],
        false => [activations, activations.max(gradients), Seconds::ZERO],
    };
    [0, 1, 2].map(|pass| uncovered(sent[pass], beside[pass], overlapped))
}

impl Run<'_> {
    /// Time of the link for the activations of one layer and micro-batch, one way.
    pub(super) fn offloaded_activations(&self, kind: LayerKind, recompute: Recomputed) -> Seconds {
        match self.plan.offloaded().activations {
            true => self.held().kept_by(kind, recompute) / self.host_link,
            false => Seconds::ZERO,
        }
    }

    /// Time of the link for the gradients of `parameters` that are dense and of experts, if they leave with every
    /// micro-batch.
    pub(super) fn offloaded_gradients(&self, [dense, expert]: [u64; 2]) -> Seconds {
        match self.plan.offloaded().optimiser && self.reduces_each() {
            true => self.gradients_of(dense, expert),
            false => Seconds::ZERO,
        }
    }

    fn gradients_of(&self, dense: u64, expert: u64) -> Seconds {
        let [_, gradient, _] = self.plan.states.bytes();
        Bytes::new(self.owned(dense, expert) * gradient as f64) / self.host_link
    }

    /// Whether gradients are reduced with every micro-batch.
    fn reduces_each(&self) -> bool {
        matches!(self.plan.sharding, Sharding::Zero2 | Sharding::Zero3 | Sharding::Hsdp)
    }

    /// Update by the host, of dense parameters and of experts: gradients that are reduced once go there, the host shares
    /// its memory between the devices of a machine, weights come back.
    pub(super) fn updated_by_host(&self, dense: u64, expert: u64) -> Seconds {
        let owned = self.owned(dense, expert);
        let down = if self.reduces_each() { Seconds::ZERO } else { self.gradients_of(dense, expert) };
        let devices = self.machine.min(self.split().world()).max(1) as f64;
        let moved = Bytes::new(owned * self.updated_bytes() * devices);
        down + moved / self.host_memory + Bytes::new(owned * self.weight_width as f64) / self.host_link
    }
}

impl MemoryInputs<'_> {
    /// Parameters of the embedding, if a virtual stage is the first, and of the output layer, if it is the last. A tied
    /// embedding is on both.
    pub(super) fn end_parameters(&self, first: bool, last: bool) -> u64 {
        let (shape, tensor) = (self.shape, self.split().tensor);
        let mut dense = 0;
        if first {
            dense += shape.embedding_parameters().dense_shard(tensor, shape.kv_heads);
        }
        if last {
            let end = shape.final_norm_parameters() + shape.output_parameters();
            dense += end.dense_shard(tensor, shape.kv_heads);
            if shape.tied && self.split().pipeline > 1 {
                dense += (shape.vocabulary * shape.hidden).div_ceil(tensor);
            }
        }
        dense
    }

    /// Trained parameters of the embedding and of the output layer.
    pub(super) fn trained_ends(&self, first: bool, last: bool) -> u64 {
        let tuning = self.shape.tuning;
        self.end_parameters(first && !tuning.frozen_embedding, last && !tuning.frozen_output)
    }
}
