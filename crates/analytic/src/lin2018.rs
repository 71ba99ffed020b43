//! Lin et al. 2018, as described by Li et al. 2020: asynchronous training as a closed queueing network.
//!
//! Each worker is a customer that cycles through downlink, computing, uplink and update. Downlink and uplink are
//! stations that serve all customers at once (processor sharing); computing and updating do not delay other
//! customers. Exact mean-value analysis gives the throughput. Whether Lin et al. use exactly this model is not known
//! (errata 3.5).

use crate::phases::Phases;
use stepcast_core::quantity::Seconds;

/// Cycles per second of `workers` customers, given the service demands of the shared `stations` and the `delay` spent
/// outside them.
pub fn mean_value_analysis(stations: &[Seconds], delay: Seconds, workers: u32) -> f64 {
    let mut queues = vec![0.0; stations.len()];
    let mut rate = 0.0;
    for customers in 1..=workers {
        let residence = |(demand, queue): (&Seconds, &f64)| demand.get() * (1.0 + queue);
        let cycle: f64 = delay.get() + stations.iter().zip(&queues).map(residence).sum::<f64>();
        rate = f64::from(customers) / cycle;
        for (demand, queue) in stations.iter().zip(&mut queues) {
            *queue = rate * demand.get() * (1.0 + *queue);
        }
    }
    rate
}

/// Steps per second of all workers together. Beyond the description, the server's software is a station too, where it
/// takes time.
pub fn steps_per_second(phases: &Phases, workers: u32) -> f64 {
    let stations = [phases.down, phases.up, phases.software];
    mean_value_analysis(&stations, phases.compute + phases.update, workers)
}
