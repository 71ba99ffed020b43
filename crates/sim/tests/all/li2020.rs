//! Algorithm 3.1 of Li 2020 against exact solutions, and the sharing rule for two servers.

use serde_json::Value;
use stepcast_sim::{
    Discipline, End, LaneSpec, Limits, OpSpec, PoolSpec, Program, Requeue, Route, Station, StepGraph,
    StepWork, StreamOrder, Streams, Timeline, max_min, run,
};

fn golden() -> Value {
    serde_json::from_str(include_str!("../../../../validation/li2020/traces.json")).unwrap()
}

/// Reads "71/2".
fn rational(value: &Value) -> f64 {
    match value {
        Value::String(text) => match text.split_once('/') {
            Some((top, bottom)) => top.parse::<f64>().unwrap() / bottom.parse::<f64>().unwrap(),
            None => text.parse().unwrap(),
        },
        other => other.as_f64().unwrap(),
    }
}

const LANES: [&str; 4] = ["DOWNLINK", "WORKER", "UPLINK", "PS"];

/// Which engine resource carries the links: both must give the same.
#[derive(Clone, Copy)]
enum Links {
    Pools,
    Ports,
}

fn program(case: &Value, links: Links) -> Program {
    let ops = case["ops"].as_array().unwrap();
    let index = |name: &Value| ops.iter().position(|op| op["name"] == *name).unwrap() as u32;
    let lane = |op: &Value| LANES.iter().position(|lane| op["res"] == **lane).unwrap();
    let specs: Vec<OpSpec> = ops
        .iter()
        .map(|op| OpSpec {
            name: op["name"].as_str().unwrap().to_owned(),
            lane: lane(op) as u16,
            after: op["deps"].as_array().unwrap().iter().map(index).collect(),
            releases: None,
        })
        .collect();
    let graph = StepGraph::new(&specs, 4).unwrap();
    let streams = Streams {
        window: case["win"].as_f64().unwrap_or(f64::INFINITY),
        requeue: if case["requeue"] == "on_completion" {
            Requeue::OnCompletion
        } else {
            Requeue::OnSelection
        },
        order: if case["policy"] == "fifo" { StreamOrder::Fifo } else { StreamOrder::NewFirst },
    };
    let workers = case["W"].as_u64().unwrap() as u32;
    let bandwidth = case["B"].as_f64().unwrap();
    let work = ops.iter().map(|op| rational(&op["size"])).collect();
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
    program
}

#[test]
fn every_case_is_exact() {
    let golden = golden();
    let cases = golden["des"].as_array().unwrap();
    assert_eq!(cases.len(), 20);
    for (case, links) in cases.iter().flat_map(|case| [(case, Links::Pools), (case, Links::Ports)]) {
        let name = case["case"].as_str().unwrap();
        let program = program(case, links);
        let mut timeline = Timeline::default();
        let steps = case["steps_per_worker"].as_u64().unwrap();
        let outcome = run(&program, 1, Limits::steps(steps), &mut timeline).unwrap();
        assert_eq!(outcome.end, End::Completed, "{name}");
        for (worker, ends) in case["step_end_times"].as_array().unwrap().iter().enumerate() {
            let expected: Vec<f64> = ends.as_array().unwrap().iter().map(rational).collect();
            let records = timeline.steps.records.iter().filter(|record| record.worker as usize == worker);
            let found: Vec<f64> = records.map(|record| record.until).collect();
            assert_eq!(found.len(), expected.len(), "{name}");
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-12 * expected, "{name}: {found} for {expected}");
            }
        }
        for (key, expected) in case["op_end_first_step"].as_object().unwrap() {
            let (worker, op) = key.strip_prefix('w').unwrap().split_once('.').unwrap();
            let worker: u32 = worker.parse().unwrap();
            let first_end =
                timeline.steps.records.iter().find(|record| record.worker == worker).unwrap().until;
            let is_it = |chunk: &&stepcast_sim::ChunkRecord| {
                chunk.worker == worker && program.graph.name(chunk.op) == op && chunk.until <= first_end
            };
            let last = timeline.chunks.iter().rfind(is_it).unwrap();
            let expected = rational(expected);
            assert!(
                (last.until - expected).abs() < 1e-12 * (1.0 + expected),
                "{name} {key}: {} {expected}",
                last.until
            );
        }
    }
}

#[test]
fn two_servers_share_as_published_and_beyond() {
    for state in golden()["two_ps_sharing"].as_array().unwrap() {
        let links: Vec<(u64, u64)> = state["links"]
            .as_array()
            .unwrap()
            .iter()
            .map(|link| (link[0].as_u64().unwrap(), link[1].as_u64().unwrap()))
            .collect();
        // Ports: two servers, then workers.
        let routes: Vec<Route> = links
            .iter()
            .map(|&(worker, server)| Route::new(&[server as u32 - 1, 2 + worker as u32]))
            .collect();
        let rates = max_min(&[1.0; 8], &routes);
        for (&(worker, server), rate) in links.iter().zip(rates) {
            let expected = rational(&state["max_min"][format!("w{worker}-ps{server}")]);
            assert!((rate - expected).abs() < 1e-12, "{state}");
        }
    }
}
