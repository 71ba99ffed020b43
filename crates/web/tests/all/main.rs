//! The API from outside: what it answers, and whether its description says so.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of them")]

mod api;
mod asking;
mod attacks;
mod described;
mod fuzz;
mod schema;
mod studies;
