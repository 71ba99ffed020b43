//! The rates that features are measured in.

use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec};
use serde::{Deserialize, Serialize};

/// Rates near a device's data sheet. They are units: what is reached of them is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nominal {
    /// In 32 bits.
    pub fp32: FlopsPerSec,
    /// In 16 bits, on the tensor units.
    pub bf16: FlopsPerSec,
    /// Of the memory.
    pub memory: BytesPerSec,
    /// Units that run one block of a kernel at a time.
    pub multiprocessors: u32,
}

impl Nominal {
    /// Those of the H200's data sheet, its memory at five sixths of the printed rate. They are units: an error in them
    /// is absorbed by the coefficients.
    pub fn h200() -> Self {
        Self {
            fp32: FlopsPerSec::new(67e12),
            bf16: FlopsPerSec::new(989e12),
            memory: BytesPerSec::new(4e12),
            multiprocessors: 132,
        }
    }

    /// Of a number format.
    pub fn peak(&self, precision: Precision) -> FlopsPerSec {
        match precision {
            Precision::Fp32 | Precision::Tf32 => self.fp32,
            Precision::Fp16 | Precision::Bf16 => self.bf16,
        }
    }
}
