//! Li 2020: the event engine against traces that were worked out exactly (Algorithm 3.1), the sharing of links to two
//! servers, and the two coarser models that the paper compares with.
//!
//! The paper's own profiles are not published; measured runs of the same kind are in the set `tf-ps`.

use crate::ValidationError;
use crate::checks::ExactCheck;
use crate::records::{Fields, document, number};
use crate::report::Findings;
use crate::set::Run;
use serde_json::{Value, json};
use stepcast_analytic::baselines::{
    Phases, cynthia2019, cynthia2019_rate, lin2018_rate, mean_value_analysis,
};
use stepcast_core::quantity::Seconds;
use stepcast_sim::{
    ChunkRecord, Discipline, LaneSpec, Limits, OpSpec, PoolSpec, Program, Requeue, Route, Station, StepGraph,
    StepWork, StreamOrder, Streams, Timeline, max_min, run as simulate,
};

pub(super) fn run(run: &Run<'_>) -> Result<Findings, ValidationError> {
    // Largest deviations from exact values.
    let bounds: Value = run.bounds()?;
    let golden = document("li2020/traces.json")?;
    let traces = golden.list("des");
    let checks = [
        check_traces(traces, Links::Pools, bounds.number("traces"))?,
        check_traces(traces, Links::Ports, bounds.number("traces"))?,
        check_sharing(golden.list("two_ps_sharing"), bounds.number("sharing")),
        check_baselines(golden.list("analytic"), bounds.number("baselines")),
    ];
    let throughput: Vec<Value> = traces.iter().map(throughput).collect::<Result<_, _>>()?;
    let figures = json!({ "checks": checks.iter().map(ExactCheck::to_value).collect::<Vec<_>>(), "traces": throughput });
    Ok(Findings::exact(&checks, figures))
}

const LANES: [&str; 4] = ["DOWNLINK", "WORKER", "UPLINK", "PS"];

/// Which resource of the engine carries the links; both must give the same times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Links {
    /// One pool for each direction, shared equally.
    Pools,
    /// Ports of server and workers, shared max-min fairly.
    Ports,
}

fn damaged(trace: &Value, error: impl std::fmt::Display) -> ValidationError {
    ValidationError::Data(format!("li2020, {}: {error}", trace.text("case")))
}

/// A trace as a program of the engine: equal workers with one server.
fn program(trace: &Value, links: Links) -> Result<Program, ValidationError> {
    let operations = trace.list("ops");
    let place = |name: &Value| operations.iter().position(|operation| operation.field("name") == name);
    let mut specs = Vec::new();
    for operation in operations {
        let after: Option<Vec<u32>> =
            operation.list("deps").iter().map(|name| Some(place(name)? as u32)).collect();
        let lane = LANES.iter().position(|lane| operation.text("res") == *lane);
        let (Some(after), Some(lane)) = (after, lane) else {
            return Err(damaged(trace, "an operation has no lane, or follows one that is not there"));
        };
        let name = operation.text("name").to_owned();
        specs.push(OpSpec { name, lane: lane as u16, after, releases: None });
    }
    let graph = StepGraph::new(&specs, LANES.len() as u16).map_err(|error| damaged(trace, error))?;
    let streams = Streams {
        window: trace.field("win").as_f64().unwrap_or(f64::INFINITY),
        requeue: match trace.text("requeue") {
            "on_completion" => Requeue::OnCompletion,
            _ => Requeue::OnSelection,
        },
        order: if trace.text("policy") == "fifo" { StreamOrder::Fifo } else { StreamOrder::NewFirst },
    };
    let (workers, bandwidth) = (trace.small("W"), trace.number("B"));
    let work = operations.iter().map(|operation| operation.number("size")).collect();
    let steps = vec![vec![StepWork { work, sources: graph.sources().to_vec(), rank: vec![], share: 1.0 }]];
    let mut program = Program {
        pools: vec![PoolSpec::equal(bandwidth); 2],
        ports: vec![bandwidth; 2 + 2 * workers as usize],
        ..Program::new(graph, steps)
    };
    for worker in 0..workers {
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

fn simulated(trace: &Value, links: Links) -> Result<(Program, Timeline), ValidationError> {
    let program = program(trace, links)?;
    let mut timeline = Timeline::default();
    let limits = Limits::steps(trace.count("steps_per_worker"));
    simulate(&program, 1, limits, &mut timeline).map_err(|error| damaged(trace, error))?;
    Ok((program, timeline))
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

/// The end of every step, and of every operation of each worker's first step (Algorithm 3.1).
fn check_traces(traces: &[Value], links: Links, tolerance: f64) -> Result<ExactCheck, ValidationError> {
    let what = match links {
        Links::Pools => "ends of steps and operations, links shared equally",
        Links::Ports => "ends of steps and operations, links shared max-min fairly",
    };
    let mut check = ExactCheck::new(what, tolerance);
    for trace in traces {
        let (program, timeline) = simulated(trace, links)?;
        check.cases += 1;
        for (worker, expected) in (0..).zip(trace.list("step_end_times")) {
            let expected: Vec<f64> = expected.as_array().into_iter().flatten().map(number).collect();
            check.figures(&step_ends(&timeline, worker), &expected);
        }
        for (key, expected) in trace.field("op_end_first_step").as_object().into_iter().flatten() {
            check.figure(first_end(&program, &timeline, key).unwrap_or(f64::NAN), number(expected));
        }
    }
    Ok(check)
}

/// Links to two servers: max-min fairness gives the published rates, and fair ones in the state the paper leaves open.
fn check_sharing(states: &[Value], tolerance: f64) -> ExactCheck {
    let mut check = ExactCheck::new("rates of links to two servers (section 3.4)", tolerance);
    for state in states {
        let link = |link: &Value| [0, 1].map(|end| link[end].as_u64().unwrap_or(0) as u32);
        let links: Vec<[u32; 2]> = state.list("links").iter().map(link).collect();
        // Ports of two servers, then of workers, each of rate 1.
        let routes: Vec<Route> =
            links.iter().map(|[worker, server]| Route::new(&[server - 1, 2 + worker])).collect();
        check.cases += 1;
        for ([worker, server], rate) in links.iter().zip(max_min(&[1.0; 8], &routes)) {
            check.figure(rate, state.field("max_min").number(&format!("w{worker}-ps{server}")));
        }
    }
    check
}

/// The coarser models: Cynthia, and a closed queueing network.
fn check_baselines(rows: &[Value], tolerance: f64) -> ExactCheck {
    // A transfer of 4 s each way, 6 s of computing, 1 s at the server; batches of 32 samples.
    let [transfer, compute, update] = [4.0, 6.0, 1.0].map(Seconds::new);
    let mut check = ExactCheck::new("throughput by cynthia2019 and lin2018", tolerance);
    for row in rows {
        let workers = row.small("W");
        let cynthia = |transfer: Seconds| 32.0 * cynthia2019(compute, transfer, None, workers);
        check.cases += 1;
        for (found, column) in [
            (mean_value_analysis(&[transfer; 2], compute + update, workers), "mva_down4_up4_think7"),
            (
                mean_value_analysis(&[transfer, transfer, update], compute, workers),
                "mva_down4_up4_ps1_think6",
            ),
            (cynthia(transfer), "cynthia_K32_Tp6_Tc4_U1"),
            (cynthia(transfer * 0.5), "cynthia_half_Tc"),
        ] {
            check.figure(found, row.number(column));
        }
    }
    check
}

/// Throughput of one trace, in steps a second of all workers: worked out, simulated, and by the coarser models.
fn throughput(trace: &Value) -> Result<Value, ValidationError> {
    let (_, timeline) = simulated(trace, Links::Pools)?;
    let workers = trace.small("W");
    let all_steps = f64::from(workers) * trace.number("steps_per_worker");
    let ends = trace.list("step_end_times").iter().filter_map(Value::as_array).flatten();
    let exact = ends.map(number).fold(0.0, f64::max);
    let simulated = timeline.steps.records.iter().map(|record| record.until).fold(0.0, f64::max);
    let sum = |lane: &str| -> f64 {
        let operations = trace.list("ops").iter().filter(|operation| operation.text("res") == lane);
        operations.map(|operation| operation.number("size")).sum()
    };
    let bandwidth = trace.number("B");
    let phases = Phases {
        down: Seconds::new(sum("DOWNLINK") / bandwidth),
        compute: Seconds::new(sum("WORKER")),
        up: Seconds::new(sum("UPLINK") / bandwidth),
        update: Seconds::new(sum("PS")),
        software: Seconds::ZERO,
    };
    Ok(json!({
        "case": trace.field("case"),
        "workers": workers,
        "exact": all_steps / exact,
        "simulate": all_steps / simulated,
        "cynthia2019": cynthia2019_rate(&phases, workers, false),
        "lin2018": lin2018_rate(&phases, workers),
    }))
}
