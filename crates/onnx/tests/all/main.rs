//! Tests of the public interface, linked as one program.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod zoo;
