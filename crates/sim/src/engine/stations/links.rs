//! Links with max-min fair sharing: a flow crosses ports (its worker's, its server's, a switch's), every port has a
//! capacity, and a flow could be faster only at the expense of another that is no faster for its weight.
//!
//! Rates are found by progressive filling: raise all flows together, each in proportion to its weight, until a port is
//! full, fix its flows, go on with the rest. O(flows + ports²) for each change of the set of flows. Reproduces the sharing
//! rule of Li 2020 for two servers wherever that rule is defined, and covers the case that it leaves open, and more
//! servers (errata 3.4).

use super::pools::Demand;
use crate::engine::lane::Station;
use crate::engine::share;
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
    open: Vec<OpenFlow>,
    /// Of flow `i` of `open` on port `k` of its route, at `i · MAX_PORTS + k`: the next flow on that port, in the same terms.
    next_on_port: Vec<u32>,
    full: Vec<u32>,
    rates: Vec<f64>,
}

/// The end of a list of flows.
const NONE: u32 = u32::MAX;

/// A flow whose rate is to be found.
#[derive(Debug, Clone, Copy)]
struct OpenFlow {
    index: u32,
    route: Route,
    demand: Demand,
    fixed: bool,
}

/// A port while rates are found.
#[derive(Debug, Clone, Copy, Default)]
struct Port {
    left: f64,
    /// Weight of the open flows that cross it, and their number.
    weight: f64,
    flows: u32,
    full: bool,
    /// The first of the open flows, as in `next_on_port`.
    first: u32,
}

impl Port {
    /// The rate that it can give its open flows, for each unit of their weight.
    fn level(&self) -> f64 {
        self.left / self.weight
    }

    fn is_full(&self, lowest: f64) -> bool {
        self.level() <= lowest * (1.0 + 1e-12)
    }

    /// Takes out a flow whose rate is `level` for each unit of its weight.
    fn fix(&mut self, level: f64, load: f64) {
        self.left -= level * load;
        self.weight -= load;
        self.flows -= 1;
    }
}

fn load(shared: &[bool], port: u32, demand: Demand) -> f64 {
    if shared[port as usize] { demand.total() } else { demand.weight }
}

impl Filling {
    /// Finds the rate of every flow and gives it to `assign`. A flow that stands for several counts as all of them on
    /// ports that are `shared`. Returns the number of examined flows and ports.
    fn fill(
        &mut self,
        capacities: &[f64],
        shared: &[bool],
        flows: impl Iterator<Item = (Route, Demand)>,
        mut assign: impl FnMut(usize, f64),
    ) -> u64 {
        self.ports.resize(capacities.len(), Port::default());
        self.crossed.clear();
        self.open.clear();
        for (index, (route, demand)) in flows.enumerate() {
            self.open.push(OpenFlow { index: index as u32, route, demand, fixed: false });
            for &index in route.ports() {
                let port = &mut self.ports[index as usize];
                if port.flows == 0 {
                    *port = Port { left: capacities[index as usize], ..Port::default() };
                    self.crossed.push(index);
                }
                port.weight += load(shared, index, demand);
                port.flows += 1;
            }
        }
        let all = self.open.len() as u64;
        self.fill_first_ports(shared, &mut assign);
        if self.open.is_empty() { all } else { all + self.fill_other_ports(shared, &mut assign) }
    }

    fn lowest_level(&self) -> f64 {
        let levels = self.crossed.iter().map(|&port| self.ports[port as usize].level());
        levels.fold(f64::INFINITY, f64::min).max(0.0)
    }

    /// The first round: examines all flows one after the other, since usually all cross a full port.
    fn fill_first_ports(&mut self, shared: &[bool], assign: &mut impl FnMut(usize, f64)) {
        let lowest = self.lowest_level();
        let Self { ports, crossed, open, .. } = self;
        for &port in crossed.iter() {
            let port = &mut ports[port as usize];
            port.full = port.is_full(lowest);
        }
        open.retain(|flow| {
            if !flow.route.ports().iter().any(|&port| ports[port as usize].full) {
                return true;
            }
            assign(flow.index as usize, lowest * flow.demand.weight);
            for &port in flow.route.ports() {
                ports[port as usize].fix(lowest, load(shared, port, flow.demand));
            }
            false
        });
    }

    /// The other rounds: each examines only the flows of the ports that fill in it.
    fn fill_other_ports(&mut self, shared: &[bool], assign: &mut impl FnMut(usize, f64)) -> u64 {
        for &port in &self.crossed {
            self.ports[port as usize].first = NONE;
        }
        self.next_on_port.resize(self.open.len() * MAX_PORTS, NONE);
        for (place, flow) in self.open.iter().enumerate().rev() {
            for (which, &port) in flow.route.ports().iter().enumerate() {
                let entry = place * MAX_PORTS + which;
                self.next_on_port[entry] = self.ports[port as usize].first;
                self.ports[port as usize].first = entry as u32;
            }
        }
        let (mut left, mut looked) = (self.open.len(), self.open.len() as u64);
        while left > 0 {
            let ports = &self.ports;
            self.crossed.retain(|&port| ports[port as usize].flows > 0);
            let lowest = self.lowest_level();
            let Self { ports, crossed, open, next_on_port, full, .. } = self;
            full.clear();
            full.extend(crossed.iter().filter(|&&port| ports[port as usize].is_full(lowest)));
            looked += crossed.len() as u64;
            for &port in full.iter() {
                let mut entry = ports[port as usize].first;
                while entry != NONE {
                    let flow = &mut open[entry as usize / MAX_PORTS];
                    if !flow.fixed {
                        flow.fixed = true;
                        left -= 1;
                        assign(flow.index as usize, lowest * flow.demand.weight);
                        for &port in flow.route.ports() {
                            ports[port as usize].fix(lowest, load(shared, port, flow.demand));
                        }
                    }
                    looked += 1;
                    entry = next_on_port[entry as usize];
                }
            }
        }
        looked
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
    /// Number of flows and ports examined when rates were last found.
    looked: u64,
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

    pub(crate) fn ports(&self) -> u32 {
        self.capacities.len() as u32
    }

    /// Number of flows and ports examined when rates were last found.
    pub(crate) fn looked(&self) -> u64 {
        self.looked
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

    /// Finds the rates of all flows again if some have begun or ended, and returns whether they have.
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
        self.looked = filling.fill(capacities, shared, demands, |flow, rate| rates[flow] = rate);
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Routes over a worker's port and a server's: workers 0..8 have ports 0..8, servers the ones behind.
    fn routes(pairs: &[(u32, u32)]) -> Vec<Route> {
        pairs.iter().map(|&(worker, server)| Route::new(&[worker, 8 + server])).collect()
    }

    #[test]
    fn one_flow_gets_all_and_equals_share() {
        let capacities = [1.0; 10];
        assert_eq!(max_min(&capacities, &routes(&[(0, 0)])), [1.0]);
        assert_eq!(max_min(&capacities, &routes(&[(0, 0), (1, 0)])), [0.5, 0.5]);
        // Alone on both servers: the worker's own port is shared.
        assert_eq!(max_min(&capacities, &routes(&[(0, 0), (0, 1)])), [0.5, 0.5]);
    }

    #[test]
    fn one_pending_flow_is_finished_before_a_later_one() {
        let mut links =
            Links { capacities: vec![2.0], shared: vec![true], carried: vec![0.0], ..Links::default() };
        let alone = Demand { weight: 1.0, copies: 1 };
        links.add(0.0, 7, 1, 4.0, Route::new(&[0]), alone);
        links.settle();
        links.add(1.0, 8, 2, 1.0, Route::new(&[0]), alone);
        links.settle();
        // 2 units are left of the first; both get 1 a second, the second ends at 2.
        assert_eq!(links.next(), Some((2.0, 2)));
        assert_eq!(links.pop(2.0), Some(8));
        links.settle();
        assert_eq!(links.next(), Some((2.5, 1)));
    }

    proptest! {
        /// What makes an allocation max-min fair: no port is overfull, and every flow crosses a full port on which
        /// no flow is faster.
        #[test]
        fn rates_are_max_min_fair(
            capacities in prop::collection::vec(0.1..10.0f64, 10),
            pairs in prop::collection::vec((0u32..8, 0u32..2), 1..60),
        ) {
            let routes = routes(&pairs);
            let rates = max_min(&capacities, &routes);
            let load = |port: u32| -> f64 {
                let crossing = routes.iter().zip(&rates).filter(|(route, _)| route.ports().contains(&port));
                crossing.map(|(_, rate)| rate).sum()
            };
            for port in 0..10u32 {
                prop_assert!(load(port) <= capacities[port as usize] * (1.0 + 1e-9));
            }
            for (route, rate) in routes.iter().zip(&rates) {
                let bottleneck = route.ports().iter().any(|&port| {
                    let full = load(port) >= capacities[port as usize] * (1.0 - 1e-9);
                    let mut others = routes.iter().zip(&rates).filter(|(other, _)| other.ports().contains(&port));
                    full && others.all(|(_, other)| *other <= rate * (1.0 + 1e-9))
                });
                prop_assert!(bottleneck, "{rates:?}");
            }
        }
    }
}
