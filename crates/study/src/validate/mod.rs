//! Validation: published figures recomputed, measured ones predicted, bounds kept.

pub mod ddp_gloo;
pub mod steps;
pub mod tf_ps;
pub mod zeng2023;
