//! DeepSeek: many small experts, shared experts, latent attention.

use super::Named;
use crate::model::transformer::{Experts, Mla, Transformer};

const MOE: &str = "Dai et al. 2024, arXiv:2401.06066; configuration of the checkpoint";
const TWO: &str = "DeepSeek-AI 2024, arXiv:2405.04434; configuration of the checkpoint";
const THREE: &str = "DeepSeek-AI 2024, arXiv:2412.19437; configuration of the checkpoint, without its extra \
                     prediction layer";
const TOKENS: u64 = 4096;

/// 64 experts of 1408, two of them shared, in all layers but the first.
const SMALL: Experts =
    Experts { count: 64, active: 6, width: 1408, shared_width: 2816, dense_layers: 1, router_bias: false };

const fn latent(query_rank: u64) -> Option<Mla> {
    Some(Mla { query_rank, key_value_rank: 512, nope: 128, rope: 64, value: 128 })
}

const MOE_16B: Transformer =
    Transformer { experts: Some(SMALL), ..Transformer::llama(28, 2048, [16, 16], 10_944, 102_400, TOKENS) };

const V2_LITE: Transformer = Transformer {
    experts: Some(SMALL),
    mla: latent(0),
    ..Transformer::llama(27, 2048, [16, 16], 10_944, 102_400, TOKENS)
};

const V2: Transformer = Transformer {
    experts: Some(Experts {
        count: 160,
        active: 6,
        width: 1536,
        shared_width: 3072,
        dense_layers: 1,
        router_bias: false,
    }),
    mla: latent(1536),
    ..Transformer::llama(60, 5120, [128, 128], 12_288, 102_400, TOKENS)
};

const V3: Transformer = Transformer {
    experts: Some(Experts {
        count: 256,
        active: 8,
        width: 2048,
        shared_width: 2048,
        dense_layers: 3,
        router_bias: true,
    }),
    mla: latent(1536),
    ..Transformer::llama(61, 7168, [128, 128], 18_432, 129_280, TOKENS)
};

pub(super) const ENTRIES: &[Named] = &[
    Named::new("deepseek-moe-16b", &[], "DeepSeekMoE 16B, 6 of 64 experts, 4096 tokens", MOE, MOE_16B),
    Named::new("deepseek-v2-lite", &[], "DeepSeek V2 Lite, 6 of 64 experts, 4096 tokens", TWO, V2_LITE),
    Named::new("deepseek-v2", &[], "DeepSeek V2 236B, 6 of 160 experts, 4096 tokens", TWO, V2),
    Named::new("deepseek-v3", &["deepseek-r1"], "DeepSeek V3 671B, 8 of 256 experts, 4096 tokens", THREE, V3),
];
