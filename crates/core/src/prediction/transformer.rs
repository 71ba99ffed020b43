//! Results of a transformer split over many devices: tokens, utilisation, stages, memory.

use super::Part;
use crate::quantity::{BitsPerSec, Bytes, InBaseUnits, Seconds};
use crate::strategy::{Mask, ScheduleKind};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::serde_as;

/// A transformer's step.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct SplitReport {
    /// Tokens that all devices process in a second.
    pub tokens_per_s: f64,
    /// Tokens that each device processes in a second.
    pub tokens_per_s_per_device: f64,
    /// Operations that the model needs, as a share of the peak rate of all devices.
    pub mfu: f64,
    /// Operations with recomputation, as a share of the peak rate of all devices.
    pub hfu: f64,
    /// Pairs of query and key that both count.
    pub mask: Mask,
    /// Share of the time of all stages, until the last backward pass, without computing or communicating.
    pub bubble: f64,
    /// Replicas.
    pub data: u64,
    /// Micro-batches of a replica.
    pub micro_batches: u64,
    /// Order of operations of a stage.
    pub schedule: ScheduleKind,
    /// Communication that computing waits for on the slowest stage, by kind.
    pub exposed: Vec<Part>,
    /// The stages.
    pub stages: Vec<StageReport>,
    /// Memory of the fullest stage.
    pub memory: MemoryReport,
    /// The exchange of outer gradients, with local SGD.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outer: Option<OuterReport>,
}

/// The periodic exchange of outer gradients.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct OuterReport {
    /// Replicas that train on their own.
    pub replicas: u64,
    /// Steps from one exchange of a weight to the next.
    pub steps: u64,
    /// Bytes that a site sends in these steps.
    #[serde(rename = "sent_bytes")]
    #[serde_as(as = "InBaseUnits")]
    pub sent: Bytes,
    /// Time of the exchange of a fragment.
    #[serde(rename = "exchange_s")]
    #[serde_as(as = "InBaseUnits")]
    pub exchange: Seconds,
    /// Of these steps, the time that training waits for exchanges and outer updates.
    #[serde(rename = "exposed_s")]
    #[serde_as(as = "InBaseUnits")]
    pub exposed: Seconds,
    /// Rate of the link between sites from which on training waits for no exchange; none if it waits at any rate.
    #[serde(rename = "hides_from_bits_per_s")]
    #[serde_as(as = "Option<InBaseUnits>")]
    pub hides_from: Option<BitsPerSec>,
}

/// One rank of a pipeline stage.
#[serde_as]
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize)]
pub struct StageReport {
    /// Its layers, over all chunks.
    pub layers: u64,
    /// Parameters before sharding.
    pub parameters: u64,
    /// Forward pass of a micro-batch, over all chunks.
    #[serde(rename = "forward_s")]
    #[serde_as(as = "InBaseUnits")]
    pub forward: Seconds,
    /// Backward pass of a micro-batch, over all chunks, with recomputation.
    #[serde(rename = "backward_s")]
    #[serde_as(as = "InBaseUnits")]
    pub backward: Seconds,
    /// End of its last backward pass.
    #[serde(rename = "end_s")]
    #[serde_as(as = "InBaseUnits")]
    pub end: Seconds,
    /// Micro-batches in flight; with several chunks, chunks of them.
    pub in_flight: u64,
    /// Memory of one of its ranks.
    pub memory: StageMemory,
}

/// Memory of one rank, by kind.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct StageMemory {
    /// Weights.
    #[serde_as(as = "InBaseUnits")]
    pub weights: Bytes,
    /// Gradients.
    #[serde_as(as = "InBaseUnits")]
    pub gradients: Bytes,
    /// Optimiser states.
    #[serde_as(as = "InBaseUnits")]
    pub optimiser: Bytes,
    /// Activations of the layers.
    #[serde_as(as = "InBaseUnits")]
    pub activations: Bytes,
    /// Working sets: of a recomputed layer, of gathered weights, of the embedding and of the output layer.
    #[serde_as(as = "InBaseUnits")]
    pub working: Bytes,
    /// All of it.
    #[serde_as(as = "InBaseUnits")]
    pub total: Bytes,
}

/// Whether a plan fits into the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Also with fragmentation.
    Fits,
    /// Only with low fragmentation, or if the software saves memory that the plan does not mention.
    MayNotFit,
    /// Not even without losses.
    DoesNotFit,
}

/// Memory that software can save without being told by the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Saving {
    /// Megatron-LM may keep gradients in 16 bits.
    NarrowGradients,
    /// XLA recomputes layers until they fit.
    RepeatedLayers,
}

impl Saving {
    /// The condition, worded to follow the requirement.
    pub const fn condition(self) -> &'static str {
        match self {
            Self::NarrowGradients => "with gradients in 16 bits",
            Self::RepeatedLayers => "if the compiler computes layers again",
        }
    }
}

/// Memory of the fullest stage.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, JsonSchema, Serialize)]
pub struct MemoryReport {
    /// The fullest stage.
    pub stage: usize,
    /// Tensors and reserved memory, less a saving.
    #[serde_as(as = "InBaseUnits")]
    pub least: Bytes,
    /// Memory with fragmentation.
    #[serde_as(as = "InBaseUnits")]
    pub most: Bytes,
    /// Memory of the smallest device.
    #[serde_as(as = "InBaseUnits")]
    pub capacity: Bytes,
    /// Whether it fits.
    pub verdict: Verdict,
    /// Saving without which the least would not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saving: Option<Saving>,
    /// Probability that uneven loads of experts need more memory than a device has, where no token is dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<f64>,
}
