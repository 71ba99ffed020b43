//! How wide numbers are that PyTorch keeps between layers and for norms.

use super::MemoryInputs;
use stepcast_core::model::transformer::{Modules, NormKind};
use stepcast_core::strategy::{Implementation, States};

/// Whether weights are held in 32 bits and cast for every step; sharded ones are gathered in 16 bits instead, and frozen ones
/// beside adapters are held in 16.
pub(super) fn is_autocast(held: &MemoryInputs<'_>) -> bool {
    held.states == States::Fp32 && held.choice.sharding.stage() < 3 && held.shape.trains_matrices()
}

/// Bytes of a number between layers.
pub(super) fn stream_width(held: &MemoryInputs<'_>) -> f64 {
    if is_autocast(held) { 4.0 } else { 2.0 }
}

/// Bytes that a norm keeps for a number of its input.
pub(super) fn norm_width(held: &MemoryInputs<'_>) -> f64 {
    match (held.plan.implemented_by(), held.shape.norm) {
        (Implementation::HuggingFace, NormKind::Rms)
            if held.shape.sandwich || is_autocast(held) || held.shape.modules == Modules::T5 =>
        {
            8.0
        }
        (Implementation::HuggingFace, NormKind::Rms) => 6.0,
        _ => stream_width(held),
    }
}

/// Elements of the embedding or of the output layer on one rank.
pub(super) fn vocabulary_matrix(held: &MemoryInputs<'_>) -> f64 {
    (held.shape.vocabulary * held.shape.hidden) as f64 / held.split().tensor as f64
}

/// The 16-bit copy of the output layer under autocast.
pub(super) fn output_copy(held: &MemoryInputs<'_>) -> f64 {
    if is_autocast(held) { 2.0 * vocabulary_matrix(held) } else { 0.0 }
}
