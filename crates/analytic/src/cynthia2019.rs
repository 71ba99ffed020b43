//! Cynthia (Zheng et al. 2019), as quoted by Li et al. 2020: throughput from the network utilisation of one worker.
//!
//! ```text
//! W·K / (T_p · max(1, W·U₁) + 2·T_C)
//! ```
//!
//! T_p is the time to process a batch of K samples, T_C the time to transmit the model once, and U₁ the share of time
//! during which one worker uses the network. Saturation multiplies T_p rather than T_C, so the limit is K / (T_p·U₁)
//! rather than K / (2·T_C). This is dimensionally odd but kept as published (errata 3.5).

use crate::phases::Phases;
use stepcast_core::quantity::Seconds;

/// Steps per second of all workers together. `utilisation` is U₁; if not measured, it is 2·T_C / (T_p + 2·T_C).
pub fn steps_per_second(process: Seconds, transmit: Seconds, utilisation: Option<f64>, workers: u32) -> f64 {
    let both_ways = transmit * 2.0;
    let utilisation = utilisation.unwrap_or_else(|| both_ways / (process + both_ways));
    let workers = f64::from(workers);
    workers / (process * (workers * utilisation).max(1.0) + both_ways).get()
}

/// Steps per second from the phases of one step; `half` selects the variant of Li 2020 section 4.4, which halves T_C,
/// also in U₁. Beyond the description, the server's software takes the place of the wire where it takes longer.
pub fn from_phases(phases: &Phases, workers: u32, half: bool) -> f64 {
    let transmit = (phases.down + phases.up).max(phases.software) * if half { 0.25 } else { 0.5 };
    steps_per_second(phases.compute, transmit, None, workers)
}
