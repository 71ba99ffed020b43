//! BERT with the head that it is trained with.

use crate::model::transformer::Transformer;

const fn bert(layers: u64, hidden: u64, heads: u64) -> Transformer {
    Transformer {
        sequence: 128,
        token_types: 2,
        embedding_norm: true,
        final_norm: false,
        head_transform: true,
        causal: false,
        ..Transformer::gpt(layers, hidden, heads, 30_522, 512)
    }
}

pub(super) const ENTRIES: &[(&str, Transformer)] =
    &[("bert-base-mlm", bert(12, 768, 12)), ("bert-large-mlm", bert(24, 1024, 16))];
