//! Tests of the public interface, linked as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "helpers of tests, and values that must be equal"
)]

#[path = "../common/mod.rs"]
mod common;
mod fusion;
mod liu2022;
mod oyama2016;
mod ports;
mod reliability;
mod sparse;
mod transformer;
mod zeng2023;
