//! Transformers by their shape: layers, widths, heads, experts, vocabulary.
//!
//! A [`Transformer`] is plain data. It comes from the zoo ([`super::zoo`]), from a `[model.transformer]` table
//! ([`TransformerSection`]) or from a `config.json` of Hugging Face ([`hugging_face`]). [`Transformer::parts`] counts
//! its parameters exactly, and by the way in which parallelism divides them. [`Transformer::layout`] lays it out as a
//! [`Model`](super::Model), so that every method for data-parallel training takes it like any other network.
//! Patches of images and frames of sound take the place of a vocabulary where there is a [`Signal`].

mod documents;
pub mod hugging_face;
mod layout;
mod mixers;
mod parts;
mod pattern;
mod section;
mod signal;
mod tuning;

pub use documents::{DocumentLengths, Documents, Lengths, Packing};
pub use mixers::{Delta, DeltaSection, Mamba, MambaSection};
pub use parts::{LayerParts, LowRank, Parameters, Part, Parts};
pub use pattern::{Block, FeedForward, MOST_BLOCKS, Mixer, Pattern};
pub use section::{Experts, ExpertsSection, Mla, MlaSection, TransformerSection};
pub use signal::{Condition, ConditionSection, Signal, SignalSection};
pub use tuning::{Adapters, AdaptersSection, Backward, BaseFormat, FrozenSection, Target, Targets, Tuning};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The shape of a transformer. All widths are numbers of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transformer {
    pub layers: u64,
    /// Width between layers.
    pub hidden: u64,
    /// Query heads.
    pub heads: u64,
    /// Key-value heads: as many as query heads, or fewer (grouped queries), or 1 (multi-query).
    pub kv_heads: u64,
    pub head_width: u64,
    /// Inner width of the MLP of a dense layer.
    pub mlp_width: u64,
    pub mlp: Mlp,
    /// Which modules of Hugging Face's library compute a layer.
    pub modules: Modules,
    /// Rows of the embedding and of the output layer; of the output layer alone where patches take the place of tokens.
    pub vocabulary: u64,
    /// Tokens of one sample: of the encoder, if there is one.
    pub sequence: u64,
    /// Tokens of the decoder behind an encoder (T5); 0 without an encoder.
    pub target: u64,
    pub norm: NormKind,
    /// Whether each half of a layer also normalises its output (Gemma 2).
    pub sandwich: bool,
    /// Whether a normalisation follows the last layer; not where normalisation comes after each half (BERT).
    pub final_norm: bool,
    /// Whether the output projection and the MLP have biases.
    pub bias: bool,
    /// Whether queries, keys and values have biases.
    pub qkv_bias: bool,
    /// Whether queries and keys are normalised in each head (Qwen 3).
    pub qk_norm: bool,
    /// Whether that normalisation is over all heads at once (OLMo 2, MiniMax-M2).
    pub qk_norm_joint: bool,
    /// Learned positions; 0 for rotary positions and for biases of attention.
    pub positions: u64,
    /// Rows of the table of relative-position biases, for every head; each stack has one such table and no other positions (T5).
    pub relative_positions: u64,
    /// Rows of a table of token types (BERT).
    pub token_types: u64,
    /// Whether the embedding is normalised (BERT, BLOOM).
    pub embedding_norm: bool,
    /// Whether the output layer shares the weight of the embedding.
    pub tied: bool,
    /// Whether a dense layer with a normalisation, and a bias of the logits, precede the loss (BERT).
    pub head_transform: bool,
    /// Whether a query sees only keys up to its own position.
    pub causal: bool,
    /// Number of keys that a query sees, itself included, in layers with a window.
    pub window: Option<u64>,
    /// Every layer of this period has the window; 1 for all layers.
    pub window_every: u64,
    /// The last layer of this period has no window (Gemma 3); 0 without such a period.
    pub global_every: u64,
    /// Number of last layers that predict further tokens: each joins the states before it with the embedding of the token that
    /// they predict, and passes through the output layer (multi-token prediction, DeepSeek-V3 section 2.2).
    pub multi_token: u64,
    /// Whether attention is multiplied by a gate of its width (Qwen3-Next).
    pub attention_gate: bool,
    /// Kinds of layers, if their mixers differ.
    pub pattern: Option<Pattern>,
    /// Gated delta nets of a pattern.
    pub delta: Option<Delta>,
    /// Mamba layers of a pattern.
    pub mamba: Option<Mamba>,
    /// Experts in place of the MLP.
    pub experts: Option<Experts>,
    /// Multi-head latent attention (DeepSeek).
    pub mla: Option<Mla>,
    /// Patches or frames in place of tokens.
    pub signal: Option<Signal>,
    /// Condition that modulates every layer (DiT).
    pub condition: Option<Condition>,
    pub tuning: Tuning,
    /// The documents in its sequences, if they are shorter than samples.
    pub documents: Option<Documents>,
}

/// The MLP of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mlp {
    /// Two matrices around a non-linearity.
    Gelu,
    /// Three matrices: a gate, a factor and the way back; also with GELU in the gate.
    Swiglu,
}

impl Mlp {
    /// Matrices of hidden × inner width.
    pub const fn matrices(self) -> u64 {
        match self {
            Self::Gelu => 2,
            Self::Swiglu => 3,
        }
    }
}

/// Modules of Hugging Face's library, where they differ from separate matrices and fused non-linearities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Modules {
    /// Modules of Llama and most other models.
    Plain,
    /// One matrix for queries, keys and values; GELU from separate operations; dropout.
    Gpt2,
    /// ReLU and dropout.
    Opt,
    /// One matrix for queries, keys and values; attention and MLP beside each other.
    Neox,
    /// One matrix for queries, keys and values, and one for gate and factor.
    Phi3,
    /// ReLU, or a gate of separate operations; norms that keep their input twice; attention with biases in 32 bits; dropout.
    T5,
    /// One matrix for queries, keys and values (timm, DiT).
    Timm,
    /// Keys without biases; heads that are copied to lie one behind the other.
    Whisper,
    /// Attention and MLP beside each other behind one normalisation.
    Cohere,
    /// As of Cohere, with one matrix for queries, keys and values.
    Falcon,
    /// As of Cohere, with biases of logits.
    Phi,
    /// As of Phi, with no bias of the attention's output.
    Gptj,
}

impl Modules {
    /// Whether a single matrix computes queries, keys and values.
    pub const fn joins_heads(self) -> bool {
        matches!(self, Self::Gpt2 | Self::Neox | Self::Phi3 | Self::Timm | Self::Falcon)
    }

    /// Whether attention and MLP read the same normalisation.
    pub const fn shares_norm(self) -> bool {
        matches!(self, Self::Cohere | Self::Falcon | Self::Phi | Self::Gptj)
    }

    /// Whether configurations usually have dropout.
    pub const fn drops_out(self) -> bool {
        matches!(self, Self::Gpt2 | Self::Opt | Self::T5)
    }
}

/// Normalisation over the hidden width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NormKind {
    /// With scale and shift.
    Layer,
    /// LayerNorm with a scale only (MPT).
    LayerNoBias,
    /// LayerNorm without parameters (DiT).
    LayerPlain,
    /// Root mean square, with a scale.
    Rms,
}

impl NormKind {
    /// Parameters for each element of the width.
    pub const fn parameters(self) -> u64 {
        match self {
            Self::Layer => 2,
            Self::LayerNoBias | Self::Rms => 1,
            Self::LayerPlain => 0,
        }
    }
}

impl Experts {
    /// Routed experts in all layers, none of them shared.
    pub const fn new(count: u64, active: u64, width: u64) -> Self {
        Self {
            count,
            active,
            width,
            shared_width: 0,
            dense_layers: 0,
            every: 1,
            router_bias: false,
            shared_gate: false,
        }
    }
}

/// The defaults of a file: Llama's kind, without any size.
impl Default for Transformer {
    fn default() -> Self {
        Self::llama(0, 0, [0, 0], 0, 0, 0)
    }
}

impl Transformer {
    /// A decoder in the manner of GPT-2: learned positions, LayerNorm, biases, GELU of four times the width, tied.
    pub fn gpt(layers: u64, hidden: u64, heads: u64, vocabulary: u64, sequence: u64) -> Self {
        Self {
            layers,
            hidden,
            heads,
            kv_heads: heads,
            head_width: hidden.checked_div(heads).unwrap_or(0),
            mlp_width: hidden.saturating_mul(4),
            mlp: Mlp::Gelu,
            modules: Modules::Plain,
            vocabulary,
            sequence,
            target: 0,
            norm: NormKind::Layer,
            sandwich: false,
            final_norm: true,
            bias: true,
            qkv_bias: true,
            qk_norm: false,
            qk_norm_joint: false,
            positions: sequence,
            relative_positions: 0,
            token_types: 0,
            embedding_norm: false,
            tied: true,
            head_transform: false,
            causal: true,
            window: None,
            window_every: 1,
            global_every: 0,
            multi_token: 0,
            attention_gate: false,
            pattern: None,
            delta: None,
            mamba: None,
            experts: None,
            mla: None,
            signal: None,
            condition: None,
            tuning: Tuning::default(),
            documents: None,
        }
    }

    /// A decoder in the manner of Llama: rotary positions, RMSNorm, no biases, SwiGLU, a separate output layer.
    pub fn llama(
        layers: u64,
        hidden: u64,
        [heads, kv_heads]: [u64; 2],
        mlp_width: u64,
        vocabulary: u64,
        sequence: u64,
    ) -> Self {
        Self {
            kv_heads,
            mlp_width,
            mlp: Mlp::Swiglu,
            norm: NormKind::Rms,
            bias: false,
            qkv_bias: false,
            positions: 0,
            tied: false,
            ..Self::gpt(layers, hidden, heads, vocabulary, sequence)
        }
    }

    /// Width of a head's query and key, and of its value.
    pub const fn widths(&self) -> (u64, u64) {
        match self.mla {
            Some(mla) => (mla.nope + mla.rope, mla.value),
            None => (self.head_width, self.head_width),
        }
    }

    /// The shape with samples of another length; the target keeps its share.
    #[must_use]
    pub fn with_sequence(self, sequence: u64) -> Self {
        let target =
            (u128::from(self.target) * u128::from(sequence)).div_ceil(u128::from(self.sequence.max(1)));
        Self { sequence, target: u64::try_from(target).unwrap_or(u64::MAX), ..self }
    }

    /// Tokens of the decoder, or of the only stack.
    pub const fn decoded(&self) -> u64 {
        if self.target > 0 { self.target } else { self.sequence }
    }

    /// Tokens that reach the output layer.
    pub const fn predicted(&self) -> u64 {
        match self.signal {
            Some(Signal { outputs, .. }) if outputs > 0 => outputs,
            _ => self.decoded().saturating_sub(self.text_tokens()),
        }
    }

    /// Whether configurations of Hugging Face usually have dropout: text encoders do.
    pub const fn drops_out(&self) -> bool {
        self.modules.drops_out() || (!self.causal && self.signal.is_none())
    }

    /// Whether modules of Hugging Face copy logits to 32 bits: BERT and T5 do not.
    pub const fn widens_logits(&self) -> bool {
        self.causal && self.target == 0
    }

    /// Whether positions rotate queries and keys.
    pub const fn rotates(&self) -> bool {
        self.positions == 0 && self.relative_positions == 0 && self.signal.is_none()
    }

    pub fn window_of(&self, index: u64) -> Option<u64> {
        let global = self.global_every > 0 && (index + 1).is_multiple_of(self.global_every);
        self.window.filter(|_| !global && index.is_multiple_of(self.window_every.max(1)))
    }
}
