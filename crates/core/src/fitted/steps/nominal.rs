//! Nominal rates that define the features.

use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec};
use serde::{Deserialize, Serialize};

/// Rates close to a device's data sheet. They only serve as units: the coefficients express the share that is
/// reached.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Nominal {
    /// Peak rate in 32 bits.
    pub fp32: FlopsPerSec,
    /// Peak rate in 16 bits, on the tensor cores.
    pub bf16: FlopsPerSec,
    /// Rate of the memory.
    pub memory: BytesPerSec,
    /// Number of units that each run one block of a kernel at a time.
    pub multiprocessors: u32,
}

impl Nominal {
    /// Rates from the H200's data sheet, with memory at five sixths of the printed rate. They only serve as units:
    /// the coefficients absorb any error in them.
    pub fn h200() -> Self {
        Self {
            fp32: FlopsPerSec::new(67e12),
            bf16: FlopsPerSec::new(989e12),
            memory: BytesPerSec::new(4e12),
            multiprocessors: 132,
        }
    }

    /// Peak rate in a number format.
    pub fn peak(&self, precision: Precision) -> FlopsPerSec {
        if precision.width() == 2 { self.bf16 } else { self.fp32 }
    }
}
