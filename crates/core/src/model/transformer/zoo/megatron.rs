//! Models that Megatron-LM's papers trained, and other large models of GPT's kind.

use super::Named;
use crate::model::transformer::Transformer;

/// The vocabulary of GPT-2, padded to a multiple of 128 for each of eight tensor-parallel ranks.
const PADDED: u64 = 51_200;

const KORTHIKANTI: &str = "Korthikanti et al. 2022, arXiv:2205.05198, table 3";

const fn gpt(layers: u64, hidden: u64, heads: u64) -> Transformer {
    Transformer::gpt(layers, hidden, heads, PADDED, 2048)
}

/// Rotary positions and an output layer of its own.
const NEOX: Transformer =
    Transformer { positions: 0, tied: false, ..Transformer::gpt(44, 6144, 64, 50_432, 2048) };

/// Biases of attention in place of positions, and a normalised embedding.
const BLOOM: Transformer =
    Transformer { positions: 0, embedding_norm: true, ..Transformer::gpt(70, 14_336, 112, 250_880, 2048) };

pub(super) const ENTRIES: &[Named] = &[
    Named::new("megatron-22b", &[], "GPT of 22B, 2048 tokens", KORTHIKANTI, gpt(48, 6144, 64)),
    Named::new(
        "gpt3-175b-megatron",
        &[],
        "GPT-3 175B with a padded vocabulary, 2048 tokens",
        KORTHIKANTI,
        gpt(96, 12_288, 96),
    ),
    Named::new(
        "turing-530b",
        &["mt-nlg-530b"],
        "GPT of 530B, 2048 tokens",
        KORTHIKANTI,
        gpt(105, 20_480, 128),
    ),
    Named::new("megatron-1t", &[], "GPT of 1T, 2048 tokens", KORTHIKANTI, gpt(128, 25_600, 160)),
    Named::new(
        "gpt-neox-20b",
        &[],
        "GPT-NeoX 20B, 2048 tokens",
        "Black et al. 2022, arXiv:2204.06745; vocabulary of the checkpoint",
        NEOX,
    ),
    Named::new(
        "bloom-176b",
        &["bloom"],
        "BLOOM, 2048 tokens",
        "Workshop et al. 2022, arXiv:2211.05100",
        BLOOM,
    ),
];
