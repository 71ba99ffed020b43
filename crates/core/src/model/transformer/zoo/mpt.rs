//! MPT: biases of attention in place of positions, no biases of matrices and norms.

use super::Named;
use crate::model::transformer::{NormKind, Transformer};

const SOURCE: &str = "MosaicML 2023, MPT-7B and MPT-30B; configurations of the checkpoints";

const fn mpt(layers: u64, hidden: u64, heads: u64, sequence: u64) -> Transformer {
    Transformer {
        norm: NormKind::LayerNoBias,
        bias: false,
        qkv_bias: false,
        positions: 0,
        ..Transformer::gpt(layers, hidden, heads, 50_432, sequence)
    }
}

pub(super) const ENTRIES: &[Named] = &[
    Named::new("mpt-7b", &[], "MPT 7B, 2048 tokens", SOURCE, mpt(32, 4096, 32, 2048)),
    Named::new("mpt-30b", &[], "MPT 30B, 8192 tokens", SOURCE, mpt(48, 7168, 64, 8192)),
];
