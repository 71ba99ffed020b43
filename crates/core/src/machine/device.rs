//! What computes: a CPU or a GPU, by its data sheet and by how much of it training reaches.

use crate::fitted::efficiency::{EfficiencyModel, Shares};
use crate::fitted::steps::StepModel;
use crate::precision::Precision;
use crate::quantity::{Bytes, BytesPerSec, FlopsPerSec, Hertz};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// CPU or GPU: they differ in how Zeng 2023 counts their rate (eqs. 28 and 33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A processor; its units are cores.
    Cpu,
    /// An accelerator; its units are stream processors (CUDA cores).
    Gpu,
}

/// A computing device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Device {
    /// Full name, as its maker writes it.
    pub name: String,
    /// CPU or GPU.
    pub kind: DeviceKind,
    /// Clock at which the peak rate holds (the boost clock where one is stated).
    pub clock: Hertz,
    /// Cores or stream processors.
    pub units: u32,
    /// Single-precision operations of one unit in one cycle; a fused multiply-add is two.
    pub flops_per_cycle: f64,
    /// Peak TF32 rate of the tensor units, dense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tf32: Option<FlopsPerSec>,
    /// Peak FP16 rate of the tensor units, dense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fp16: Option<FlopsPerSec>,
    /// Peak BF16 rate of the tensor units, dense.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bf16: Option<FlopsPerSec>,
    /// Device memory.
    pub memory: Bytes,
    /// Peak rate of the device memory.
    pub memory_rate: BytesPerSec,
    /// Rate of the link to the host, one direction (PCIe, NVLink-C2C); none for a CPU.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_link: Option<BytesPerSec>,
    /// Share of the peak rate that training reaches, three times the forward operations being the
    /// work. Fast convolution algorithms can lift it above 1. Absent: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<f64>,
    /// Share of the memory rate that the per-step work on every weight reaches. Absent: not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_efficiency: Option<f64>,
    /// What was fitted to measured steps; goes before efficiencies.
    #[serde(skip)]
    pub fitted: Option<FittedDevice>,
    /// Where the figures come from.
    pub source: String,
}

/// A device's fitted artefact.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedDevice {
    /// The file it came from.
    pub path: String,
    /// What was fitted.
    pub model: FittedModel,
}

/// What can be fitted for a device.
#[derive(Debug, Clone, PartialEq)]
pub enum FittedModel {
    /// Times of steps, layer by layer.
    Steps(Arc<StepModel>),
    /// Shares of its rates.
    Efficiency(Arc<EfficiencyModel>),
}

impl Device {
    /// Fitted times of steps.
    pub fn steps(&self) -> Option<&StepModel> {
        match &self.fitted.as_ref()?.model {
            FittedModel::Steps(model) => Some(model),
            FittedModel::Efficiency(_) => None,
        }
    }

    /// Fitted shares of its rates.
    pub fn shares(&self, precision: Precision) -> Option<&Shares> {
        match &self.fitted.as_ref()?.model {
            FittedModel::Steps(_) => None,
            FittedModel::Efficiency(model) => model.precision.get(&precision),
        }
    }

    /// Peak single-precision rate: clock × units × operations per cycle.
    pub fn fp32_peak(&self) -> FlopsPerSec {
        self.clock.at(f64::from(self.units) * self.flops_per_cycle)
    }

    /// Peak rate in `precision`, where the device has it.
    pub fn peak(&self, precision: Precision) -> Option<FlopsPerSec> {
        match precision {
            Precision::Fp32 => Some(self.fp32_peak()),
            Precision::Tf32 => self.tf32,
            Precision::Fp16 => self.fp16,
            Precision::Bf16 => self.bf16,
        }
    }
}
