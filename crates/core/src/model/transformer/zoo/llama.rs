//! Llama 2 and 3.

use super::Named;
use crate::model::transformer::Transformer;

const TWO: &str = "Touvron et al. 2023, arXiv:2307.09288; configurations of the checkpoints";
const THREE: &str = "Grattafiori et al. 2024, arXiv:2407.21783, table 3; configurations of the checkpoints";
const SMALL: &str = "Llama 3.2 (Meta 2024); configurations of the checkpoints";

const fn two(layers: u64, hidden: u64, heads: [u64; 2], mlp: u64) -> Transformer {
    Transformer::llama(layers, hidden, heads, mlp, 32_000, 4096)
}

const fn three(layers: u64, hidden: u64, heads: [u64; 2], mlp: u64) -> Transformer {
    Transformer::llama(layers, hidden, heads, mlp, 128_256, 8192)
}

const ONE_B: Transformer = Transformer { tied: true, ..three(16, 2048, [32, 8], 8192) };
const THREE_B: Transformer = Transformer { tied: true, ..three(28, 3072, [24, 8], 8192) };

pub(super) const ENTRIES: &[Named] = &[
    Named::new("llama2-7b", &[], "Llama 2 7B, 4096 tokens", TWO, two(32, 4096, [32, 32], 11_008)),
    Named::new("llama2-13b", &[], "Llama 2 13B, 4096 tokens", TWO, two(40, 5120, [40, 40], 13_824)),
    Named::new("llama2-70b", &[], "Llama 2 70B, 4096 tokens", TWO, two(80, 8192, [64, 8], 28_672)),
    Named::new("llama3.2-1b", &[], "Llama 3.2 1B, 8192 tokens", SMALL, ONE_B),
    Named::new("llama3.2-3b", &[], "Llama 3.2 3B, 8192 tokens", SMALL, THREE_B),
    Named::new(
        "llama3-8b",
        &["llama3.1-8b"],
        "Llama 3 8B, 8192 tokens",
        THREE,
        three(32, 4096, [32, 8], 14_336),
    ),
    Named::new(
        "llama3-70b",
        &["llama3.1-70b", "llama3.3-70b"],
        "Llama 3 70B, 8192 tokens",
        THREE,
        three(80, 8192, [64, 8], 28_672),
    ),
    Named::new(
        "llama3.1-405b",
        &["llama3-405b"],
        "Llama 3.1 405B, 8192 tokens",
        THREE,
        three(126, 16_384, [128, 8], 53_248),
    ),
];
