//! Links with max-min fair sharing: a flow crosses ports (its worker's, its server's, a switch's), every port has a
//! capacity, and a flow could be faster only if another that is no faster became slower.
//!
//! Rates are found by progressive filling: raise all flows together until a port is full, fix its flows, go on with
//! the rest. O(flows · ports) for each change of the set of flows. Reproduces the sharing rule of Li 2020 for two
//! servers wherever that rule is defined, and covers the case that it leaves open, and more servers (errata 3.4).

use crate::engine::state::share;

/// Most ports that a flow crosses: worker, server, switch.
const MAX_PORTS: usize = 3;

/// The ports of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    ports: [u32; MAX_PORTS],
    length: u8,
}

impl Route {
    /// A route over at most three ports (worker, server, switch); further ones are ignored.
    pub fn new(over: &[u32]) -> Self {
        let mut ports = [0; MAX_PORTS];
        let length = over.len().min(MAX_PORTS);
        ports[..length].copy_from_slice(&over[..length]);
        Self { ports, length: length as u8 }
    }

    /// The ports.
    pub fn ports(&self) -> &[u32] {
        &self.ports[..usize::from(self.length)]
    }
}

/// Max-min fair rates of `routes` over ports of the given capacities.
pub fn max_min(capacities: &[f64], routes: &[Route]) -> Vec<f64> {
    let mut filling = Filling::default();
    let mut rates = vec![0.0; routes.len()];
    filling.fill(capacities, routes.iter().copied(), |flow, rate| rates[flow] = rate);
    rates
}

/// Scratch space of progressive filling, kept so that events allocate nothing.
#[derive(Debug, Clone, Default)]
struct Filling {
    left: Vec<f64>,
    flows: Vec<u32>,
    full: Vec<bool>,
    open: Vec<(u32, Route)>,
}

impl Filling {
    fn fill(
        &mut self,
        capacities: &[f64],
        routes: impl Iterator<Item = Route>,
        mut assign: impl FnMut(usize, f64),
    ) {
        self.left.clear();
        self.left.extend_from_slice(capacities);
        self.flows.clear();
        self.flows.resize(capacities.len(), 0);
        self.open.clear();
        for (flow, route) in routes.enumerate() {
            self.open.push((flow as u32, route));
            for &port in route.ports() {
                self.flows[port as usize] += 1;
            }
        }
        while !self.open.is_empty() {
            let shares = self.left.iter().zip(&self.flows).filter(|(_, flows)| **flows > 0);
            let share = shares.map(|(left, flows)| left / f64::from(*flows)).fold(f64::INFINITY, f64::min);
            let share = share.max(0.0);
            // A port is full if it cannot give its flows more than the smallest share.
            self.full.clear();
            let ports = self.left.iter().zip(&self.flows);
            self.full.extend(ports.map(|(left, flows)| left / f64::from(*flows) <= share * (1.0 + 1e-12)));
            let Self { left, flows, full, open } = self;
            open.retain(|(flow, route)| {
                if !route.ports().iter().any(|&port| full[port as usize]) {
                    return true;
                }
                assign(*flow as usize, share);
                for &port in route.ports() {
                    left[port as usize] -= share;
                    flows[port as usize] -= 1;
                }
                false
            });
        }
    }
}

/// A flow under way: the chunk of a lane.
#[derive(Debug, Clone, Copy)]
struct Flow {
    lane: u32,
    sequence: u64,
    remaining: f64,
    rate: f64,
    route: Route,
}

/// All flows over all ports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Links {
    capacities: Vec<f64>,
    flows: Vec<Flow>,
    filling: Filling,
    rates: Vec<f64>,
    now: f64,
    /// By port: bytes that it has carried.
    carried: Vec<f64>,
}

impl Links {
    pub(crate) fn new(capacities: Vec<f64>) -> Self {
        let carried = vec![0.0; capacities.len()];
        Self { capacities, carried, ..Self::default() }
    }

    /// Number of ports.
    pub(crate) fn ports(&self) -> u32 {
        self.capacities.len() as u32
    }

    /// Share of each port's capacity that was used in `time`.
    pub(crate) fn used(&self, time: f64) -> Vec<f64> {
        let ports = self.carried.iter().zip(&self.capacities);
        ports.map(|(carried, capacity)| share(*carried, capacity * time)).collect()
    }

    fn advance(&mut self, now: f64) {
        let elapsed = now - self.now;
        self.now = now;
        for flow in &mut self.flows {
            let moved = elapsed * flow.rate;
            flow.remaining = (flow.remaining - moved).max(0.0);
            for &port in flow.route.ports() {
                self.carried[port as usize] += moved;
            }
        }
    }

    fn share(&mut self) {
        let Self { capacities, flows, filling, rates, .. } = self;
        rates.clear();
        rates.resize(flows.len(), 0.0);
        filling.fill(capacities, flows.iter().map(|flow| flow.route), |flow, rate| rates[flow] = rate);
        for (flow, rate) in flows.iter_mut().zip(rates) {
            flow.rate = *rate;
        }
    }

    pub(crate) fn add(&mut self, now: f64, lane: u32, sequence: u64, amount: f64, route: Route) {
        self.advance(now);
        self.flows.push(Flow { lane, sequence, remaining: amount, rate: 0.0, route });
        self.share();
    }

    /// Share of a port's capacity that is used, and by how many flows.
    pub(crate) fn load(&self, port: u32) -> (f64, u32) {
        let over = self.flows.iter().filter(|flow| flow.route.ports().contains(&port));
        let (rate, flows) = over.fold((0.0, 0), |(rate, flows), flow| (rate + flow.rate, flows + 1));
        (rate / self.capacities[port as usize], flows)
    }

    fn first(&self) -> Option<(usize, f64)> {
        let left = |flow: &Flow| if flow.remaining > 0.0 { flow.remaining / flow.rate } else { 0.0 };
        let entries = self.flows.iter().enumerate().map(|(index, flow)| (index, left(flow)));
        entries.reduce(|a, b| {
            let earlier = b.1 < a.1 || (b.1 <= a.1 && self.flows[b.0].sequence < self.flows[a.0].sequence);
            if earlier { b } else { a }
        })
    }

    pub(crate) fn next(&self) -> Option<(f64, u64)> {
        self.first().map(|(index, left)| (self.now + left, self.flows[index].sequence))
    }

    pub(crate) fn pop(&mut self, now: f64) -> Option<u32> {
        let (index, _) = self.first()?;
        self.advance(now);
        let flow = self.flows.swap_remove(index);
        self.share();
        Some(flow.lane)
    }
}

#[cfg(test)]
mod tests;
