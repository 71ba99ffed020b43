//! The event loop.
//!
//! One pending event per busy lane with a station of its own, one per pool, one for all links. An event is the end of
//! a chunk (or of a lane's start-up time). When the last chunk of an operation ends, its successors may become ready;
//! only then does its lane go on to the next chunk (Algorithm 3.1 of Li 2020, lines 18-31). Cost of an event:
//! O(log resources). Nothing is allocated per event once queues have grown to their largest.

use crate::coordinate::Coordinator;
use crate::graph::{LocalLane, OpId};
use crate::heap::{Due, Heap};
use crate::lane::{Discipline, Job, Lane, Station};
use crate::network::Network;
use crate::observe::Observer;
use crate::pool::Pool;
use crate::program::{Program, ProgramError};
use crate::sample::Sampler;
use crate::tcp::Tcp;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// When a simulation ends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Steps after which a worker stops.
    pub steps_per_worker: u64,
    /// Steps of the slowest worker after which everybody stops.
    pub steps_of_slowest: u64,
    /// Simulated seconds.
    pub time: f64,
    /// Events, against runaway programs.
    pub events: u64,
}

impl Limits {
    /// Every worker does so many steps, then stops.
    pub fn steps(steps: u64) -> Self {
        Self { steps_per_worker: steps, steps_of_slowest: u64::MAX, time: f64::INFINITY, events: u64::MAX }
    }

    /// Everybody works until the slowest has done so many steps.
    pub fn until_slowest(steps: u64) -> Self {
        Self { steps_of_slowest: steps, ..Self::steps(u64::MAX) }
    }
}

/// Why a simulation ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// All workers did their steps, or the slowest did.
    Completed,
    /// The simulated time was up.
    TimeLimit,
    /// The event budget was spent.
    EventBudget,
    /// Nothing can happen any more: names of operations that wait, with their workers.
    Deadlock(Vec<(u32, String)>),
}

/// What a simulation leaves behind.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// Simulated seconds.
    pub time: f64,
    /// Operations that ended.
    pub operations: u64,
    /// Steps that ended.
    pub steps: u64,
    /// Share of the time during which each lane was busy.
    pub lane_busy: Vec<f64>,
    /// Share of each pool's capacity that was used.
    pub pool_used: Vec<f64>,
    /// Share of each port's capacity that was used.
    pub port_used: Vec<f64>,
    /// Share of the server's port that TCP used, down and up.
    pub tcp_used: [f64; 2],
}

/// Runs a program from the beginning, workers starting together.
pub fn run<O: Observer>(
    program: &Program,
    seed: u64,
    limits: Limits,
    observer: &mut O,
) -> Result<Outcome, ProgramError> {
    program.check()?;
    let mut engine = Engine::new(program, seed, limits, observer);
    for worker in 0..program.workers() as u32 {
        engine.start_step(worker);
    }
    engine.tell_successors();
    let end = engine.run();
    Ok(engine.outcome(end))
}

/// An operation on a lane where nobody waits.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Delayed {
    until: f64,
    sequence: u64,
    worker: u32,
    op: OpId,
    lane: u32,
    since: f64,
}

impl Eq for Delayed {}

impl PartialOrd for Delayed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Delayed {
    /// The one that ends first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.until.total_cmp(&self.until).then(other.sequence.cmp(&self.sequence))
    }
}

struct Engine<'a, O> {
    program: &'a Program,
    limits: Limits,
    observer: &'a mut O,
    now: f64,
    sequence: u64,
    events: u64,
    operations: u64,
    updates: u64,
    lanes: Vec<Lane>,
    pools: Vec<Pool>,
    network: Network,
    heap: Heap,
    coordinator: Coordinator,
    sampler: Sampler,
    /// Work of all steps of all kinds, one after the other.
    work: Vec<f64>,
    /// Ranks, likewise; empty where no lane is ranked.
    rank: Vec<u32>,
    /// Where each kind's steps begin there.
    kind_base: Vec<usize>,
    /// Lane of every worker's local lane.
    lane_of: Vec<u32>,
    /// Per worker and operation: prerequisites still missing.
    waiting: Vec<u32>,
    /// Per worker: where the work of the step drawn begins, its operations left, its beginning, and updates made
    /// before it.
    step: Vec<usize>,
    left: Vec<u32>,
    began: Vec<f64>,
    updates_before: Vec<u64>,
    local: Vec<bool>,
    /// Jobs that have ended but whose successors have not been told; empty between events.
    ended: Vec<(u32, OpId)>,
    starting: Vec<u32>,
    tcp: Option<Tcp>,
    /// Lanes that are TCP connections.
    tcp_lanes: Vec<u32>,
    /// Operations on lanes where nobody waits.
    delayed: BinaryHeap<Delayed>,
    stopped: u32,
}

impl<'a, O: Observer> Engine<'a, O> {
    fn new(program: &'a Program, seed: u64, limits: Limits, observer: &'a mut O) -> Self {
        let workers = program.workers();
        let operations = program.graph.len();
        let sizes = program.steps.iter().map(|steps| steps.len() * operations);
        let mut sampler = Sampler::new(seed, workers);
        let kind_base = sizes.scan(0, |base, size| Some(std::mem::replace(base, *base + size))).collect();
        let slots = program.lanes.len() + program.pools.len() + 3;
        Self {
            program,
            limits,
            observer,
            now: 0.0,
            sequence: 0,
            events: 0,
            operations: 0,
            updates: 0,
            lanes: program.lanes.iter().map(|spec| Lane::new(*spec)).collect(),
            pools: program.pools.iter().map(|spec| Pool::new(spec.capacity, spec.cap)).collect(),
            network: Network::new(program.ports.clone()),
            heap: Heap::new(slots),
            coordinator: Coordinator::new(program.coordination, workers),
            work: program.steps.iter().flatten().flat_map(|step| step.work.iter().copied()).collect(),
            rank: program.steps.iter().flatten().flat_map(|step| step.rank.iter().copied()).collect(),
            kind_base,
            lane_of: program.lane_of.iter().flatten().copied().collect(),
            waiting: vec![0; workers * operations],
            step: vec![0; workers],
            left: vec![0; workers],
            began: vec![0.0; workers],
            updates_before: vec![0; workers],
            local: vec![false; workers],
            ended: Vec::new(),
            starting: Vec::new(),
            tcp: program.tcp.map(|spec| Tcp::new(spec, workers, &mut sampler)),
            tcp_lanes: (0..program.lanes.len() as u32)
                .filter(|&lane| matches!(program.lanes[lane as usize].station, Station::Tcp { .. }))
                .collect(),
            delayed: BinaryHeap::new(),
            sampler,
            stopped: 0,
        }
    }

    fn run(&mut self) -> End {
        loop {
            let workers = self.program.workers() as u32;
            if self.stopped == workers || self.coordinator.slowest() >= self.limits.steps_of_slowest {
                return End::Completed;
            }
            let Some((due, slot)) = self.heap.first() else { return End::Deadlock(self.stuck()) };
            if due.time > self.limits.time {
                self.now = self.limits.time;
                return End::TimeLimit;
            }
            if self.events >= self.limits.events {
                return End::EventBudget;
            }
            self.events += 1;
            self.now = due.time;
            self.dispatch(slot);
        }
    }

    fn dispatch(&mut self, slot: u32) {
        let lanes = self.lanes.len();
        let pools = self.pools.len();
        let slot = slot as usize;
        if slot < lanes {
            let starting = self.lanes[slot].active.as_mut().filter(|chunk| chunk.starting);
            if let Some(chunk) = starting {
                chunk.starting = false;
                self.heap.remove(slot as u32);
                self.serve(slot as u32);
            } else {
                self.chunk_ended(slot as u32);
            }
        } else if slot < lanes + pools {
            let lane = self.pools[slot - lanes].pop(self.now);
            self.retime_pool(slot - lanes);
            if let Some(lane) = lane {
                self.chunk_ended(lane);
            }
        } else if slot == lanes + pools {
            let lane = self.network.pop(self.now);
            self.retime_network();
            if let Some(lane) = lane {
                self.chunk_ended(lane);
            }
        } else if slot == lanes + pools + 1 {
            self.tick();
        } else if let Some(delayed) = self.delayed.pop() {
            self.retime_delayed();
            self.observer.chunk(delayed.worker, delayed.op, delayed.lane, delayed.since, self.now);
            self.ended.push((delayed.worker, delayed.op));
            self.tell_successors();
        }
    }

    /// A tick of the TCP connections: what arrives is given to the lanes' chunks.
    fn tick(&mut self) {
        let slot = (self.lanes.len() + self.pools.len() + 1) as u32;
        self.heap.remove(slot);
        let Some(mut tcp) = self.tcp.take() else { return };
        tcp.tick(self.now, &mut self.sampler);
        self.tcp = Some(tcp);
        for index in 0..self.tcp_lanes.len() {
            self.receive(self.tcp_lanes[index]);
        }
        self.schedule_tick();
    }

    fn schedule_tick(&mut self) {
        let Some(tcp) = self.tcp.as_ref().filter(|tcp| tcp.is_busy()) else { return };
        let time = self.now + tcp.tick_length();
        let slot = (self.lanes.len() + self.pools.len() + 1) as u32;
        if !self.heap.contains(slot) {
            self.sequence += 1;
            self.heap.set(slot, Due { time, sequence: self.sequence });
        }
    }

    fn receive(&mut self, lane: u32) {
        let Station::Tcp { worker, up } = self.lanes[lane as usize].spec.station else { return };
        let Some(tcp) = &self.tcp else { return };
        let mut bytes = tcp.delivered(worker, up);
        let arrived = tcp.has_arrived(worker, up);
        // Whole bytes are long through when only rounding is left.
        while let Some(chunk) = &mut self.lanes[lane as usize].active {
            let taken = bytes.min(chunk.amount);
            chunk.amount -= taken;
            bytes -= taken;
            if chunk.amount > 1e-3 && !(arrived && chunk.amount < 5.0) {
                break;
            }
            self.chunk_ended(lane);
        }
    }

    fn retime_delayed(&mut self) {
        let slot = (self.lanes.len() + self.pools.len() + 2) as u32;
        match self.delayed.peek() {
            Some(next) => self.heap.set(slot, Due { time: next.until, sequence: next.sequence }),
            None => self.heap.remove(slot),
        }
    }

    fn retime_pool(&mut self, pool: usize) {
        let slot = (self.lanes.len() + pool) as u32;
        match self.pools[pool].next() {
            Some((time, sequence)) => self.heap.set(slot, Due { time, sequence }),
            None => self.heap.remove(slot),
        }
    }

    fn retime_network(&mut self) {
        let slot = (self.lanes.len() + self.pools.len()) as u32;
        match self.network.next() {
            Some((time, sequence)) => self.heap.set(slot, Due { time, sequence }),
            None => self.heap.remove(slot),
        }
    }

    /// Gives the active chunk of a lane to its station.
    fn serve(&mut self, lane: u32) {
        let state = &self.lanes[lane as usize];
        let Some(chunk) = state.active else { return };
        self.sequence += 1;
        let sequence = self.sequence;
        match state.spec.station {
            _ if chunk.starting => {
                let time = self.now + state.spec.startup;
                self.heap.set(lane, Due { time, sequence });
            }
            Station::Own(rate) => {
                let time = self.now + chunk.amount / rate;
                self.heap.set(lane, Due { time, sequence });
            }
            Station::Pool(pool) => {
                self.pools[pool as usize].add(self.now, lane, sequence, chunk.amount);
                self.retime_pool(pool as usize);
            }
            // What arrives decides: see `receive`.
            Station::Tcp { .. } => {}
            Station::Links(route) => {
                self.network.add(self.now, lane, sequence, chunk.amount, route);
                self.retime_network();
            }
        }
    }

    fn chunk_ended(&mut self, lane: u32) {
        let Some(chunk) = self.lanes[lane as usize].complete(self.now) else { return };
        let (worker, op) = (chunk.job.worker, chunk.job.op);
        self.observer.chunk(worker, op, lane, chunk.since, self.now);
        if !chunk.more {
            self.ended.push((worker, op));
            self.tell_successors();
        }
        self.lanes[lane as usize].active = None;
        self.go_on(lane);
    }

    /// Selects the next chunk of an idle lane that serves.
    fn go_on(&mut self, lane: u32) {
        let discipline = self.lanes[lane as usize].spec.discipline;
        if matches!(discipline, Discipline::Lock | Discipline::Barrier(_) | Discipline::Delay) {
            return;
        }
        if self.lanes[lane as usize].select(self.now).is_some() {
            self.serve(lane);
        } else {
            self.heap.remove(lane);
        }
    }

    /// Works off all operations that have ended, and those that end at once because of it.
    fn tell_successors(&mut self) {
        let graph = &self.program.graph;
        while let Some((worker, op)) = self.ended.pop() {
            self.operations += 1;
            if let Some(local) = graph.releases(op) {
                self.release(self.lane(worker, local));
            }
            let row = worker as usize * graph.len();
            for &next in graph.successors(op) {
                let waiting = &mut self.waiting[row + next as usize];
                *waiting -= 1;
                if *waiting == 0 {
                    self.enqueue(worker, next);
                }
            }
            self.left[worker as usize] -= 1;
            if self.left[worker as usize] == 0 {
                self.step_ended(worker);
            }
        }
    }

    fn lane(&self, worker: u32, local: LocalLane) -> u32 {
        self.lane_of[worker as usize * usize::from(self.program.graph.local_lanes()) + usize::from(local)]
    }

    fn work(&self, worker: u32, op: OpId, local: LocalLane) -> f64 {
        if self.local[worker as usize] && self.program.silent_when_local[usize::from(local)] {
            return 0.0;
        }
        self.work[self.step[worker as usize] + op as usize]
    }

    /// An operation is ready: it is served at once if its lane is idle.
    fn enqueue(&mut self, worker: u32, op: OpId) {
        let lane = self.queue_up(worker, op);
        if self.lanes[lane as usize].active.is_none() {
            self.go_on(lane);
        }
    }

    /// Puts an operation into its lane's queue; those of locks and barriers may end at once.
    fn queue_up(&mut self, worker: u32, op: OpId) -> u32 {
        let local = self.program.graph.lane(op);
        let lane = self.lane(worker, local);
        let remaining = self.work(worker, op, local);
        let rank = self.rank.get(self.step[worker as usize] + op as usize).copied().unwrap_or(0);
        let job = Job { worker, op, remaining, rank, served_before: false };
        let state = &mut self.lanes[lane as usize];
        match state.spec.discipline {
            Discipline::Lock if state.active.is_none() => self.acquire(lane, job),
            Discipline::Barrier(parties) => {
                state.push(job);
                if state.waiting() >= parties as usize {
                    while let Some(job) = self.lanes[lane as usize].pop() {
                        self.ended.push((job.worker, job.op));
                    }
                }
            }
            Discipline::Delay => {
                self.sequence += 1;
                let (since, until) = (self.now, self.now + job.remaining);
                let sequence = self.sequence;
                self.delayed.push(Delayed { until, sequence, worker, op, lane, since });
                self.retime_delayed();
            }
            _ => {
                state.push(job);
                if let (Station::Tcp { worker, up }, Some(tcp)) = (state.spec.station, &mut self.tcp) {
                    tcp.offer(self.now, worker, up, job.remaining, &mut self.sampler);
                    self.schedule_tick();
                }
            }
        }
        lane
    }

    fn acquire(&mut self, lane: u32, job: Job) {
        let held = crate::lane::Chunk { job, amount: 0.0, since: self.now, starting: false, more: false };
        self.lanes[lane as usize].active = Some(held);
        self.ended.push((job.worker, job.op));
    }

    fn release(&mut self, lane: u32) {
        self.lanes[lane as usize].complete(self.now);
        self.lanes[lane as usize].active = None;
        if let Some(job) = self.lanes[lane as usize].pop() {
            self.acquire(lane, job);
        }
    }

    fn step_ended(&mut self, worker: u32) {
        let index = worker as usize;
        let stale = self.updates - self.updates_before[index];
        if !self.local[index] {
            self.updates += 1;
        }
        self.observer.step(worker, self.began[index], self.now, stale);
        self.coordinator.ended(worker, &mut self.starting);
        let mut starting = std::mem::take(&mut self.starting);
        for next in starting.drain(..) {
            if self.coordinator.done(next) >= self.limits.steps_per_worker {
                self.stopped += 1;
            } else {
                self.start_step(next);
            }
        }
        self.starting = starting;
    }

    fn start_step(&mut self, worker: u32) {
        let program = self.program;
        let index = worker as usize;
        let operations = program.graph.len();
        self.waiting[index * operations..][..operations].copy_from_slice(program.graph.waiting());
        self.left[index] = operations as u32;
        self.began[index] = self.now;
        self.updates_before[index] = self.updates;
        self.local[index] = program.coordination.is_local(self.coordinator.done(worker));
        let choices = &program.steps[program.kind[index]];
        let step = self.sampler.below(worker, choices.len() as u32) as usize;
        self.step[index] = self.kind_base[program.kind[index]] + step * operations;
        // All are in their queues before the first is served: what is sent first must find the others waiting.
        let sources = &choices[step].sources;
        for &source in sources {
            self.queue_up(worker, source);
        }
        for &source in sources {
            let lane = self.lane(worker, program.graph.lane(source));
            if self.lanes[lane as usize].active.is_none() {
                self.go_on(lane);
            }
        }
    }

    fn stuck(&self) -> Vec<(u32, String)> {
        let jobs = self.lanes.iter().flat_map(Lane::jobs);
        let name = |job: &Job| (job.worker, self.program.graph.name(job.op).to_owned());
        let mut names: Vec<(u32, String)> = jobs.map(name).take(16).collect();
        let blocked = self.coordinator.blocked().iter().map(|&worker| (worker, "the next step".to_owned()));
        names.extend(blocked.take(16));
        names
    }

    fn outcome(self, end: End) -> Outcome {
        let time = self.now;
        let share = |amount: f64, whole: f64| if whole > 0.0 { amount / whole } else { 0.0 };
        let ports = self.network.used.iter().zip(self.network.capacities());
        Outcome {
            end,
            time,
            operations: self.operations,
            steps: (0..self.program.workers() as u32).map(|worker| self.coordinator.done(worker)).sum(),
            lane_busy: self.lanes.iter().map(|lane| share(lane.busy, time)).collect(),
            pool_used: self.pools.iter().map(|pool| share(pool.used, pool.capacity() * time)).collect(),
            tcp_used: self
                .tcp
                .as_ref()
                .map_or([0.0; 2], |tcp| tcp.carried.map(|bytes| share(bytes, tcp.rate() * time))),
            port_used: ports.map(|(used, capacity)| share(*used, capacity * time)).collect(),
        }
    }
}
