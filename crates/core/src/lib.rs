//! What Stepcast talks about: quantities, models, devices, clusters, strategies, scenarios and
//! predictions. No input or output, no clock, no threads, no logging: text in, values out.

pub mod artefact;
pub mod catalog;
pub mod cluster;
pub mod compute;
pub mod device;
pub mod efficiency;
pub mod gemm;
pub mod invalid;
pub mod kernel;
pub mod method;
pub mod model;
pub mod network;
pub mod pass;
pub mod prediction;
pub mod profile;
pub mod quantity;
pub mod scenario;
pub mod steps;
pub mod strategy;
pub mod suggest;
pub mod transfer;
pub mod workload;
