//! Memory of a rank: weights, gradients, optimiser states, activations and working sets, stage by stage.
//!
//! States follow Rajbhandari 2020 (ZeRO) and Megatron-LM, activations Korthikanti 2022: bytes of a token in 16 bits,
//! of which norms, inputs of matrices and dropout masks are on every tensor-parallel rank unless sequence parallelism
//! divides them, and the rest is divided by tensor parallelism. This is the textbook's count. Frameworks need more
//! ([`Implementation`]): Megatron-LM during the loss and the backward pass of a layer, PyTorch as `phases` adds up.

mod eager;
mod layers;
mod phases;
mod textbook;
mod widths;

use super::loads::{self, ExpertLoads, Over};
use super::schedules::in_flight;
use super::{LayerKind, Split, outer};
pub(super) use layers::ChunkLayers;
pub use layers::StageLayers;
use stepcast_core::model::transformer::{Backward, Block, Parameters, Transformer, Tuning};
use stepcast_core::prediction::Saving;
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{
    Division, Implementation, Plan, PlanChoice, Recompute, Recomputed, ScheduleKind, Sharding, States,
};

/// Workspaces of cuBLAS, of the thread that goes forward and of the one that goes backward: 32 MiB each on Hopper and
/// later devices (`getChosenWorkspaceSize` of PyTorch's CUDABlas).
const WORKSPACES: Bytes = Bytes::new((2 * 32 * (1_u64 << 20)) as f64);

/// Everything on which memory depends, beside the stage.
#[derive(Debug, Clone, Copy)]
pub struct MemoryInputs<'a> {
    pub shape: &'a Transformer,
    pub plan: &'a Plan,
    /// The plan's values of the dimensions that a search varies.
    pub choice: PlanChoice,
    /// Number formats.
    pub states: States,
    /// Layers of every virtual stage, in order; equal shares if empty.
    pub stage_layers: &'a [u64],
    /// Recomputed layers of every virtual stage, counted from its first; as `recompute` says if empty.
    pub stage_recompute: &'a [u64],
    /// Visits of the rank in question against the mean.
    pub expert_load: f64,
    /// Whether a compiler fuses what lies between products.
    pub compiled: bool,
}

/// Memory of one rank of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RankMemory {
    /// Parameters before sharding.
    pub parameters: u64,
    /// Micro-batches in flight; with several chunks, chunks of them.
    pub in_flight: u64,
    pub weights: Bytes,
    pub gradients: Bytes,
    pub optimiser: Bytes,
    pub activations: Bytes,
    /// Activations of the layer that is being recomputed.
    pub recomputed: Bytes,
    /// Token ids and the embedding's dropout mask.
    pub embedding: Bytes,
    /// Input of the output layer, and logits.
    pub head: Bytes,
    /// Gathered weights and whole gradients of the units in use (sharded weights).
    pub unsharded: Bytes,
    /// Temporary memory of the loss, a backward pass or a sum of gradients, and workspaces.
    pub temporary: Bytes,
}

impl RankMemory {
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

/// Memory of the allocator and of libraries beyond tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Allowance {
    /// Share of all tensors that is lost between them.
    pub fragmentation: f64,
    /// Context of the device, buffers of the communication library, workspaces.
    pub fixed: Bytes,
}

impl Allowance {
    /// Memory needed for tensors of `total`.
    pub fn with(&self, total: Bytes) -> Bytes {
        total * (1.0 + self.fragmentation) + self.fixed
    }
}

impl<'a> MemoryInputs<'a> {
    /// The plan as it is.
    pub fn new(shape: &'a Transformer, plan: &'a Plan, division: &Division) -> Self {
        Self {
            shape,
            plan,
            choice: plan.choice(division),
            states: plan.states,
            stage_layers: plan.given_layers(),
            stage_recompute: plan.given_recompute(),
            expert_load: 1.0,
            compiled: false,
        }
    }

    pub(super) const fn split(&self) -> Split {
        Split::from_choice(&self.choice)
    }

    /// Bytes of a gradient as replicas that hold parts of the weights reduce it.
    fn reduced(&self) -> f64 {
        self.plan.reduce_bits.map_or(4.0, |bits| bits as f64 / 8.0)
    }

    /// Peak memory of a rank of `stage`, with a load of experts that no rank exceeds with a probability of
    /// [`loads::MEMORY`].
    pub fn rank(&self, stage: u64) -> RankMemory {
        self.rank_with(stage, self.load(stage), self.states_of(stage))
    }

    /// The inputs with savings that software makes without being told by the plan: XLA recomputes what does not fit (its pass
    /// HloRematerialization), and Megatron-LM may keep gradients in 16 bits.
    pub fn sparing(&self) -> Option<(Saving, Self)> {
        match (self.plan.implemented_by(), self.states) {
            (Implementation::Xla, _) => Some((
                Saving::RepeatedLayers,
                Self { choice: PlanChoice { recompute: Recompute::Layer.into(), ..self.choice }, ..*self },
            )),
            (_, States::MegatronBf16) => {
                Some((Saving::NarrowGradients, Self { states: States::MixedFp16, ..*self }))
            }
            _ => None,
        }
    }

    /// Memory of a rank with these layers without sharding, except weights, gradients and optimiser states. Only for
    /// implementations whose memory is a sum of parts.
    pub(super) fn beside_states(&self, stage: u64, layers: &ChunkLayers) -> RankMemory {
        let states = RankMemory { in_flight: self.in_flight(stage), ..RankMemory::default() };
        let expert_load = self.load(stage);
        let held = Self { choice: self.choice.without_sharding(), expert_load, ..*self };
        match self.plan.implemented_by() {
            Implementation::Textbook => held.textbook(stage, states, layers),
            _ => held.megatron(stage, states, layers),
        }
    }

    /// The load of the experts of a rank against the mean.
    fn load(&self, stage: u64) -> f64 {
        let loads = self.loads(self.plan.expert_imbalance);
        loads.map_or(self.expert_load, |loads| loads.quantile(loads::MEMORY, self.loaded(stage)))
    }

    /// Memory of a rank of `stage` with this load of its experts and these states.
    fn rank_with(&self, stage: u64, expert_load: f64, states: RankMemory) -> RankMemory {
        let held = Self { expert_load, ..*self };
        match self.plan.implemented_by() {
            Implementation::Textbook => held.textbook(stage, states, &self.chunk_layers(stage)),
            Implementation::Megatron | Implementation::Xla => {
                held.megatron(stage, states, &self.chunk_layers(stage))
            }
            Implementation::Pytorch | Implementation::HuggingFace | Implementation::Liger => {
                phases::peak(&held, stage, states)
            }
        }
    }

    fn loads(&self, imbalance: f64) -> Option<ExpertLoads> {
        ExpertLoads::new(self.shape, self.split().expert, imbalance, self.plan.expert_capacity)
    }

    /// Layers on whose loads memory depends: all that keep activations of experts, or the one that is being recomputed.
    fn loaded(&self, stage: u64) -> Over {
        let layers = self.layers(stage).of(self.shape).filter(|(block, _)| block.has_experts());
        let layers = layers.map(|(_, count)| count).sum::<u64>().max(1);
        let again =
            [Recompute::Layer, Recompute::Mlp].iter().any(|part| self.choice.recompute.what.has(*part));
        if again { Over::Fullest(layers) } else { Over::Sum(layers) }
    }

    /// The probability that experts without a capacity need more on a rank than fits, for their imbalance or, if loads are said to
    /// be equal, that of a model's own routing; none without expert parallelism or with a capacity. Memory grows in proportion to
    /// the load.
    pub fn risk(&self, fits: impl Fn(Bytes) -> bool) -> Option<f64> {
        let given = self.plan.expert_imbalance > 0.0;
        let imbalance = if given { self.plan.expert_imbalance } else { loads::OWN_ROUTING };
        let loads = self.loads(imbalance).filter(|_| self.plan.expert_capacity.is_none())?;
        let stages = (0..self.split().pipeline).filter(|stage| self.layers(*stage).has_experts(self.shape));
        let kept = |stage: u64| {
            let states = self.states_of(stage);
            let load = |load: f64| self.rank_with(stage, load, states).total();
            let (mut low, mut high) = (0.0, loads.quantile(1.0 - 1e-6, self.loaded(stage)));
            if fits(load(high)) {
                return 1.0;
            }
            for _ in 0..24 {
                let middle = 0.5 * (low + high);
                if fits(load(middle)) { low = middle } else { high = middle }
            }
            1.0 - loads.exceeds(low, self.loaded(stage))
        };
        Some(1.0 - stages.map(kept).product::<f64>())
    }

    /// Activations of a micro-batch that one layer keeps under this recomputation.
    pub fn kept_by(&self, kind: LayerKind, recompute: Recomputed) -> Bytes {
        if kind.backward == Backward::Nothing {
            return Bytes::ZERO;
        }
        match self.plan.implemented_by() {
            Implementation::Textbook | Implementation::Megatron | Implementation::Xla => {
                self.layer_activations(kind.block, recompute)
            }
            Implementation::Pytorch | Implementation::HuggingFace | Implementation::Liger => {
                Bytes::new(eager::Layer::new(self, kind, recompute).kept())
            }
        }
    }

    /// Activations of a micro-batch that the final norm, the output layer and the loss keep, without the input of the norm.
    pub fn kept_by_head(&self) -> Bytes {
        let copies = match self.plan.implemented_by() {
            Implementation::Textbook | Implementation::Megatron | Implementation::Xla => 0.0,
            Implementation::Pytorch | Implementation::HuggingFace | Implementation::Liger => {
                widths::output_copy(self)
            }
        };
        let input = if self.shape.tuning.frozen_output { 0 } else { 2 * self.shape.hidden };
        self.head_of(input as f64) + Bytes::new(copies)
    }

    /// Weights, gradients and optimiser states of a rank.
    fn states_of(&self, stage: u64) -> RankMemory {
        let (dense, expert) = self.stage_trained(stage);
        let parameters = dense + expert;
        let [_, gradient, optimiser] = self.states.bytes();
        let stage_of = self.choice.sharding.stage();
        let ranks =
            |replicas: u64| self.choice.sharding_group.map_or(replicas, |group| group.min(replicas)) as f64;
        let divided = |bytes: f64, from: u32| match stage_of >= from {
            true => {
                let dense = dense as f64 * bytes / ranks(self.split().replicas());
                Bytes::new(dense + expert as f64 * bytes / ranks(self.split().expert_replicas()))
            }
            false => Bytes::new(parameters as f64 * bytes),
        };
        // Gradients leave the device when they are reduced; until then, only the unit in use has gradients.
        let gradients = match (self.plan.offloaded().optimiser, self.choice.sharding) {
            (true, Sharding::Zero2) => {
                let [_, trained] = self.unit(self.layers(stage));
                Bytes::new((trained * gradient) as f64)
            }
            (true, Sharding::Zero3 | Sharding::Hsdp) => Bytes::ZERO,
            _ => divided(gradient as f64, 2),
        };
        let [dense, expert] = self.weight_bytes(stage);
        let weights = match stage_of >= 3 {
            true => dense / ranks(self.split().replicas()) + expert / ranks(self.split().expert_replicas()),
            false => dense + expert,
        };
        let (dense, expert) = self.stage_parameters(stage);
        RankMemory {
            parameters: dense + expert,
            in_flight: self.in_flight(stage),
            weights: Bytes::new(weights),
            gradients,
            optimiser: divided(
                if self.plan.offloaded().optimiser { 0.0 } else { optimiser as f64 } + outer::kept(self.plan),
                1,
            ) - self.narrowed(stage),
            ..RankMemory::default()
        }
    }

    /// Bytes saved by low-rank moments and their projections compared with full moments. Projections have the format of gradients.
    fn narrowed(&self, stage: u64) -> Bytes {
        let Some(rank) = self.plan.optimiser_rank else { return Bytes::ZERO };
        let [_, gradient, _] = self.states.bytes();
        let of_block = |(block, count): (Block, u64)| {
            let own = self.shape.low_rank(block, rank);
            let moments = 2 * self.states.moment_bytes() * (own.weights - own.moment);
            count as f64 * (moments as f64 - (gradient * own.projections) as f64)
        };
        let of_chunks = |(halves, chunks): &([StageLayers; 2], u64)| {
            let each = halves.iter().flat_map(|half| half.of(self.shape)).map(of_block);
            *chunks as f64 * each.sum::<f64>()
        };
        Bytes::new(self.chunk_layers(stage).backward.iter().map(of_chunks).sum())
    }

    /// Micro-batches, or chunks of them, that a stage holds at most. Another one computes while tokens of experts are on their way,
    /// which DualPipe's orders count already.
    fn in_flight(&self, stage: u64) -> u64 {
        let Split { pipeline, chunks, .. } = self.split();
        let counted = matches!(self.choice.schedule, ScheduleKind::DualPipeV | ScheduleKind::DualPipe);
        in_flight(self.choice.schedule, pipeline, stage, self.choice.micro_batches, chunks)
            + u64::from(self.plan.overlap_experts && self.choice.micro_batches > 1 && !counted)
    }

    /// Parameters of a rank of `stage` before sharding: dense ones, and those of its experts.
    pub fn stage_parameters(&self, stage: u64) -> (u64, u64) {
        let Split { tensor, expert, .. } = self.split();
        let shard = |parameters: Parameters| {
            (parameters.dense_shard(tensor, self.shape.kv_heads), parameters.expert_shard(expert))
        };
        let mut sum = (self.end_parameters(stage == 0, self.is_last(stage)), 0);
        for (block, count) in self.layers(stage).of(self.shape) {
            let (dense, expert) = shard(self.shape.layer_parameters(block));
            sum = (sum.0 + dense * count, sum.1 + expert * count);
        }
        sum
    }

    pub fn stage_trained(&self, stage: u64) -> (u64, u64) {
        if self.shape.tuning == Tuning::default() {
            return self.stage_parameters(stage);
        }
        let mut sum = (self.trained_ends(stage == 0, self.is_last(stage)), 0);
        for index in self.ranges(stage).flatten().flatten() {
            if self.shape.backward_at(index) != Backward::Nothing {
                let own = self.shape.trained_layer_parameters(self.shape.block(index));
                sum.0 += own.dense_shard(self.split().tensor, self.shape.kv_heads);
                sum.1 += own.expert_shard(self.split().expert);
            }
        }
        sum
    }

    /// Bytes of the weights of a rank of `stage` before sharding: of dense ones, and of its experts'. Beside adapters, all but
    /// the matrices of layers are in 16 bits, unless they are trained.
    fn weight_bytes(&self, stage: u64) -> [f64; 2] {
        let [weight, ..] = self.states.bytes();
        let (dense, expert) = self.stage_parameters(stage);
        let Some(adapters) = self.shape.tuning.adapters else {
            return [(dense * weight) as f64, (expert * weight) as f64];
        };
        let (trained, trained_expert) = self.stage_trained(stage);
        let ends = self.trained_ends(stage == 0, self.is_last(stage));
        let of_block = |(block, count): (Block, u64)| {
            self.shape.layer_matrices(block).dense_shard(self.split().tensor, self.shape.kv_heads) * count
        };
        let matrices: u64 = self.layers(stage).of(self.shape).map(of_block).sum();
        let (stored, weight) = (adapters.base.bytes(), weight as f64);
        let others = (dense - matrices - ends) as f64 * 2.0;
        [
            matrices as f64 * stored + others + trained as f64 * weight,
            expert as f64 * stored + trained_expert as f64 * weight,
        ]
    }

    /// Tokens of a micro-batch on one context-parallel rank.
    fn tokens(&self) -> f64 {
        (self.sequence() * self.choice.micro_batch) as f64 / self.split().context as f64
    }

    /// Tokens of a micro-batch on one context-parallel rank that reach the output layer.
    fn predicted(&self) -> f64 {
        let all = self.tokens_of(Block::DENSE);
        match self.shape.signal {
            None => all,
            Some(_) => all * self.shape.predicted() as f64 / self.shape.decoded() as f64,
        }
    }

    /// Tokens of a micro-batch on one context-parallel rank that pass through a layer of this kind.
    fn tokens_of(&self, block: Block) -> f64 {
        match self.shape.target {
            0 => self.tokens(),
            _ => (self.shape.tokens_of(block) * self.choice.micro_batch) as f64 / self.split().context as f64,
        }
    }

    /// Tokens of the longer of two sequences, on one context-parallel rank.
    fn most_tokens(&self) -> f64 {
        self.tokens().max(self.tokens_of(Block::DENSE))
    }

    /// Tokens of the longest sequence, for which memory has to suffice.
    fn sequence(&self) -> u64 {
        self.shape.documents.map_or(self.shape.sequence, |own| own.longest(self.shape.sequence))
    }

    /// Parameters of the largest layer of a stage: all of them, and the trained ones.
    fn unit(&self, layers: StageLayers) -> [u64; 2] {
        let shard = |parameters: Parameters| {
            parameters.dense_shard(self.split().tensor, self.shape.kv_heads)
                + parameters.expert_shard(self.split().expert)
        };
        let unit = |(block, _)| {
            [shard(self.shape.layer_parameters(block)), shard(self.shape.trained_layer_parameters(block))]
        };
        layers.of(self.shape).map(unit).max().unwrap_or_default()
    }

    /// Bytes of a frozen or trained weight as it is gathered.
    fn gathered_width(&self) -> f64 {
        self.shape.tuning.adapters.map_or(2.0, |own| own.base.bytes())
    }
}
