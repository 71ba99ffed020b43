//! Generations of GPUs: what their data sheets leave out.

use super::Device;
use crate::keys::plain;
use crate::quantity::FlopsPerSec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Generation of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Generation {
    /// NVIDIA, 2012: K20X, K80.
    Kepler,
    /// NVIDIA, 2014: Titan X.
    Maxwell,
    /// NVIDIA, 2016: P100, GTX 1080.
    Pascal,
    /// NVIDIA, 2017: V100.
    Volta,
    /// NVIDIA, 2018: T4, RTX 2080.
    Turing,
    /// NVIDIA, 2020: A100.
    Ampere,
    /// NVIDIA, 2020: A10, RTX 3090, with twice the FP32 units of the A100 in each multiprocessor.
    Ga10x,
    /// NVIDIA, 2022: L4, RTX 4090.
    Ada,
    /// NVIDIA, 2022: H100, H200.
    Hopper,
    /// NVIDIA, 2024: B200.
    Blackwell,
    /// NVIDIA, 2025: RTX 5090.
    Gb20x,
    /// AMD, 2020: Instinct MI100 to MI355X.
    Cdna,
    /// AMD, 2019: Radeon RX 5000 and later.
    Rdna,
    /// Intel, 2022: Gaudi 2, Gaudi 3.
    Gaudi,
    /// Google, 2021: TPU v4 to v7.
    Tpu,
    /// Amazon, 2024: Trainium 2.
    Trainium,
}

plain!(Generation, "name");

impl Generation {
    /// Whether its multiprocessors have twice the FP32 units behind the registers and issue slots of earlier ones.
    pub fn is_dual(self) -> bool {
        matches!(self, Self::Ga10x | Self::Ada | Self::Hopper | Self::Blackwell | Self::Gb20x)
    }

    pub fn is_amd(self) -> bool {
        matches!(self, Self::Cdna | Self::Rdna)
    }

    /// Whether systolic arrays compute products, and vector units beside them everything else.
    pub fn is_systolic(self) -> bool {
        matches!(self, Self::Gaudi | Self::Tpu | Self::Trainium)
    }

    /// Board power of its full-power board for each TFLOP/s of its ordinary units in FP32, in watts: data sheets of
    /// K80, Titan X, GTX 1080 Ti, V100 SXM2, RTX 2080 Ti, A100 SXM4, RTX 3090, RTX 4090, RTX 5090, H100 SXM5, B200,
    /// MI100, RX 7800 XT, as research/priors/devices.py rounds them, Gaudi 3 and TPU v4.
    fn full_power(self) -> f64 {
        match self {
            Self::Kepler => 30.0,
            Self::Maxwell => 37.0,
            Self::Pascal => 22.0,
            Self::Volta | Self::Ampere => 19.0,
            Self::Turing => 18.0,
            Self::Ga10x => 9.8,
            Self::Ada | Self::Gb20x => 5.4,
            Self::Hopper => 10.4,
            Self::Blackwell | Self::Cdna => 13.0,
            Self::Rdna => 7.0,
            Self::Gaudi => 62.0,
            Self::Tpu | Self::Trainium => 22.0,
        }
    }
}

impl Device {
    /// Rate of 64 multiply-adds per cycle and multiprocessor, for which registers and shared memory are built in every
    /// generation: the FP32 peak, or half of it where FP32 units are doubled (dual units, the matrix units of CDNA,
    /// the dual issue of RDNA 3). Systolic arrays have no such units beside them: the ratio of the A100 is assumed, a
    /// sixteenth of the 16-bit rate.
    pub fn lane_rate(&self) -> FlopsPerSec {
        if let Some(matrix) = self.bf16.filter(|_| self.generation.is_some_and(Generation::is_systolic)) {
            return matrix * (1.0 / 16.0);
        }
        let doubled = self.generation.is_some_and(|own| own.is_dual() || own == Generation::Cdna);
        let halved = doubled || (self.flops_per_cycle - 4.0).abs() < f64::EPSILON;
        if halved { self.fp32_peak() * 0.5 } else { self.fp32_peak() }
    }

    /// Number of multiprocessors: those that reach the lane rate at the device's clock.
    pub fn multiprocessors(&self) -> f64 {
        (self.lane_rate().get() / (2.0 * 64.0 * self.clock.get())).round().max(1.0)
    }

    /// Power of the board per FP32 rate, against that of the full-power board of its generation; 1 at most, and 1 if
    /// the power is not known.
    pub fn throttle(&self) -> f64 {
        let (Some(power), Some(generation)) = (self.power, self.generation) else { return 1.0 };
        // The FP32 peak of CDNA is that of its matrix units, twice that of its ordinary ones.
        let ordinary = if generation == Generation::Cdna { 0.5 } else { 1.0 } * self.fp32_peak().get();
        (power.get() / (ordinary / 1e12) / generation.full_power()).min(1.0)
    }

    /// The same for tensor units of rate `peak`. Those of Blackwell reach their peak at no board's power: more of it makes
    /// them faster than on the B200, whose 1000 W are for 2250 TFLOP/s. Hopper's board of full power is the H100 SXM5 with
    /// 700 W for 989 TFLOP/s: the H20, with a sixth of its tensor units, is never slowed. Systolic arrays hold their clock.
    pub fn tensor_throttle(&self, peak: FlopsPerSec) -> f64 {
        match (self.generation, self.power) {
            (Some(Generation::Blackwell), Some(power)) => {
                power.get() / (peak.get() / 1e12) / (1000.0 / 2250.0)
            }
            (Some(Generation::Hopper), Some(power)) => {
                (power.get() / (peak.get() / 1e12) / (700.0 / 989.4)).min(1.0)
            }
            (Some(own), _) if own.is_systolic() => 1.0,
            _ => self.throttle(),
        }
    }
}
