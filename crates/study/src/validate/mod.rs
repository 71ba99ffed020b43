//! Validation: published figures recomputed, measured ones predicted, bounds kept.

pub mod zeng2023;
