//! All-reduce between workers: algorithms and settings.

use super::fusion::Fusion;
use crate::fitted::transfer::Curve;
use crate::keys::{Check, document_keys, keys, plain, with_aliases};
use crate::quantity::{Bytes, BytesPerSec, Seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// All-reduce algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Around a ring.
    #[default]
    Ring,
    /// By recursive halving and doubling.
    HalvingDoubling,
    /// Reduction to one worker and broadcast, along a binary tree.
    Tree,
    /// Along two binary trees, each for half of the data.
    DoubleTree,
    /// Within nodes first, then between them.
    Hierarchical,
}

/// How much of the communication computing hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overlap {
    /// As in published runs: never all of it.
    #[default]
    Usual,
    /// As much as the backward pass has time for, at no cost to computing.
    Ideal,
}

/// Number format in which gradients travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = with_aliases::<WireFormat>)]
pub enum WireFormat {
    /// 32 bits.
    #[default]
    Fp32,
    /// 16 bits: half of the bytes.
    #[serde(alias = "bf16")]
    Fp16,
}

impl WireFormat {
    /// Bytes on the wire for each byte of 32-bit gradients.
    pub fn share(self) -> f64 {
        match self {
            Self::Fp32 => 1.0,
            Self::Fp16 => 0.5,
        }
    }
}

plain!(WireFormat, "`\"fp32\"` or `\"fp16\"`");
plain!(Algorithm, "string");
plain!(Overlap, "`\"usual\"` or `\"ideal\"`");

keys! {
    /// How workers sum their gradients among themselves.
    #[derive(Debug, Clone, PartialEq)]
    struct Exchange;
    /// `[strategy.all-reduce]`: how workers sum their gradients among themselves.
    section AllReduceSection;
    before {}
    keys {
        /// `"ring"`, `"halving-doubling"`, `"tree"`, `"double-tree"`, or `"hierarchical"`: within the machines of
        /// `[cluster.nodes]` first, then between them.
        algorithm: Algorithm => Algorithm, default(Algorithm::Ring), Check::Any, Exchange;
        /// Number format in which gradients travel.
        gradients: WireFormat => WireFormat, default(WireFormat::default()), Check::Any, Exchange;
        /// All-reduces that may be under way at once.
        channels: u32 => u32, default(1_u32), Check::Between(1, 64, "a number such as 2"), Exchange;
        /// Fixed cost of every all-reduce.
        overhead: Seconds => Seconds, optional("latency and start-up of every step of the algorithm"), Check::NotNegative("a time such as \"1 ms\""), Exchange;
        /// How much longer computing and all-reduces take while both are under way: 0.3 is 30 %.
        interference: f64 => f64, default(0.0), Check::NotNegative("a share such as 0.3"), Exchange;
        /// How much of the communication computing hides: as in published runs, or as much as it has time for.
        overlap: Overlap => Overlap, optional("`\"usual\"`; `\"ideal\"` where all-reduces were measured and on ideal networks"), Check::Any, Exchange;
        /// Rate at which a worker copies gradients into messages, and out of them.
        copy_rate: BytesPerSec => BytesPerSec, optional("no cost"), Check::Positive("a rate such as \"5 GB/s\""), Resolved;
    }
    after {
        /// Sizes and times of whole all-reduces, in growing order: `[["1 MB", "9 ms"], ["64 MB", "500 ms"]]`; straight lines
        /// between them.
        measured: Vec<(Bytes, Seconds)>, "list of pairs", "–";
        /// A curve of whole all-reduces, see below.
        curve: CurveSection, "table", "–";
        /// Artefact of [`stepcast fit transfer`](fit.md) on whole all-reduces, beside the scenario.
        fitted: String, "path", "–";
    }
    made {
        /// Which gradients travel together.
        fusion: Fusion;
        /// How long an all-reduce takes, where that was measured or fitted; otherwise from network and algorithm.
        curve: Option<Curve>;
    }
}

document_keys! {
    /// `[strategy.all-reduce.curve]`: a logarithm up to a threshold, a line from there (Liu 2022, eq. 18).
    CurveSection {
        /// Where the line begins.
        threshold: Bytes, "size", "`\"45 kB\"`";
        /// Below it: additional time for doubling the size.
        per_doubling: Seconds, "time", "`\"0 s\"`";
        /// Below it: the time of one byte.
        one_byte: Seconds, "time", "such that the curve has no jump";
        /// Slope of the line.
        bandwidth: BytesPerSec, "memory rate", "required";
        /// The line at size zero.
        overhead: Seconds, "time", "required";
    }
}

impl Default for Exchange {
    fn default() -> Self {
        Self {
            fusion: Fusion::default(),
            algorithm: Algorithm::default(),
            gradients: WireFormat::default(),
            channels: 1,
            overhead: None,
            curve: None,
            interference: 0.0,
            overlap: None,
            copy_rate: None,
        }
    }
}
