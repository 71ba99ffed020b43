//! What serves the chunks of several lanes: pools, links, TCP connections, and delays without any queue.

pub(super) mod delays;
pub(crate) mod links;
pub(super) mod pool;
pub(super) mod pools;
pub(crate) mod tcp;

use super::lane::Station;
use super::sample::Sampler;
use crate::program::Program;
use delays::Delays;
use links::Links;
use pools::Pools;
use tcp::Tcp;

/// All stations that lanes share.
#[derive(Debug, Clone)]
pub(super) struct Stations {
    pub(super) pools: Pools,
    pub(super) links: Links,
    pub(super) tcp: Option<Tcp>,
    /// Lanes that are TCP connections.
    pub(super) tcp_lanes: Vec<u32>,
    pub(super) delays: Delays,
}

impl Stations {
    pub(super) fn new(program: &Program, sampler: &mut Sampler) -> Self {
        let is_tcp = |&lane: &u32| matches!(program.lanes[lane as usize].station, Station::Tcp { .. });
        Self {
            pools: Pools::new(program),
            links: Links::new(program),
            tcp: program.tcp.map(|spec| Tcp::new(spec, program.workers(), sampler)),
            tcp_lanes: (0..program.lanes.len() as u32).filter(is_tcp).collect(),
            delays: Delays::default(),
        }
    }
}
