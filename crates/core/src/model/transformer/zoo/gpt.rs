//! GPT-2 and GPT-3.

use super::Named;
use crate::model::transformer::Transformer;

const VOCABULARY: u64 = 50_257;

const fn gpt2(layers: u64, hidden: u64, heads: u64) -> Transformer {
    Transformer::gpt(layers, hidden, heads, VOCABULARY, 1024)
}

const fn gpt3(layers: u64, hidden: u64, heads: u64) -> Transformer {
    Transformer::gpt(layers, hidden, heads, VOCABULARY, 2048)
}

pub(super) const GPT2: &[(&str, Transformer)] = &[
    ("gpt2", gpt2(12, 768, 12)),
    ("gpt2-medium", gpt2(24, 1024, 16)),
    ("gpt2-large", gpt2(36, 1280, 20)),
    ("gpt2-xl", gpt2(48, 1600, 25)),
];

const SOURCE: &str = "Brown et al. 2020, arXiv:2005.14165, table 2.1; all attention counted as dense";

/// The table prints 24 heads of 128 for 1.3B and a width of 5140 for 13B, but its numbers of parameters, 1,320 M and
/// 12,850 M, are those of 16 heads, as wide as the model, and of 5120.
pub(super) const GPT3: &[Named] = &[
    Named::new("gpt3-125m", &["gpt3-small"], "GPT-3 small, 2048 tokens", SOURCE, gpt3(12, 768, 12)),
    Named::new("gpt3-350m", &["gpt3-medium"], "GPT-3 medium, 2048 tokens", SOURCE, gpt3(24, 1024, 16)),
    Named::new("gpt3-760m", &["gpt3-large"], "GPT-3 large, 2048 tokens", SOURCE, gpt3(24, 1536, 16)),
    Named::new("gpt3-1.3b", &["gpt3-xl"], "GPT-3 XL, 2048 tokens", SOURCE, gpt3(24, 2048, 16)),
    Named::new("gpt3-2.7b", &[], "GPT-3 2.7B, 2048 tokens", SOURCE, gpt3(32, 2560, 32)),
    Named::new("gpt3-6.7b", &[], "GPT-3 6.7B, 2048 tokens", SOURCE, gpt3(32, 4096, 32)),
    Named::new("gpt3-13b", &[], "GPT-3 13B, 2048 tokens", SOURCE, gpt3(40, 5120, 40)),
    Named::new("gpt3-175b", &["gpt3"], "GPT-3 175B, 2048 tokens", SOURCE, gpt3(96, 12_288, 96)),
];
