//! What every worker does in a round of Algorithms 1 and 2, as Figures 4 and 5 draw it.

use super::{Zeng2023, parameter_server, workers};
use crate::queue::{self, Arrival};
use crate::step;
use stepcast_core::fault::Fault;
use stepcast_core::method::Method;
use stepcast_core::prediction::PartKind;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

/// One worker of a round.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkerRound {
    /// Index of its group.
    pub group: usize,
    /// What it does, from when to when; on a GPU the rest of the backward pass goes on beside the push.
    pub parts: Vec<(PartKind, Seconds, Seconds)>,
}

/// All workers in the order in which servers receive their gradients, up to `most` of them.
pub fn round(scenario: &Scenario, most: usize) -> Result<Vec<WorkerRound>, Fault> {
    Zeng2023.applies(scenario)?;
    let all = workers(scenario);
    let steps = step::steps_per_round(scenario.strategy.synchronisation);
    let (round, _) = parameter_server(scenario, &all);
    let (pulls, end) = (round.total() - round.pull.total(), round.total());
    let arrival = |(index, worker): (usize, &super::Worker)| Arrival {
        ready: worker.ready(steps),
        service: worker.undisturbed().total(),
        count: worker.count,
        owner: index as u32,
    };
    let mut arrivals: Vec<Arrival> = all.iter().enumerate().map(arrival).collect();
    queue::sort(&mut arrivals);
    let mut free = Seconds::ZERO;
    let mut rounds = Vec::new();
    for arrival in arrivals {
        let group = arrival.owner as usize;
        let worker = &all[group];
        let whole = (worker.host_to_device + worker.step) * steps;
        for _ in 0..(arrival.count as usize).min(most - rounds.len()) {
            let start = free.max(arrival.ready);
            // Ports of workers that are slower than the server's leave room for others.
            free = start + worker.to_server.total();
            let parts = [
                (PartKind::HostToDevice, Seconds::ZERO, worker.host_to_device * steps),
                (PartKind::Compute, worker.host_to_device * steps, whole),
                (PartKind::Queueing, arrival.ready, start),
                (PartKind::Push, start, start + arrival.service),
                (PartKind::Pull, pulls, end),
            ];
            let lasting = parts.into_iter().filter(|(_, since, until)| until > since);
            rounds.push(WorkerRound { group, parts: lasting.collect() });
        }
    }
    Ok(rounds)
}
