//! Tests of the public interface, linked as one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "helpers of tests, and values that must be equal"
)]

mod collectives;
#[path = "../common/mod.rs"]
mod common;
mod liu2022;
mod oyama2016;
mod reliability;
mod servers;
mod sparse;
mod transformer;
mod zeng2023;

use stepcast_core::scenario::{Document, Edit, Scenario};

/// The scenario of a text with changes.
fn resolved(text: impl Into<String>, changes: &[&str]) -> Scenario {
    Document::new("test", text).scenario(&Edit::parse_all(changes).unwrap()).unwrap()
}
