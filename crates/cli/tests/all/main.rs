//! The commands from outside, one module for each subject: a single program links faster than many.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests stand outside of them, and say what they skipped"
)]

mod architecture;
mod attacks;
mod behaviour;
mod broken;
mod check;
mod examples;
mod fitted_device;
mod imports;
mod mutations;
mod plots;
mod profiles;
mod program;
mod roads;
mod serving;
mod sweep;
mod walkthrough;
mod wording;
