//! Pools in the engine: lanes join and leave, one event stands for each pool, and coupled pools slow each other down.

use crate::engine::lane::{Discipline, Station};
use crate::engine::observe::{Observer, Shared};
use crate::engine::schedule::Slot;
use crate::engine::{Engine, share};
use crate::program::{PoolSpec, Program};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Debug, Clone)]
pub(in crate::engine) struct Pools {
    pools: Vec<Pool>,
    /// The pool whose event has still to be moved.
    unsettled: Option<usize>,
    /// By pool: whether it served a chunk at the last check.
    was_busy: Vec<bool>,
    coupled: Vec<Option<(usize, Side)>>,
    /// By coupling and side: pools that are busy.
    busy: Vec<[u32; 2]>,
    /// By pool: how its customers are weighed.
    rules: Vec<Rule>,
}

/// Purpose of a coupled pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Computing,
    Exchange,
}

/// How the customers of a station are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct Rule {
    /// By the share of their worker's step; otherwise all alike.
    pub(in crate::engine) weighted: bool,
    /// Whether several workers use it: a worker that stands for others then stands for their customers too.
    pub(in crate::engine) shared: bool,
}

impl Pools {
    pub(super) fn new(program: &Program) -> Self {
        let specs = &program.pools;
        let users = program.users(|lane| match lane.station {
            Station::Pool(pool) => vec![pool],
            _ => Vec::new(),
        });
        let rule = |(pool, spec): (u32, &PoolSpec)| Rule {
            weighted: spec.weighted,
            shared: users.get(&pool).is_some_and(|users| *users > 1),
        };
        let mut coupled = vec![None; specs.len()];
        for (which, coupling) in program.couplings.iter().enumerate() {
            for (pools, side) in
                [(&coupling.computing, Side::Computing), (&coupling.exchange, Side::Exchange)]
            {
                for &pool in pools {
                    coupled[pool as usize] = Some((which, side));
                }
            }
        }
        Self {
            coupled,
            busy: vec![[0; 2]; program.couplings.len()],
            rules: (0..).zip(specs).map(rule).collect(),
            pools: specs.iter().map(|spec| Pool::new(spec.capacity, spec.cap)).collect(),
            unsettled: None,
            was_busy: vec![false; specs.len()],
        }
    }

    pub(in crate::engine) fn used(&self, time: f64) -> Vec<f64> {
        self.pools.iter().map(|pool| share(pool.used, pool.capacity() * time)).collect()
    }
}

impl<O: Observer> Engine<'_, O> {
    /// A lane's chunk, or its start-up, begins to be served by a pool.
    pub(in crate::engine) fn join_pool(&mut self, pool: u32, lane: u32, sequence: u64, amount: f64) {
        let pool = pool as usize;
        let demand = self.demand(lane, self.stations.pools.rules[pool]);
        self.stations.pools.pools[pool].add(self.now, lane, sequence, amount, demand);
        self.pool_changed(pool);
        self.couple(pool);
    }

    /// Demand of the active chunk of a lane on a station.
    #[inline]
    pub(in crate::engine) fn demand(&self, lane: u32, rule: Rule) -> Demand {
        let state = &self.lanes[lane as usize];
        let worker = match (state.spec.discipline, &state.active) {
            // An operation of all workers happens once.
            (Discipline::Rendezvous(_), _) | (_, None) => return Demand { weight: 1.0, copies: 1 },
            (_, Some(chunk)) => chunk.job.worker,
        };
        Demand {
            weight: if rule.weighted { self.workers.share(worker) } else { 1.0 },
            copies: if rule.shared { self.workers.copies(worker) } else { 1 },
        }
    }

    /// The first chunk of a pool has been served.
    pub(in crate::engine) fn pool_due(&mut self, pool: usize) {
        let lane = self.stations.pools.pools[pool].pop(self.now);
        self.pool_changed(pool);
        self.couple(pool);
        if let Some(lane) = lane {
            self.lane_due(lane);
        }
    }

    /// A pool has another first chunk, or another rate. Most events make one chunk leave and the next one join the same
    /// pool, so its event is moved once, when the next event is looked for, and not at every change.
    #[inline]
    fn pool_changed(&mut self, pool: usize) {
        if self.stations.pools.unsettled != Some(pool) {
            self.settle_pool();
            self.stations.pools.unsettled = Some(pool);
        }
    }

    /// Moves the event of the pool that has changed.
    #[inline(always)]
    pub(in crate::engine) fn settle_pool(&mut self) {
        let Some(index) = self.stations.pools.unsettled.take() else { return };
        let pool = &self.stations.pools.pools[index];
        if O::LEVELS {
            let (share, customers) = pool.load();
            self.observer.load(Shared::Pool(index as u32), self.now, share, customers);
        }
        self.schedule.set_or_remove(Slot::Pool(index as u32), pool.next());
    }

    /// A chunk has joined or left a pool: computing and exchange may have begun to overlap, or ceased to.
    #[inline]
    fn couple(&mut self, pool: usize) {
        if let Some((which, side)) = self.stations.pools.coupled[pool] {
            self.slow_down_coupled(pool, which, side);
        }
    }

    #[inline(never)]
    fn slow_down_coupled(&mut self, pool: usize, which: usize, side: Side) {
        let pools = &mut self.stations.pools;
        let busy = pools.pools[pool].is_busy();
        if std::mem::replace(&mut pools.was_busy[pool], busy) == busy {
            return;
        }
        let count = &mut pools.busy[which][side as usize];
        let before = *count;
        *count = if busy { before + 1 } else { before - 1 };
        if before.min(*count) > 0 {
            return;
        }
        let coupling = &self.program.couplings[which];
        let speed = if busy { 1.0 / (1.0 + coupling.slowdown) } else { 1.0 };
        let others = match side {
            Side::Computing => &coupling.exchange,
            Side::Exchange => &coupling.computing,
        };
        for &other in others {
            self.set_pool_speed(other as usize, speed);
        }
    }

    fn set_pool_speed(&mut self, pool: usize, speed: f64) {
        self.stations.pools.pools[pool].set_speed(self.now, speed);
        self.pool_changed(pool);
    }
}

// A resource that serves all its customers at once, each in proportion to its weight: a link shared by flows, or a
// host's cores shared by its processes.
//
// With a total weight of W a customer of weight w is served at w · min(cap, capacity / W). Because all are served in
// proportion, one number gives the progress of all: the service that a customer of weight 1 present since the
// beginning would have received. A customer of size s that comes when it stands at v leaves when it reaches v + s / w.
// Adding and completing cost O(log n); progressive filling, which [`links`](super::links) need, costs O(n).
//
// A customer may stand for several equal ones: they come, are served and leave together.

/// One customer: a lane whose chunk is being served.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Customer {
    leaves_at: f64,
    sequence: u64,
    lane: u32,
    demand: Demand,
}

/// Demand of a customer on a resource while it is served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Demand {
    /// Its weight against other customers.
    pub(crate) weight: f64,
    /// The equal customers that it stands for.
    pub(crate) copies: u32,
}

impl Demand {
    /// Weight of all copies together.
    #[inline]
    pub(crate) fn total(self) -> f64 {
        self.weight * f64::from(self.copies)
    }
}

impl Eq for Customer {}

impl PartialOrd for Customer {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Customer {
    /// The customer that leaves first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.leaves_at.total_cmp(&self.leaves_at).then(other.sequence.cmp(&self.sequence))
    }
}

/// An equally shared resource.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    capacity: f64,
    cap: f64,
    /// Remaining share of its rate while a coupled pool slows it down.
    speed: f64,
    customers: BinaryHeap<Customer>,
    /// Weight of all customers, and their number with their copies.
    weight: f64,
    count: u32,
    service: f64,
    now: f64,
    /// Capacity · time that was used.
    pub(crate) used: f64,
}

impl Pool {
    pub(crate) fn new(capacity: f64, cap: f64) -> Self {
        // A cap below the capacity is that of a customer of weight 1.
        let cap = if cap < capacity { cap } else { f64::INFINITY };
        Self {
            capacity,
            cap,
            speed: 1.0,
            customers: BinaryHeap::new(),
            weight: 0.0,
            count: 0,
            service: 0.0,
            now: 0.0,
            used: 0.0,
        }
    }

    pub(crate) fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Rate of a customer of weight 1.
    #[inline]
    fn rate(&self) -> f64 {
        self.speed * self.cap.min(self.capacity / self.weight)
    }

    /// Share of the capacity that is used, and by how many customers.
    pub(crate) fn load(&self) -> (f64, u32) {
        match self.count {
            0 => (0.0, 0),
            customers => (self.rate() * self.weight / self.capacity, customers),
        }
    }

    pub(crate) fn is_busy(&self) -> bool {
        !self.customers.is_empty()
    }

    /// From `now` on, all customers are served at this share of the rate.
    pub(crate) fn set_speed(&mut self, now: f64, speed: f64) {
        self.advance(now);
        self.speed = speed;
    }

    #[inline]
    fn advance(&mut self, now: f64) {
        if self.customers.is_empty() {
            self.service = 0.0;
        } else {
            let served = (now - self.now) * self.rate();
            self.service += served;
            self.used += served * self.weight;
        }
        self.now = now;
    }

    /// A chunk of `amount` begins to be served.
    #[inline]
    pub(crate) fn add(&mut self, now: f64, lane: u32, sequence: u64, amount: f64, demand: Demand) {
        self.advance(now);
        self.weight += demand.total();
        self.count += demand.copies;
        let leaves_at = self.service + amount / demand.weight;
        self.customers.push(Customer { leaves_at, sequence, lane, demand });
    }

    /// When the next customer leaves, and its sequence number.
    #[inline]
    pub(crate) fn next(&self) -> Option<(f64, u64)> {
        let first = self.customers.peek()?;
        let time = self.now + ((first.leaves_at - self.service) / self.rate()).max(0.0);
        Some((time, first.sequence))
    }

    /// Removes the customer that leaves at `now`.
    #[inline]
    pub(crate) fn pop(&mut self, now: f64) -> Option<u32> {
        self.advance(now);
        let first = self.customers.pop()?;
        // Otherwise rounding errors would accumulate.
        self.service = self.service.max(first.leaves_at);
        self.count -= first.demand.copies;
        self.weight = if self.count == 0 { 0.0 } else { self.weight - first.demand.total() };
        Some(first.lane)
    }
}
