//! A machine of one's own, as `kit/machine.py` measures it: what the parts of transformers reach on its device, whole steps of
//! other networks, and times of collectives.

use super::collectives::Entry;
use super::steps::StepModel;
use crate::precision::Precision;
use crate::prior::{Priors, Transformers};
use crate::quantity::{BytesPerSec, FlopsPerSec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the parts of transformers reach on one device: the constants of `[transformer]` in `catalog/priors.toml`, those of
/// its generation without their ending.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Reached {
    /// Share of the peak rate that large products reach, at the clock that the power limit allows.
    pub product: f64,
    /// Rate of a device that does not rest against one that has rested before.
    pub sustained: f64,
    /// Depth of products whose time it takes to fill and empty a tile.
    pub depth: f64,
    /// Slowness of a tile with twice the loaded bytes for each operation.
    pub tile: f64,
    /// Share of the last wave of tiles that counts as if it were full.
    pub wave: f64,
    /// Share of the peak rate that flash attention reaches forward, with heads of 128.
    pub flash: f64,
    /// The same backward.
    pub flash_back: f64,
    /// Width of a head below which flash attention is slow.
    pub head: f64,
    /// Keys on the diagonal that flash attention computes although they are masked.
    pub diagonal: f64,
    /// Share of the memory rate of long copies.
    pub memory: f64,
    /// Share of the memory rate of element-wise passes and norms.
    pub pass: f64,
    /// Share of the memory rate of a fused update.
    pub update: f64,
    /// Start and tail of a kernel, s.
    pub kernel: f64,
    /// Host time of a kernel in eager software, s.
    pub host: f64,
    /// Kernels outside of layers.
    pub outside: f64,
    /// Host time to compute a layer again, beside its kernels, s.
    pub checkpoint: f64,
}

/// Number of constants in [`Reached`].
pub const REACHED: usize = 16;

impl Reached {
    /// The names of all constants, in the order of [`Self::to_array`].
    pub const NAMES: [&'static str; REACHED] = [
        "product",
        "sustained",
        "depth",
        "tile",
        "wave",
        "flash",
        "flash-back",
        "head",
        "diagonal",
        "memory",
        "pass",
        "update",
        "kernel",
        "host",
        "outside",
        "checkpoint",
    ];

    /// All constants.
    pub fn to_array(self) -> [f64; REACHED] {
        let Self { product, sustained, depth, tile, wave, flash, flash_back, head, diagonal, .. } = self;
        let Self { memory, pass, update, kernel, host, outside, checkpoint, .. } = self;
        [
            product, sustained, depth, tile, wave, flash, flash_back, head, diagonal, memory, pass, update,
            kernel, host, outside, checkpoint,
        ]
    }

    /// From all constants.
    pub fn from_array(values: [f64; REACHED]) -> Self {
        let [
            product,
            sustained,
            depth,
            tile,
            wave,
            flash,
            flash_back,
            head,
            diagonal,
            memory,
            pass,
            update,
            kernel,
            host,
            outside,
            checkpoint,
        ] = values;
        Self {
            product,
            sustained,
            depth,
            tile,
            wave,
            flash,
            flash_back,
            head,
            diagonal,
            memory,
            pass,
            update,
            kernel,
            host,
            outside,
            checkpoint,
        }
    }

    /// `assumed` with these constants in the place of those of `shipped`. Where constants of `assumed` were moved by a
    /// factor against `shipped`, the result is moved by it too.
    pub fn in_place_of(&self, shipped: &Transformers, assumed: &Transformers) -> Transformers {
        let put = |measured: f64, of: fn(&Transformers) -> f64| of(assumed) * (measured / of(shipped));
        Transformers {
            product_ampere: put(self.product, |c| c.product_ampere),
            product_hopper: put(self.product, |c| c.product_hopper),
            product_blackwell: put(self.product, |c| c.product_blackwell),
            product_other: put(self.product, |c| c.product_other),
            sustained: put(self.sustained, |c| c.sustained),
            depth: put(self.depth, |c| c.depth),
            tile: put(self.tile, |c| c.tile),
            wave: put(self.wave, |c| c.wave),
            flash: put(self.flash, |c| c.flash),
            flash_ampere: put(self.flash, |c| c.flash_ampere),
            flash_back: put(self.flash_back, |c| c.flash_back),
            flash_back_ampere: put(self.flash_back, |c| c.flash_back_ampere),
            head: put(self.head, |c| c.head),
            diagonal: put(self.diagonal, |c| c.diagonal),
            memory: put(self.memory, |c| c.memory),
            pass: put(self.pass, |c| c.pass),
            pass_ampere: put(self.pass, |c| c.pass_ampere),
            update: put(self.update, |c| c.update),
            kernel: put(self.kernel, |c| c.kernel),
            host: put(self.host, |c| c.host),
            outside: put(self.outside, |c| c.outside),
            checkpoint: put(self.checkpoint, |c| c.checkpoint),
            ..*assumed
        }
    }
}

/// How far predictions by measured constants are off: standard deviations of logarithms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Uncertainty {
    /// Whole families of measurements, predicted without them: by the group of priors to which their constants belong.
    pub groups: BTreeMap<String, f64>,
    /// Of single steps beside that.
    pub residual: f64,
    /// Families of steps.
    pub families: u32,
    /// Steps.
    pub rows: u32,
}

/// A measured machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MachineModel {
    /// Entry of the catalog to whose rates the shares refer.
    pub device: String,
    /// Number format of the products.
    pub precision: Precision,
    /// Peak rate to which shares refer.
    pub peak: FlopsPerSec,
    /// Memory rate to which shares refer.
    pub memory_rate: BytesPerSec,
    /// What transformers reach.
    pub transformer: Reached,
    /// How far predictions are off.
    pub uncertainty: Uncertainty,
    /// Times of collectives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<Entry>,
    /// Whole steps of convolutional networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<StepModel>,
}

impl MachineModel {
    pub(crate) fn check(&self) -> Result<(), String> {
        let values = self.transformer.to_array();
        if let Some(place) = values.iter().position(|value| !(value.is_finite() && *value > 0.0)) {
            return Err(format!("`{}` is not positive", Reached::NAMES[place]));
        }
        let spreads = self.uncertainty.groups.values().chain([&self.uncertainty.residual]);
        if spreads.into_iter().any(|spread| !(spread.is_finite() && *spread >= 0.0)) {
            return Err("an uncertainty is negative".to_owned());
        }
        self.steps.as_ref().map_or(Ok(()), StepModel::check)
    }

    /// `assumed` with the measured constants; [`Reached::in_place_of`] the shipped ones.
    pub fn measured(&self, assumed: &Transformers) -> Transformers {
        match Priors::shipped() {
            Ok(shipped) => self.transformer.in_place_of(&shipped.transformer, assumed),
            Err(_) => *assumed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reached() -> Reached {
        Reached::from_array(std::array::from_fn(|place| 0.5 + place as f64))
    }

    #[test]
    fn arrays_have_the_order_of_names() {
        let text = toml::to_string(&reached()).unwrap();
        let table: toml::Table = text.parse().unwrap();
        let listed = Reached::NAMES.map(|name| table[name].as_float().unwrap());
        assert_eq!(listed.map(f64::to_bits), reached().to_array().map(f64::to_bits));
    }

    #[test]
    fn measured_constants_replace_assumed_ones_and_move_as_they_do() {
        let priors = Priors::shipped().unwrap();
        let now = reached().in_place_of(&priors.transformer, &priors.transformer);
        assert!((now.product_hopper - 0.5).abs() < 1e-12 && (now.product_ampere - 0.5).abs() < 1e-12);
        assert!((now.checkpoint - 15.5).abs() < 1e-12);
        assert_eq!(now.nvlink.to_bits(), priors.transformer.nvlink.to_bits());
        let group = priors.groups.iter().position(|group| group.name == "rate of products").unwrap();
        let moved = reached().in_place_of(&priors.transformer, &priors.moved(group, 0.1).transformer);
        assert!((moved.product_hopper / now.product_hopper - 0.1_f64.exp()).abs() < 1e-12);
        assert!((moved.depth / now.depth - (-0.1_f64).exp()).abs() < 1e-12);
        assert!((moved.pass / now.pass - 1.0).abs() < 1e-12);
    }
}
