//! Activations and working sets as papers count them (Korthikanti 2022), and further memory of Megatron-LM.

use super::{ChunkLayers, MemoryInputs, RankMemory, StageLayers, WORKSPACES};
use crate::transformer::Split;
use crate::transformer::schedules::in_flight;
use stepcast_core::model::transformer::{Block, FeedForward, MOST_BLOCKS, Mixer, Mlp, Target, Tuning};
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{
    Attention, Implementation, Recompute, Recomputed, ScheduleKind, Sharding, States,
};

/// Bytes of a layer of every block.
type ByBlock = [Bytes; MOST_BLOCKS];

impl MemoryInputs<'_> {
    /// All that papers count, whenever it is held.
    pub(super) fn textbook(&self, stage: u64, states: RankMemory, layers: &ChunkLayers) -> RankMemory {
        let (first, last) = (stage == 0, self.is_last(stage));
        let blocks = self.shape.blocks();
        let kept_by = |what: Recomputed| {
            blocks.map(|block| block.map_or(Bytes::ZERO, |block| self.layer_activations(block, what)))
        };
        let everything = kept_by(Recomputed::NONE);
        let what = match self.choice.recompute.what {
            Recomputed::NONE => everything,
            what => kept_by(what),
        };
        let of = |layers: StageLayers, each: ByBlock| {
            layers.0.iter().zip(each).map(|(count, bytes)| bytes * *count as f64).sum::<Bytes>()
        };
        let of_largest = |layers: StageLayers, each: ByBlock| {
            let present = layers.0.iter().zip(each).filter(|(count, _)| **count > 0);
            present.map(|(_, bytes)| bytes).fold(Bytes::ZERO, Bytes::max)
        };
        // Scores that are computed again count nowhere (Korthikanti 2022).
        let parts =
            ![Recompute::Layer, Recompute::Operators].iter().any(|all| self.choice.recompute.what.has(*all));
        let base = match self.choice.recompute.what.has(Recompute::Attention) {
            true => kept_by(Recompute::Attention.into()),
            false => everything,
        };
        // With recomputation, and with nothing computed again.
        let [mut kept, mut largest] = [[Bytes::ZERO; 2]; 2];
        let mut recomputed = Bytes::ZERO;
        for &([some, others], count) in &layers.backward {
            let whole = of(others, everything);
            for (index, again) in [what, everything].into_iter().enumerate() {
                kept[index] += (of(some, again) + whole) * count as f64;
                for (layers, kept) in [(some, again), (others, everything)] {
                    largest[index] = largest[index].max(of_largest(layers, kept));
                }
            }
            // Activations that one layer recomputes. Layers that keep everything go backward first and are freed by then.
            let of_one = match parts {
                true => of_largest(some, std::array::from_fn(|place| base[place] - what[place])),
                false => of_largest(some, everything),
            };
            recomputed = recomputed.max(of_one - whole);
        }
        let in_flight = states.in_flight as f64 / self.split().chunks as f64;
        let [activations, all] = [0, 1].map(|index| self.on_device(kept[index] * in_flight, largest[index]));
        let sharded = self.choice.sharding.stage() == 3;
        RankMemory {
            activations,
            // Kept activations are part of the recomputed ones: together no more than if all were kept.
            recomputed: recomputed.min((all - activations).max(Bytes::ZERO)),
            embedding: if first { self.embedding() } else { Bytes::ZERO },
            head: if last { self.head() } else { Bytes::ZERO },
            unsharded: if sharded { self.unsharded(stage) } else { Bytes::ZERO },
            ..states
        }
    }

    /// The part of the kept activations that is on the device: with offloading, a layer in use and one under way.
    pub(super) fn on_device(&self, kept: Bytes, of_one: Bytes) -> Bytes {
        if self.plan.offloaded().activations { kept.min(of_one * 2.0) } else { kept }
    }

    /// The textbook's count with temporary memory: beside the logits while the loss is computed, or, once they are freed,
    /// beside the layer that goes backward.
    pub(super) fn megatron(&self, stage: u64, states: RankMemory, layers: &ChunkLayers) -> RankMemory {
        let rank = self.textbook(stage, states, layers);
        let loss = Bytes::new(self.logits_meanwhile(self.is_last(stage)));
        let layer = self.layer_gradients(layers.all);
        let temporary = WORKSPACES + self.placeholders(layers.all);
        if rank.head + loss >= layer {
            RankMemory { temporary: temporary + loss, ..rank }
        } else {
            RankMemory { head: Bytes::ZERO, temporary: temporary + layer, ..rank }
        }
    }

    /// Gradients that Transformer Engine hands to autograd in place of those that its products have added to sums in 32 bits: 16 bits
    /// of every shape of a layer's matrices, kept once a backward pass has run (`get_dummy_wgrad`).
    fn placeholders(&self, layers: StageLayers) -> Bytes {
        let sums =
            self.plan.implemented_by() == Implementation::Megatron && self.states == States::MegatronBf16;
        if !sums || self.shape.tuning != Tuning::default() {
            return Bytes::ZERO;
        }
        let of_block = |(block, _): (Block, u64)| {
            let experts = self.shape.experts.filter(|_| block.has_experts());
            let matrices = if self.shape.mlp == Mlp::Swiglu { 3 } else { 2 };
            self.shape.layer_matrices(block).dense_shard(self.split().tensor, self.shape.kv_heads)
                + experts.map_or(0, |own| matrices * self.shape.hidden * own.width)
        };
        Bytes::new(2.0 * layers.of(self.shape).map(of_block).max().unwrap_or_default() as f64)
    }

    /// Gradients of the inner activations of an MLP, before its saved tensors are freed: of its output and of its inputs.
    pub(super) fn layer_gradients(&self, layers: StageLayers) -> Bytes {
        let shape = self.shape;
        let inputs = if shape.mlp == Mlp::Swiglu { 2 } else { 1 };
        let of = |tokens: f64, width: u64| tokens * (2 * (1 + inputs) * width) as f64;
        let t = self.split().tensor as f64;
        let dense = of(self.most_tokens() / t, shape.mlp_width);
        let expert = shape.experts.map_or(0.0, |experts| {
            of(self.tokens() / self.split().token_ranks() as f64, experts.active * experts.width)
                + of(self.tokens() / t, experts.shared_width)
        });
        let of_block = |(block, _): (Block, u64)| match block.feed {
            FeedForward::Dense => dense,
            FeedForward::Experts => expert,
            FeedForward::None => 0.0,
        };
        Bytes::new(layers.of(shape).map(of_block).fold(0.0, f64::max))
    }

    /// Memory that the loss of one micro-batch needs beyond the kept logits.
    pub(super) fn logits_meanwhile(&self, last: bool) -> f64 {
        let [_, meanwhile] = self.plan.logit(self.shape);
        let bytes = meanwhile * self.shape.vocabulary as f64 / self.split().tensor as f64;
        if last { self.predicted() * bytes } else { 0.0 }
    }

    /// Activations that one layer keeps for one micro-batch.
    pub fn layer_activations(&self, block: Block, recompute: Recomputed) -> Bytes {
        let shape = self.shape;
        let tokens = self.tokens_of(block);
        let (t, repeated) = (self.split().tensor as f64, self.split().token_ranks() as f64);
        let h = shape.hidden;
        if recompute == Recompute::Layer {
            return Bytes::new(tokens * (2 * h) as f64 / repeated);
        }
        // Inputs of norms, of the mixer, and of the MLP, as far as gradients of weights need them; masks.
        let input = |targets: &[Target]| {
            if shape.needs_input(targets) { self.plan.kept_input() * h as f64 } else { 0.0 }
        };
        // Norms that are computed again have no output to keep: before latent attention and before experts they are by themselves.
        let norms = recompute.has(Recompute::Norms);
        let to_mixer = match block.mixer {
            Mixer::None => 0.0,
            _ if norms && shape.mla.is_some() => 0.0,
            _ => input(&[Target::Q, Target::K, Target::V]),
        };
        let to_mlp = match block.feed {
            FeedForward::None => 0.0,
            FeedForward::Experts if norms => 0.0,
            _ => input(&[Target::Gate, Target::Up, Target::Experts]),
        };
        let half =
            if self.plan.dropout { 3 * h } else { 2 * h } + if shape.condition.is_some() { 4 * h } else { 0 };
        let every = (block.halves() * half) as f64 + to_mixer + to_mlp;
        let attended = self.mixer_activations(block, recompute);
        if recompute == Recompute::Operators {
            // Inputs of the layer and of its last norm; queries, values, attention and one matrix of the MLP.
            let width = match (block.feed, shape.experts) {
                (FeedForward::Experts, Some(own)) => own.active * own.width + own.shared_width,
                (FeedForward::None, _) => 0,
                _ => shape.mlp_width,
            };
            let divided = attended + (2 * width) as f64;
            return Bytes::new(tokens * ((2 * block.halves() * h) as f64 / repeated + divided / t));
        }
        let back =
            if shape.needs_input(&[Target::Down, Target::Experts]) { self.plan.kept_input() } else { 0.0 };
        let before = if shape.mlp == Mlp::Swiglu { 4.0 } else { 2.0 };
        let mlp = |width: u64| (before + back) * width as f64;
        let (divided, routed) = match (block.feed, shape.experts) {
            (FeedForward::None, _) => (attended, 0.0),
            // The input of the MLP is kept, and nothing within it.
            _ if recompute.has(Recompute::Mlp) => (attended, 0.0),
            (FeedForward::Experts, Some(experts)) => {
                let behind = if recompute.has(Recompute::Activation) { 0.0 } else { back };
                let visit =
                    (self.plan.kept_input() + 2.0) * h as f64 + (before + behind) * experts.width as f64;
                let routed = experts.active as f64 * visit + (8 * experts.count) as f64;
                (attended + mlp(experts.shared_width), routed)
            }
            _ => (attended + mlp(shape.mlp_width), 0.0),
        };
        Bytes::new(tokens * ((every + routed * self.expert_load) / repeated + divided / t))
    }

    /// Bytes of a token that attention or another mixer keeps beside its input, divided by tensor parallelism.
    fn mixer_activations(&self, block: Block, recompute: Recomputed) -> f64 {
        let shape = self.shape;
        let again = if self.plan.kept_input() < 2.0 && recompute != Recompute::Operators {
            self.plan.kept_input()
        } else {
            0.0
        };
        let narrower = |inner: u64| again * inner as f64;
        match block.mixer {
            Mixer::Attention | Mixer::Encoder | Mixer::Cross | Mixer::Joint | Mixer::JointLast => {}
            Mixer::Linear => {
                return shape.delta.map_or(0.0, |own| own.kept() as f64 + narrower(own.inner()));
            }
            Mixer::Mamba => {
                return shape.mamba.map_or(0.0, |own| own.kept() as f64 + narrower(own.inner()));
            }
            Mixer::None => return 0.0,
        }
        let (key, value) = shape.widths();
        let kv_heads =
            if shape.mla.is_some() { shape.heads } else { shape.kv_heads }.max(self.split().tensor);
        // Keys of another sequence, for each token of this one.
        let kv_heads = kv_heads * shape.keys_of(block) / shape.tokens_of(block);
        // Keys are computed again with every other operator, all three from their narrow projections.
        let heads = match recompute {
            _ if recompute.has(Recompute::Projections) => 2 * shape.heads * value,
            _ if recompute == Recompute::Operators => 2 * shape.heads * (key + value) + 2 * value * kv_heads,
            _ => 2 * shape.heads * (key + value) + 2 * (key + value) * kv_heads,
        };
        // A gate, and its product with the output.
        let gate = if shape.attention_gate { 4 * shape.heads * value } else { 0 };
        let core = match self.plan.attention_kind() {
            _ if recompute.has(Recompute::Attention) => 0,
            Attention::Flash | Attention::Cudnn | Attention::Triton => 4 * shape.heads,
            Attention::Unfused => {
                let scores = if self.plan.dropout { 5 } else { 2 };
                let keys = if shape.target > 0 { shape.keys_of(block) } else { self.sequence() };
                scores * shape.heads * keys
            }
        };
        // The output in 16 bits, and in fewer as the input of the product behind it.
        (heads + gate + core) as f64 + narrower(shape.heads * value)
    }

    /// Token ids of 8 bytes, and a dropout mask, for every micro-batch whose first chunk is in flight.
    pub(super) fn embedding(&self) -> Bytes {
        let mask = if self.plan.dropout {
            self.shape.hidden as f64 / self.split().token_ranks() as f64
        } else {
            0.0
        };
        let Split { pipeline, chunks, .. } = self.split();
        let m = self.choice.micro_batches;
        let count = match (self.choice.schedule, chunks) {
            (ScheduleKind::Gpipe | ScheduleKind::LoopedBfs, _) => m,
            (_, 1) => in_flight(self.choice.schedule, pipeline, 0, m, 1),
            (_, _) => m.min(2 * pipeline),
        };
        let received = self.shape.signal.map_or(8.0, |own| 2.0 * (own.patch + own.frequencies) as f64);
        Bytes::new(count as f64 * self.tokens() * (received + mask))
    }

    /// Input of the final norm and of the output layer, and logits. They count once; for all micro-batches if all
    /// forwards come first; until dW with a split backward.
    pub(super) fn head(&self) -> Bytes {
        self.head_of((4 * self.shape.hidden) as f64)
    }

    /// The head's memory with `inputs` bytes of a token for the inputs.
    pub(super) fn head_of(&self, inputs: f64) -> Bytes {
        let inputs = inputs / self.split().token_ranks() as f64;
        let [kept, _] = self.plan.logit(self.shape);
        // Of every token that a position predicts.
        let passes = (1 + self.shape.multi_token) as f64;
        let logits = kept * self.shape.vocabulary as f64 / self.split().tensor as f64;
        let m = self.choice.micro_batches;
        let count = match self.choice.schedule {
            ScheduleKind::Gpipe | ScheduleKind::LoopedBfs => m,
            ScheduleKind::ZbH1 | ScheduleKind::InterleavedZeroBubble => m.min(self.split().pipeline),
            // The last virtual stage goes backward at once, gradients of weights included.
            ScheduleKind::OneFOneB
            | ScheduleKind::Interleaved
            | ScheduleKind::Zbv
            | ScheduleKind::DualPipeV
            | ScheduleKind::DualPipe => 1,
        };
        Bytes::new(count as f64 * passes * self.predicted() * (inputs + logits))
    }

    /// Sharded weights: 16-bit weights of the unit in use and of the one fetched ahead, a unit being a layer; in the
    /// backward pass also its gradient, and the copy that is reduced, in 32 bits unless the plan says otherwise. Where units
    /// stay whole, all weights of the stage from the first micro-batch to the last, and sums of their gradients as wide; a
    /// pipeline reduces these at its end, two units at a time (research/transformers/keep.py).
    pub(super) fn unsharded(&self, stage: u64) -> Bytes {
        let [unit, trained] = self.unit(self.layers(stage)).map(|all| all as f64);
        let width = self.gathered_width();
        let gathered = 1.0 + f64::from(u8::from(self.plan.overlaps().prefetch));
        if self.plan.implemented_by() == Implementation::Xla {
            return Bytes::new(self.largest_product() * (gathered * width + 2.0));
        }
        let in_use = |reducing: f64| unit * gathered * width + trained * (2.0 + reducing * self.reduced());
        if !self.keeps_units_whole() {
            return Bytes::new(in_use(1.0));
        }
        let (dense, expert) = self.stage_parameters(stage);
        let (own_dense, own_expert) = self.stage_trained(stage);
        let sums = if self.choice.micro_batches > 1 { self.reduced() } else { 0.0 };
        let kept = (dense + expert) as f64 * width + (own_dense + own_expert) as f64 * sums;
        Bytes::new(kept + in_use(if self.choice.pipeline > 1 { 2.0 } else { 1.0 }))
    }

    /// Whether units of sharded weights stay gathered between passes. PyTorch's pipelines neither divide them again nor reduce
    /// their gradients before the last micro-batch.
    pub(super) fn keeps_units_whole(&self) -> bool {
        let staged = self.choice.pipeline > 1 && self.plan.implemented_by().is_eager();
        self.choice.sharding == Sharding::Keep || self.choice.sharding.stage() == 3 && staged
    }

    /// Weights of the largest product of a layer, with all experts of a rank.
    fn largest_product(&self) -> f64 {
        let shape = self.shape;
        let experts = shape.experts.map_or(0, |own| own.count / self.split().expert * own.width);
        let widest = shape.mlp_width.max(shape.heads * shape.head_width) / self.split().tensor;
        (shape.hidden * widest.max(experts)) as f64
    }
}
