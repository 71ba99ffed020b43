//! Tests of the public interface, linked as one program.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests; some print what they skip"
)]

mod files;
mod kineto;
#[path = "../made/mod.rs"]
mod made;
mod measured;
mod onnx;
mod plans;
mod seeds;
