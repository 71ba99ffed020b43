//! The round of Zeng 2023 as a timeline: who computes, waits for the server, pushes and pulls when (the paper's Figures 4 and 5).

use stepcast_analytic::zeng2023::round;
use stepcast_core::fault::Fault;
use stepcast_core::prediction::PartKind;
use stepcast_core::scenario::Scenario;
use stepcast_trace::timeline::{About, Event, FORMAT, Flow, Process, Timeline};

/// Workers that are shown, the first to arrive at the server.
const MOST_WORKERS: usize = 100;

const LANES: [&str; 4] = ["computing", "waiting", "push", "pull"];

/// A process for every worker, in the order in which servers receive their gradients.
pub fn round_timeline(scenario: &Scenario) -> Result<Timeline<'static>, Fault> {
    let rounds = round(scenario, MOST_WORKERS)?;
    let process = |(worker, of): (usize, &stepcast_analytic::zeng2023::WorkerRound)| Process {
        name: format!("w{worker}, {}", scenario.cluster.groups[of.group].device.name),
        lanes: LANES.map(str::to_owned).into(),
        levels: Vec::new(),
    };
    let processes = rounds.iter().enumerate().map(process).collect();
    let mut events = Vec::new();
    for (process, of) in (0..).zip(&rounds) {
        events.extend(of.parts.iter().map(|&(kind, since, until)| Event {
            process,
            lane: match kind {
                PartKind::Queueing => 1,
                PartKind::Push => 2,
                PartKind::Pull => 3,
                _ => 0,
            },
            name: kind.to_string().into(),
            kind: None,
            since,
            until,
            figure: None,
            flow: Flow::None,
        }));
    }
    let about = About {
        format: FORMAT.to_owned(),
        name: scenario.name().to_owned(),
        batch: scenario.batch(0),
        operations: Vec::new(),
    };
    Ok(Timeline { about, processes, events, levels: Vec::new() })
}
