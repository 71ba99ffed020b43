//! Every trace simulated: ends of steps and operations, and throughput beside that of the coarser models.

use super::data::{Lane, Trace};
use super::program::{Links, program};
use crate::{ExactCheck, ValidationError};
use serde::Serialize;
use stepcast_analytic::phases::Phases;
use stepcast_analytic::{cynthia2019, lin2018};
use stepcast_core::quantity::Seconds;
use stepcast_sim::{ChunkRecord, Limits, Program, Timeline, run};

/// Throughput of one trace, in steps a second of all workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct TraceThroughput {
    pub(super) case: String,
    pub(super) workers: u32,
    /// Worked out.
    pub(super) exact: f64,
    /// Simulated.
    pub(super) simulate: f64,
    pub(super) cynthia2019: f64,
    pub(super) lin2018: f64,
}

impl TraceThroughput {
    pub(super) fn of(trace: &Trace) -> Result<Self, ValidationError> {
        let (_, timeline) = simulated(trace, Links::Pools)?;
        let all_steps = f64::from(trace.workers) * trace.steps_per_worker as f64;
        let latest = |ends: &mut dyn Iterator<Item = f64>| ends.fold(0.0, f64::max);
        let exact = latest(&mut trace.step_end_times.iter().flatten().map(|end| end.get()));
        let simulated = latest(&mut timeline.steps.records.iter().map(|record| record.until));
        let phases = phases(trace);
        Ok(Self {
            case: trace.name.clone(),
            workers: trace.workers,
            exact: all_steps / exact,
            simulate: all_steps / simulated,
            cynthia2019: cynthia2019::from_phases(&phases, trace.workers, false),
            lin2018: lin2018::steps_per_second(&phases, trace.workers),
        })
    }
}

/// One worker alone, as the coarser models see it.
fn phases(trace: &Trace) -> Phases {
    let sum = |lane: Lane| -> f64 {
        let operations = trace.operations.iter().filter(|operation| operation.lane == lane);
        operations.map(|operation| operation.size.get()).sum()
    };
    Phases {
        down: Seconds::new(sum(Lane::Downlink) / trace.bandwidth),
        compute: Seconds::new(sum(Lane::Worker)),
        up: Seconds::new(sum(Lane::Uplink) / trace.bandwidth),
        update: Seconds::new(sum(Lane::Ps)),
        software: Seconds::ZERO,
    }
}

fn simulated(trace: &Trace, links: Links) -> Result<(Program, Timeline), ValidationError> {
    let program = program(trace, links)?;
    let mut timeline = Timeline::default();
    run(&program, 1, Limits::steps(trace.steps_per_worker), &mut timeline)
        .map_err(|error| ValidationError::Data(format!("li2020, {}: {error}", trace.name)))?;
    Ok((program, timeline))
}

/// The end of every step, and of every operation of each worker's first step (Algorithm 3.1).
pub(super) fn check(traces: &[Trace], links: Links, tolerance: f64) -> Result<ExactCheck, ValidationError> {
    let what = match links {
        Links::Pools => "ends of steps and operations, links shared equally",
        Links::Ports => "ends of steps and operations, links shared max-min fairly",
    };
    let mut check = ExactCheck::new(what, tolerance);
    for trace in traces {
        let (program, timeline) = simulated(trace, links)?;
        check.cases += 1;
        for (worker, expected) in (0..).zip(&trace.step_end_times) {
            let expected: Vec<f64> = expected.iter().map(|end| end.get()).collect();
            check.figures(&step_ends(&timeline, worker), &expected);
        }
        for (key, expected) in &trace.op_end_first_step {
            check.figure(first_end(&program, &timeline, key).unwrap_or(f64::NAN), expected.get());
        }
    }
    Ok(check)
}

fn step_ends(timeline: &Timeline, worker: u32) -> Vec<f64> {
    let records = timeline.steps.records.iter().filter(|record| record.worker == worker);
    records.map(|record| record.until).collect()
}

/// When an operation of a worker's first step ended; `key` is "w0.d0".
fn first_end(program: &Program, timeline: &Timeline, key: &str) -> Option<f64> {
    let (worker, operation) = key.strip_prefix('w')?.split_once('.')?;
    let worker: u32 = worker.parse().ok()?;
    let step_end = *step_ends(timeline, worker).first()?;
    let is_it = |chunk: &&ChunkRecord| {
        chunk.worker == worker && program.graph.name(chunk.op) == operation && chunk.until <= step_end
    };
    Some(timeline.chunks.iter().rfind(is_it)?.until)
}
