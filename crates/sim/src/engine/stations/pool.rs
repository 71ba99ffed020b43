//! A resource that serves all its customers at once, each in proportion to its weight: a link shared by flows, or a
//! host's cores shared by its processes.
//!
//! With a total weight of W a customer of weight w is served at w · min(cap, capacity / W). Because all are served in
//! proportion, one number tells how far all have come: the service that a customer of weight 1 present since the
//! beginning would have received. A customer of size s that comes when it stands at v leaves when it reaches v + s / w.
//! Adding and completing cost O(log n); progressive filling, which [`links`](super::links) need, costs O(n).
//!
//! A customer may stand for several equal ones: they come, are served and leave together.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// One customer: a lane whose chunk is being served.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Customer {
    leaves_at: f64,
    sequence: u64,
    lane: u32,
    demand: Demand,
}

/// What a customer takes of a resource while it is served.
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
    /// The one to leave first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.leaves_at.total_cmp(&self.leaves_at).then(other.sequence.cmp(&self.sequence))
    }
}

/// An equally shared resource.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    capacity: f64,
    cap: f64,
    /// Share of its rate that is left while a coupled pool slows it down.
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
