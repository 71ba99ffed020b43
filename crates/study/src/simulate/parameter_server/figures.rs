//! The figures of one run with parameter servers.

use super::super::replicas::Length;
use super::super::summary::describe;
use stepcast_sim::{LocalLanes, Program, ProgramError, Station, Steps, run};

/// The figures of one run.
pub(super) struct Figures {
    pub(super) samples_per_second: f64,
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
        lanes: LocalLanes,
        batches: &[f64],
        seed: u64,
        length: Length,
    ) -> Result<Self, ProgramError> {
        let mut steps = Steps::default();
        let outcome = run(program, seed, length.limits(), &mut steps)?;
        let records = &steps.records;
        let window = length.window(records, program.workers(), outcome.time);
        let busy = |local: u16| {
            let lanes =
                program.lane_of.iter().map(|lanes| outcome.lane_busy[lanes[usize::from(local)] as usize]);
            lanes.sum::<f64>() / program.workers() as f64
        };
        let link = |local: u16| {
            let lane = program.lane_of[0][usize::from(local)] as usize;
            match program.lanes[lane].station {
                Station::Pool(pool) => outcome.pool_used[pool as usize],
                Station::Links(route) => {
                    route.ports().first().map_or(0.0, |&port| outcome.port_used[port as usize])
                }
                Station::Tcp { up, .. } => outcome.tcp_used[usize::from(up)],
                Station::Own(_) => outcome.lane_busy[lane],
            }
        };
        let servers = 0..u32::from(lanes.servers);
        Ok(Self {
            samples_per_second: window.rate(records, |record| batches[record.worker as usize]),
            steps: outcome.steps,
            step_lengths: window.ending(records).map(|record| record.until - record.since).collect(),
            staleness: window.ending(records).map(|record| record.stale as f64).collect(),
            workers_busy: (0..lanes.computing).map(busy).fold(0.0, f64::max),
            servers_busy: servers.clone().map(|server| busy(lanes.server(server))).fold(0.0, f64::max),
            links_used: servers
                .flat_map(|server| [link(lanes.down(server)), link(lanes.up(server))])
                .collect(),
            end: describe(&outcome.end),
        })
    }
}
