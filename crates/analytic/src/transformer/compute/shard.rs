//! The shard of a layer that one device computes, in numbers of elements.

use super::{Computed, Product, kernels};
use crate::transformer::LayerKind;
use crate::transformer::Split;
use crate::transformer::flops::{LayerFlops, Work};
use crate::transformer::loads::ExpertLoads;
use stepcast_core::model::transformer::{
    Backward, Block, FeedForward, Mixer, Mlp, Modules, NormKind, Packing, Target, Transformer,
};
use stepcast_core::strategy::{Attention, ContextExchange, Implementation, Loss, Plan};

/// Experts of a layer on one device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpertShard {
    /// Experts on the device.
    pub count: f64,
    /// Experts of the router.
    pub all: f64,
    /// Rows that the device's experts compute together: visits of tokens.
    pub visits: f64,
    /// Tokens that the router sees.
    pub tokens: f64,
    /// Width of one expert.
    pub width: f64,
    /// Width of the shared expert.
    pub shared: f64,
}

/// The shard of a layer for one micro-batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shard<'a> {
    /// The transformer.
    pub shape: &'a Transformer,
    /// Both halves of the layer.
    pub block: Block,
    /// Samples.
    pub samples: f64,
    /// Tokens that products see.
    pub tokens: f64,
    /// Tokens whose keys and values attention sees: those of the encoder for cross-attention.
    pub key_tokens: f64,
    /// Tokens that norms and sums see: fewer with sequence parallelism.
    pub own_tokens: f64,
    /// Width between layers.
    pub hidden: f64,
    /// Query heads.
    pub heads: f64,
    /// Width of queries, of keys, and of values, all heads together; 0 for another mixer.
    pub widths: [f64; 3],
    /// Tensor-parallel ranks.
    pub tensor: f64,
    /// Width of the dense MLP.
    pub mlp: f64,
    /// Operations of the scores and of the weighted values.
    pub core: f64,
    /// Share of its products that recomputation of operators repeats.
    pub alternate: f64,
    /// Keys that a query sees, on average.
    pub keys: f64,
    /// How attention is computed.
    pub attention: Attention,
    /// Whether scores get biases, for which PyTorch has no fused kernel with gradients: it computes in 32 bits.
    pub biased: bool,
    /// Steps of keys and values around a ring of context-parallel ranks, a kernel each; none without a ring.
    pub ring: f64,
    /// Passes that add up the results of every step around the ring: forward over the width of queries, backward over queries, keys and
    /// values.
    pub ring_passes: [f64; 2],
    /// How the loss is computed, if the plan says it.
    pub loss: Option<Loss>,
    /// Whether dropout keeps masks.
    pub dropout: bool,
    /// Gradients computed in the backward pass.
    pub backward: Backward,
    /// Whether keys and values are repeated for all heads: PyTorch's kernel for documents of several lengths needs it, and its ring.
    pub repeats: bool,
    /// Whether norms are separate operations in 32 bits (Hugging Face).
    pub separate: bool,
    /// Whether kernels of Liger take the place of those for norms, rotary positions and gated MLPs.
    pub liger: bool,
    /// Whether one product computes queries, keys and values, and one gate and factor.
    pub joined: bool,
    /// The experts, in a layer that has them.
    pub experts: Option<ExpertShard>,
}

impl<'a> Shard<'a> {
    /// The shard of a layer of `shape` under `plan`, divided by `split`; `work` counts what attention computes. Software
    /// that is `fused`, and software for GPT's shape, joins products of one input.
    pub fn new(
        shape: &'a Transformer,
        plan: &Plan,
        split: &Split,
        kind: LayerKind,
        fused: bool,
        work: Work,
    ) -> Self {
        let LayerKind { block, window, backward } = kind;
        let hugging_face = plan.implemented_by().is_hugging_face();
        let is_eager = plan.implemented_by().is_eager();
        let flops = LayerFlops::new(shape, block, window, work);
        let sequence = if shape.target > 0 { shape.tokens_of(block) } else { work.sequence };
        let of_batch = |sequence: u64| (sequence * work.batch) as f64 / split.context as f64;
        let tokens = of_batch(sequence);
        let key_tokens = if block.mixer == Mixer::Cross { of_batch(shape.sequence) } else { tokens };
        let tensor = split.tensor as f64;
        let heads = shape.heads as f64 / tensor;
        let (key, value) = shape.widths();
        let groups = match shape.mla {
            Some(_) => heads,
            None => (shape.kv_heads as f64 / tensor).max(1.0),
        };
        let own_tokens = tokens / split.token_ranks() as f64;
        let inner = (split.tensor * split.context) as f64;
        let pairs = flops.scores as f64 / (2 * key * shape.heads * sequence * work.batch).max(1) as f64;
        let loads = ExpertLoads::of_plan(shape, plan).filter(|_| block.has_experts());
        let fullest = loads.map_or(1.0, |loads| loads.expected());
        let experts = shape.experts.filter(|_| block.has_experts()).map(|experts| {
            let visits = own_tokens * experts.active as f64 * fullest;
            ExpertShard {
                count: experts.count as f64 / split.expert as f64,
                all: experts.count as f64,
                visits,
                tokens: own_tokens,
                width: experts.width as f64,
                shared: experts.shared_width as f64 / tensor,
            }
        });
        let ring = match plan.context_exchange {
            ContextExchange::Ring if split.context > 1 => split.context as f64,
            _ => 0.0,
        };
        let has_heads = if block.mixer.attends() { 1.0 } else { 0.0 };
        let widths = [heads * key as f64, groups * key as f64, groups * value as f64];
        Self {
            shape,
            block,
            samples: work.batch as f64,
            tokens,
            key_tokens,
            own_tokens,
            hidden: shape.hidden as f64,
            heads,
            widths: widths.map(|width| width * has_heads),
            tensor,
            mlp: if block.feed == FeedForward::None { 0.0 } else { shape.mlp_width as f64 / tensor },
            core: (flops.scores + flops.values) as f64 / inner,
            alternate: flops.alternate as f64 / flops.linear().max(1) as f64,
            keys: pairs,
            attention: plan.attention_kind(),
            biased: hugging_face && shape.biases_scores(block),
            ring,
            ring_passes: if is_eager { kernels::RING_EAGER } else { kernels::RING },
            loss: plan.loss,
            dropout: plan.dropout || (hugging_face && shape.drops_out()),
            backward,
            repeats: is_eager
                && shape.kv_heads < shape.heads
                && (ring > 0.0 || shape.documents.is_some_and(|own| own.packing == Packing::Within)),
            separate: hugging_face && !fused,
            liger: plan.implemented_by() == Implementation::Liger && !fused,
            joined: match hugging_face {
                _ if block.mixer == Mixer::Cross => false,
                true => fused || shape.modules.joins_heads(),
                false => fused || shape.mlp == Mlp::Gelu,
            },
            experts,
        }
    }

    /// The sum over the streams of tokens that have weights of their own.
    pub(super) fn each_stream(&self, each: impl Fn(Self) -> Computed) -> Computed {
        if self.block.mixer.streams() == 1 {
            return each(*self);
        }
        let text = self.shape.text_tokens() as f64 / self.shape.sequence as f64;
        let part = |share: f64| Self {
            tokens: self.tokens * share,
            key_tokens: self.key_tokens * share,
            own_tokens: self.own_tokens * share,
            ..*self
        };
        each(part(1.0 - text)).and(each(part(text)))
    }

    /// Products around attention.
    fn attention_products(&self) -> [Product; 6] {
        let [query, keys, values] = self.widths;
        let query = if self.shape.attention_gate { 2.0 * query } else { query };
        let product = |columns, depth| Product::new(self.tokens, columns, depth);
        let (_, value) = self.shape.widths();
        let out = product(self.hidden, self.heads * value as f64);
        let none = Product::NONE;
        match self.shape.mla {
            Some(mla) => {
                let narrow = (mla.key_value_rank + mla.rope) as f64;
                let wide = self.heads * (mla.nope + mla.value) as f64;
                let [down, up] = match mla.query_rank {
                    0 => [product(query, self.hidden), none],
                    rank => [product(rank as f64, self.hidden), product(query, rank as f64)],
                };
                [down, up, product(narrow, self.hidden), product(wide, mla.key_value_rank as f64), out, none]
            }
            None if self.joined => [product(query + keys + values, self.hidden), out, none, none, none, none],
            None => {
                let of_keys = |columns| Product::new(self.key_tokens, columns, self.hidden);
                [product(query, self.hidden), of_keys(keys), of_keys(values), out, none, none]
            }
        }
    }

    /// Products of the dense MLP.
    pub(super) fn mlp_products(&self) -> [Product; 3] {
        self.mlp_of(self.tokens, self.mlp, 1.0)
    }

    /// Products of `count` MLPs of `width` over `rows` each.
    pub(super) fn mlp_of(&self, rows: f64, width: f64, count: f64) -> [Product; 3] {
        let product = |columns, depth| Product { rows, columns, depth, count };
        let back = product(self.hidden, width);
        // Routed experts of Hugging Face have their gates beside their factors.
        let joined = self.joined || (self.separate && count > 1.0);
        match (self.shape.mlp, joined) {
            (Mlp::Gelu, _) => [product(width, self.hidden), back, Product::NONE],
            (Mlp::Swiglu, true) => [product(2.0 * width, self.hidden), back, Product::NONE],
            (Mlp::Swiglu, false) => [product(width, self.hidden), product(width, self.hidden), back],
        }
    }

    /// Whether its GELU is made of separate operations.
    pub(super) fn separate_activation(&self) -> bool {
        let gated = self.shape.modules == Modules::T5 && self.shape.mlp == Mlp::Swiglu;
        self.separate && (self.shape.modules == Modules::Gpt2 || gated)
    }

    /// Whether dropout follows the activation of its MLP.
    pub(super) fn drops_inner(&self) -> bool {
        self.separate && self.shape.modules == Modules::T5
    }

    /// Whether its norms are separate operations: fused kernels of PyTorch compute layer norms.
    pub(super) const fn separate_norms(&self) -> bool {
        self.separate && !self.liger && matches!(self.shape.norm, NormKind::Rms)
    }

    /// Products that widen the narrow projections of latent attention; if queries have none, the product that computes queries.
    pub(super) fn widening_products(&self) -> [Product; 2] {
        let [query, up, _, keys, ..] = self.attention_products();
        match self.shape.mla {
            Some(mla) => [if mla.query_rank == 0 { query } else { up }, keys],
            None => [Product::NONE; 2],
        }
    }

    /// Products that compute queries, keys and values, and those behind attention.
    pub(super) fn products_around_attention(&self) -> ([Product; 4], [Product; 1]) {
        let [a, b, c, d, e, _] = self.attention_products();
        let none = Product::NONE;
        match (self.shape.mla, self.joined) {
            (Some(_), _) => ([a, b, c, d], [e]),
            (None, true) => ([a, none, none, none], [b]),
            (None, false) => ([a, b, c, none], [d]),
        }
    }

    /// The products A and B of all adapters, and whether the input of A is the layer's.
    pub(super) fn adapters(&self) -> Vec<AdapterProducts> {
        let Some(adapters) = self.shape.tuning.adapters else { return Vec::new() };
        let rank = adapters.rank as f64;
        let mut all = Vec::new();
        let mut add = |target: Target, rows: f64, [input, output]: [f64; 2], count: f64| {
            if adapters.targets.has(target) {
                let product = |columns, depth| Product { rows, columns, depth, count };
                let of_layer = matches!(target, Target::Q | Target::K | Target::V);
                all.push(AdapterProducts { a: product(rank, input), b: product(output, rank), of_layer });
            }
        };
        let (hidden, [query, keys, values]) = (self.hidden, self.widths);
        let (_, value) = self.shape.widths();
        match self.shape.mla {
            Some(mla) => {
                let narrow = if mla.query_rank == 0 { hidden } else { mla.query_rank as f64 };
                let wide = self.heads * (mla.nope + mla.value) as f64;
                add(Target::Q, self.tokens, [narrow, query], 1.0);
                add(Target::K, self.tokens, [mla.key_value_rank as f64, wide], 1.0);
            }
            None => {
                add(Target::Q, self.tokens, [hidden, query], 1.0);
                add(Target::K, self.key_tokens, [hidden, keys], 1.0);
                add(Target::V, self.key_tokens, [hidden, values], 1.0);
            }
        }
        add(Target::O, self.tokens, [self.heads * value as f64, hidden], 1.0);
        let mut mlp = |rows: f64, width: f64, count: f64, routed: bool| {
            let each = |target: Target| if routed { Target::Experts } else { target };
            if self.shape.mlp == Mlp::Swiglu {
                add(each(Target::Gate), rows, [hidden, width], count);
            }
            add(each(Target::Up), rows, [hidden, width], count);
            add(each(Target::Down), rows, [width, hidden], count);
        };
        match self.experts {
            Some(experts) => {
                mlp(experts.visits / experts.count, experts.width, experts.count, true);
                if experts.shared > 0.0 {
                    mlp(self.tokens, experts.shared, 1.0, false);
                }
            }
            None => mlp(self.tokens, self.mlp, 1.0, false),
        }
        all
    }
}

/// The two products of an adapter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct AdapterProducts {
    /// To the rank.
    pub(super) a: Product,
    /// From the rank.
    pub(super) b: Product,
    /// Whether its input is that of the layer, behind a norm.
    pub(super) of_layer: bool,
}
