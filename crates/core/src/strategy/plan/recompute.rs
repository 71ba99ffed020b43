//! Recomputation in the backward pass: its parts and layers.

use super::choices::choice;
use super::coded::{Coded, Decoded};
use crate::keys::plain;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

choice! {
    /// Part that is recomputed in the backward pass instead of being kept.
    Recompute, "string" {
        /// Nothing.
        None = "none",
        /// Outputs of norms that no product computes in its own kernel: before latent attention and before experts (Megatron-LM:
        /// module `layernorm`).
        Norms = "norms",
        /// The activation of routed experts (Megatron-LM: module `moe_act`).
        Activation = "activation",
        /// Queries, keys and values of latent attention from its narrow projections (Megatron-LM: module `mla_up_proj`).
        Projections = "projections",
        /// Scores, softmax and weighted values (Korthikanti 2022: selective).
        Attention = "attention",
        /// The MLP, or the experts with their exchange (Megatron-LM: modules `mlp` and `moe`).
        Mlp = "mlp",
        /// Every other matrix product and everything in between; attention is kept (torchtitan: selective).
        Operators = "operators",
        /// Whole layers.
        Layer = "layer",
    }
}

/// Set of recomputed parts of a layer. A whole layer includes all others, and an MLP its activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Recomputed(u8);

impl Recomputed {
    pub const NONE: Self = Self(0);

    const fn bit(part: Recompute) -> u8 {
        if matches!(part, Recompute::None) { 0 } else { 1 << part as u8 }
    }

    pub const fn has(self, part: Recompute) -> bool {
        self.0 & Self::bit(part) != 0
    }

    /// Whether it is a part of a layer.
    pub fn is_within(self) -> bool {
        self.parts().any(|part| part != Recompute::Layer)
    }

    pub fn parts(self) -> impl Iterator<Item = Recompute> {
        Recompute::ALL.iter().copied().filter(move |part| self.has(*part))
    }
}

impl FromIterator<Recompute> for Recomputed {
    fn from_iter<T: IntoIterator<Item = Recompute>>(parts: T) -> Self {
        let all = Self(parts.into_iter().fold(0, |bits, part| bits | Self::bit(part)));
        match [Recompute::Layer, Recompute::Operators].into_iter().find(|part| all.has(*part)) {
            Some(most) => Self(Self::bit(most)),
            None if all.has(Recompute::Mlp) => Self(all.0 & !Self::bit(Recompute::Activation)),
            None => all,
        }
    }
}

impl From<Recompute> for Recomputed {
    fn from(part: Recompute) -> Self {
        Self(Self::bit(part))
    }
}

impl PartialEq<Recompute> for Recomputed {
    fn eq(&self, other: &Recompute) -> bool {
        *self == Self::from(*other)
    }
}

impl std::fmt::Display for Recomputed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            0 => write!(f, "{}", Recompute::None),
            _ => f.write_str(&self.parts().map(Recompute::name).collect::<Vec<_>>().join(" and ")),
        }
    }
}

impl From<Recomputed> for String {
    fn from(own: Recomputed) -> Self {
        own.to_string()
    }
}

impl TryFrom<String> for Recomputed {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let part = |name| Recompute::named(name).ok_or_else(|| format!("`{name}` is no part of a layer"));
        text.split(" and ").map(part).collect()
    }
}

/// Recomputed parts, and in how many layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Recomputation {
    pub what: Recomputed,
    /// Number of recomputed layers of every virtual stage, from its first; none for all. The first layers go backward last,
    /// when the others are freed (the block method of Megatron-LM).
    pub layers: Option<u64>,
}

impl<T: Into<Recomputed>> From<T> for Recomputation {
    fn from(what: T) -> Self {
        Self { what: what.into(), layers: None }
    }
}

impl From<Recomputation> for Vec<Recompute> {
    fn from(recompute: Recomputation) -> Self {
        recompute.what.parts().collect()
    }
}

impl Recomputation {
    /// The number of a virtual stage's layers that it applies to.
    pub fn among(self, layers: u64) -> u64 {
        self.layers.map_or(layers, |first| first.min(layers))
    }

    /// This number for the virtual stage at `place`, from `given` if the plan gives one for each stage.
    pub fn among_at(self, place: u64, layers: u64, given: &[u64]) -> u64 {
        let own = usize::try_from(place).ok().and_then(|place| given.get(place));
        own.map_or(self.among(layers), |&own| own.min(layers))
    }

    /// Recomputation in the first layers of a virtual stage, and in the others.
    pub const fn halves(self) -> [Recomputed; 2] {
        [self.what, Recomputed::NONE]
    }
}
