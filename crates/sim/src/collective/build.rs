//! From ways and rounds to a program.
//!
//! All workers have the same operations. Those that take no part in a send have it too, but then it takes no time and waits
//! for nobody else.

use super::Machines;
use crate::coordinate::Coordination;
use crate::graph::{LocalLane, OpId, OpSpec, StepGraph};
use crate::lane::{LaneSpec, Station};
use crate::network::Route;
use crate::program::{Program, ProgramError, StepWork};
use std::collections::BTreeMap;
use stepcast_core::quantity::Bytes;

/// Whom each worker sends to: at most one, who hears from at most one.
pub(super) struct Way {
    to: Vec<Option<u32>>,
    /// Whether other sends of the two workers may be under way at the same time.
    shared: bool,
}

impl Way {
    /// A way whose sends have the ports of both workers to themselves.
    pub(super) fn alone(to: impl Iterator<Item = Option<u32>>) -> Self {
        Self { to: to.collect(), shared: false }
    }

    /// A way whose sends share ports with others, fairly.
    pub(super) fn shared(to: impl Iterator<Item = Option<u32>>) -> Self {
        Self { to: to.collect(), shared: true }
    }

    /// The way back.
    fn from(&self) -> Vec<Option<u32>> {
        let mut from = vec![None; self.to.len()];
        for (sender, to) in (0..).zip(&self.to) {
            if let Some(to) = to {
                from[*to as usize] = Some(sender);
            }
        }
        from
    }
}

/// Index of a way.
pub(super) type WayId = u16;

/// Local lanes: combining what arrives; hearing of what needs no combining; then one for every way.
const COMBINING: LocalLane = 0;
const HEARING: LocalLane = 1;
const SENDING: LocalLane = 2;

/// What an operation is for those who take part in its way.
enum Part {
    Begin,
    /// Sending a share of the data.
    Send(WayId, f64),
    /// Hearing of it, and combining it unless the share is nought.
    Arrival(WayId, f64),
}

/// A program in the making.
pub(super) struct Builder<'a> {
    pub(super) machines: &'a Machines,
    size: Bytes,
    ways: Vec<Way>,
    /// Neighbours: ways there and back. Where a way is the first is `forward`.
    neighbours: Vec<Vec<Option<u32>>>,
    forward: Vec<u16>,
    specs: Vec<OpSpec>,
    parts: Vec<Part>,
    told: Vec<(OpId, u16, OpId)>,
    /// What ends a worker's last round.
    before: Vec<OpId>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(machines: &'a Machines, size: Bytes) -> Self {
        let begin = OpSpec { name: "begin".to_owned(), lane: HEARING, after: vec![], releases: None };
        Self {
            machines,
            size,
            ways: Vec::new(),
            neighbours: Vec::new(),
            forward: Vec::new(),
            specs: vec![begin],
            parts: vec![Part::Begin],
            told: Vec::new(),
            before: vec![0],
        }
    }

    pub(super) fn workers(&self) -> u32 {
        self.machines.ports.len() as u32
    }

    pub(super) fn way(&mut self, way: Way) -> WayId {
        self.forward.push(self.neighbours.len() as u16);
        self.neighbours.push(way.to.clone());
        self.ways.push(way);
        self.ways.len() as WayId - 1
    }

    fn add(&mut self, name: String, lane: LocalLane, after: Vec<OpId>, part: Part) -> OpId {
        self.specs.push(OpSpec { name, lane, after, releases: None });
        self.parts.push(part);
        self.specs.len() as OpId - 1
    }

    /// What a worker does when a share of the data has come to it on a way.
    pub(super) fn arrival(&mut self, way: WayId, share: f64, combines: bool) -> OpId {
        let (what, lane, share) =
            if combines { ("combine", COMBINING, share) } else { ("hear", HEARING, 0.0) };
        let name = format!("{what} {}", self.specs.len());
        self.add(name, lane, vec![], Part::Arrival(way, share))
    }

    /// Sends a share of the data on a way; `arrival` is what the one who gets it does then.
    pub(super) fn send(&mut self, way: WayId, share: f64, after: Vec<OpId>, arrival: OpId) -> OpId {
        let name = format!("send {}", self.specs.len());
        let send = self.add(name, SENDING + way, after, Part::Send(way, share));
        self.told.push((send, self.forward[usize::from(way)], arrival));
        send
    }

    /// The next round: a worker sends when it is through with the one before, and so is the one who is to hear it. A port
    /// therefore carries one message at a time.
    pub(super) fn round(&mut self, way: WayId, share: f64, combines: bool) {
        let through = self.before.clone();
        let send = self.go_on(way, share, combines);
        if through != [0] {
            let back = self.neighbours.len() as u16;
            self.neighbours.push(self.ways[usize::from(way)].from());
            self.told.extend(through.into_iter().map(|op| (op, back, send)));
        }
    }

    /// Rounds of a ring of `workers` who have `part` of the data: a share of it in every round. Nobody needs to wait for the
    /// next one to be ready, who hears from nobody else.
    pub(super) fn around(&mut self, way: WayId, workers: u32, part: f64, combines: bool) {
        for _ in 1..workers {
            self.go_on(way, part / f64::from(workers), combines);
        }
    }

    fn go_on(&mut self, way: WayId, share: f64, combines: bool) -> OpId {
        let arrival = self.arrival(way, share, combines);
        let before = std::mem::take(&mut self.before);
        let send = self.send(way, share, before, arrival);
        self.before = vec![send, arrival];
        send
    }

    pub(super) fn program(self) -> Result<Program, ProgramError> {
        let workers = self.workers();
        let sending = self.ways.len() as LocalLane;
        let graph = StepGraph::new(&self.specs, SENDING + sending)
            .and_then(|graph| graph.with_neighbours(&self.told))
            .map_err(|error| ProgramError(error.to_string()))?;
        let (steps, kind) = self.steps(&graph);
        let per_worker = u32::from(SENDING + sending);
        let own = |worker: u32| (per_worker * worker..per_worker * (worker + 1)).collect();
        let row = |worker: usize| self.neighbours.iter().map(|to| to[worker]).collect();
        let machines = self.machines;
        let node_ports =
            machines.nodes.map(|nodes| (nodes.port.get(), workers.div_ceil(nodes.workers.max(1))));
        let node_ports = node_ports.into_iter().flat_map(|(port, nodes)| vec![port; 2 * nodes as usize]);
        Ok(Program {
            graph,
            lanes: (0..workers).flat_map(|worker| self.lanes(worker)).collect(),
            lane_of: (0..workers).map(own).collect(),
            neighbours: (0..workers as usize).map(row).collect(),
            pools: Vec::new(),
            // Out and in, of every worker, then of every node.
            ports: machines.ports.iter().flat_map(|port| [port.get(); 2]).chain(node_ports).collect(),
            gatherings: Vec::new(),
            coupling: None,
            tcp: None,
            steps,
            kind,
            coordination: Coordination::Bounded(0),
            silent_when_local: vec![true; usize::from(SENDING + sending)],
        })
    }

    /// The work of every kind of worker, and the kind of every worker: those who take the same parts are of one.
    fn steps(&self, graph: &StepGraph) -> (Vec<Vec<StepWork>>, Vec<usize>) {
        let from: Vec<_> = self.ways.iter().map(Way::from).collect();
        let mut kinds = BTreeMap::new();
        let mut steps = Vec::new();
        let mut kind = Vec::with_capacity(self.machines.ports.len());
        for worker in 0..self.machines.ports.len() {
            let sends = self.ways.iter().map(|way| way.to[worker].is_some());
            let hears = from.iter().map(|from| from[worker].is_some());
            let parts: Vec<(bool, bool)> = sends.zip(hears).collect();
            let number = *kinds.entry(parts).or_insert_with_key(|parts| {
                let work = self.parts.iter().map(|part| self.amount(part, parts)).collect();
                let sources = graph.sources().to_vec();
                steps.push(vec![StepWork { work, sources, rank: Vec::new() }]);
                steps.len() - 1
            });
            kind.push(number);
        }
        (steps, kind)
    }

    /// What a part is for a worker that sends and hears on some ways.
    fn amount(&self, part: &Part, takes: &[(bool, bool)]) -> f64 {
        match *part {
            Part::Send(way, share) if takes[usize::from(way)].0 => share * self.size.get(),
            Part::Arrival(way, share) if takes[usize::from(way)].1 => {
                share * self.size.get() * self.machines.combine_byte.get()
            }
            _ => 0.0,
        }
    }

    fn lanes(&self, worker: u32) -> impl Iterator<Item = LaneSpec> {
        let sending = self.ways.iter().map(move |way| match way.to[worker as usize] {
            Some(to) => self.lane(worker, to, way.shared),
            None => LaneSpec::own(1.0),
        });
        [LaneSpec::own(1.0); SENDING as usize].into_iter().chain(sending)
    }

    fn lane(&self, from: u32, to: u32, shared: bool) -> LaneSpec {
        let Machines { ports, step, nodes, .. } = self.machines;
        let links = |from: u32, to: u32| Station::Links(Route::new(&[2 * from, 2 * to + 1]));
        let crossing = nodes.filter(|nodes| from / nodes.workers.max(1) != to / nodes.workers.max(1));
        let (station, startup) = match crossing {
            Some(nodes) => {
                let node = |worker: u32| self.workers() + worker / nodes.workers.max(1);
                (links(node(from), node(to)), nodes.step)
            }
            None if shared => (links(from, to), *step),
            None => (Station::Own(ports[from as usize].min(ports[to as usize]).get()), *step),
        };
        LaneSpec { station, startup: startup.get(), ..LaneSpec::own(1.0) }
    }
}
