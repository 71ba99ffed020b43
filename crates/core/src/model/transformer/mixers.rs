//! Mixers in place of attention: gated delta nets and Mamba. Widths, parameters, operations, and kept activations.
//!
//! Both carry a state from token to token. Kernels compute it in chunks: products within a chunk, and one state between two.
//! Operations are those of one token with all heads, a multiply-add being two; a short convolution of every channel comes
//! first.

use super::parts::{Parameters, Part};
use super::section::part_keys;

part_keys! {
    /// A gated delta net (Yang et al. 2024, arXiv:2412.06464), as Qwen3-Next has it.
    struct Delta;
    /// `[model.transformer.delta]`: gated delta nets, `L` of a pattern.
    section DeltaSection();
    /// Heads of queries and keys.
    key_heads: u64, "integer", "required", such_as 16;
    /// Heads of values; a key serves several if they are more.
    value_heads: u64, "integer", "`key-heads`", or key_heads;
    /// Width of a head's query and key.
    key_width: u64, "integer", "`128`", or 128;
    /// Width of a head's value.
    value_width: u64, "integer", "`key-width`", or key_width;
    /// Tokens that the convolution sees.
    convolution: u64, "integer", "`4`", or 4;
}

part_keys! {
    /// Mamba 2 (Dao and Gu 2024, arXiv:2405.21060) or, with a rank of its steps, Mamba 1 (Gu and Dao 2023, arXiv:2312.00752).
    struct Mamba;
    /// `[model.transformer.mamba]`: Mamba, `M` of a pattern.
    section MambaSection();
    /// Heads.
    heads: u64, "integer", "required", such_as 128;
    /// Width of a head.
    head_width: u64, "integer", "`64`", or 64;
    /// Groups of heads that share input and output of their state; tensor parallelism divides them.
    groups: u64, "integer", "`1`", or 1;
    /// Width of the state of each channel.
    state: u64, "integer", "`128`", or 128;
    /// Tokens that the convolution sees.
    convolution: u64, "integer", "`4`", or 4;
    /// Tokens of a chunk.
    chunk: u64, "integer", "`256`", or 256;
    /// Width that the steps in time pass through, which makes it Mamba 1; 0 for Mamba 2.
    step_rank: u64, "integer", "`0`", or 0;
    /// Whether Mamba 1 normalises steps and states (Jamba).
    step_norms: bool, "boolean", "`true`", or true;
}

impl Delta {
    /// Tokens of a chunk, as kernels of flash-linear-attention have it.
    pub const CHUNK: u64 = 64;

    /// Width of the values of all heads, which the output projection reads.
    pub const fn inner(&self) -> u64 {
        self.value_heads * self.value_width
    }

    /// Queries, keys and values, which pass the convolution.
    pub const fn channels(&self) -> u64 {
        2 * self.key_heads * self.key_width + self.inner()
    }

    /// Width of the input projection: channels, a gate of the output, and decay and strength of every head.
    pub const fn projected(&self) -> u64 {
        self.channels() + self.inner() + 2 * self.value_heads
    }

    /// Operations of the convolution and of the chunked rule (section 3.3, with the UT transform): of a chunk of C tokens, KKᵀ, the
    /// inverse of a triangle, two products with it, QKᵀ and its product with values; and three with the state.
    pub const fn operations(&self) -> u64 {
        let (c, k, v) = (Self::CHUNK, self.key_width, self.value_width);
        let head = 2 * c * (3 * k + 2 * v) + (c * c - 1) / 3 + 6 * k * v;
        2 * self.convolution * self.channels() + self.value_heads * head
    }

    /// Bytes of a token kept for the backward pass beside the input, in 16 bits: inputs of the convolution, and its outputs with a
    /// key for every value's head; gate, result and normalised result; decays in 32 bits, strengths, and the inverse triangle. States are
    /// recomputed.
    pub const fn kept(&self) -> u64 {
        let behind = 2 * self.value_heads * self.key_width + self.inner();
        2 * (self.channels() + behind + 3 * self.inner()) + self.value_heads * (6 + 2 * Self::CHUNK)
    }

    pub(super) fn parts(&self, hidden: u64) -> [Part; 4] {
        let tensor = |name, tensor| Part { name, parameters: Parameters { tensor, ..Parameters::NONE } };
        // A norm of one head's width serves all of them.
        let heads = Parameters { tensor: 2 * self.value_heads, every: self.value_width, ..Parameters::NONE };
        [
            tensor("delta net input", hidden * self.projected()),
            tensor("convolution", self.convolution * self.channels()),
            Part { name: "decays and norm", parameters: heads },
            tensor("delta net output", self.inner() * hidden),
        ]
    }
}

impl Mamba {
    pub const fn is_first(&self) -> bool {
        self.step_rank > 0
    }

    /// Width of all heads, which the output projection reads.
    pub const fn inner(&self) -> u64 {
        self.heads * self.head_width
    }

    /// Inputs and outputs of the states: of every group, or of all channels in Mamba 1.
    pub const fn states(&self) -> u64 {
        2 * self.state * if self.is_first() { 1 } else { self.groups }
    }

    /// Channels of the convolution: in Mamba 2 also inputs and outputs of the states.
    pub const fn channels(&self) -> u64 {
        self.inner() + if self.is_first() { 0 } else { self.states() }
    }

    /// Width of the input projection: channels, a gate and, in Mamba 2, a step in time of every head.
    pub const fn projected(&self) -> u64 {
        self.channels() + self.inner() + if self.is_first() { 0 } else { self.heads }
    }

    /// Weights of the products behind the convolution of Mamba 1: of steps and states, and of steps from their rank.
    pub const fn selecting(&self) -> u64 {
        if self.is_first() { self.inner() * (2 * self.step_rank + self.states()) } else { 0 }
    }

    /// Operations of the convolution and of the scan. Mamba 2 by duality in chunks of Q (section 6): CBᵀ of every group; of every
    /// head its product with the inputs, and two with the state. Mamba 1 nine for each channel and element of its state (section
    /// 3.3).
    pub const fn operations(&self) -> u64 {
        let convolution = 2 * self.convolution * self.channels();
        let (q, n, p) = (self.chunk, self.state, self.head_width);
        let scan = match self.is_first() {
            true => 2 * self.selecting() + 9 * self.inner() * n,
            false => 2 * self.groups * q * n + self.heads * (2 * q * p + 4 * n * p),
        };
        convolution + scan
    }

    /// Bytes of a token kept for the backward pass beside the input, in 16 bits: the output of the input projection, the result and
    /// its product with the gate; in Mamba 1 also channels behind the convolution, steps and states. Chunks are recomputed.
    pub const fn kept(&self) -> u64 {
        let selected = if self.is_first() { 2 * self.inner() + self.step_rank + self.states() } else { 0 };
        2 * (self.projected() + 2 * self.inner() + selected)
    }

    pub(super) fn parts(&self, hidden: u64) -> [Part; 4] {
        let tensor = |name, tensor| Part { name, parameters: Parameters { tensor, ..Parameters::NONE } };
        let inner = self.inner();
        // Decays and direct paths; steps with a bias; norms of the result, or of steps and states.
        let scan = match self.is_first() {
            true => Parameters {
                tensor: self.selecting() + inner * (self.state + 2),
                every: if self.step_norms { self.step_rank + self.states() } else { 0 },
                ..Parameters::NONE
            },
            false => Parameters { tensor: 3 * self.heads + inner, ..Parameters::NONE },
        };
        [
            tensor("Mamba input", hidden * self.projected()),
            tensor("convolution", (self.convolution + 1) * self.channels()),
            Part { name: "scan", parameters: scan },
            tensor("Mamba output", inner * hidden),
        ]
    }
}
