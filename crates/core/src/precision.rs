//! Number formats of the arithmetic.

use crate::keys::{plain, with_aliases};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Number format of the matrix arithmetic.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
#[schemars(transform = with_aliases::<Precision>)]
pub enum Precision {
    /// 32-bit floating point without tensor cores.
    #[default]
    #[serde(alias = "float32")]
    Fp32,
    /// 32-bit storage with 10-bit mantissas in the tensor cores.
    Tf32,
    /// 16-bit IEEE floating point in the tensor cores.
    #[serde(alias = "float16", alias = "half")]
    Fp16,
    /// 16-bit brain floating point in the tensor cores.
    #[serde(alias = "bfloat16")]
    Bf16,
    /// Automatic mixed precision: weights in 32 bits, cast to 16-bit IEEE floating point for products.
    #[serde(alias = "amp", alias = "mixed")]
    AmpFp16,
    /// Automatic mixed precision with 16-bit brain floating point.
    AmpBf16,
}

impl Precision {
    /// Whether weights are stored in 32 bits and cast for products.
    pub const fn is_mixed(self) -> bool {
        matches!(self, Self::AmpFp16 | Self::AmpBf16)
    }

    /// Number format of products.
    #[must_use]
    pub fn of_products(self) -> Self {
        match self {
            Self::AmpFp16 => Self::Fp16,
            Self::AmpBf16 => Self::Bf16,
            own => own,
        }
    }

    /// Bytes of an activation.
    pub fn width(self) -> u32 {
        match self.of_products() {
            Self::Fp16 | Self::Bf16 => 2,
            _ => 4,
        }
    }
}

crate::variant_names!(Precision {
    Fp32 = "fp32",
    Tf32 = "tf32",
    Fp16 = "fp16",
    Bf16 = "bf16",
    AmpFp16 = "amp-fp16",
    AmpBf16 = "amp-bf16",
});

plain!(
    Precision,
    "`\"fp32\"`, `\"tf32\"`, `\"fp16\"`, `\"bf16\"`, `\"amp-fp16\"` (also `\"amp\"`) or `\"amp-bf16\"`"
);
