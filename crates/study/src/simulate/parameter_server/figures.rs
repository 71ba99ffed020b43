//! The figures of one run with parameter servers.

use super::super::measure::Measurement;
use stepcast_sim::{LocalLanes, Program, Station, Steps, Window};

/// The figures of one run.
pub(super) struct Figures {
    pub(super) steps: u64,
    pub(super) step_lengths: Vec<f64>,
    pub(super) staleness: Vec<f64>,
    pub(super) workers_busy: f64,
    pub(super) servers_busy: f64,
    /// By server: downlink, uplink.
    pub(super) links_used: Vec<f64>,
}

impl Figures {
    pub(super) fn of_run(
        program: &Program,
        lanes: LocalLanes,
        measured: &Measurement<'_, Steps>,
        window: &Window,
    ) -> Self {
        let records = &measured.run.observer().records;
        let outcome = measured.run.outcome(measured.end.clone());
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
        let software = |server: u32| {
            let lane = program.lane_of[0][usize::from(lanes.server_parser(server))] as usize;
            match program.lanes[lane].station {
                Station::Pool(pool) => outcome.pool_used[pool as usize],
                _ => 0.0,
            }
        };
        let servers = 0..u32::from(lanes.servers);
        Self {
            steps: outcome.steps,
            step_lengths: window.ending(records).map(|record| record.until - record.since).collect(),
            staleness: window.ending(records).map(|record| record.stale as f64).collect(),
            workers_busy: (0..lanes.computing).map(busy).fold(0.0, f64::max),
            servers_busy: servers
                .clone()
                .map(|server| busy(lanes.server(server)).max(software(server)))
                .fold(0.0, f64::max),
            links_used: servers
                .flat_map(|server| [link(lanes.down(server)), link(lanes.up(server))])
                .collect(),
        }
    }
}
