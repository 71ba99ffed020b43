//! Operations of a layer and of a step. A multiply-add is two.
//!
//! Backward, every matrix costs its forward twice: once for the gradient of its input (dX), once for that of its
//! weight (dW). Core attention, scores and weighted values, and scans cost twice their forward, all of it for dX:
//! a split backward has none of it in dW. Flash attention computes the scores again, and kernels of scans their chunks.

use super::kinds;
use std::ops::Range;
use stepcast_core::model::transformer::{Backward, Block, FeedForward, Mixer, Transformer};
use stepcast_core::quantity::{FlopsPerSec, Seconds};
use stepcast_core::strategy::{Attention, Mask, Recompute, Recomputed};

/// Forward operations of one layer on all tensor-parallel ranks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LayerFlops {
    /// Queries, keys and values, or what another mixer computes from the hidden states.
    pub qkv: u128,
    /// Products of queries and keys.
    pub scores: u128,
    /// Sums of values.
    pub values: u128,
    /// Convolution and scan of another mixer.
    pub scan: u128,
    /// Output projection of the mixer.
    pub output: u128,
    pub mlp: u128,
    pub router: u128,
    pub experts: u128,
    pub shared: u128,
    /// Every other matrix: keys, output projection, one matrix of every MLP. They count in the others, too.
    pub alternate: u128,
    /// Queries, keys and values of latent attention from its narrow projections, which count in `qkv`, too.
    pub widened: u128,
    /// Vectors that modulate it, from the condition of each sample.
    pub modulation: u128,
}

impl LayerFlops {
    /// A layer of `shape` over `batch` sequences.
    pub fn new(shape: &Transformer, block: Block, window: Option<u64>, work: Work) -> Self {
        let work = work.of(shape, block);
        let tokens = u128::from(work.sequence) * u128::from(work.batch);
        let wide = u128::from;
        let hidden = wide(shape.hidden);
        let mixer = |[projected, inner, operations]: [u64; 3]| Self {
            qkv: 2 * tokens * hidden * wide(projected),
            scan: tokens * wide(operations),
            output: 2 * tokens * wide(inner) * hidden,
            ..Self::default()
        };
        let (mut flops, keys) = match block.mixer {
            Mixer::Attention | Mixer::Encoder | Mixer::Joint | Mixer::JointLast => {
                Self::attention(shape, window, work)
            }
            Mixer::Cross => Self::cross_attention(shape, work),
            Mixer::Linear => {
                let own = shape.delta.map(|own| [own.projected(), own.inner(), own.operations()]);
                (own.map_or_else(Self::default, mixer), 0)
            }
            Mixer::Mamba => {
                let own = shape.mamba.map(|own| [own.projected(), own.inner(), own.operations()]);
                (own.map_or_else(Self::default, mixer), 0)
            }
            Mixer::None => (Self::default(), 0),
        };
        flops.modulation = 2 * wide(work.batch) * hidden * hidden * wide(shape.modulation_of(block.mixer));
        // Where the tokens of a text end, those of the image go on alone.
        let text = wide(shape.text_tokens()) * wide(work.batch);
        let tokens = if block.mixer == Mixer::JointLast { tokens - text } else { tokens };
        if block.mixer == Mixer::JointLast {
            flops.output -= 2 * text * wide(shape.heads) * wide(shape.widths().1) * hidden;
        }
        let mlp = |width: u64| 2 * tokens * wide(shape.mlp.matrices()) * hidden * wide(width);
        match (block.feed, shape.experts) {
            (FeedForward::Experts, Some(experts)) => {
                flops.router = 2 * tokens * hidden * wide(experts.count);
                flops.experts = wide(experts.active) * mlp(experts.width);
                flops.shared = mlp(experts.shared_width);
            }
            (FeedForward::None, _) => {}
            _ => flops.mlp = mlp(shape.mlp_width),
        }
        let of_mlp = (flops.mlp + flops.experts + flops.shared) / wide(shape.mlp.matrices());
        flops.alternate = keys + flops.output + of_mlp;
        flops
    }

    /// Attention of a layer, and the operations of its keys.
    fn attention(shape: &Transformer, window: Option<u64>, work: Work) -> (Self, u128) {
        let tokens = u128::from(work.sequence) * u128::from(work.batch);
        let wide = u128::from;
        let (hidden, heads) = (wide(shape.hidden), wide(shape.heads));
        let (key, value) = shape.widths();
        let (key, value) = (wide(key), wide(value));
        let [narrowed, widened] = match shape.mla {
            Some(mla) => {
                let [ranks, own] = [mla.query_rank, mla.key_value_rank].map(wide);
                let query = if ranks == 0 { hidden } else { ranks } * heads * key;
                let narrowed = hidden * (ranks + own + wide(mla.rope));
                [narrowed, query + own * heads * (wide(mla.nope) + value)]
            }
            None => {
                let queries = if shape.attention_gate { 2 * heads } else { heads };
                [hidden * key * (queries + 2 * wide(shape.kv_heads)), 0]
            }
        };
        // Twice the pairs of one sequence, so that half a square is whole.
        let pairs = match shape.documents.and_then(|own| own.squares(work.sequence)) {
            Some(squares) => {
                let within = twice_pairs_within(squares, work);
                window.map_or(within, |_| within.min(twice_pairs(work.sequence, work.mask, window)))
            }
            None => twice_pairs(work.sequence, work.mask, window),
        };
        let pairs = wide(work.batch) * heads * pairs;
        let flops = Self {
            qkv: 2 * tokens * (narrowed + widened),
            widened: 2 * tokens * widened,
            scores: pairs * key,
            values: pairs * value,
            output: 2 * tokens * heads * value * hidden,
            ..Self::default()
        };
        let keys = flops.qkv / (heads / wide(shape.kv_heads).max(1) + 2).max(1);
        (flops, keys)
    }

    /// Attention of a target to its input, and the operations of its keys: every query sees every key.
    fn cross_attention(shape: &Transformer, work: Work) -> (Self, u128) {
        let wide = u128::from;
        let own = Self::attention(shape, None, Work { mask: Mask::None, ..work }).0;
        let [tokens, read] = [work.sequence, shape.sequence].map(|tokens| wide(tokens) * wide(work.batch));
        let [query, keys] = [shape.heads, shape.kv_heads].map(|heads| wide(heads * shape.head_width));
        let pairs = 2 * wide(work.batch) * wide(shape.heads) * wide(work.sequence) * wide(shape.sequence);
        let keys = 2 * read * wide(shape.hidden) * keys;
        let flops = Self {
            qkv: 2 * tokens * wide(shape.hidden) * query + 2 * keys,
            scores: pairs * wide(shape.head_width),
            values: pairs * wide(shape.head_width),
            ..own
        };
        (flops, keys)
    }

    /// Matrices with weights.
    pub fn linear(&self) -> u128 {
        self.qkv + self.output + self.mlp + self.router + self.experts + self.shared + self.modulation
    }

    pub fn core(&self) -> u128 {
        self.scores + self.values + self.scan
    }

    pub fn forward(&self) -> u128 {
        self.linear() + self.core()
    }

    /// Gradients of inputs: of the matrices once, of core attention twice.
    pub fn backward_input(&self, attention: Attention) -> u128 {
        self.linear() + 2 * self.core() + self.again_in_kernel(attention)
    }

    /// Gradients of weights.
    pub fn backward_weight(&self) -> u128 {
        self.linear()
    }

    pub fn backward(&self, attention: Attention) -> u128 {
        self.backward_input(attention) + self.backward_weight()
    }

    /// Forward and both halves of the backward pass, as far as gradients exist.
    fn needed(&self, shape: &Transformer, backward: Backward) -> u128 {
        let weights = if shape.trains_matrices() { self.linear() } else { 0 };
        match backward {
            Backward::Nothing => self.forward(),
            Backward::Own => self.forward() + 2 * self.core() + self.linear() - self.qkv + weights,
            Backward::All => self.forward() + 2 * self.core() + self.linear() + weights,
        }
    }

    /// Operations that flash attention and scans repeat.
    pub(super) fn again_in_kernel(&self, attention: Attention) -> u128 {
        match attention {
            Attention::Flash | Attention::Cudnn | Attention::Triton => self.scores + self.scan,
            Attention::Unfused => self.scan,
        }
    }

    /// Operations recomputed outside of kernels. Recomputing attention repeats all of it, whether its kernel keeps scores or not.
    pub fn recomputed(&self, recompute: Recomputed) -> u128 {
        let part = |part| match part {
            Recompute::Attention => self.scores + self.values,
            Recompute::None | Recompute::Norms | Recompute::Activation => 0,
            Recompute::Projections => self.widened,
            Recompute::Mlp => self.mlp + self.router + self.experts + self.shared,
            Recompute::Operators => self.alternate,
            Recompute::Layer => self.forward(),
        };
        recompute.parts().map(part).sum()
    }
}

/// The tokens of a pass and how its attention is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Tokens of a sequence.
    pub sequence: u64,
    /// Sequences.
    pub batch: u64,
    /// Pairs of query and key that count.
    pub mask: Mask,
}

impl Work {
    /// The work of a layer of this kind: an encoder layer has its own number of tokens, and no mask.
    fn of(self, shape: &Transformer, block: Block) -> Self {
        match block.mixer {
            _ if shape.target == 0 => self,
            Mixer::Encoder => Self { sequence: shape.sequence, mask: Mask::None, ..self },
            _ => Self { sequence: shape.target, ..self },
        }
    }
}

/// Twice the pairs of query and key of one sequence: 2s² without a mask; s² by the usual convention; s(s+1) exactly
/// causal; 2sw − w(w−1) with a causal window of w keys.
fn twice_pairs(sequence: u64, mask: Mask, window: Option<u64>) -> u128 {
    let s = u128::from(sequence);
    match (mask, window) {
        (Mask::None, _) => 2 * s * s,
        (Mask::Half, _) => s * s,
        (Mask::Causal, None) => s * (s + 1),
        (Mask::Causal, Some(window)) => {
            let w = u128::from(window).min(s);
            2 * s * w - w * w.saturating_sub(1)
        }
    }
}

/// Twice the pairs if attention stays within documents, whose squared lengths have this sum.
fn twice_pairs_within(squares: u128, work: Work) -> u128 {
    match work.mask {
        Mask::None => 2 * squares,
        Mask::Half => squares,
        Mask::Causal => squares + u128::from(work.sequence),
    }
}

/// Forward operations of the adapters of a layer: two for each of their parameters that a token uses.
pub fn adapters(shape: &Transformer, block: Block, work: Work) -> u128 {
    if shape.trains_matrices() {
        return 0;
    }
    let (own, work) = (shape.trained_layer_parameters(block), work.of(shape, block));
    let routed = shape.experts.map_or(0, |experts| own.expert / experts.count * experts.active);
    let used = own.total() - own.expert + routed;
    2 * u128::from(work.sequence * work.batch) * u128::from(used)
}

/// Forward operations of the logits of all tokens that a position predicts, with the dense layers before them.
pub fn logits(shape: &Transformer, work: Work) -> u128 {
    let whole = shape.target == 0 && shape.signal.is_none();
    let sequence = if whole { work.sequence } else { shape.predicted() };
    let tokens = u128::from(sequence) * u128::from(work.batch);
    let hidden = u128::from(shape.hidden);
    let modulation = 2 * u128::from(work.batch) * hidden * hidden * u128::from(shape.last_modulation());
    let dense = if shape.head_transform { shape.hidden } else { 0 };
    let width = (1 + shape.multi_token) * shape.vocabulary + dense + 2 * shape.multi_token * shape.hidden;
    2 * tokens * hidden * u128::from(width) + modulation
}

/// Forward operations of the matrices that turn a signal into tokens and of conditions before the first layer; then the part of
/// them whose inputs have no gradients.
pub fn signal(shape: &Transformer, work: Work) -> [u128; 2] {
    let each = shape.signal_matrices();
    let count = |(rows, input): (u64, u64)| {
        2 * u128::from(rows * work.batch) * u128::from(input) * u128::from(shape.hidden)
    };
    [each.map(count).iter().sum(), each.iter().step_by(2).copied().map(count).sum()]
}

/// Forward operations of some layers, by kind.
pub fn layers(shape: &Transformer, work: Work, some: &Range<u64>) -> LayerFlops {
    let kinds = kinds::each(shape, |kind| LayerFlops::new(shape, kind.block, kind.window, work));
    let counted = kinds.iter().zip(kinds::count(shape, some));
    counted.fold(LayerFlops::default(), |sum, (layer, count)| sum.plus(layer, count))
}

impl LayerFlops {
    #[must_use]
    pub fn plus(&self, layer: &Self, count: u64) -> Self {
        let add = |of: fn(&Self) -> u128| of(self) + u128::from(count) * of(layer);
        Self {
            qkv: add(|it| it.qkv),
            scores: add(|it| it.scores),
            scan: add(|it| it.scan),
            values: add(|it| it.values),
            output: add(|it| it.output),
            mlp: add(|it| it.mlp),
            router: add(|it| it.router),
            experts: add(|it| it.experts),
            shared: add(|it| it.shared),
            alternate: add(|it| it.alternate),
            widened: add(|it| it.widened),
            modulation: add(|it| it.modulation),
        }
    }
}

/// Operations of a step of `work.batch` sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepFlops {
    /// Operations that the model needs, each counted once: three times the forward pass if all is trained. For f = 4h and
    /// g = a this is 72·B·L·s·h²(1 + s/(6h) + V/(12hL)) (Korthikanti 2022, eq. 7). Frozen weights have no gradients.
    pub model: u128,
    /// Operations that the devices compute: with recomputation, also within flash attention.
    pub hardware: u128,
}

/// Operations of a step in which `recompute` applies to `some` of the layers. Recomputation does not repeat the logits.
pub fn step(
    shape: &Transformer,
    work: Work,
    (recompute, some): (Recomputed, impl IntoIterator<Item = Range<u64>>),
    attention: Attention,
) -> StepFlops {
    let all = layers(shape, work, &(0..shape.layers));
    let needed = kinds::each(shape, |kind| {
        LayerFlops::new(shape, kind.block, kind.window, work).needed(shape, kind.backward)
            + adapters(shape, kind.block, work) * if kind.backward == Backward::Nothing { 1 } else { 3 }
    });
    let counted = needed.iter().zip(kinds::count(shape, &(0..shape.layers)));
    let layers_needed: u128 = counted.map(|(needed, count)| needed * u128::from(count)).sum();
    let [signal, first] = signal(shape, work);
    let received = if shape.tuning.frozen_embedding { signal } else { 3 * signal - first };
    let model =
        layers_needed + received + logits(shape, work) * if shape.tuning.frozen_output { 2 } else { 3 };
    let again = |range| layers(shape, work, &range).recomputed(recompute);
    let again = some.into_iter().map(again).sum::<u128>() + all.again_in_kernel(attention);
    StepFlops { model, hardware: model + again }
}

/// Rate of these operations over this time, as a share of the peak rate of all devices.
pub fn utilisation(operations: u128, time: Seconds, devices: u64, peak: FlopsPerSec) -> f64 {
    operations as f64 / (time.get() * devices as f64 * peak.get())
}

/// Places for the tokens of all experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slots {
    /// Places of one expert; none if there is no limit.
    pub capacity: Option<u64>,
    /// Places of all experts, which are computed even if they stay empty.
    pub slots: u64,
}

/// Places for `tokens` that visit `active` of `experts`, with room for `factor` times the mean, or without a limit.
/// Tokens that overflow are dropped.
pub fn slots(tokens: u64, experts: u64, active: u64, factor: Option<f64>) -> Slots {
    let visits = tokens * active;
    match factor {
        None => Slots { capacity: None, slots: visits },
        Some(factor) => {
            let capacity = (visits as f64 / experts as f64 * factor).ceil() as u64;
            Slots { capacity: Some(capacity), slots: capacity * experts }
        }
    }
}
