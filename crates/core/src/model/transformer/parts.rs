//! Exact numbers of parameters, part by part, and by the way in which parallelism divides them; and the matrices of a layer,
//! one by one: adapters are added to them, and low-rank optimisers project their gradients.

use super::{Block, Experts, FeedForward, Mixer, Mlp, Modules, Target, Transformer};
use std::ops::{Add, AddAssign};

/// Parameters by the way in which ranks divide them.
///
/// Query, MLP and vocabulary matrices with their column biases are divided by tensor parallelism; norms, row biases,
/// routers, positions and the narrow layers of latent attention are on every rank. A rank holds whole key-value
/// heads, at least one, so that its part is larger than the quotient if there are fewer heads than ranks. Experts
/// are divided by expert parallelism alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parameters {
    /// Divided by tensor parallelism.
    pub tensor: u64,
    /// Parameters of the key-value heads, divided by tensor parallelism up to their number.
    pub key_value: u64,
    /// Parameters of the routed experts, divided by expert parallelism.
    pub expert: u64,
    /// On every rank.
    pub every: u64,
}

impl Parameters {
    pub(super) const NONE: Self = Self { tensor: 0, key_value: 0, expert: 0, every: 0 };

    pub const fn total(&self) -> u64 {
        self.tensor + self.key_value + self.expert + self.every
    }

    /// Parameters of one rank without those of its experts, for `ranks` tensor-parallel ranks of `kv_heads` heads.
    pub const fn dense_shard(&self, ranks: u64, kv_heads: u64) -> u64 {
        let heads = kv_heads.div_ceil(ranks);
        self.tensor.div_ceil(ranks) + self.key_value / kv_heads * heads + self.every
    }

    /// Parameters of one rank's experts, for `ranks` expert-parallel ranks.
    pub const fn expert_shard(&self, ranks: u64) -> u64 {
        self.expert / ranks
    }

    #[must_use]
    pub const fn times(self, count: u64) -> Self {
        Self {
            tensor: self.tensor * count,
            key_value: self.key_value * count,
            expert: self.expert * count,
            every: self.every * count,
        }
    }
}

impl Add for Parameters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            tensor: self.tensor + other.tensor,
            key_value: self.key_value + other.key_value,
            expert: self.expert + other.expert,
            every: self.every + other.every,
        }
    }
}

impl AddAssign for Parameters {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for Parameters {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::NONE, Add::add)
    }
}

/// One part of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub name: &'static str,
    pub parameters: Parameters,
}

/// Layers that are alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerParts {
    pub block: Block,
    /// In the order of computation.
    pub parts: Vec<Part>,
    pub count: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Tokens, positions, token types, and their normalisation.
    pub embedding: Parameters,
    /// Every kind of layer.
    pub layers: Vec<LayerParts>,
    /// The normalisation after the last layer.
    pub final_norm: Parameters,
    /// The output layer; without the matrix if it is the embedding's.
    pub output: Parameters,
}

impl Parts {
    pub fn total(&self) -> u64 {
        self.embedding.total() + self.of_layers() + self.final_norm.total() + self.output.total()
    }

    pub fn of_layers(&self) -> u64 {
        let of = |own: &LayerParts| {
            own.parts.iter().map(|part| part.parameters).sum::<Parameters>().total() * own.count
        };
        self.layers.iter().map(of).sum()
    }
}

impl Transformer {
    pub fn parts(&self) -> Parts {
        Parts {
            embedding: self.embedding_parameters(),
            layers: self
                .blocks()
                .into_iter()
                .zip(self.count_blocks(&(0..self.layers)))
                .filter_map(|(block, count)| Some((block?, count)))
                .map(|(block, count)| LayerParts { block, parts: self.layer_parts(block), count })
                .collect(),
            final_norm: self.final_norm_parameters(),
            output: self.output_parameters(),
        }
    }

    pub fn parameters(&self) -> u64 {
        self.parts().total()
    }

    /// Parameters that one token uses: all but the experts that it does not visit.
    pub fn active_parameters(&self) -> u64 {
        let idle = self.experts.map_or(0, |experts| {
            (experts.count - experts.active) * self.mlp_matrices(experts.width) * self.expert_layers()
        });
        self.parameters() - idle
    }

    /// Embedding of tokens, or the matrices that turn a signal into tokens; positions, token types, and their normalisation; conditions.
    pub fn embedding_parameters(&self) -> Parameters {
        let norm = if self.embedding_norm { self.norm_parameters() } else { 0 };
        let biases = self.stacks() * self.relative_positions * self.heads;
        let table = Parameters {
            tensor: if self.looks_up() { self.vocabulary * self.hidden } else { 0 },
            every: (self.positions + self.token_types) * self.hidden + norm + biases,
            ..Parameters::NONE
        };
        table + self.signal_parameters()
    }

    /// The normalisation after the last layer of each stack.
    pub fn final_norm_parameters(&self) -> Parameters {
        let norms = if self.final_norm { self.stacks() } else { 0 };
        Parameters { every: norms * self.norm_parameters(), ..Parameters::NONE }
    }

    /// An encoder and a decoder, or one of them.
    pub(super) const fn stacks(&self) -> u64 {
        if self.target > 0 { 2 } else { 1 }
    }

    /// The output layer; without the matrix if it is the embedding's.
    pub fn output_parameters(&self) -> Parameters {
        let matrix = if self.tied { 0 } else { self.vocabulary * self.hidden };
        let dense = match self.head_transform {
            true => self.hidden * (self.hidden + u64::from(self.bias)) + self.norm_parameters(),
            false => 0,
        };
        let bias = if self.biases_logits() { self.vocabulary } else { 0 };
        let modulation = self.last_modulation() * self.hidden * (self.hidden + 1);
        // A projection of states and embedding, and norms of both and of the module's own states.
        let joined = 2 * self.hidden * self.hidden;
        Parameters {
            tensor: matrix + bias + modulation + self.multi_token * joined,
            every: dense + self.multi_token * 3 * self.norm_parameters(),
            ..Parameters::NONE
        }
    }

    /// Whether logits have biases, as outputs that are no words do.
    pub(super) fn biases_logits(&self) -> bool {
        self.head_transform || !self.looks_up() || matches!(self.modules, Modules::Phi | Modules::Gptj)
    }

    /// Whether the output projection of attention has a bias.
    pub(super) fn biases_attention(&self) -> bool {
        self.bias && self.modules != Modules::Gptj
    }

    /// The parts of a layer in the order of computation; none of them is empty.
    pub fn layer_parts(&self, block: Block) -> Vec<Part> {
        let streams = block.mixer.streams();
        let norms = streams * self.norms_of(block) * self.norm_parameters();
        let norms = Parameters { every: norms, ..Parameters::NONE };
        let modulation = self.modulation_of(block.mixer) * self.hidden * (self.hidden + 1);
        let modulation = Parameters { tensor: modulation, ..Parameters::NONE };
        let mut parts = vec![
            Part { name: "norms", parameters: norms },
            Part { name: "modulation", parameters: modulation },
        ];
        match block.mixer {
            Mixer::Attention | Mixer::Encoder | Mixer::Cross => parts.extend(self.attention_parts()),
            Mixer::Joint | Mixer::JointLast => {
                let [query, keys, norms, output] = self.attention_parts();
                let twice = |part: Part| Part { parameters: part.parameters.times(2), ..part };
                let output = if block.mixer == Mixer::Joint { twice(output) } else { output };
                parts.extend([twice(query), twice(keys), twice(norms), output]);
            }
            Mixer::Linear => parts.extend(self.delta.into_iter().flat_map(|own| own.parts(self.hidden))),
            Mixer::Mamba => parts.extend(self.mamba.into_iter().flat_map(|own| own.parts(self.hidden))),
            Mixer::None => {}
        }
        match (block.feed, self.experts) {
            (FeedForward::Experts, Some(experts)) => parts.extend(self.expert_parts(experts)),
            (FeedForward::None, _) => {}
            _ => {
                let parameters = self.mlp_parameters(self.mlp_width).times(self.feeding_streams(block));
                parts.push(Part { name: "mlp", parameters });
            }
        }
        parts.retain(|part| part.parameters.total() > 0);
        parts
    }

    /// Sets of weights of the output projection and of the MLP.
    pub(super) fn feeding_streams(&self, block: Block) -> u64 {
        if block.mixer == Mixer::Joint { 2 } else { 1 }
    }

    /// Norms of a layer: before each half or both, and behind it if these normalise their outputs.
    pub fn norms_of(&self, block: Block) -> u64 {
        let halves = if self.modules.shares_norm() { 1 } else { block.halves() };
        halves * if self.sandwich { 2 } else { 1 }
    }

    pub fn layer_parameters(&self, block: Block) -> Parameters {
        self.layer_parts(block).iter().map(|part| part.parameters).sum()
    }

    /// Tensors of the parameters of a layer, as Hugging Face's modules have them.
    pub fn layer_tensors(&self, block: Block) -> u64 {
        let [bias, qkv_bias, output_bias, qk_norm] =
            [self.bias, self.qkv_bias, self.biases_attention(), self.qk_norm].map(u64::from);
        let streams = block.mixer.streams();
        let norms = streams * self.norms_of(block) * self.norm.parameters();
        let modulation = if self.condition.is_some() { 2 * streams } else { 0 };
        let heads = if self.modules.joins_heads() { 1 } else { 3 };
        let mixer = match block.mixer {
            Mixer::None => 0,
            _ => {
                streams * (heads * (1 + qkv_bias) + 2 * qk_norm)
                    + self.feeding_streams(block) * (1 + output_bias)
            }
        };
        let mlp = self.mlp.matrices() * (1 + bias);
        let feed = match (block.feed, self.experts) {
            (FeedForward::None, _) => 0,
            // The router, and the matrices of all experts in two.
            (FeedForward::Experts, Some(experts)) => 3 + if experts.shared_width > 0 { mlp } else { 0 },
            _ => self.feeding_streams(block) * mlp,
        };
        norms + modulation + mixer + feed
    }

    fn norm_parameters(&self) -> u64 {
        self.norm.parameters() * self.hidden
    }

    fn attention_parts(&self) -> [Part; 4] {
        let (key, value) = self.widths();
        let bias = u64::from(self.qkv_bias);
        let none = Parameters::NONE;
        let (query, key_value) = match self.mla {
            Some(mla) => {
                let out = self.heads * key;
                let query = match mla.query_rank {
                    0 => Parameters { tensor: self.hidden * out, ..none },
                    rank => Parameters { tensor: rank * out, every: self.hidden * rank + rank, ..none },
                };
                let rank = mla.key_value_rank;
                let narrow = self.hidden * (rank + mla.rope) + rank;
                let wide = rank * self.heads * (mla.nope + value);
                (query, Parameters { tensor: wide, every: narrow, ..none })
            }
            None => {
                let width = |heads: u64| self.head_width * heads * (self.hidden + bias);
                let gate = if self.attention_gate { 2 } else { 1 };
                let query = Parameters { tensor: gate * width(self.heads), ..none };
                let unbiased = if self.modules == Modules::Whisper { bias } else { 0 };
                let without = self.head_width * self.kv_heads * unbiased;
                (query, Parameters { key_value: 2 * width(self.kv_heads) - without, ..none })
            }
        };
        let qk_norm = match (self.qk_norm, self.qk_norm_joint) {
            (false, _) => none,
            (true, false) => Parameters { every: 2 * key, ..none },
            (true, true) => Parameters { tensor: key * self.heads, key_value: key * self.kv_heads, ..none },
        };
        let bias = if self.biases_attention() { self.hidden } else { 0 };
        let output = Parameters { tensor: self.heads * value * self.hidden, every: bias, ..none };
        [
            Part { name: "query", parameters: query },
            Part { name: "key and value", parameters: key_value },
            Part { name: "norms of query and key", parameters: qk_norm },
            Part { name: "attention output", parameters: output },
        ]
    }

    fn expert_parts(&self, experts: Experts) -> [Part; 3] {
        let bias = if experts.router_bias { experts.count } else { 0 };
        let gate = if experts.shared_gate { self.hidden } else { 0 };
        let router = self.hidden * experts.count + bias + gate;
        let routed = experts.count * self.mlp_matrices(experts.width);
        let shared = match experts.shared_width {
            0 => Parameters::NONE,
            width => self.mlp_parameters(width),
        };
        [
            Part { name: "router", parameters: Parameters { every: router, ..Parameters::NONE } },
            Part { name: "experts", parameters: Parameters { expert: routed, ..Parameters::NONE } },
            Part { name: "shared expert", parameters: shared },
        ]
    }

    fn mlp_parameters(&self, width: u64) -> Parameters {
        let bias = u64::from(self.bias);
        Parameters {
            tensor: self.mlp.matrices() * self.hidden * width + bias * width,
            every: bias * self.hidden,
            ..Parameters::NONE
        }
    }

    /// An expert's MLP, all of it on one rank.
    fn mlp_matrices(&self, width: u64) -> u64 {
        self.mlp_parameters(width).total()
    }
}

/// A matrix: widths of its input and output, and the side that tensor parallelism divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) divides_input: bool,
    pub(super) count: u64,
}

/// Elements that a low-rank optimiser keeps for the matrices of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LowRank {
    /// Elements of the matrices.
    pub weights: u64,
    /// Elements of one of their two moments.
    pub moment: u64,
    /// Elements of their projections.
    pub projections: u64,
}

impl Transformer {
    /// Weights of the matrices of a layer; only these are stored in the base's format.
    pub fn layer_matrices(&self, block: Block) -> Parameters {
        let all = self.layer_parameters(block);
        let small = self.norms_of(block) * self.norm.parameters() * self.hidden;
        Parameters { every: all.every.saturating_sub(small), ..all }
    }

    /// States of an optimiser that projects the shorter side of every matrix to `rank` (GaLore: Zhao 2024, Table 1).
    pub fn low_rank(&self, block: Block, rank: u64) -> LowRank {
        let mut sum = LowRank::default();
        for (_, Matrix { input, output, count, .. }) in self.matrices(block) {
            let (short, long) = (input.min(output), input.max(output));
            sum.weights += count * short * long;
            sum.moment += count * rank.min(short) * long;
            sum.projections += count * rank.min(short) * short;
        }
        sum
    }

    /// The matrices of attention, but for the narrow ones of latent attention, and of the feed-forward of a layer.
    pub(super) fn matrices(&self, block: Block) -> Vec<(Target, Matrix)> {
        let (key, value) = self.widths();
        let (streams, feeding) = (block.mixer.streams(), self.feeding_streams(block));
        let plain = |input, output, divides_input| Matrix { input, output, divides_input, count: streams };
        let mut all = match self.mla {
            _ if !block.mixer.attends() => Vec::new(),
            None => vec![
                (Target::Q, plain(self.hidden, self.heads * key, false)),
                (Target::K, plain(self.hidden, self.kv_heads * key, false)),
                (Target::V, plain(self.hidden, self.kv_heads * value, false)),
            ],
            Some(mla) => {
                let query = match mla.query_rank {
                    0 => plain(self.hidden, self.heads * key, false),
                    rank => plain(rank, self.heads * key, false),
                };
                let wide = plain(mla.key_value_rank, self.heads * (mla.nope + value), false);
                vec![(Target::Q, query), (Target::K, wide)]
            }
        };
        if block.mixer.attends() {
            let output = plain(self.heads * value, self.hidden, true);
            all.push((Target::O, Matrix { count: feeding, ..output }));
        }
        let mut mlp = |width: u64, count: u64, routed: bool| {
            let each = |target: Target| if routed { Target::Experts } else { target };
            let matrix = |input, output, divides_input| Matrix { input, output, divides_input, count };
            if self.mlp == Mlp::Swiglu {
                all.push((each(Target::Gate), matrix(self.hidden, width, false)));
            }
            all.push((each(Target::Up), matrix(self.hidden, width, false)));
            all.push((each(Target::Down), matrix(width, self.hidden, true)));
        };
        match self.experts.filter(|_| block.has_experts()) {
            Some(experts) => {
                mlp(experts.width, experts.count, true);
                if experts.shared_width > 0 {
                    mlp(experts.shared_width, 1, false);
                }
            }
            None if block.feed == FeedForward::None => {}
            None => mlp(self.mlp_width, feeding, false),
        }
        all
    }
}
