//! Computing devices: a CPU or a GPU with its data sheet and the share of it that training reaches.

use super::catalog;
use super::generation::Generation;
use crate::fault::{Fault, KeyPath};
use crate::files::Files;
use crate::fitted::artefact::{self, Artefact, ArtefactKind};
use crate::fitted::machine::MachineModel;
use crate::fitted::steps::StepModel;
use crate::fitted::{EfficiencyModel, Shares};
use crate::keys::{Check, Given, NameOr, keys, plain, unordered};
use crate::precision::Precision;
use crate::quantity::{Bytes, BytesPerSec, FlopsPerSec, Hertz, Watts};
use crate::uncertain::Uncertain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// CPU or GPU; Zeng 2023 counts their rates differently (eqs. 28 and 33).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceKind {
    /// A processor; its units are cores.
    Cpu,
    /// An accelerator; its units are stream processors (CUDA cores).
    Gpu,
}

pub(super) const DEFAULT_DEVICE: &str = "tesla-v100-sxm2-16gb";

/// What transformers are trained on unless a device or a machine is given.
pub(crate) const TRANSFORMER_DEVICE: &str = "h100-sxm5";

/// Part of a GPU's memory that PyTorch reports as its total: 0.984 to 0.992 on V100, A100, H100, H200, B200 and RTX 4090.
const VISIBLE_SHARE: f64 = 0.985;

plain!(DeviceKind, "`\"cpu\"` or `\"gpu\"`");
unordered!(Device);
unordered!(FittedDevice);

keys! {
    /// A computing device.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case", deny_unknown_fields)]
    struct Device;
    /// A device that overrides a catalog entry (`base`) or defines one of its own.
    section DeviceSection, missing |key| {
        let remedy =
            format!("add `{key}`, or `base = \"{DEFAULT_DEVICE}\"` to start from a catalog entry");
        Fault::new(format!("the device has neither a `base` nor a `{key}`"), remedy)
    };
    before {
        /// Catalog entry to start from.
        base: String, "string", "–";
    }
    keys {
        /// What it is called in the output.
        name: String => String, default("custom device"), Check::Any, Resolved;
        /// CPU or GPU: Zeng 2023 counts their operations differently.
        kind: DeviceKind => DeviceKind, required, Check::Any, Resolved;
        /// Clock at which peak rates hold: the boost clock where one is stated. Over a `base`, it also scales the rates of
        /// tensor units that are not given.
        clock: Hertz => Hertz, required, Check::Positive("a frequency such as \"1.5 GHz\""), Resolved;
        /// Cores, or stream processors.
        units: u32 => u32, required, Check::Positive("the number of cores or stream processors"), Resolved;
        /// Single-precision operations of one unit in one cycle; a fused multiply-add is two.
        flops_per_cycle: f64 => f64, default(2.0), Check::Positive("a number such as 2"), Resolved;
        /// Peak TF32 rate of the tensor units, dense.
        #[serde(skip_serializing_if = "Option::is_none")]
        tf32: FlopsPerSec => FlopsPerSec, optional("none"), Check::Positive("a rate such as \"156 TFLOP/s\""), Resolved;
        /// Peak FP16 rate of the tensor units, dense.
        #[serde(skip_serializing_if = "Option::is_none")]
        fp16: FlopsPerSec => FlopsPerSec, optional("none"), Check::Positive("a rate such as \"312 TFLOP/s\""), Resolved;
        /// Peak BF16 rate of the tensor units, dense.
        #[serde(skip_serializing_if = "Option::is_none")]
        bf16: FlopsPerSec => FlopsPerSec, optional("none"), Check::Positive("a rate such as \"312 TFLOP/s\""), Resolved;
        /// Peak 8-bit floating-point rate of the tensor units, dense.
        #[serde(skip_serializing_if = "Option::is_none")]
        float8: FlopsPerSec => FlopsPerSec, optional("none"), Check::Positive("a rate such as \"1979 TFLOP/s\""), Resolved;
        /// Peak 4-bit floating-point rate of the tensor units, dense.
        #[serde(skip_serializing_if = "Option::is_none")]
        float4: FlopsPerSec => FlopsPerSec, optional("none"), Check::Positive("a rate such as \"9 PFLOP/s\""), Resolved;
        /// Device memory.
        memory: Bytes => Bytes, required, Check::Positive("a size such as \"16 GB\""), Resolved;
        /// Peak rate of the device memory.
        memory_rate: BytesPerSec => BytesPerSec, required, Check::Positive("a rate such as \"900 GB/s\""), Resolved;
        /// Rate of the link to the host, one direction: PCIe, NVLink-C2C.
        #[serde(skip_serializing_if = "Option::is_none")]
        host_link: BytesPerSec => BytesPerSec, optional("none"), Check::Positive("a rate such as \"16 GB/s\""), Resolved;
        /// Power of the board; it tells how far the clock falls under load.
        #[serde(skip_serializing_if = "Option::is_none")]
        power: Watts => Watts, optional("the clock is held"), Check::Positive("a power such as \"300 W\""), Resolved;
        /// Generation of a GPU, which tells what software reaches on it.
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Generation => Generation, optional("one without particulars"), Check::Any, Resolved;
        /// Whether GPUs of a machine copy to each other over PCIe without passing through host memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        peer_to_peer: bool => bool, optional("`true`"), Check::Any, Resolved;
        /// Share of the peak rate that training reaches, three times the forward operations being the work. Fast
        /// convolution algorithms can lift it above 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        efficiency: Uncertain<f64> => f64, optional("not measured"), Check::Positive("a share such as 0.5"), Resolved;
        /// Share of the memory rate that the work of a step on every weight reaches.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory_efficiency: Uncertain<f64> => f64, optional("not measured"), Check::Positive("a share such as 0.5"), Resolved;
        /// Artefact beside the scenario, in place of efficiencies. That of [`stepcast fit steps`](fit.md) has layer times by
        /// batch and precision, for models, not profiles, and not for `zeng2023`, which keeps its own formulas; that of
        /// [`stepcast fit efficiency`](fit.md) has shares of this device's rates, by precision; that of
        /// [`stepcast fit machine`](fit.md) has what the parts of transformers reach, and names the device itself where there
        /// is no `base`.
        #[serde(skip)]
        fitted: String => FittedDevice, optional("none"), Check::Any, Resolved;
        /// Where the figures come from.
        source: String => String, default("scenario"), Check::Any, Resolved;
    }
}

impl Given<Device> for NameOr<DeviceSection> {
    fn written() -> String {
        "name or table".to_owned()
    }

    fn resolve(self, files: &dyn Files) -> Result<Device, Fault> {
        let mut section = match self {
            Self::Name(id) => return catalog::device(&id),
            Self::Table(section) => *section,
        };
        let mut base = match (section.base.take(), &section.fitted) {
            (Some(id), _) => Some(catalog::device(&id).map_err(|fault| fault.below(KeyPath::of("base")))?),
            (None, Some(path)) => measured_on(path, files)?,
            (None, None) => None,
        };
        if let (Some(base), Some(clock)) = (&mut base, section.clock) {
            base.run_at(clock);
        }
        section.fill(base.as_ref(), files)
    }

    fn write(device: &Device) -> Self {
        Self::Table(Box::new(device.section()))
    }
}

/// The device of the catalog on which the machine of an artefact was measured; none for artefacts of other kinds, and where
/// the file cannot be read, which its own key reports.
fn measured_on(path: &str, files: &dyn Files) -> Result<Option<Device>, Fault> {
    match artefact::load(path, files) {
        Ok(Artefact::Machine(model)) => {
            catalog::device(&model.device).map(Some).map_err(|fault| fault.below(KeyPath::of("fitted")))
        }
        _ => Ok(None),
    }
}

impl Given<FittedDevice> for String {
    fn written() -> String {
        "path".to_owned()
    }

    fn resolve(self, files: &dyn Files) -> Result<FittedDevice, Fault> {
        let model = match artefact::load(&self, files)? {
            Artefact::Steps(model) => FittedModel::Steps(model.into()),
            Artefact::Efficiency(model) => FittedModel::Efficiency(Arc::new(model)),
            Artefact::Machine(model) => FittedModel::Machine(model.into()),
            other => {
                let wanted = [ArtefactKind::Steps, ArtefactKind::Efficiency, ArtefactKind::Machine];
                return Err(artefact::unwanted(&self, other.kind(), &wanted));
            }
        };
        Ok(FittedDevice { path: self, model })
    }

    fn write(fitted: &FittedDevice) -> Self {
        fitted.path.clone()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct FittedDevice {
    pub path: String,
    pub model: FittedModel,
}

#[derive(Debug, Clone, PartialEq)]
pub enum FittedModel {
    Steps(Arc<StepModel>),
    Efficiency(Arc<EfficiencyModel>),
    /// What parts of transformers reach, and step times if they were measured too.
    Machine(Arc<MachineModel>),
}

impl Device {
    pub fn steps(&self) -> Option<&StepModel> {
        match &self.fitted.as_ref()?.model {
            FittedModel::Steps(model) => Some(model),
            FittedModel::Efficiency(_) => None,
            FittedModel::Machine(model) => model.steps.as_ref(),
        }
    }

    pub fn measured(&self) -> Option<&MachineModel> {
        match &self.fitted.as_ref()?.model {
            FittedModel::Machine(model) => Some(model),
            FittedModel::Steps(_) | FittedModel::Efficiency(_) => None,
        }
    }

    /// Fitted shares of the device's rates.
    pub fn shares(&self, precision: Precision) -> Option<&Shares> {
        match &self.fitted.as_ref()?.model {
            FittedModel::Efficiency(model) => model.precision.get(&precision),
            FittedModel::Steps(_) | FittedModel::Machine(_) => None,
        }
    }

    /// Memory that frameworks see: the driver keeps a part of a GPU's.
    pub fn visible_memory(&self) -> Bytes {
        match self.kind {
            DeviceKind::Cpu => self.memory,
            DeviceKind::Gpu => self.memory * VISIBLE_SHARE,
        }
    }

    /// The same figures as a section of a scenario for another device of this name, whose source is to be stated.
    #[must_use]
    pub fn described(&self, name: &str) -> DeviceSection {
        let source = "TODO: data sheet".to_owned();
        Self { name: name.to_owned(), source, ..self.clone() }.section()
    }

    /// Whether GPUs of a machine copy to each other over PCIe without passing through host memory.
    pub fn peer_to_peer(&self) -> bool {
        self.peer_to_peer.unwrap_or(true)
    }

    /// Sets another clock, at which all units are faster or slower by the same factor.
    fn run_at(&mut self, clock: Hertz) {
        let faster = clock.get() / self.clock.get();
        if faster.is_finite() && faster > 0.0 {
            for rate in [&mut self.tf32, &mut self.fp16, &mut self.bf16, &mut self.float8, &mut self.float4] {
                *rate = rate.map(|rate| rate * faster);
            }
            self.clock = clock;
        }
    }

    /// Peak single-precision rate: clock × units × operations per cycle.
    pub fn fp32_peak(&self) -> FlopsPerSec {
        self.clock.at(f64::from(self.units) * self.flops_per_cycle)
    }

    /// Peak rate in `precision`, if the device supports it. In mixed precision, a device without a rate in the 16-bit
    /// format computes at its FP32 rate and stores 16 bits.
    pub fn peak(&self, precision: Precision) -> Option<FlopsPerSec> {
        match precision {
            Precision::Fp32 => Some(self.fp32_peak()),
            Precision::Tf32 => self.tf32,
            Precision::Fp16 => self.fp16,
            Precision::Bf16 => self.bf16,
            Precision::AmpFp16 => Some(self.fp16.unwrap_or_else(|| self.fp32_peak())),
            Precision::AmpBf16 => Some(self.bf16.unwrap_or_else(|| self.fp32_peak())),
        }
    }
}
