//! Closed-form models: pure functions of a scenario that reproduce the published tables exactly. There is one module
//! per paper; [`layerwise`] is this project's own calibrated model, of which the papers' models are limits.
//!
//! No input or output, no clock, no threads, no logging.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

pub mod baselines;
mod beyond;
pub mod collectives;
pub mod contention;
pub mod layerwise;
pub mod liu2022;
pub mod oyama2016;
pub mod placement;
pub mod queue;
pub mod reliability;
pub mod servers;
mod step;
pub mod transformer;
pub mod zeng2023;
