//! A pipeline of stages as a program: passes of micro-batches in the order of a schedule, sends between stages, and the
//! work of every stage at the end of a step.
//!
//! All ranks of a stage that behave identically are simulated as one, so a worker of the program is a whole replica:
//! its local lanes are the computing unit and the kinds of traffic of every stage, and its graph holds the operations of
//! all stages. Replicas meet where they exchange something.
//!
//! A pass is [`Work`]: computing in turn, with traffic in turn or beside it. The engine finds the
//! exposed part of that traffic. Meanwhile the host issues the kernels of a pass. The next pass of the stage
//! begins when all of it has ended; a host whose device is alone in its pipeline runs ahead instead. Sends of
//! a stage leave it one after the other. Where links are separate, traffic takes its own time regardless of other traffic. Where
//! they are shared, kinds of traffic of one stage and level of the network divide its rate, and computing beside them may
//! be slower.

mod build;
mod state;

pub use build::Built;

use crate::engine::lane::{Discipline, LaneSpec, Station};
use crate::graph::LocalLane;
use crate::program::{Coupling, LaneSpread, PoolSpec, Program, ProgramError};
use stepcast_core::strategy::Synchronisation;

/// Phase of a stage's computing for a micro-batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Forward,
    /// The backward pass; with a split backward, the gradients of inputs.
    Backward,
    /// With a split backward, the gradients of weights.
    Weight,
}

impl Phase {
    pub const COUNT: usize = 3;

    const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::Weight => 'W',
        }
    }
}

/// Kinds of traffic of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Traffic {
    Tensor,
    Context,
    Expert,
    /// Sharded weights, and gradients that are reduced with every micro-batch.
    Sharded,
    Offload,
    /// Activations to the next stage.
    SendForward,
    /// Their gradients to the stage before.
    SendBackward,
    Gradients,
    Weights,
}

impl Traffic {
    pub const COUNT: usize = 9;

    pub const ALL: [Self; Self::COUNT] = [
        Self::Tensor,
        Self::Context,
        Self::Expert,
        Self::Sharded,
        Self::Offload,
        Self::SendForward,
        Self::SendBackward,
        Self::Gradients,
        Self::Weights,
    ];

    pub const OF_A_PASS: [Self; 5] =
        [Self::Tensor, Self::Context, Self::Expert, Self::Sharded, Self::Offload];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Tensor => "tensor",
            Self::Context => "context",
            Self::Expert => "expert",
            Self::Sharded => "sharded",
            Self::Offload => "offload",
            Self::SendForward | Self::SendBackward => "send",
            Self::Gradients => "gradients",
            Self::Weights => "weights",
        }
    }
}

/// One pass of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    pub phase: Phase,
    pub micro_batch: u32,
    /// Its virtual stage.
    pub place: u32,
    /// Whether it runs as one with the next pass of its stage: they wait for the inputs of both, and send when both have ended.
    pub with_next: bool,
}

/// Work of a pass: a series-parallel graph of computing and traffic, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    Compute(f64),
    /// Recomputation.
    Recompute(f64),
    Traffic(Traffic, f64),
    /// One after the other.
    InTurn(Vec<Work>),
    /// The first, and the others beside it. It ends when all of them have ended.
    Beside(Vec<Work>),
}

impl Work {
    #[must_use]
    pub fn scaled(&self, by: f64) -> Self {
        let all = |list: &[Self]| list.iter().map(|work| work.scaled(by)).collect();
        match self {
            Self::Compute(time) => Self::Compute(time * by),
            Self::Recompute(time) => Self::Recompute(time * by),
            Self::Traffic(kind, time) => Self::Traffic(*kind, time * by),
            Self::InTurn(list) => Self::InTurn(all(list)),
            Self::Beside(list) => Self::Beside(all(list)),
        }
    }

    /// Its time if nothing else uses the links.
    pub fn alone(&self) -> f64 {
        match self {
            Self::Compute(time) | Self::Recompute(time) | Self::Traffic(_, time) => *time,
            Self::InTurn(list) => list.iter().map(Self::alone).sum(),
            Self::Beside(list) => list.iter().map(Self::alone).fold(0.0, f64::max),
        }
    }

    fn children(&self) -> &[Self] {
        match self {
            Self::InTurn(list) | Self::Beside(list) => list,
            _ => &[],
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// Work of the device and its links.
    pub work: Work,
    pub host: f64,
}

impl Default for Pass {
    fn default() -> Self {
        Self { work: Work::Compute(0.0), host: 0.0 }
    }
}

/// Traffic of a stage once in a step, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Exchange {
    pub time: f64,
    /// Whether all but one of its buckets may travel beside passes.
    pub overlapped: bool,
}

impl Exchange {
    /// The part that travels beside passes if sent in this number of buckets.
    fn hidden(&self, buckets: f64) -> f64 {
        if self.overlapped { self.time * (1.0 - 1.0 / buckets) } else { 0.0 }
    }

    /// The part that is left when passes have ended.
    fn left(&self, buckets: f64) -> f64 {
        if self.overlapped { self.time / buckets } else { self.time }
    }
}

/// Seconds of a stage's work once in a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tail {
    /// Buckets in which gradients and weights are sent.
    pub buckets: f64,
    /// Gradients, beside the last passes that compute them or after these.
    pub gradients: Exchange,
    /// The gradients of a tied embedding, between the first and the last stage.
    pub tied: f64,
    pub update: f64,
    /// Update by the host, with transfers both ways.
    pub offload: f64,
    /// Weights, after the update or beside the first forward passes of the next step.
    pub weights: Exchange,
}

impl Tail {
    /// Buckets, at least one.
    fn parts(&self) -> f64 {
        self.buckets.max(1.0)
    }
}

/// All times of one kind of replica, in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    /// By virtual stage and phase.
    pub passes: Vec<[Pass; Phase::COUNT]>,
    /// By stage: one send to another.
    pub sends: Vec<f64>,
    /// By stage.
    pub tails: Vec<Tail>,
}

/// How kinds of traffic that are under way at the same time affect each other and computing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Links {
    Apart,
    /// Kinds of traffic of one stage divide the rate of a level of the network equally; computing and traffic of a stage take
    /// (1 + `slowdown`) times as long while both are under way.
    Shared {
        /// Additional time, as a share of the time alone.
        slowdown: f64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// By virtual stage: the stage that has it.
    pub stage_of: Vec<u32>,
    /// By virtual stage: its share of the layers of its stage.
    pub shares: Vec<f64>,
    /// By kind of replica, or once where all have as many micro-batches; by stage: its passes in their order.
    pub orders: Vec<Vec<Vec<Task>>>,
    /// By kind of replica.
    pub costs: Vec<Costs>,
    pub replicas: Vec<usize>,
    /// Whether a stage waits until its sends have arrived.
    pub blocking: bool,
    /// How traffic affects other traffic and computing.
    pub links: Links,
    /// By kind of traffic: whether it crosses nodes.
    pub between: [bool; Traffic::COUNT],
    /// By kind of traffic: whether all replicas take part.
    pub joint: [bool; Traffic::COUNT],
    /// Relative standard deviation of the computing time of a rank in a step.
    pub jitter: f64,
    /// Ranks that compute a stage of a replica together.
    pub ranks: u32,
}

/// Role of an operation of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Pass(Phase),
    /// Recomputation, before a backward pass.
    Recompute,
    Traffic {
        kind: Traffic,
        /// Whether it travels beside something else, so that the stage may not wait for it.
        overlapped: bool,
    },
    Update,
    /// The host issues a pass.
    Host,
    /// A wait for other replicas or for a first bucket.
    Wait,
}

/// Role and place of an operation of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub role: Role,
    pub stage: u32,
    pub micro_batch: Option<u32>,
}

impl Pipeline {
    pub fn build(&self) -> Result<Built, ProgramError> {
        let mut built = build::operations(self)?;
        self.connect(&mut built.program);
        if self.jitter > 0.0 {
            let lanes = (0..built.program.graph.local_lanes()).map(|lane| self.is_computing(lane)).collect();
            built.program.spread = Some(LaneSpread { jitter: self.jitter, devices: self.ranks, lanes });
        }
        Ok(built)
    }
}

#[cfg(test)]
mod tests;

/// Local lanes of a stage: computing, one for every kind of traffic, and where replicas meet.
const LANES: usize = 2 + Traffic::COUNT;

/// Pools of a stage: computing, and traffic within nodes and between them.
const POOLS: u32 = 3;

impl Pipeline {
    fn stages(&self) -> usize {
        self.orders.first().map_or(0, Vec::len)
    }

    fn computing(stage: usize) -> LocalLane {
        (stage * LANES) as LocalLane
    }

    /// The local lane of a kind of traffic of a stage. Sends in either direction leave through one
    /// port.
    fn traffic(stage: usize, kind: Traffic) -> LocalLane {
        let kind = if kind == Traffic::SendBackward { Traffic::SendForward } else { kind };
        (stage * LANES + 1 + kind as usize) as LocalLane
    }

    fn is_alone(&self) -> bool {
        self.stage_of.len() == 1
    }

    fn meeting(stage: usize) -> LocalLane {
        (stage * LANES + LANES - 1) as LocalLane
    }

    fn waiting(&self) -> LocalLane {
        (self.stages() * LANES) as LocalLane
    }

    fn is_computing(&self, lane: LocalLane) -> bool {
        usize::from(lane).is_multiple_of(LANES) && lane < self.waiting()
    }

    fn local_lanes(&self) -> Result<LocalLane, ProgramError> {
        LocalLane::try_from(self.stages() * LANES + 1)
            .map_err(|_| ProgramError(format!("{} stages are too many to simulate", self.stages())))
    }

    /// Adds replicas with their lanes and pools. They begin their steps together.
    fn connect(&self, program: &mut Program) {
        program.coordination = Synchronisation::Bsp;
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
