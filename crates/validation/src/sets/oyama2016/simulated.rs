//! The closed form against SPRINT's threads simulated as events, on the synthetic machine of `model.json`.
//!
//! T_GPU, and with it the epoch, agrees. T_Update is too short in the closed form where several nodes meet at the
//! barrier (docs/methods/oyama2016.md), so that it is shown and not bounded. Takes about a second.

use super::data::Coefficients;
use crate::{BoundCheck, ValidationError};
use rayon::prelude::*;
use serde::Serialize;
use serde_with::serde_as;
use stepcast_analytic::oyama2016::Threads;
use stepcast_core::quantity::{InBaseUnits, Seconds};
use stepcast_sim::sprint::{Exchange, Length, Sprint};

/// Nodes and batch of every configuration.
const CONFIGURATIONS: [(u32, u32); 9] =
    [(1, 1), (1, 4), (1, 8), (1, 11), (2, 4), (4, 1), (8, 4), (8, 8), (16, 11)];

const GPUS: u32 = 8;
const PARAMETERS: f64 = 16.1e6;

/// Spread of the times of threads. Threads whose times never vary fall in step, which the closed form does not model.
const JITTER: f64 = 0.1;

const LENGTH: Length = Length { iterations: 1500, warm_up: 300 };

/// One configuration, by the closed form and by simulation.
#[serde_as]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct SimulatedThreads {
    pub(super) nodes: u32,
    pub(super) gpus: u32,
    pub(super) batch: u32,
    /// T_GPU by the closed form.
    #[serde(rename = "gpu_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) gpu: Seconds,
    /// T_GPU simulated.
    #[serde(rename = "simulated_gpu_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) simulated_gpu: Seconds,
    /// T_Update by the closed form.
    #[serde(rename = "update_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) update: Seconds,
    /// T_Update simulated.
    #[serde(rename = "simulated_update_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) simulated_update: Seconds,
}

pub(super) fn run(coefficients: &Coefficients) -> Result<Vec<SimulatedThreads>, ValidationError> {
    let compare =
        |&(nodes, batch): &(u32, u32)| simulate(&coefficients.threads(nodes, GPUS, batch, PARAMETERS));
    CONFIGURATIONS.par_iter().map(compare).collect()
}

fn simulate(threads: &Threads) -> Result<SimulatedThreads, ValidationError> {
    let label = || format!("oyama2016, {} nodes, batch {}", threads.nodes, threads.batch);
    let steady =
        threads.steady().ok_or_else(|| ValidationError::Data(format!("{}: no steady state", label())))?;
    let seen = sprint(threads)
        .run(1, LENGTH)
        .map_err(|error| ValidationError::Data(format!("{}: {error}", label())))?;
    Ok(SimulatedThreads {
        nodes: threads.nodes,
        gpus: threads.gpus,
        batch: threads.batch,
        gpu: steady.gpu,
        simulated_gpu: Seconds::new(seen.gpu),
        update: steady.update,
        simulated_update: Seconds::new(seen.update),
    })
}

fn sprint(threads: &Threads) -> Sprint {
    let own = threads.load_images + threads.deform_images + threads.compute + threads.scale_gradient;
    Sprint {
        nodes: threads.nodes,
        gpus: threads.gpus,
        fetch_weights: threads.fetch_weights.get(),
        compute: own.get(),
        update_gradient: threads.update_gradient.get(),
        sum_buffer: threads.sum_buffer.get(),
        before_exchange: (threads.keep_old_weights + threads.add_momentum).get(),
        exchange: threads.all_reduce.get(),
        after_exchange: threads.update_momentum.get(),
        update_weights: threads.update_weights.get(),
        jitter: JITTER,
        how: Exchange::AllReduce,
    }
}

/// The largest deviation of the closed form's T_GPU, which may be `most` percent.
pub(super) fn check(rows: &[SimulatedThreads], most: f64) -> BoundCheck {
    let deviations = rows.iter().map(|row| 100.0 * (row.gpu / row.simulated_gpu - 1.0).abs());
    let worst = deviations.fold(0.0, f64::max);
    BoundCheck {
        what: "T_GPU of the closed form against simulated threads".to_owned(),
        bound: format!("at most {most} %"),
        found: format!("{worst:.1} %"),
        holds: worst <= most,
    }
}
