//! The validation sets: one module each, with its data, its predictions and its tables.

mod ddp_gloo;
mod hkbu;
mod li2020;
mod liu2022;
mod oyama2016;
mod parallel_jobs;
mod published;
pub(crate) mod published_scaling;
pub(crate) mod single_gpu;
pub mod steps;
mod tf_ps;
mod transformer_memory;
pub(crate) mod transformer_steps;
pub mod zeng2023;

use crate::Set;
use published::{Cakelab, TfK80, TfSaturation};

/// All sets, in the order in which they are listed.
pub fn all() -> &'static [&'static dyn Set] {
    &[
        &zeng2023::Zeng2023,
        &liu2022::Liu2022,
        &hkbu::Hkbu,
        &TfK80,
        &TfSaturation,
        &Cakelab,
        &tf_ps::TfPs,
        &ddp_gloo::DdpGloo,
        &published_scaling::PublishedScaling,
        &steps::StepTimes,
        &single_gpu::SingleGpu,
        &parallel_jobs::ParallelJobs,
        &transformer_memory::TransformerMemory,
        &transformer_steps::TransformerSteps,
        &oyama2016::Oyama2016,
        &li2020::Li2020,
    ]
}
