//! A trace as a program of the engine.

use super::data::{Lane, Policy, Requeueing, Trace};
use crate::ValidationError;
use stepcast_sim::{
    Discipline, LaneSpec, OpSpec, PoolSpec, Program, Requeue, Route, Station, StepGraph, StepWork,
    StreamOrder, Streams,
};

/// Lanes of a worker: downlink, worker, uplink, server.
const LANES: u16 = 4;

/// Which resource of the engine carries the links; both must give the same times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// One pool for each direction, shared equally.
    Pools,
    /// Ports of server and workers, shared max-min fairly.
    Ports,
}

fn lane(lane: Lane) -> u16 {
    match lane {
        Lane::Downlink => 0,
        Lane::Worker => 1,
        Lane::Uplink => 2,
        Lane::Ps => 3,
    }
}

fn graph(trace: &Trace) -> Result<StepGraph, ValidationError> {
    let damaged = |error: String| ValidationError::Data(format!("li2020, {}: {error}", trace.name));
    let index = |name: &String| {
        let found = trace.operations.iter().position(|operation| operation.name == *name);
        found.map(|index| index as u32).ok_or_else(|| damaged(format!("there is no operation {name}")))
    };
    let mut specs = Vec::new();
    for operation in &trace.operations {
        specs.push(OpSpec {
            name: operation.name.clone(),
            lane: lane(operation.lane),
            after: operation.after.iter().map(index).collect::<Result<_, _>>()?,
            releases: None,
        });
    }
    StepGraph::new(&specs, LANES).map_err(|error| damaged(error.to_string()))
}

pub(super) fn program(trace: &Trace, links: Links) -> Result<Program, ValidationError> {
    let graph = graph(trace)?;
    let streams = Streams {
        window: trace.window.unwrap_or(f64::INFINITY),
        requeue: match trace.requeue {
            Requeueing::OnCompletion => Requeue::OnCompletion,
            Requeueing::OnSelection => Requeue::OnSelection,
        },
        order: match trace.policy {
            Policy::Fifo => StreamOrder::Fifo,
            Policy::FirstServicePriority => StreamOrder::NewFirst,
        },
    };
    let work = trace.operations.iter().map(|operation| operation.size.get()).collect();
    let steps = vec![vec![StepWork { work, sources: graph.sources().to_vec(), rank: vec![], share: 1.0 }]];
    let mut program = Program {
        pools: vec![PoolSpec::equal(trace.bandwidth); 2],
        ports: vec![trace.bandwidth; 2 + 2 * trace.workers as usize],
        ..Program::new(graph, steps)
    };
    for worker in 0..trace.workers {
        let link = |direction: u32| LaneSpec {
            discipline: Discipline::Streams(streams),
            station: match links {
                Links::Pools => Station::Pool(direction),
                // Ports: the server's two, then two for each worker.
                Links::Ports => Station::Links(Route::new(&[direction, 2 + 2 * worker + direction])),
            },
            startup: 0.0,
            startup_pool: None,
        };
        program.add_worker_with_own_lanes(0, [link(0), LaneSpec::own(1.0), link(1), LaneSpec::own(1.0)]);
    }
    Ok(program)
}
