//! Models fitted to measurements, and the files that store them.

pub mod artefact;
pub mod collectives;
pub mod efficiency;
pub mod gemm;
pub mod kernel;
pub mod machine;
pub mod steps;
pub mod transfer;
