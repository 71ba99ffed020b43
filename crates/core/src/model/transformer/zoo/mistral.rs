//! Mistral and Mixtral.

use super::Named;
use crate::model::transformer::{Experts, Transformer};

const MISTRAL: &str = "Jiang et al. 2023, arXiv:2310.06825; configuration of the checkpoint";
const MIXTRAL: &str = "Jiang et al. 2024, arXiv:2401.04088; configuration of the checkpoint";
const CHECKPOINT: &str = "Mistral AI 2024; configuration of the checkpoint";

const SEVEN: Transformer =
    Transformer { window: Some(4096), ..Transformer::llama(32, 4096, [32, 8], 14_336, 32_000, 8192) };
const NEMO: Transformer =
    Transformer { head_width: 128, ..Transformer::llama(40, 5120, [32, 8], 14_336, 131_072, 8192) };
const LARGE: Transformer = Transformer::llama(88, 12_288, [96, 8], 28_672, 32_768, 8192);

const fn mixtral(layers: u64, hidden: u64, heads: [u64; 2], width: u64) -> Transformer {
    let experts =
        Experts { count: 8, active: 2, width, shared_width: 0, dense_layers: 0, router_bias: false };
    Transformer { experts: Some(experts), ..Transformer::llama(layers, hidden, heads, width, 32_000, 8192) }
}

pub(super) const ENTRIES: &[Named] = &[
    Named::new("mistral-7b", &[], "Mistral 7B, 8192 tokens, window of 4096", MISTRAL, SEVEN),
    Named::new("mistral-nemo-12b", &[], "Mistral Nemo 12B, 8192 tokens", CHECKPOINT, NEMO),
    Named::new("mistral-large-123b", &[], "Mistral Large 2, 8192 tokens", CHECKPOINT, LARGE),
    Named::new(
        "mixtral-8x7b",
        &[],
        "Mixtral, 2 of 8 experts, 8192 tokens",
        MIXTRAL,
        mixtral(32, 4096, [32, 8], 14_336),
    ),
    Named::new(
        "mixtral-8x22b",
        &[],
        "Mixtral, 2 of 8 experts, 8192 tokens",
        CHECKPOINT,
        mixtral(56, 6144, [48, 8], 16_384),
    ),
];
