//! Program of the engine: a step graph, the lanes and stations that serve it, and the work of every operation.

use crate::engine::lane::{Discipline, LaneSpec, Station};
use crate::engine::rendezvous::RendezvousSpec;
use crate::engine::stations::tcp::TcpSpec;
use crate::graph::{GraphError, StepGraph};
use std::collections::{BTreeMap, BTreeSet};
use stepcast_core::strategy::Synchronisation;

/// Shared resource: with n customers each gets min(`cap`, `capacity` / n), or a part in proportion to its weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolSpec {
    /// Units of work a second, all customers together.
    pub capacity: f64,
    /// Units of work a second, one customer alone.
    pub cap: f64,
    /// Whether customers are weighed by [`StepWork::share`]. A weighted pool has no cap of its own.
    pub weighted: bool,
}

impl PoolSpec {
    /// A pool that one customer alone may use up, shared equally.
    pub fn equal(capacity: f64) -> Self {
        Self { capacity, cap: capacity, weighted: false }
    }
}

/// Pools that slow each other down: while both kinds are busy, everything on them takes (1 + `slowdown`) times as long.
#[derive(Debug, Clone, PartialEq)]
pub struct Coupling {
    /// Pools on which workers compute, in order.
    pub computing: Vec<u32>,
    /// Pools that carry their exchange, in order; slowed while any worker computes, because all wait for the slowest.
    pub exchange: Vec<u32>,
    /// Additional time while both are busy, as a share of the time alone.
    pub slowdown: f64,
}

/// Lanes that are slower in some steps than in others, each by a separate factor that holds for the whole step.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneSpread {
    /// Relative standard deviation of the time of one device.
    pub jitter: f64,
    /// Devices that work on a lane's operations together; the slowest sets the pace.
    pub devices: u32,
    /// By local lane: whether its times spread.
    pub lanes: Vec<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct StepWork {
    /// Units of work by operation: seconds on a lane of rate 1, bytes on a link.
    pub work: Vec<f64>,
    /// Operations without prerequisites, in the order in which they join their queues.
    pub sources: Vec<u32>,
    /// By operation: of those that wait, a ranked lane serves the lowest first. Empty where no lane is ranked.
    pub rank: Vec<u32>,
    /// Weight of the worker's flows on links and weighted pools during this step: 1 on average.
    pub share: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// Operations and dependencies of a step.
    pub graph: StepGraph,
    pub lanes: Vec<LaneSpec>,
    /// The lane for each local lane of each worker: `lane_of[worker][local]`.
    pub lane_of: Vec<Vec<u32>>,
    pub pools: Vec<PoolSpec>,
    /// Capacities of ports.
    pub ports: Vec<f64>,
    /// Operations that all workers take part in.
    pub rendezvous: Vec<RendezvousSpec>,
    /// Computing and exchange that slow each other down; a pool is coupled once.
    pub couplings: Vec<Coupling>,
    pub tcp: Option<TcpSpec>,
    /// Steps to draw from, one list for each kind of worker.
    pub steps: Vec<Vec<StepWork>>,
    /// Variation of lanes from step to step, in addition to the drawn steps.
    pub spread: Option<LaneSpread>,
    pub kind: Vec<usize>,
    pub coordination: Synchronisation,
    /// Local lanes that are silent in steps without synchronisation (local SGD).
    pub silent_when_local: Vec<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ProgramError(pub String);

impl From<GraphError> for ProgramError {
    fn from(error: GraphError) -> Self {
        Self(error.to_string())
    }
}

impl Program {
    /// A program without workers, lanes or stations yet. Workers draw from the `steps` of their kind and do not wait for each
    /// other; no lane is silent in local steps.
    pub fn new(graph: StepGraph, steps: Vec<Vec<StepWork>>) -> Self {
        Self {
            lanes: Vec::new(),
            lane_of: Vec::new(),
            pools: Vec::new(),
            ports: Vec::new(),
            rendezvous: Vec::new(),
            couplings: Vec::new(),
            tcp: None,
            steps,
            spread: None,
            kind: Vec::new(),
            coordination: Synchronisation::Async,
            silent_when_local: vec![false; usize::from(graph.local_lanes())],
            graph,
        }
    }

    pub fn add_lane(&mut self, spec: LaneSpec) -> u32 {
        self.lanes.push(spec);
        self.lanes.len() as u32 - 1
    }

    pub fn add_worker(&mut self, kind: usize, lanes: Vec<u32>) {
        self.kind.push(kind);
        self.lane_of.push(lanes);
    }

    pub fn add_worker_with_own_lanes(&mut self, kind: usize, specs: impl IntoIterator<Item = LaneSpec>) {
        let lanes = specs.into_iter().map(|spec| self.add_lane(spec)).collect();
        self.add_worker(kind, lanes);
    }

    pub fn workers(&self) -> usize {
        self.lane_of.len()
    }

    /// How many workers use each of the stations that `of` names for a lane.
    pub(crate) fn users(&self, of: impl Fn(&LaneSpec) -> Vec<u32>) -> BTreeMap<u32, u32> {
        let mut users = BTreeMap::new();
        for lanes in &self.lane_of {
            let used: BTreeSet<u32> = lanes.iter().flat_map(|&lane| of(&self.lanes[lane as usize])).collect();
            for station in used {
                *users.entry(station).or_default() += 1;
            }
        }
        users
    }

    /// Whether all workers wait for each other in every step, or in every few.
    pub fn meets(&self) -> bool {
        matches!(
            self.coordination,
            Synchronisation::Bsp | Synchronisation::Ssp(0) | Synchronisation::LocalSgd(_)
        ) || !self.rendezvous.is_empty()
    }

    /// Whether workers that begin the same step at the same moment stay together until its end: they affect each other
    /// only where all are served alike. Where workers do not wait for each other, they would rarely begin together.
    pub(crate) fn is_foldable(&self) -> bool {
        let mut users = vec![0u32; self.lanes.len()];
        for &lane in self.lane_of.iter().flatten() {
            users[lane as usize] += 1;
        }
        let alike = |(spec, users): (&LaneSpec, &u32)| match (spec.discipline, spec.station) {
            (Discipline::Lock | Discipline::Barrier(_), _) | (_, Station::Tcp { .. }) => false,
            (Discipline::Rendezvous(_) | Discipline::Delay, _) => true,
            _ => *users < 2,
        };
        self.meets()
            && self.spread.is_none()
            && !self.graph.has_subscribers()
            && self.lanes.iter().zip(&users).all(alike)
            && self.ports_are_alike()
    }

    /// Whether every port belongs to one worker, or is used by all of them in the same way.
    fn ports_are_alike(&self) -> bool {
        let mut uses: BTreeMap<u32, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
        for (worker, lanes) in self.lane_of.iter().enumerate() {
            for (local, &lane) in lanes.iter().enumerate() {
                let Station::Links(route) = self.lanes[lane as usize].station else { continue };
                for &port in route.ports() {
                    uses.entry(port).or_default().entry(worker).or_default().push(local);
                }
            }
        }
        uses.values().all(|by_worker| {
            let mut lanes = by_worker.values();
            let first = lanes.next();
            by_worker.len() == 1 || by_worker.len() == self.workers() && lanes.all(|own| Some(own) == first)
        })
    }

    /// Checks that all indices and amounts make sense.
    pub fn check(&self) -> Result<(), ProgramError> {
        let wrong = |reason: String| Err(ProgramError(reason));
        if self.lane_of.is_empty() || self.kind.len() != self.lane_of.len() {
            return wrong("a program needs workers, each of a kind".to_owned());
        }
        if self.lane_of.iter().any(|row| row.len() != usize::from(self.graph.local_lanes())) {
            return wrong("every worker needs all local lanes".to_owned());
        }
        if self.lane_of.iter().flatten().any(|&lane| lane as usize >= self.lanes.len()) {
            return wrong("a worker uses a lane that does not exist".to_owned());
        }
        if self.kind.iter().any(|&kind| self.steps.get(kind).is_none_or(Vec::is_empty)) {
            return wrong("a kind of worker has no steps to draw from".to_owned());
        }
        if self.silent_when_local.len() != usize::from(self.graph.local_lanes()) {
            return wrong("every local lane is either silent in local steps or not".to_owned());
        }
        for step in self.steps.iter().flatten() {
            if step.work.len() != self.graph.len()
                || step.work.iter().any(|work| !(0.0..f64::INFINITY).contains(work))
            {
                return wrong("every operation of every step needs a finite amount of work".to_owned());
            }
            if !(step.share > 0.0 && step.share.is_finite()) {
                return wrong("a step has no share of links".to_owned());
            }
            if !step.rank.is_empty() && step.rank.len() != self.graph.len() {
                return wrong("a step ranks some operations and not others".to_owned());
            }
            let mut sources = step.sources.clone();
            sources.sort_unstable();
            if sources != self.graph.sources() {
                return wrong("a step's sources are not those of the graph".to_owned());
            }
        }
        for lane in &self.lanes {
            let sound = match lane.station {
                Station::Own(rate) => rate > 0.0 && rate.is_finite(),
                Station::Pool(pool) => (pool as usize) < self.pools.len(),
                Station::Tcp { worker, .. } => self.tcp.is_some() && (worker as usize) < self.workers(),
                Station::Links(route) => {
                    !route.ports().is_empty()
                        && route.ports().iter().all(|&port| (port as usize) < self.ports.len())
                }
            };
            let meets = match lane.discipline {
                Discipline::Rendezvous(which) => (which as usize) < self.rendezvous.len(),
                _ => true,
            };
            let starts = lane.startup_pool.is_none_or(|pool| (pool as usize) < self.pools.len());
            if !sound || !meets || !starts || !(0.0..f64::INFINITY).contains(&lane.startup) {
                return wrong("a lane has no station, or one without a rate".to_owned());
            }
        }
        if self.rendezvous.iter().any(|rendezvous| rendezvous.parties as usize != self.workers()) {
            return wrong("a rendezvous needs all workers".to_owned());
        }
        for coupling in &self.couplings {
            let mut pools = coupling.computing.iter().chain(&coupling.exchange);
            if !(0.0..f64::INFINITY).contains(&coupling.slowdown)
                || pools.any(|&pool| pool as usize >= self.pools.len())
            {
                return wrong("pools that do not exist are coupled, or by no factor".to_owned());
            }
        }
        let lanes = usize::from(self.graph.local_lanes());
        let spreads = |spread: &LaneSpread| {
            spread.lanes.len() == lanes && (0.0..f64::INFINITY).contains(&spread.jitter)
        };
        if self.spread.as_ref().is_some_and(|spread| !spreads(spread)) {
            return wrong("the spread of lanes is not finite, or misses some".to_owned());
        }
        let positive = |rate: f64| rate > 0.0 && !rate.is_nan();
        let pools = self.pools.iter().all(|pool| positive(pool.capacity) && positive(pool.cap));
        if !pools || !self.ports.iter().all(|&capacity| positive(capacity) && capacity.is_finite()) {
            return wrong("a pool or port has no capacity".to_owned());
        }
        Ok(())
    }
}
