//! A user's machine, as `kit/machine.py` measures it: achieved rates of the parts of transformers on its device, whole steps
//! of other networks, and times of collectives.

use super::collectives::CollectiveTimes;
use super::steps::StepModel;
use crate::keys::kebab;
use crate::precision::Precision;
use crate::quantity::{BytesPerSec, FlopsPerSec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a measured constant depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// The device: one value is fitted.
    Device,
    /// The implementation of attention too: one value is fitted for PyTorch's choice, one for flash attention.
    Attention,
}

/// One constant that is measured: a row of [`CONSTANTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConstantRow {
    /// Its name in Rust, which is its name in `[transformer]` of `catalog/priors.toml` without the ending of a generation.
    pub name: &'static str,
    pub decided_by: Decides,
    pub unit: &'static str,
    pub meaning: &'static str,
}

macro_rules! measured_constants {
    ($($name:ident: $decides:ident, $unit:literal, $meaning:literal;)*) => {
        /// All measured constants.
        pub const CONSTANTS: [ConstantRow; [$($unit),*].len()] = [$(ConstantRow {
            name: stringify!($name),
            decided_by: Decides::$decides,
            unit: $unit,
            meaning: $meaning,
        },)*];

        /// Constants of the parts of transformers on one device.
        #[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", deny_unknown_fields)]
        pub struct MeasuredConstants {
            $(#[doc = $meaning] pub $name: f64,)*
        }

        impl MeasuredConstants {
            /// The values in the order of [`CONSTANTS`].
            pub fn to_array(self) -> [f64; CONSTANTS.len()] {
                [$(self.$name),*]
            }

            /// From values in the order of [`CONSTANTS`].
            pub fn from_array([$($name),*]: [f64; CONSTANTS.len()]) -> Self {
                Self { $($name),* }
            }
        }
    };
}

measured_constants! {
    product: Device, "share", "share of the peak rate that large products reach, at the clock that the power limit allows";
    sustained: Device, "factor", "rate under load against the rate after a rest";
    depth: Device, "elements", "depth of products that takes as long as to fill and empty a tile";
    tile: Device, "factor", "slowdown of a tile that loads twice the bytes per operation";
    wave: Device, "share", "share of the last wave of tiles that counts as if it were full";
    flash: Attention, "share", "share of the peak rate that attention reaches forward, with heads of 128";
    flash_back: Attention, "share", "the same backward";
    head: Attention, "elements", "width of a head below which attention is slow";
    diagonal: Attention, "keys", "keys on the diagonal that attention computes although they are masked";
    memory: Device, "share", "share of the memory rate of long copies";
    pass: Device, "share", "share of the memory rate of element-wise passes and norms";
    update: Device, "share", "share of the memory rate of a fused update";
    kernel: Device, "s", "start and tail of a kernel";
    host: Device, "s", "host time of a kernel in eager software";
    outside: Device, "kernels", "kernels outside of layers";
    checkpoint: Device, "s", "host time to compute a layer again, beside its kernels";
}

impl MeasuredConstants {
    pub fn get(&self, name: &str) -> Option<f64> {
        let place = CONSTANTS.iter().position(|row| row.name == name)?;
        Some(self.to_array()[place])
    }
}

/// How far predictions by measured constants are off: standard deviations of logarithms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Uncertainty {
    /// Whole families of measurements, predicted without them: by the group of priors to which their constants belong.
    pub groups: BTreeMap<String, f64>,
    /// Further deviation of single steps.
    pub residual: f64,
    /// Families of steps.
    pub families: u32,
    /// Steps.
    pub rows: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MachineModel {
    /// Entry of the catalog to whose rates the shares refer.
    pub device: String,
    pub precision: Precision,
    /// Peak rate to which shares refer.
    pub peak: FlopsPerSec,
    /// Memory rate to which shares refer.
    pub memory_rate: BytesPerSec,
    pub transformer: MeasuredConstants,
    /// How far predictions are off.
    pub uncertainty: Uncertainty,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<CollectiveTimes>,
    /// Whole steps of convolutional networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepModel>,
}

impl MachineModel {
    pub(crate) fn check(&self) -> Result<(), String> {
        let bad = |value: &f64| !(value.is_finite() && *value > 0.0);
        if let Some(place) = self.transformer.to_array().iter().position(bad) {
            return Err(format!("`{}` is not positive", kebab(CONSTANTS[place].name)));
        }
        let spreads = self.uncertainty.groups.values().chain([&self.uncertainty.residual]);
        if spreads.into_iter().any(|spread| !(spread.is_finite() && *spread >= 0.0)) {
            return Err("an uncertainty is negative".to_owned());
        }
        self.steps.as_ref().map_or(Ok(()), StepModel::check)
    }
}
