//! Gemma 2: four normalisations in a layer, a window in every second layer.

use super::Named;
use crate::model::transformer::Transformer;

const SOURCE: &str = "Gemma team 2024, arXiv:2408.00118, table 1; configurations of the checkpoints";

const fn gemma(layers: u64, hidden: u64, heads: [u64; 2], head_width: u64, mlp: u64) -> Transformer {
    Transformer {
        head_width,
        sandwich: true,
        tied: true,
        window: Some(4096),
        window_every: 2,
        ..Transformer::llama(layers, hidden, heads, mlp, 256_000, 8192)
    }
}

pub(super) const ENTRIES: &[Named] = &[
    Named::new("gemma2-2b", &[], "Gemma 2 2B, 8192 tokens", SOURCE, gemma(26, 2304, [8, 4], 256, 9216)),
    Named::new("gemma2-9b", &[], "Gemma 2 9B, 8192 tokens", SOURCE, gemma(42, 3584, [16, 8], 256, 14_336)),
    Named::new("gemma2-27b", &[], "Gemma 2 27B, 8192 tokens", SOURCE, gemma(46, 4608, [32, 16], 128, 36_864)),
];
