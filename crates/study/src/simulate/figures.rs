//! The figures of one run.

use stepcast_sim::measure::Window;
use stepcast_sim::{End, Limits, Program, ProgramError, Station, Steps, run};

/// The figures of one run.
pub(super) struct Figures {
    pub(super) steps_per_second: f64,
    pub(super) steps: u64,
    pub(super) step_lengths: Vec<f64>,
    pub(super) staleness: Vec<f64>,
    pub(super) workers_busy: f64,
    pub(super) servers_busy: f64,
    /// By server: downlink, uplink.
    pub(super) links_used: Vec<f64>,
    pub(super) end: String,
}

impl Figures {
    pub(super) fn of_run(
        program: &Program,
        seed: u64,
        limits: Limits,
        warm_up: u64,
    ) -> Result<Self, ProgramError> {
        let mut steps = Steps::default();
        let outcome = run(program, seed, limits, &mut steps)?;
        let records = &steps.records;
        let all = Window { since: 0.0, until: outcome.time };
        let window = Window::after(records, program.workers(), warm_up).unwrap_or(all);
        // Local lanes: the worker, its parser, then downlink, uplink, computing and parsing of each server.
        let servers = (usize::from(program.graph.local_lanes()) - 2) / 4;
        let busy = |local: usize| {
            let lanes = program.lane_of.iter().map(|lanes| outcome.lane_busy[lanes[local] as usize]);
            lanes.sum::<f64>() / program.workers() as f64
        };
        let link = |server: usize, direction: usize| {
            let lane = program.lane_of[0][2 + 4 * server + direction] as usize;
            match program.lanes[lane].station {
                Station::Pool(pool) => outcome.pool_used[pool as usize],
                Station::Links(route) => {
                    route.ports().first().map_or(0.0, |&port| outcome.port_used[port as usize])
                }
                Station::Own(_) => outcome.lane_busy[lane],
            }
        };
        Ok(Self {
            steps_per_second: window.steps_per_second(records),
            steps: outcome.steps,
            step_lengths: window.ending(records).map(|record| record.until - record.since).collect(),
            staleness: window.ending(records).map(|record| record.stale as f64).collect(),
            workers_busy: busy(0),
            servers_busy: (0..servers).map(|server| busy(4 + 4 * server)).fold(0.0, f64::max),
            links_used: (0..servers).flat_map(|server| [link(server, 0), link(server, 1)]).collect(),
            end: describe(&outcome.end),
        })
    }
}

fn describe(end: &End) -> String {
    match end {
        End::Completed => "all steps were done".to_owned(),
        End::TimeLimit => "the simulated time was up".to_owned(),
        End::EventBudget => "the event budget was spent".to_owned(),
        End::Deadlock(waiting) => {
            let names: Vec<String> =
                waiting.iter().map(|(worker, name)| format!("worker {worker} for \"{name}\"")).collect();
            format!("a deadlock: waiting are {}", names.join(", "))
        }
    }
}
