//! Activations and working sets as papers count them (Korthikanti 2022), and what Megatron-LM needs beside them.

use super::{MemoryInputs, RankMemory, StageLayers, WORKSPACES};
use crate::transformer::Split;
use crate::transformer::schedules::in_flight;
use stepcast_core::model::transformer::{Mlp, Target};
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{Attention, Implementation, Recompute, Recomputed, ScheduleKind, Sharding};

impl MemoryInputs<'_> {
    /// All that papers count, whenever it is held.
    pub(super) fn textbook(&self, stage: u64) -> RankMemory {
        let states = self.states_of(stage);
        let (first, last) = (stage == 0, self.is_last(stage));
        let kept_by =
            |what: Recomputed| [false, true].map(|with_experts| self.layer_activations(with_experts, what));
        let what = kept_by(self.recompute.what);
        let everything = kept_by(Recomputed::NONE);
        let of = |layers: StageLayers, [dense, expert]: [Bytes; 2]| {
            dense * layers.dense as f64 + expert * layers.expert as f64
        };
        let of_largest = |layers: StageLayers, [dense, expert]: [Bytes; 2]| {
            let dense = if layers.dense > 0 { dense } else { Bytes::ZERO };
            if layers.expert > 0 { dense.max(expert) } else { dense }
        };
        // Scores that are computed again count nowhere (Korthikanti 2022).
        let parts = ![Recompute::Layer, Recompute::Operators].iter().any(|all| self.recompute.what.has(*all));
        let base = match self.recompute.what.has(Recompute::Attention) {
            true => kept_by(Recompute::Attention.into()),
            false => everything,
        };
        // With recomputation, and with nothing computed again.
        let [mut kept, mut largest] = [[Bytes::ZERO; 2]; 2];
        let mut recomputed = Bytes::ZERO;
        for [some, others] in self.backward_chunks(stage) {
            let whole = of(others, everything);
            for (index, again) in [what, everything].into_iter().enumerate() {
                kept[index] += of(some, again) + whole;
                for (layers, kept) in [(some, again), (others, everything)] {
                    largest[index] = largest[index].max(of_largest(layers, kept));
                }
            }
            // What one layer computes again. Layers that keep everything go backward first and are free by then.
            let of_one = match parts {
                true => of_largest(some, [0, 1].map(|kind| base[kind] - what[kind])),
                false => of_largest(some, everything),
            };
            recomputed = recomputed.max(of_one - whole);
        }
        let in_flight = states.in_flight as f64 / self.split.chunks as f64;
        let [activations, all] = [0, 1].map(|index| self.on_device(kept[index] * in_flight, largest[index]));
        let sharded = self.sharding.stage() == 3;
        RankMemory {
            activations,
            // What a layer keeps is part of what it computes again: together no more than if all were kept.
            recomputed: recomputed.min((all - activations).max(Bytes::ZERO)),
            embedding: if first { self.embedding() } else { Bytes::ZERO },
            head: if last { self.head() } else { Bytes::ZERO },
            unsharded: if sharded { self.unsharded(stage) } else { Bytes::ZERO },
            ..states
        }
    }

    /// Of all that layers keep, what is on the device: with offloading, that of a layer in use and of one under way.
    pub(super) fn on_device(&self, kept: Bytes, of_one: Bytes) -> Bytes {
        if self.offload.activations { kept.min(of_one * 2.0) } else { kept }
    }

    /// The textbook's count with what is needed for a while: beside the logits when the loss is computed, or, when they
    /// are gone, beside the layer that goes backward.
    pub(super) fn megatron(&self, stage: u64) -> RankMemory {
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
    pub(super) fn layer_gradients(&self, layers: StageLayers) -> Bytes {
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
    pub(super) fn logits_meanwhile(&self, last: bool) -> f64 {
        let [_, meanwhile] = self.logit;
        let bytes = meanwhile * self.shape.vocabulary as f64 / self.split.tensor as f64;
        if last { self.tokens() * bytes } else { 0.0 }
    }

    /// Activations that one layer keeps for one micro-batch.
    pub fn layer_activations(&self, with_experts: bool, recompute: Recomputed) -> Bytes {
        let shape = self.shape;
        let (t, repeated) = (self.split.tensor as f64, self.split.token_ranks() as f64);
        let h = shape.hidden;
        if recompute == Recompute::Layer {
            return Bytes::new(self.tokens() * (2 * h) as f64 / repeated);
        }
        // Inputs of two norms, of queries, keys and values, and of the MLP, as far as gradients of weights need them; masks.
        let input = |targets: &[Target]| if shape.needs_input(targets) { self.input * h as f64 } else { 0.0 };
        // Norms that are computed again have no output to keep: before latent attention and before experts they are by themselves.
        let norms = recompute.has(Recompute::Norms);
        let to_attention =
            if norms && shape.mla.is_some() { 0.0 } else { input(&[Target::Q, Target::K, Target::V]) };
        let to_mlp =
            if norms && with_experts { 0.0 } else { input(&[Target::Gate, Target::Up, Target::Experts]) };
        let inputs = to_attention + to_mlp;
        let every = (4 * h + if self.dropout { 2 * h } else { 0 }) as f64 + inputs;
        let (key, value) = shape.widths();
        let kv_heads = if shape.mla.is_some() { shape.heads } else { shape.kv_heads };
        let heads = match recompute.has(Recompute::Projections) {
            true => 2 * shape.heads * value,
            false => 2 * shape.heads * (key + value) + 2 * (key + value) * kv_heads.max(self.split.tensor),
        };
        let core = match self.attention {
            Attention::Flash | Attention::Cudnn => 4 * shape.heads,
            Attention::Unfused if recompute.has(Recompute::Attention) => 0,
            Attention::Unfused => {
                let scores = if self.dropout { 5 } else { 2 };
                scores * shape.heads * self.sequence()
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
        let back = if shape.needs_input(&[Target::Down, Target::Experts]) { self.input } else { 0.0 };
        let before = if shape.mlp == Mlp::Swiglu { 4.0 } else { 2.0 };
        let mlp = |width: u64| (before + back) * width as f64;
        // The output of attention in 16 bits, and in fewer as the input of the product behind it.
        let again = if self.input < 2.0 { self.input * (shape.heads * value) as f64 } else { 0.0 };
        let attended = (heads + core) as f64 + again;
        let (divided, routed) = match shape.experts.filter(|_| with_experts) {
            // The input of the MLP is kept, and nothing within it.
            _ if recompute.has(Recompute::Mlp) => (attended, 0.0),
            Some(experts) => {
                let behind = if recompute.has(Recompute::Activation) { 0.0 } else { back };
                let visit = (self.input + 2.0) * h as f64 + (before + behind) * experts.width as f64;
                let routed = experts.active as f64 * visit + (8 * experts.count) as f64;
                (attended + mlp(experts.shared_width), routed)
            }
            None => (attended + mlp(shape.mlp_width), 0.0),
        };
        Bytes::new(self.tokens() * ((every + routed * self.expert_skew) / repeated + divided / t))
    }

    /// Token ids of 8 bytes, and a dropout mask, for every micro-batch whose first chunk is in flight.
    pub(super) fn embedding(&self) -> Bytes {
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
    pub(super) fn head(&self) -> Bytes {
        self.head_of((4 * self.shape.hidden) as f64)
    }

    /// The same with so many bytes of a token for the inputs.
    pub(super) fn head_of(&self, inputs: f64) -> Bytes {
        let inputs = inputs / self.split.token_ranks() as f64;
        let [kept, _] = self.logit;
        // Of every token that a position predicts.
        let passes = (1 + self.shape.multi_token) as f64;
        let logits = kept * self.shape.vocabulary as f64 / self.split.tensor as f64;
        let m = self.micro_batches;
        let count = match self.schedule {
            ScheduleKind::Gpipe | ScheduleKind::LoopedBfs => m,
            ScheduleKind::ZbH1 | ScheduleKind::InterleavedZeroBubble => m.min(self.split.pipeline),
            // The last virtual stage goes backward at once, gradients of weights included.
            ScheduleKind::OneFOneB | ScheduleKind::Interleaved | ScheduleKind::Zbv => 1,
        };
        Bytes::new(count as f64 * passes * self.tokens() * (inputs + logits))
    }

    /// Sharded weights: 16-bit weights of the unit in use and of the one fetched ahead, a unit being a layer; in the
    /// backward pass also its gradient, and the copy that is reduced, in 32 bits unless the plan says otherwise. With
    /// `fsdp-keep`, all weights of the stage from the first micro-batch to the last, and sums of their gradients as wide.
    pub(super) fn unsharded(&self, stage: u64) -> Bytes {
        let [unit, trained] = self.unit(self.layers(stage)).map(|all| all as f64);
        let width = self.gathered_width();
        if self.sharding == Sharding::Keep {
            let (dense, expert) = self.stage_parameters(stage);
            let (own_dense, own_expert) = self.stage_trained(stage);
            let sums = if self.micro_batches > 1 { self.reduced } else { 0.0 };
            let weights = (dense + expert) as f64 * width;
            return Bytes::new(weights + (own_dense + own_expert) as f64 * sums + trained * 2.0);
        }
        let gathered = 1.0 + f64::from(u8::from(self.prefetch));
        if self.implementation == Implementation::Xla {
            return Bytes::new(self.largest_product() * (gathered * width + 2.0));
        }
        Bytes::new(unit * gathered * width + trained * (2.0 + self.reduced))
    }

    /// Weights of the largest product of a layer, with all experts of a rank.
    fn largest_product(&self) -> f64 {
        let shape = self.shape;
        let experts = shape.experts.map_or(0, |own| own.count / self.split.expert * own.width);
        let widest = shape.mlp_width.max(shape.heads * shape.head_width) / self.split.tensor;
        (shape.hidden * widest.max(experts)) as f64
    }
}
