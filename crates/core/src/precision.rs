//! Number formats of the arithmetic.

use crate::keys::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Number format of the matrix arithmetic.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// 32-bit floating point without tensor cores.
    #[default]
    Fp32,
    /// 32-bit storage with 10-bit mantissas in the tensor cores.
    Tf32,
    /// 16-bit IEEE floating point in the tensor cores.
    Fp16,
    /// 16-bit brain floating point in the tensor cores.
    Bf16,
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Fp16 => "fp16",
            Self::Bf16 => "bf16",
        })
    }
}

plain!(Precision, "`\"fp32\"`, `\"tf32\"`, `\"fp16\"` or `\"bf16\"`");
