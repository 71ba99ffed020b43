//! The code of validation sets whose cases are no scenarios, one function for each set.

mod ddp_gloo;
mod hkbu;
mod li2020;
mod liu2022;
pub(crate) mod llm_runs;
mod oyama2016;
mod parallel_jobs;
pub(crate) mod published;
mod pulling;
mod replay;
mod steps;
mod tf_ps;
mod throughput;
mod transformer_memory;
pub(crate) mod transformer_steps;
mod tuning;
mod zeng2023;

use crate::ValidationError;
use crate::report::Findings;
use crate::set::Run;
use std::sync::Arc;
use stepcast_core::model::{Model, zoo};
use stepcast_core::prior::Priors;

/// Recomputes or predicts every figure of a set. A set without code of its own has cases that are scenarios.
pub(crate) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    match run.set {
        "ddp-gloo" => ddp_gloo::run(run),
        "hkbu" => hkbu::run(run),
        "li2020" => li2020::run(run),
        "liu2022" => liu2022::run(run),
        "llm-runs" => llm_runs::run(run),
        "oyama2016" => oyama2016::run(run),
        "parallel-jobs" => parallel_jobs::run(run),
        "papers" | "published-scaling" | "single-gpu" => published::run(run),
        "steps" => steps::run(run),
        "tf-ps" => tf_ps::run(run),
        "transformer-memory" => transformer_memory::run(run),
        "transformer-steps" => transformer_steps::run(run),
        "tuning" => tuning::run(run),
        "zeng2023" => zeng2023::run(run),
        _ => throughput::scenarios(run),
    }
}

fn zoo_model(name: &str) -> Result<Model, ValidationError> {
    zoo::build(name).map_err(|error| ValidationError::Data(error.to_string()))
}

pub(crate) fn shipped_priors() -> Result<Arc<Priors>, ValidationError> {
    Priors::shipped().map_err(|error| ValidationError::Data(error.to_string()))
}
