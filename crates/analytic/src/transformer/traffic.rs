//! Traffic of ranks: collectives by group, with their counts and bytes.
//!
//! Activations have 16 bits. Tensor-parallel exchange follows Shoeybi 2019 and Korthikanti 2022, sharded data
//! parallelism Rajbhandari 2020 (ZeRO) and Zhao 2023 (FSDP), pipeline sends Narayanan 2021.

use super::Split;
pub use stepcast_core::fitted::collectives::Collective;
use stepcast_core::model::transformer::{Block, FeedForward, Mixer, Transformer};
use stepcast_core::quantity::Bytes;
use stepcast_core::strategy::{ContextExchange, Recompute, Recomputed, Sharding};

/// Bytes of an element of an activation.
const ELEMENT: u64 = 2;

/// Bytes of a 32-bit number.
const WIDE: u64 = 4;

/// When a collective happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// In the forward pass.
    Forward,
    /// In the backward pass.
    Backward,
    /// In the backward pass, for gradients of weights.
    BackwardWeight,
    /// In the backward pass, gradients of keys and values.
    BackwardKeyValue,
    /// In the repeated forward pass.
    Recompute,
    /// Once in a step, or with the micro-batches as its count says.
    Step,
}

/// A number of equal collectives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// When.
    pub phase: Phase,
    /// Which.
    pub collective: Collective,
    /// Ranks that take part.
    pub ranks: u64,
    /// How many of them.
    pub count: u64,
    /// Bytes of the whole tensor; for an all-to-all, what one rank holds.
    pub bytes: u64,
}

impl Message {
    /// Bytes that one rank sends for all of them, around a ring: all-reduce 2(n−1)/n·S; all-gather, reduce-scatter and
    /// all-to-all (n−1)/n·S; send S.
    pub fn wire(&self) -> Bytes {
        let others = self.ranks.saturating_sub(1);
        let (times, of) = match self.collective {
            Collective::AllReduce => (2 * others, self.ranks.max(1)),
            Collective::AllGather | Collective::ReduceScatter | Collective::AllToAll => {
                (others, self.ranks.max(1))
            }
            Collective::Send => (1, 1),
        };
        let bytes = u128::from(self.count) * u128::from(self.bytes) * u128::from(times);
        Bytes::new(bytes as f64 / of as f64)
    }
}

/// Bytes of the hidden states of a micro-batch on one context-parallel rank, S = (s/c)·b·h·2.
pub fn hidden_states(shape: &Transformer, split: &Split, micro_batch: u64) -> u64 {
    tokens(shape, split, micro_batch) * shape.hidden * ELEMENT
}

/// Tokens of a micro-batch on one context-parallel rank.
fn tokens(shape: &Transformer, split: &Split, micro_batch: u64) -> u64 {
    shape.sequence * micro_batch / split.context
}

/// Tensor-parallel collectives of one layer and micro-batch.
///
/// A half of a layer (attention or another mixer; MLP; shared expert) has one all-reduce forward and one backward. With sequence
/// parallelism these are an all-gather and a reduce-scatter each, and the saved input is gathered again for dW. Routed
/// experts have none.
pub fn tensor_layer(
    shape: &Transformer,
    split: &Split,
    micro_batch: u64,
    block: Block,
    recompute: Recomputed,
) -> impl Iterator<Item = Message> + use<> {
    use Collective::{AllGather, AllReduce, ReduceScatter};
    let mixer = u64::from(block.mixer != Mixer::None);
    let halves = mixer
        + match (block.feed, shape.experts) {
            (FeedForward::Experts, Some(experts)) => u64::from(experts.shared_width > 0),
            (feed, _) => u64::from(feed != FeedForward::None),
        };
    let bytes = shape.tokens_of(block) * micro_batch / split.context * shape.hidden * ELEMENT;
    let again = match recompute {
        _ if recompute.has(Recompute::Layer) => halves,
        // All but the mixer.
        _ if recompute.has(Recompute::Mlp) => halves - mixer,
        // Narrow projections are gathered again before they are widened, which is small against hidden states.
        _ => 0,
    };
    let (plain, divided) = if split.sequence_parallel { (0, halves) } else { (halves, 0) };
    let (again_plain, again_divided) = if split.sequence_parallel { (0, again) } else { (again, 0) };
    let ranks = split.tensor;
    [
        (Phase::Forward, AllReduce, plain),
        (Phase::Forward, AllGather, divided),
        (Phase::Forward, ReduceScatter, divided),
        (Phase::Backward, AllReduce, plain),
        (Phase::Backward, AllGather, divided),
        (Phase::Backward, ReduceScatter, divided),
        (Phase::BackwardWeight, AllGather, divided),
        (Phase::Recompute, AllReduce, again_plain),
        (Phase::Recompute, AllGather, again_divided),
        (Phase::Recompute, ReduceScatter, again_divided),
    ]
    .into_iter()
    .map(move |(phase, collective, count)| Message { phase, collective, ranks, count, bytes })
    .filter(|message| message.count > 0 && message.ranks > 1)
}

/// Context-parallel collectives of one layer and micro-batch; KV = (s/c)·b·max(1, g/t)·(key and value)·2.
///
/// Around a ring, c−1 sends of KV forward and backward, and c of its gradient; the last one brings it home. Of a
/// causal sequence, ranks have zigzag slices (r and 2c−1−r of 2c), which are the same work for all.
pub fn context_layer(
    shape: &Transformer,
    split: &Split,
    micro_batch: u64,
    exchange: ContextExchange,
    recompute: Recomputed,
) -> impl Iterator<Item = Message> + use<> {
    use Collective::{AllGather, AllToAll, ReduceScatter, Send};
    let ranks = split.context;
    let (key, value) = shape.widths();
    let kv_heads = if shape.mla.is_some() { shape.heads } else { shape.kv_heads };
    let each = tokens(shape, split, micro_batch) * (key + value) * ELEMENT;
    let kv = each * (kv_heads / split.tensor).max(1);
    let all = each * (shape.heads / split.tensor) + kv;
    let again = u64::from(recompute == Recompute::Layer);
    let empty = (Phase::Forward, Send, 0, 0);
    let messages = match exchange {
        ContextExchange::Ring => [
            (Phase::Forward, Send, ranks - 1, kv),
            (Phase::Backward, Send, ranks - 1, kv),
            (Phase::BackwardKeyValue, Send, ranks, kv),
            (Phase::Recompute, Send, again * (ranks - 1), kv),
        ],
        ContextExchange::AllGather => [
            (Phase::Forward, AllGather, 1, ranks * kv),
            (Phase::Backward, AllGather, 1, ranks * kv),
            (Phase::Backward, ReduceScatter, 1, ranks * kv),
            (Phase::Recompute, AllGather, again, ranks * kv),
        ],
        ContextExchange::AllToAll => [
            (Phase::Forward, AllToAll, 1, all),
            (Phase::Backward, AllToAll, 1, all),
            (Phase::Recompute, AllToAll, again, all),
            empty,
        ],
    };
    messages
        .into_iter()
        .map(move |(phase, collective, count, bytes)| Message { phase, collective, ranks, count, bytes })
        .filter(|message| message.count > 0 && message.ranks > 1)
}

/// Sends between pipeline stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundary {
    /// Bytes of one send of one rank.
    pub bytes: u64,
    /// Bytes that a rank then sends within its tensor-parallel group to complete the tensor.
    pub gathered: u64,
    /// Boundaries between virtual stages.
    pub boundaries: u64,
    /// Sends of an inner rank for each micro-batch, both directions.
    pub inner_sends: u64,
    /// Sends of a rank of the first or last stage for each micro-batch.
    pub end_sends: u64,
}

/// Sends between pipeline stages, S = (s/c)·b·h·2. With sequence parallelism a rank sends its part; without, all of S,
/// or with `scatter_gather` (Narayanan 2021, section 4.1) a part, gathered on the other side.
pub fn boundary(states: u64, split: &Split, scatter_gather: bool) -> Boundary {
    let split_up = split.sequence_parallel || scatter_gather;
    let bytes = if split_up { states / split.tensor } else { states };
    let gathered = match scatter_gather && !split.sequence_parallel {
        true => states / split.tensor * (split.tensor - 1),
        false => 0,
    };
    let joined = split.pipeline > 1;
    Boundary {
        bytes,
        gathered,
        boundaries: split.pipeline * split.chunks - 1,
        inner_sends: if joined { 2 * split.chunks } else { 0 },
        end_sends: if joined { 2 * split.chunks - 1 } else { 0 },
    }
}

/// Bytes of a gradient and of a weight as they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// Of a gradient.
    pub gradient: u64,
    /// Of a weight.
    pub weight: u64,
}

/// The ranks that reduce gradients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reduction {
    /// Which states they divide.
    pub sharding: Sharding,
    /// Ranks that hold parts of one copy.
    pub ranks: u64,
    /// Copies, beside each other, for `hsdp`.
    pub copies: u64,
}

/// Data-parallel collectives of a step, for the `parameters` that a rank would have without sharding.
pub fn data_step(
    reduction: Reduction,
    parameters: u64,
    micro_batches: u64,
    widths: Widths,
) -> impl Iterator<Item = Message> + use<> {
    use Collective::{AllGather, AllReduce, ReduceScatter};
    let Reduction { sharding, ranks, copies } = reduction;
    let gradients = parameters * widths.gradient;
    let weights = parameters * widths.weight;
    let m = micro_batches;
    let none = (AllReduce, ranks, 0, 0);
    let messages = match sharding {
        Sharding::None => [(AllReduce, ranks, 1, gradients), none, none],
        Sharding::Zero1 => [(ReduceScatter, ranks, 1, gradients), (AllGather, ranks, 1, weights), none],
        Sharding::Zero2 => [(ReduceScatter, ranks, m, gradients), (AllGather, ranks, 1, weights), none],
        Sharding::Zero3 => [(AllGather, ranks, 2 * m, weights), (ReduceScatter, ranks, m, gradients), none],
        Sharding::Keep => [(AllGather, ranks, 1, weights), (ReduceScatter, ranks, 1, gradients), none],
        Sharding::Hsdp => [
            (AllGather, ranks, 2 * m, weights),
            (ReduceScatter, ranks, m, gradients),
            (AllReduce, copies, m, gradients / ranks),
        ],
    };
    let message =
        |(collective, ranks, count, bytes)| Message { phase: Phase::Step, collective, ranks, count, bytes };
    messages.into_iter().map(message).filter(|message| message.count > 0)
}

/// Expert-parallel exchange of one layer with experts and one micro-batch: dispatch and combine, forward and backward,
/// and again where experts are computed again. `bytes` is what one rank holds: k copies of each of its tokens.
pub fn expert_layer(
    shape: &Transformer,
    split: &Split,
    micro_batch: u64,
    recompute: Recomputed,
) -> Option<Message> {
    let experts = shape.experts?;
    let held = tokens(shape, split, micro_batch) / split.token_ranks() * experts.active;
    let count = if recompute.has(Recompute::Layer) || recompute.has(Recompute::Mlp) { 6 } else { 4 };
    Some(Message {
        phase: Phase::Step,
        collective: Collective::AllToAll,
        ranks: split.expert,
        count,
        bytes: held * shape.hidden * ELEMENT,
    })
}

/// Tensor-parallel collectives around the vocabulary, for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vocabulary {
    /// Sum of the parts of the embedding, forward.
    pub embedding: Message,
    /// Backward through the output layer; with sequence parallelism its input is also gathered, twice.
    pub logits: Message,
    /// Gathers of the output layer's input, with sequence parallelism.
    pub gathers: Message,
    /// Maximum, target and sum of the loss.
    pub loss: Message,
}

/// Collectives around the vocabulary, `tokens` being those of a micro-batch on one context-parallel rank; none without
/// tensor parallelism.
pub fn vocabulary(shape: &Transformer, split: &Split, tokens: u64) -> Option<Vocabulary> {
    if split.tensor < 2 {
        return None;
    }
    let states = tokens * shape.hidden * ELEMENT;
    let message =
        |phase, collective, count, bytes| Message { phase, collective, ranks: split.tensor, count, bytes };
    let sum = match split.sequence_parallel {
        true => Collective::ReduceScatter,
        false => Collective::AllReduce,
    };
    let gathers = if split.sequence_parallel { 2 } else { 0 };
    Some(Vocabulary {
        embedding: message(Phase::Forward, sum, 1, states),
        logits: message(Phase::Backward, sum, 1, states),
        gathers: message(Phase::Backward, Collective::AllGather, gathers, states),
        loss: message(Phase::Forward, Collective::AllReduce, 3, WIDE * tokens),
    })
}

/// The sum of the two gradients of a tied embedding, once in a step, between the first and the last stage.
pub fn tied_gradient(shape: &Transformer, split: &Split) -> Option<Message> {
    (shape.tied && split.pipeline > 1).then(|| Message {
        phase: Phase::Step,
        collective: Collective::AllReduce,
        ranks: 2,
        count: 1,
        bytes: WIDE * (shape.vocabulary * shape.hidden).div_ceil(split.tensor),
    })
}
