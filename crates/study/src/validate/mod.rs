//! Validation: published figures recomputed, measured ones predicted, bounds kept.

pub mod tf_ps;
pub mod zeng2023;
