//! Computing devices: a CPU or a GPU with its data sheet and the share of it that training reaches; generations of devices.

use super::catalog;
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

/// Default device for training transformers.
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
    /// A device that overrides a catalog entry (`base`) or defines a new one.
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
        /// Power of the board, which determines how far the clock falls under load.
        #[serde(skip_serializing_if = "Option::is_none")]
        power: Watts => Watts, optional("the clock is held"), Check::Positive("a power such as \"300 W\""), Resolved;
        /// Generation of a GPU, which determines the rates that software reaches on it.
        #[serde(skip_serializing_if = "Option::is_none")]
        generation: Generation => Generation, optional("one without particulars"), Check::Any, Resolved;
        /// Whether GPUs of a machine copy to each other over PCIe without passing through host memory.
        #[serde(skip_serializing_if = "Option::is_none")]
        peer_to_peer: bool => bool, optional("`true`"), Check::Any, Resolved;
        /// Share of the peak rate that training reaches, counting three times the forward operations. Fast
        /// convolution algorithms can lift it above 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        efficiency: Uncertain<f64> => f64, optional("not measured"), Check::Positive("a share such as 0.5"), Resolved;
        /// Share of the memory rate that the work of a step on every weight reaches.
        #[serde(skip_serializing_if = "Option::is_none")]
        memory_efficiency: Uncertain<f64> => f64, optional("not measured"), Check::Positive("a share such as 0.5"), Resolved;
        /// Artefact beside the scenario, in place of efficiencies. [`stepcast fit steps`](fit.md) gives layer times by
        /// batch and precision, for models, not profiles, and not for `zeng2023`, which keeps its own formulas;
        /// [`stepcast fit efficiency`](fit.md) gives shares of this device's rates, by precision;
        /// [`stepcast fit machine`](fit.md) gives achieved rates of the parts of transformers, and names the device itself where
        /// there is no `base`.
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
    /// Achieved rates of the parts of transformers, and step times if they were measured too.
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

    /// These figures as a section of a scenario for another device of this name, whose source the user has to state.
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
        // The FP32 peak of CDNA is the peak of its matrix units, twice the peak of its ordinary ones.
        let ordinary = if generation == Generation::Cdna { 0.5 } else { 1.0 } * self.fp32_peak().get();
        (power.get() / (ordinary / 1e12) / generation.full_power()).min(1.0)
    }

    /// The throttle for tensor units of rate `peak`. Blackwell's tensor units reach their peak at no board's power: with more
    /// power they are faster than on the B200, whose 1000 W are for 2250 TFLOP/s. Hopper's board of full power is the H100 SXM5 with
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
