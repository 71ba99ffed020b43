//! Qwen 2.5 and 3.

use super::Named;
use crate::model::transformer::{Experts, Transformer};

const TWO: &str = "Qwen team 2024, arXiv:2412.15115; configurations of the checkpoints";
const THREE: &str = "Qwen team 2025, arXiv:2505.09388; configurations of the checkpoints";
const TOKENS: u64 = 4096;
const VOCABULARY: u64 = 151_936;
/// The larger models of Qwen 2.5 have more padding.
const PADDED: u64 = 152_064;

/// Biases of queries, keys and values; the small models tie the output layer to the embedding.
const fn two(layers: u64, hidden: u64, heads: [u64; 2], mlp: u64, tied: bool) -> Transformer {
    let rows = if hidden > 2048 { PADDED } else { VOCABULARY };
    Transformer { qkv_bias: true, tied, ..Transformer::llama(layers, hidden, heads, mlp, rows, TOKENS) }
}

/// Normalised queries and keys, heads of 128 whatever the width.
const fn three(layers: u64, hidden: u64, heads: [u64; 2], mlp: u64, tied: bool) -> Transformer {
    Transformer {
        qk_norm: true,
        head_width: 128,
        tied,
        ..Transformer::llama(layers, hidden, heads, mlp, VOCABULARY, TOKENS)
    }
}

const fn sparse(layers: u64, hidden: u64, heads: [u64; 2], width: u64) -> Transformer {
    let experts =
        Experts { count: 128, active: 8, width, shared_width: 0, dense_layers: 0, router_bias: false };
    Transformer { experts: Some(experts), ..three(layers, hidden, heads, 0, false) }
}

pub(super) const ENTRIES: &[Named] = &[
    Named::new("qwen2.5-0.5b", &[], "Qwen 2.5 0.5B, 4096 tokens", TWO, two(24, 896, [14, 2], 4864, true)),
    Named::new("qwen2.5-1.5b", &[], "Qwen 2.5 1.5B, 4096 tokens", TWO, two(28, 1536, [12, 2], 8960, true)),
    Named::new("qwen2.5-3b", &[], "Qwen 2.5 3B, 4096 tokens", TWO, two(36, 2048, [16, 2], 11_008, true)),
    Named::new("qwen2.5-7b", &[], "Qwen 2.5 7B, 4096 tokens", TWO, two(28, 3584, [28, 4], 18_944, false)),
    Named::new("qwen2.5-14b", &[], "Qwen 2.5 14B, 4096 tokens", TWO, two(48, 5120, [40, 8], 13_824, false)),
    Named::new("qwen2.5-32b", &[], "Qwen 2.5 32B, 4096 tokens", TWO, two(64, 5120, [40, 8], 27_648, false)),
    Named::new("qwen2.5-72b", &[], "Qwen 2.5 72B, 4096 tokens", TWO, two(80, 8192, [64, 8], 29_568, false)),
    Named::new("qwen3-0.6b", &[], "Qwen 3 0.6B, 4096 tokens", THREE, three(28, 1024, [16, 8], 3072, true)),
    Named::new("qwen3-1.7b", &[], "Qwen 3 1.7B, 4096 tokens", THREE, three(28, 2048, [16, 8], 6144, true)),
    Named::new("qwen3-4b", &[], "Qwen 3 4B, 4096 tokens", THREE, three(36, 2560, [32, 8], 9728, true)),
    Named::new("qwen3-8b", &[], "Qwen 3 8B, 4096 tokens", THREE, three(36, 4096, [32, 8], 12_288, false)),
    Named::new("qwen3-14b", &[], "Qwen 3 14B, 4096 tokens", THREE, three(40, 5120, [40, 8], 17_408, false)),
    Named::new("qwen3-32b", &[], "Qwen 3 32B, 4096 tokens", THREE, three(64, 5120, [64, 8], 25_600, false)),
    Named::new(
        "qwen3-30b-a3b",
        &[],
        "Qwen 3, 8 of 128 experts, 4096 tokens",
        THREE,
        sparse(48, 2048, [32, 4], 768),
    ),
    Named::new(
        "qwen3-235b-a22b",
        &[],
        "Qwen 3, 8 of 128 experts, 4096 tokens",
        THREE,
        sparse(94, 4096, [64, 4], 1536),
    ),
];
