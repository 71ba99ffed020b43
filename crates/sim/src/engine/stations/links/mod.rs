//! Links with max-min fair sharing: a flow crosses ports (its worker's, its server's, a switch's), every port has a
//! capacity, and a flow could be faster only if another that is no faster for its weight became slower.
//!
//! Rates are found by progressive filling: raise all flows together, each in proportion to its weight, until a port is
//! full, fix its flows, go on with the rest. O(flows · ports) for each change of the set of flows. Reproduces the sharing rule of Li 2020 for two
//! servers wherever that rule is defined, and covers the case that it leaves open, and more servers (errata 3.4).

use super::pool::Demand;
use crate::engine::lane::Station;
use crate::engine::state::share;
use crate::program::Program;

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

/// Max-min fair rates of `routes` over ports of the given capacities, all flows of one weight.
pub fn max_min(capacities: &[f64], routes: &[Route]) -> Vec<f64> {
    let mut filling = Filling::default();
    let mut rates = vec![0.0; routes.len()];
    let demand = Demand { weight: 1.0, copies: 1 };
    let flows = routes.iter().map(|&route| (route, demand));
    filling.fill(capacities, &vec![true; capacities.len()], flows, |flow, rate| rates[flow] = rate);
    rates
}

/// Scratch space of progressive filling, kept so that events allocate nothing.
#[derive(Debug, Clone, Default)]
struct Filling {
    ports: Vec<Port>,
    /// Ports that open flows cross.
    crossed: Vec<u32>,
    open: Vec<(u32, Route, Demand)>,
    rates: Vec<f64>,
}

/// A port while rates are found.
#[derive(Debug, Clone, Copy, Default)]
struct Port {
    left: f64,
    /// Weight of the open flows that cross it, and their number.
    weight: f64,
    flows: u32,
    full: bool,
}

impl Filling {
    /// Finds the rate of every flow and gives it to `assign`. A flow that stands for several counts as all of them on
    /// ports that are `shared`.
    fn fill(
        &mut self,
        capacities: &[f64],
        shared: &[bool],
        flows: impl Iterator<Item = (Route, Demand)>,
        mut assign: impl FnMut(usize, f64),
    ) {
        self.ports.resize(capacities.len(), Port::default());
        self.crossed.clear();
        self.open.clear();
        let load = |port: usize, demand: Demand| if shared[port] { demand.total() } else { demand.weight };
        for (flow, (route, demand)) in flows.enumerate() {
            self.open.push((flow as u32, route, demand));
            for &index in route.ports() {
                let port = &mut self.ports[index as usize];
                if port.flows == 0 {
                    *port = Port { left: capacities[index as usize], ..Port::default() };
                    self.crossed.push(index);
                }
                port.weight += load(index as usize, demand);
                port.flows += 1;
            }
        }
        while !self.open.is_empty() {
            let Self { ports, crossed, open, .. } = self;
            crossed.retain(|&port| ports[port as usize].flows > 0);
            let level = |port: &Port| port.left / port.weight;
            let levels = crossed.iter().map(|&port| level(&ports[port as usize]));
            let lowest = levels.fold(f64::INFINITY, f64::min).max(0.0);
            // A port is full if it cannot give its flows more than the lowest level.
            for &port in crossed.iter() {
                let port = &mut ports[port as usize];
                port.full = level(port) <= lowest * (1.0 + 1e-12);
            }
            open.retain(|&(flow, route, demand)| {
                if !route.ports().iter().any(|&port| ports[port as usize].full) {
                    return true;
                }
                assign(flow as usize, lowest * demand.weight);
                for &index in route.ports() {
                    let port = &mut ports[index as usize];
                    let load = load(index as usize, demand);
                    port.left -= lowest * load;
                    port.weight -= load;
                    port.flows -= 1;
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
    demand: Demand,
}

/// All flows over all ports.
#[derive(Debug, Clone, Default)]
pub(crate) struct Links {
    capacities: Vec<f64>,
    /// By port: whether several workers use it.
    shared: Vec<bool>,
    flows: Vec<Flow>,
    filling: Filling,
    now: f64,
    /// By port: bytes that it has carried.
    carried: Vec<f64>,
    /// Whether flows have begun or ended since rates were last found.
    changed: bool,
}

impl Links {
    pub(crate) fn new(program: &Program) -> Self {
        let users = program.users(|lane| match lane.station {
            Station::Links(route) => route.ports().to_vec(),
            _ => Vec::new(),
        });
        let shared = |port: u32| users.get(&port).is_none_or(|users| *users > 1);
        let ports = program.ports.len();
        Self {
            capacities: program.ports.clone(),
            shared: (0..ports as u32).map(shared).collect(),
            carried: vec![0.0; ports],
            ..Self::default()
        }
    }

    /// Number of ports.
    pub(crate) fn ports(&self) -> u32 {
        self.capacities.len() as u32
    }

    /// Number of flows under way.
    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Share of each port's capacity that was used in `time`.
    pub(crate) fn used(&self, time: f64) -> Vec<f64> {
        let ports = self.carried.iter().zip(&self.capacities);
        ports.map(|(carried, capacity)| share(*carried, capacity * time)).collect()
    }

    fn advance(&mut self, now: f64) {
        let elapsed = now - self.now;
        self.now = now;
        if elapsed <= 0.0 {
            return;
        }
        for flow in &mut self.flows {
            let moved = elapsed * flow.rate;
            flow.remaining = (flow.remaining - moved).max(0.0);
            for &port in flow.route.ports() {
                let copies = if self.shared[port as usize] { flow.demand.copies } else { 1 };
                self.carried[port as usize] += moved * f64::from(copies);
            }
        }
    }

    /// Finds the rates of all flows again if some have begun or ended; whether they have.
    #[inline]
    pub(crate) fn settle(&mut self) -> bool {
        let changed = std::mem::take(&mut self.changed);
        if changed {
            self.fill();
        }
        changed
    }

    #[inline(never)]
    fn fill(&mut self) {
        let Self { capacities, shared, flows, filling, .. } = self;
        let mut rates = std::mem::take(&mut filling.rates);
        rates.resize(flows.len(), 0.0);
        let demands = flows.iter().map(|flow| (flow.route, flow.demand));
        filling.fill(capacities, shared, demands, |flow, rate| rates[flow] = rate);
        for (flow, rate) in flows.iter_mut().zip(&rates) {
            flow.rate = *rate;
        }
        filling.rates = rates;
    }

    pub(crate) fn add(
        &mut self,
        now: f64,
        lane: u32,
        sequence: u64,
        amount: f64,
        route: Route,
        demand: Demand,
    ) {
        self.advance(now);
        self.flows.push(Flow { lane, sequence, remaining: amount, rate: 0.0, route, demand });
        self.changed = true;
    }

    /// Share of a port's capacity that is used, and by how many flows.
    pub(crate) fn load(&self, port: u32) -> (f64, u32) {
        let over = self.flows.iter().filter(|flow| flow.route.ports().contains(&port));
        let copies = |flow: &Flow| if self.shared[port as usize] { flow.demand.copies } else { 1 };
        let (rate, flows) = over.fold((0.0, 0), |(rate, flows), flow| {
            (rate + flow.rate * f64::from(copies(flow)), flows + copies(flow))
        });
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

    /// When the next flow ends, and its sequence number; rates must be settled.
    pub(crate) fn next(&self) -> Option<(f64, u64)> {
        self.first().map(|(index, left)| (self.now + left, self.flows[index].sequence))
    }

    /// Removes the flow that ends at `now`; rates must be settled.
    pub(crate) fn pop(&mut self, now: f64) -> Option<u32> {
        let (index, _) = self.first()?;
        self.advance(now);
        let flow = self.flows.swap_remove(index);
        self.changed = true;
        Some(flow.lane)
    }
}

#[cfg(test)]
mod tests;
