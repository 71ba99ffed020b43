//! Lanes of the stages of a pipeline, and what serves them.

use super::{Links, Pipeline, Traffic};
use crate::engine::coordinate::Coordination;
use crate::engine::lane::{Discipline, LaneSpec, Station};
use crate::graph::LocalLane;
use crate::program::{Coupling, PoolSpec, Program, ProgramError};

/// Local lanes of a stage: computing, one for every kind of traffic, and where replicas meet.
const LANES: usize = 2 + Traffic::COUNT;

/// Pools of a stage: computing, and traffic within nodes and between them.
const POOLS: u32 = 3;

impl Pipeline {
    pub(super) fn stages(&self) -> usize {
        self.orders.first().map_or(0, Vec::len)
    }

    pub(super) fn computing(stage: usize) -> LocalLane {
        (stage * LANES) as LocalLane
    }

    /// The local lane of a kind of traffic of a stage. What it sends to others, in either direction, leaves through one
    /// port.
    pub(super) fn traffic(stage: usize, kind: Traffic) -> LocalLane {
        let kind = if kind == Traffic::SendBackward { Traffic::SendForward } else { kind };
        (stage * LANES + 1 + kind as usize) as LocalLane
    }

    pub(super) fn is_alone(&self) -> bool {
        self.stage_of.len() == 1
    }

    pub(super) fn meeting(stage: usize) -> LocalLane {
        (stage * LANES + LANES - 1) as LocalLane
    }

    pub(super) fn waiting(&self) -> LocalLane {
        (self.stages() * LANES) as LocalLane
    }

    pub(super) fn is_computing(&self, lane: LocalLane) -> bool {
        usize::from(lane).is_multiple_of(LANES) && lane < self.waiting()
    }

    pub(super) fn local_lanes(&self) -> Result<LocalLane, ProgramError> {
        LocalLane::try_from(self.stages() * LANES + 1)
            .map_err(|_| ProgramError(format!("{} stages are too many to simulate", self.stages())))
    }

    /// Adds replicas with their lanes and pools. They begin their steps together.
    pub(super) fn connect(&self, program: &mut Program) {
        program.coordination = Coordination::Bounded(0);
        let meetings: Vec<u32> = (0..self.stages()).map(|_| program.add_lane(self.meeting_lane())).collect();
        let waiting = program.add_lane(LaneSpec { discipline: Discipline::Delay, ..LaneSpec::own(1.0) });
        for &kind in &self.replicas {
            let mut lanes = Vec::with_capacity(self.stages() * LANES + 1);
            for &meeting in &meetings {
                let first = self.add_pools(program);
                lanes.push(program.add_lane(self.computing_lane(first)));
                for kind in Traffic::ALL {
                    lanes.push(program.add_lane(self.traffic_lane(first, kind)));
                }
                lanes.push(meeting);
            }
            lanes.push(waiting);
            program.add_worker(kind, lanes);
        }
    }

    /// Adds the pools of a stage of a replica, if it has any, and returns the number of the first.
    fn add_pools(&self, program: &mut Program) -> u32 {
        let first = program.pools.len() as u32;
        let Links::Shared { slowdown } = self.links else { return first };
        program.pools.extend((0..POOLS).map(|_| PoolSpec::equal(1.0)));
        if slowdown > 0.0 {
            let (computing, exchange) = (vec![first], vec![first + 1, first + 2]);
            program.couplings.push(Coupling { computing, exchange, slowdown });
        }
        first
    }

    fn meeting_lane(&self) -> LaneSpec {
        LaneSpec { discipline: Discipline::Barrier(self.replicas.len() as u32), ..LaneSpec::own(1.0) }
    }

    fn computing_lane(&self, first: u32) -> LaneSpec {
        match self.links {
            Links::Shared { slowdown } if slowdown > 0.0 => {
                LaneSpec { station: Station::Pool(first), ..LaneSpec::own(1.0) }
            }
            _ => LaneSpec::own(1.0),
        }
    }

    fn traffic_lane(&self, first: u32, kind: Traffic) -> LaneSpec {
        match self.links {
            // The link to the host is a rank's own.
            _ if kind == Traffic::Offload => LaneSpec { discipline: Discipline::Delay, ..LaneSpec::own(1.0) },
            Links::Apart if kind == Traffic::SendForward => LaneSpec::own(1.0),
            Links::Apart => LaneSpec { discipline: Discipline::Delay, ..LaneSpec::own(1.0) },
            Links::Shared { .. } => {
                let level = 1 + u32::from(self.between[kind as usize]);
                LaneSpec { station: Station::Pool(first + level), ..LaneSpec::own(1.0) }
            }
        }
    }
}
