//! The domain of Stepcast: quantities, models, devices, clusters, strategies, scenarios and predictions. No input or
//! output, no clock, no threads, no logging: text in, values out.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

pub mod compute;
pub mod fault;
pub mod files;
pub mod fitted;
pub mod keys;
pub mod machine;
pub mod method;
pub mod model;
pub mod pass;
pub mod precision;
pub mod prediction;
pub mod prior;
pub mod profile;
pub mod quantity;
pub mod scenario;
pub mod speed;
pub mod strategy;
pub mod suggest;
pub mod text;
pub mod uncertain;
pub mod workload;
