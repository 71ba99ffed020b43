//! What a rank holds: weights, gradients, optimiser states, activations and working sets, stage by stage.
//!
//! States follow Rajbhandari 2020 (ZeRO) and Megatron-LM, activations Korthikanti 2022: bytes of a token in 16 bits,
//! of which norms, inputs of matrices and dropout masks are on every tensor-parallel rank unless sequence parallelism
//! divides them, and the rest is divided by tensor parallelism. This is the textbook's count. Frameworks need more
//! than it ([`Implementation`]): Megatron-LM while it computes the loss and goes back through a layer, PyTorch what
//! `phases` adds up.

mod eager;
mod phases;

use super::Split;
use super::schedules::{in_flight, stage_of};
use stepcast_core::model::transformer::{Mlp, Parameters, Transformer};
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{
    Attention, Implementation, Offloaded, Recomputation, Recompute, ScheduleKind, Sharding, States,
};

/// Units whose weights are gathered at once beside the one in use (FSDP's prefetch).
const PREFETCH: u64 = 1;

/// Workspaces of cuBLAS, of the thread that goes forward and of the one that goes backward: 32 MiB each on Hopper and
/// later devices (`getChosenWorkspaceSize` of PyTorch's CUDABlas).
const WORKSPACES: Bytes = Bytes::new((2 * 32 * (1_u64 << 20)) as f64);

/// Everything on which memory depends, beside the stage.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    /// The transformer.
    pub shape: &'a Transformer,
    /// How ranks divide it.
    pub split: Split,
    /// b: sequences of a micro-batch.
    pub micro_batch: u64,
    /// m: micro-batches of a replica in a step.
    pub micro_batches: u64,
    /// What data-parallel ranks hold only a part of.
    pub sharding: Sharding,
    /// Ranks of a sharding group, if they are not all replicas (HSDP).
    pub sharding_group: Option<u64>,
    /// Number formats.
    pub states: States,
    /// What is computed again.
    pub recompute: Recomputation,
    /// How attention is computed.
    pub attention: Attention,
    /// Whether dropout keeps masks.
    pub dropout: bool,
    /// The order of operations.
    pub schedule: ScheduleKind,
    /// Whose kernels compute a layer.
    pub implementation: Implementation,
    /// Bytes of a logit: kept until the backward pass, and needed beside them for a while.
    pub logit: [u64; 2],
    /// What is kept in the host's memory.
    pub offload: Offloaded,
    /// Layers of every virtual stage, in order; equal shares if empty.
    pub stage_layers: &'a [u64],
    /// Layers of every virtual stage, from its first, to which recomputation applies; as it says itself if empty.
    pub stage_recompute: &'a [u64],
}

/// What one rank of a stage holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankMemory {
    /// Parameters before sharding.
    pub parameters: u64,
    /// Micro-batches in flight; with several chunks, chunks of them.
    pub in_flight: u64,
    /// Weights.
    pub weights: Bytes,
    /// Gradients.
    pub gradients: Bytes,
    /// Optimiser states.
    pub optimiser: Bytes,
    /// Activations of the layers.
    pub activations: Bytes,
    /// Activations of the layer that is computed again.
    pub recomputed: Bytes,
    /// Token ids and the embedding's dropout mask.
    pub embedding: Bytes,
    /// Input of the output layer, and logits.
    pub head: Bytes,
    /// Gathered weights and whole gradients of the units in use (sharded weights).
    pub unsharded: Bytes,
    /// What the loss, a backward pass or a sum of gradients needs for a while, and workspaces.
    pub temporary: Bytes,
}

impl RankMemory {
    /// All of it.
    pub fn total(&self) -> Bytes {
        self.weights
            + self.gradients
            + self.optimiser
            + self.activations
            + self.recomputed
            + self.embedding
            + self.head
            + self.unsharded
            + self.temporary
    }
}

/// What the allocator and libraries take beside tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Share of all tensors that is lost between them.
    pub fragmentation: f64,
    /// Context of the device, buffers of the communication library, workspaces.
    pub fixed: Bytes,
}

impl Allowance {
    /// What is needed for tensors of `total`.
    pub fn with(&self, total: Bytes) -> Bytes {
        total * (1.0 + self.fragmentation) + self.fixed
    }
}

/// The dense layers and the layers with experts of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageLayers {
    /// Layers with a dense MLP.
    pub dense: u64,
    /// Layers with experts.
    pub expert: u64,
}

impl Held<'_> {
    /// What a rank of `stage` holds when it holds most.
    pub fn rank(&self, stage: u64) -> RankMemory {
        match self.implementation {
            Implementation::Textbook => self.textbook(stage),
            Implementation::Megatron => self.megatron(stage),
            Implementation::Pytorch => phases::peak(self, stage, self.states_of(stage)),
        }
    }

    /// What one layer, of which this is computed again, keeps of a micro-batch for its backward pass.
    pub fn kept_by(&self, with_experts: bool, recompute: Recompute) -> Bytes {
        match self.implementation {
            Implementation::Textbook | Implementation::Megatron => {
                self.layer_activations(with_experts, recompute)
            }
            Implementation::Pytorch => Bytes::new(eager::Layer::of(self, with_experts, recompute).kept()),
        }
    }

    /// What the final norm, the output layer and the loss keep of a micro-batch, beside the input of the norm.
    pub fn kept_by_head(&self) -> Bytes {
        let copies = match self.implementation {
            Implementation::Textbook | Implementation::Megatron => 0.0,
            Implementation::Pytorch => eager::output_copy(self),
        };
        self.head_of((2 * self.shape.hidden) as f64) + Bytes::new(copies)
    }

    /// Weights, gradients and optimiser states of a rank.
    fn states_of(&self, stage: u64) -> RankMemory {
        let Split { pipeline, chunks, .. } = self.split;
        let in_flight = in_flight(self.schedule, pipeline, stage, self.micro_batches, chunks);
        let (dense, expert) = self.stage_parameters(stage);
        let parameters = dense + expert;
        let [weight, gradient, optimiser] = self.states.bytes();
        let stage_of = self.sharding.stage();
        let ranks = |replicas: u64| self.sharding_group.map_or(replicas, |group| group.min(replicas)) as f64;
        let divided = |bytes: u64, from: u32| match stage_of >= from {
            true => {
                let dense = (dense * bytes) as f64 / ranks(self.split.replicas());
                Bytes::new(dense + (expert * bytes) as f64 / ranks(self.split.expert_replicas()))
            }
            false => Bytes::new((parameters * bytes) as f64),
        };
        // Gradients leave when they are reduced; until then the unit in use has its own.
        let gradients = match (self.offload.optimiser, self.sharding) {
            (true, Sharding::Zero2) => Bytes::new((self.unit(self.layers(stage)) * gradient) as f64),
            (true, Sharding::Zero3 | Sharding::Hsdp) => Bytes::ZERO,
            _ => divided(gradient, 2),
        };
        RankMemory {
            parameters,
            in_flight,
            weights: divided(weight, 3),
            gradients,
            optimiser: if self.offload.optimiser { Bytes::ZERO } else { divided(optimiser, 1) },
            activations: Bytes::ZERO,
            recomputed: Bytes::ZERO,
            embedding: Bytes::ZERO,
            head: Bytes::ZERO,
            unsharded: Bytes::ZERO,
            temporary: Bytes::ZERO,
        }
    }

    /// All that papers count, whenever it is held.
    fn textbook(&self, stage: u64) -> RankMemory {
        let states = self.states_of(stage);
        let (first, last) = (stage == 0, self.is_last(stage));
        let kept_by =
            |what: Recompute| [false, true].map(|with_experts| self.layer_activations(with_experts, what));
        let what = kept_by(self.recompute.what);
        let partly = self.recompute.layers.is_some() || !self.stage_recompute.is_empty();
        let nothing = if partly { kept_by(Recompute::None) } else { what };
        let of = |layers: StageLayers, [dense, expert]: [Bytes; 2]| {
            dense * layers.dense as f64 + expert * layers.expert as f64
        };
        let [mut kept, mut recomputed, mut largest] = [Bytes::ZERO; 3];
        for [some, others] in self.chunks(stage) {
            let whole = of(others, nothing);
            kept += of(some, what) + whole;
            for (layers, [dense, expert]) in [(some, what), (others, nothing)] {
                largest = largest.max(if layers.dense > 0 { dense } else { Bytes::ZERO });
                largest = largest.max(if layers.expert > 0 { expert } else { Bytes::ZERO });
            }
            // Layers that keep everything go backward first and are free by then.
            recomputed = recomputed.max(self.largest(some) - whole);
        }
        let sharded = self.sharding.stage() == 3;
        RankMemory {
            activations: self.on_device(kept * (states.in_flight as f64 / self.split.chunks as f64), largest),
            recomputed: match self.recompute.what {
                Recompute::Layer | Recompute::Operators => recomputed,
                Recompute::None | Recompute::Attention => Bytes::ZERO,
            },
            embedding: if first { self.embedding() } else { Bytes::ZERO },
            head: if last { self.head() } else { Bytes::ZERO },
            unsharded: if sharded { self.unsharded(self.layers(stage)) } else { Bytes::ZERO },
            ..states
        }
    }

    /// Of all that layers keep, what is on the device: with offloading, that of a layer in use and of one under way.
    fn on_device(&self, kept: Bytes, of_one: Bytes) -> Bytes {
        if self.offload.activations { kept.min(of_one * 2.0) } else { kept }
    }

    /// The textbook's count with what is needed for a while: beside the logits when the loss is computed, or, when they
    /// are gone, beside the layer that goes backward.
    fn megatron(&self, stage: u64) -> RankMemory {
        let rank = self.textbook(stage);
        let loss = Bytes::new(self.logits_meanwhile(self.is_last(stage)));
        let layer = self.layer_gradients(self.layers(stage));
        if rank.head + loss >= layer {
            RankMemory { temporary: WORKSPACES + loss, ..rank }
        } else {
            RankMemory { head: Bytes::ZERO, temporary: WORKSPACES + layer, ..rank }
        }
    }

    /// Gradients of the inner activations of an MLP, before its saved ones are free: of its output and of its inputs.
    fn layer_gradients(&self, layers: StageLayers) -> Bytes {
        let shape = self.shape;
        let inputs = if shape.mlp == Mlp::Swiglu { 2 } else { 1 };
        let of = |tokens: f64, width: u64| tokens * (2 * (1 + inputs) * width) as f64;
        let t = self.split.tensor as f64;
        let dense = of(self.tokens() / t, shape.mlp_width);
        let expert = shape.experts.map_or(0.0, |experts| {
            of(self.tokens() / self.split.token_ranks() as f64, experts.active * experts.width)
                + of(self.tokens() / t, experts.shared_width)
        });
        let dense = if layers.dense > 0 { dense } else { 0.0 };
        Bytes::new(if layers.expert > 0 { dense.max(expert) } else { dense })
    }

    /// What the loss of one micro-batch needs beside what is kept of its logits.
    fn logits_meanwhile(&self, last: bool) -> f64 {
        let [_, meanwhile] = self.logit;
        let bytes = (meanwhile * self.shape.vocabulary) as f64 / self.split.tensor as f64;
        if last { self.tokens() * bytes } else { 0.0 }
    }

    /// Layers of a stage, over all its chunks.
    pub fn layers(&self, stage: u64) -> StageLayers {
        let halves = self.chunks(stage).flatten();
        halves.fold(StageLayers { dense: 0, expert: 0 }, |sum, half| StageLayers {
            dense: sum.dense + half.dense,
            expert: sum.expert + half.expert,
        })
    }

    /// Layers of every chunk of a stage: those to which recomputation applies, and the others behind them.
    fn chunks(&self, stage: u64) -> impl Iterator<Item = [StageLayers; 2]> {
        let places = self.split.pipeline * self.split.chunks;
        let dense = self.shape.layers - self.shape.expert_layers();
        let mut end = 0;
        (0..places).filter_map(move |place| {
            let (from, count) = (end, self.layers_at(place, places));
            end += count;
            let middle = from + self.recompute.among_at(place, count, self.stage_recompute);
            (self.stage_of(place) == stage).then(|| {
                [from..middle, middle..end].map(|range| {
                    let dense = dense.clamp(range.start, range.end) - range.start;
                    StageLayers { dense, expert: range.end - range.start - dense }
                })
            })
        })
    }

    /// Layers of a virtual stage: as given, or an equal share.
    fn layers_at(&self, place: u64, places: u64) -> u64 {
        let given = usize::try_from(place).ok().and_then(|place| self.stage_layers.get(place));
        given.copied().unwrap_or(self.shape.layers / places)
    }

    fn stage_of(&self, place: u64) -> u64 {
        stage_of(self.schedule, self.split.pipeline, place)
    }

    /// Whether a stage has the last virtual stage, and so the output layer.
    fn is_last(&self, stage: u64) -> bool {
        self.stage_of(self.split.pipeline * self.split.chunks - 1) == stage
    }

    /// Parameters of a rank of `stage` before sharding: dense ones, and those of its experts.
    pub fn stage_parameters(&self, stage: u64) -> (u64, u64) {
        let Split { tensor, expert, .. } = self.split;
        let shard = |parameters: Parameters| {
            (parameters.dense_shard(tensor, self.shape.kv_heads), parameters.expert_shard(expert))
        };
        let layers = self.layers(stage);
        let dense_layer = shard(self.shape.layer_parameters(false));
        let expert_layer = shard(self.shape.layer_parameters(true));
        let dense = dense_layer.0 * layers.dense + expert_layer.0 * layers.expert;
        let ends = self.end_parameters(stage == 0, self.is_last(stage));
        (dense + ends, expert_layer.1 * layers.expert)
    }

    /// Tokens of a micro-batch on one context-parallel rank.
    fn tokens(&self) -> f64 {
        (self.shape.sequence * self.micro_batch) as f64 / self.split.context as f64
    }

    /// Activations that one layer keeps for one micro-batch.
    pub fn layer_activations(&self, with_experts: bool, recompute: Recompute) -> Bytes {
        let shape = self.shape;
        let (t, repeated) = (self.split.tensor as f64, self.split.token_ranks() as f64);
        let h = shape.hidden;
        if recompute == Recompute::Layer {
            return Bytes::new(self.tokens() * (2 * h) as f64 / repeated);
        }
        // Inputs of two norms, of queries, keys and values, and of the MLP; masks.
        let every = 8 * h + if self.dropout { 2 * h } else { 0 };
        let (key, value) = shape.widths();
        let kv_heads = if shape.mla.is_some() { shape.heads } else { shape.kv_heads };
        let heads = 2 * shape.heads * (key + value) + 2 * (key + value) * kv_heads.max(self.split.tensor);
        let core = match (self.attention, recompute) {
            (Attention::Flash, _) => 4 * shape.heads,
            (Attention::Unfused, Recompute::Attention) => 0,
            (Attention::Unfused, _) => {
                let scores = if self.dropout { 5 } else { 2 };
                scores * shape.heads * shape.sequence
            }
        };
        if recompute == Recompute::Operators {
            // Inputs of the layer and of its last norm; queries, values, attention and one matrix of the MLP.
            let heads = 2 * shape.heads * (key + value) + 2 * value * kv_heads.max(self.split.tensor);
            let width = shape
                .experts
                .filter(|_| with_experts)
                .map_or(shape.mlp_width, |experts| experts.active * experts.width + experts.shared_width);
            let divided = heads + core + 2 * width;
            return Bytes::new(self.tokens() * ((4 * h) as f64 / repeated + divided as f64 / t));
        }
        let mlp = |width: u64| match shape.mlp {
            Mlp::Gelu => 4 * width,
            Mlp::Swiglu => 6 * width,
        };
        let (divided, routed) = match shape.experts.filter(|_| with_experts) {
            Some(experts) => {
                let routed = experts.active * (4 * h + mlp(experts.width)) + 8 * experts.count;
                (heads + core + mlp(experts.shared_width), routed)
            }
            None => (heads + core + mlp(shape.mlp_width), 0),
        };
        Bytes::new(self.tokens() * ((every + routed) as f64 / repeated + divided as f64 / t))
    }

    /// Full set of the largest layer of a stage.
    fn largest(&self, layers: StageLayers) -> Bytes {
        let full = |with_experts: bool, count: u64| match count {
            0 => Bytes::ZERO,
            _ => self.layer_activations(with_experts, Recompute::None),
        };
        full(false, layers.dense).max(full(true, layers.expert))
    }

    /// Token ids of 8 bytes, and a dropout mask, for every micro-batch whose first chunk is in flight.
    fn embedding(&self) -> Bytes {
        let mask =
            if self.dropout { self.shape.hidden as f64 / self.split.token_ranks() as f64 } else { 0.0 };
        let Split { pipeline, chunks, .. } = self.split;
        let m = self.micro_batches;
        let count = match (self.schedule, chunks) {
            (ScheduleKind::Gpipe | ScheduleKind::LoopedBfs, _) => m,
            (_, 1) => in_flight(self.schedule, pipeline, 0, m, 1),
            (_, _) => m.min(2 * pipeline),
        };
        Bytes::new(count as f64 * self.tokens() * (8.0 + mask))
    }

    /// Input of the final norm and of the output layer, and logits. They count once; for all micro-batches if all
    /// forwards come first; until dW with a split backward.
    fn head(&self) -> Bytes {
        self.head_of((4 * self.shape.hidden) as f64)
    }

    /// The same with so many bytes of a token for the inputs.
    fn head_of(&self, inputs: f64) -> Bytes {
        let inputs = inputs / self.split.token_ranks() as f64;
        let [kept, _] = self.logit;
        let logits = (kept * self.shape.vocabulary) as f64 / self.split.tensor as f64;
        let m = self.micro_batches;
        let count = match self.schedule {
            ScheduleKind::Gpipe | ScheduleKind::LoopedBfs => m,
            ScheduleKind::ZbH1 | ScheduleKind::InterleavedZeroBubble | ScheduleKind::Zbv => {
                m.min(self.split.pipeline)
            }
            ScheduleKind::OneFOneB | ScheduleKind::Interleaved => 1,
        };
        Bytes::new(count as f64 * self.tokens() * (inputs + logits))
    }

    /// Sharded weights: 16-bit weights of the unit in use and of those fetched ahead, a unit being a layer; in the
    /// backward pass also its gradient, and the 32-bit copy that is reduced.
    fn unsharded(&self, layers: StageLayers) -> Bytes {
        Bytes::new((self.unit(layers) * ((1 + PREFETCH) * 2 + 2 + 4)) as f64)
    }

    /// Parameters of the largest layer of a stage.
    fn unit(&self, layers: StageLayers) -> u64 {
        let unit = |with_experts: bool, count: u64| match count {
            0 => 0,
            _ => {
                let parameters = self.shape.layer_parameters(with_experts);
                parameters.dense_shard(self.split.tensor, self.shape.kv_heads)
                    + parameters.expert_shard(self.split.expert)
            }
        };
        unit(false, layers.dense).max(unit(true, layers.expert))
    }
}
