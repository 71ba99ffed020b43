//! TCP connections between workers and one server as a fluid model, for effects beyond fair sharing.
//!
//! Real connections do not share a link equally at once. A connection that was idle has a small window and finds its
//! rate again in round trips; round trips are as long as the queues they pass; acknowledgements of a download queue
//! behind other workers' uploads; a download that joins another gets less than half. These forces decide whether
//! asynchronous workers stay in lock-step or spread out.
//!
//! Every worker has two connections, down and up. Time goes in ticks. In every tick
//! 1. acknowledgements return after the delay of the way back, and windows grow: by what is acknowledged in slow start,
//!    which ends when the round trip has grown by `hystart`; by CUBIC afterwards (RFC 9438: β = 0.7);
//! 2. senders put data into the first queue on their way, as the window and the host's limit on queued data allow;
//! 3. queues are served: the server's port first-in first-out, a worker's own port, and the switch's port towards the
//!    server, where data beyond the queue are lost and halt the window's growth.
//!
//! Ports have token buckets: after idling they pass `burst` bytes at once. All ports have the same rate.
//!
//! Links of twice the rate do not make a job exactly twice as fast: the times of [`TcpSpec`] (round trips, timers, CUBIC) and
//! its bytes (windows, buffers) are properties of hosts and do not change, so workers meet at other points of their windows
//! and spread out more or less. If all times are halved, the fluid model is exactly twice as fast (`tests`). One worker
//! alone meets nobody: it is twice as fast up to a tick in every transfer.

mod connection;

use crate::engine::lane::Station;
use crate::engine::observe::{Observer, Shared};
use crate::engine::schedule::Slot;
use crate::engine::steps::Sampler;
use crate::engine::{Engine, share};
use connection::{Connection, SEGMENT};

/// A network of TCP connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TcpSpec {
    /// Rate of every port, for payload.
    pub rate: f64,
    /// Round trip when nothing is queued.
    pub round_trip: f64,
    /// Longest queue of a port, in seconds at its rate.
    pub queue: f64,
    /// Bytes that a port passes at once after idling.
    pub burst: f64,
    /// Idle time after which a window is halved, and again after every further one.
    pub idle: f64,
    /// Growth of the round trip that ends slow start.
    pub hystart: f64,
    /// CUBIC's constant C, in segments per second³ (RFC 9438).
    pub cubic: f64,
    /// Round trip that connections assume when they enter the simulation.
    pub first_round_trip: f64,
    /// Round trips are averaged over four, but none counts as shorter than this.
    pub shortest_smoothed: f64,
    /// Window with which connections enter the simulation.
    pub first_window: f64,
    /// Spread of those windows: standard deviation of the logarithm.
    pub first_window_spread: f64,
    /// Time for which hosts queue data at the pacing rate.
    pub host_queue: f64,
    /// Share of upload queues that acknowledgements of downloads wait behind.
    pub acknowledgements_queued: f64,
    /// Spread of the weights with which connections share queues, down and up: standard deviation of the logarithm.
    pub spread: [f64; 2],
    /// Weight of a download that joins an established one, relative to it.
    pub joining: f64,
    /// Time after which a download is established: it keeps as much queued as its host allows.
    pub established: f64,
    pub tick: f64,
}

impl TcpSpec {
    /// Linux hosts on a quiet local network, ports of `rate` with queues of `queue` seconds.
    ///
    /// Windows, spreads and the share of joining downloads were measured by iperf and captured steps on the testbed
    /// of `stepcast validate tf-ps`. Two figures were chosen on its runs: that three quarters of the queues delay
    /// acknowledgements, and when a download is established (captures show 0.1 to 0.2 s). The structure was
    /// chosen in part, too: that slow start ends at once when the round trip has grown, that CUBIC starts anew after idling,
    /// and that windows grow no faster before the first loss, fits real runs far better than the known behaviour of Linux.
    pub fn linux(rate: f64, queue: f64) -> Self {
        Self {
            rate,
            round_trip: 0.000_2,
            queue,
            burst: 262_144.0,
            idle: 0.2,
            hystart: 0.004,
            cubic: 0.4,
            first_round_trip: 0.001,
            shortest_smoothed: 0.002,
            host_queue: 0.001,
            tick: 0.000_5,
            first_window: 280_000.0,
            first_window_spread: 0.46,
            acknowledgements_queued: 0.75,
            spread: [0.26, 0.39],
            joining: 0.32,
            established: 0.2,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Tcp {
    spec: TcpSpec,
    down: Vec<Connection>,
    up: Vec<Connection>,
    /// Tokens of the server's port and of the switch's port towards it.
    tokens: [f64; 2],
    last_tick: f64,
    /// Bytes that left the server's port and the switch's.
    pub(crate) carried: [f64; 2],
}

impl Tcp {
    pub(crate) fn new(spec: TcpSpec, workers: usize, sampler: &mut Sampler) -> Self {
        let mut connection = |worker: usize| {
            let spread = spec.first_window_spread * sampler.normal(worker as u32);
            Connection::new(&spec, spec.first_window * spread.exp())
        };
        Self {
            spec,
            down: (0..workers).map(&mut connection).collect(),
            up: (0..workers).map(&mut connection).collect(),
            tokens: [spec.burst; 2],
            last_tick: 0.0,
            carried: [0.0; 2],
        }
    }

    /// Share of the server's port that was used in `time`, down and up.
    pub(crate) fn used(&self, time: f64) -> [f64; 2] {
        self.carried.map(|bytes| share(bytes, self.spec.rate * time))
    }

    pub(crate) fn rate(&self) -> f64 {
        self.spec.rate
    }

    pub(crate) fn tick_length(&self) -> f64 {
        self.spec.tick
    }

    /// Connections of one direction that have something to send.
    pub(crate) fn senders(&self, up: bool) -> u32 {
        let connections = if up { &self.up } else { &self.down };
        connections.iter().filter(|connection| connection.is_busy()).count() as u32
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.down.iter().chain(&self.up).any(Connection::is_busy)
    }

    /// Gives a connection more to send. One that was idle finds its rate anew.
    ///
    /// A host lets every connection queue a few buffers and hands it a new one for each that is sent. So connections that
    /// share the server's port keep the shares with which they meet, and the one that comes later has the smaller one.
    pub(crate) fn offer(&mut self, now: f64, worker: u32, up: bool, bytes: f64, sampler: &mut Sampler) {
        let spec = self.spec;
        let joins = !up && self.down.iter().any(|connection| connection.is_established(now, &spec));
        let connection = if up { &mut self.up[worker as usize] } else { &mut self.down[worker as usize] };
        if !connection.is_busy() {
            connection.wake(now, &spec);
            connection.weight = (spec.spread[usize::from(up)] * sampler.normal(worker)).exp();
            if joins {
                connection.weight *= spec.joining;
            }
        }
        connection.backlog += bytes;
    }

    /// Bytes that arrived in the last tick.
    pub(crate) fn delivered(&self, worker: u32, up: bool) -> f64 {
        let connections = if up { &self.up } else { &self.down };
        connections[worker as usize].delivered
    }

    /// Whether a connection has no data under way.
    pub(crate) fn has_arrived(&self, worker: u32, up: bool) -> bool {
        let connection = if up { &self.up[worker as usize] } else { &self.down[worker as usize] };
        connection.backlog <= 0.0 && connection.local + connection.switch < 1.0
    }

    pub(crate) fn tick(&mut self, now: f64, sampler: &mut Sampler) {
        let Self { spec, down, up, tokens, .. } = self;
        let (rate, tick) = (spec.rate, spec.tick);
        let amount = rate * tick;
        // Buckets fill while nothing happens.
        let skipped = rate * (now - self.last_tick - tick).max(0.0);
        self.last_tick = now;
        tokens.iter_mut().for_each(|tokens| *tokens = (*tokens + skipped).min(spec.burst));
        let server_queue: f64 = down.iter().map(|connection| connection.local).sum();
        let switch_queue: f64 = up.iter().map(|connection| connection.switch).sum();
        for (down, up) in down.iter_mut().zip(up.iter_mut()) {
            up.tokens = (up.tokens + skipped).min(spec.burst);
            let returning = spec.acknowledgements_queued * (switch_queue + up.local) / rate;
            let weight = down.weight;
            down.send(now, [server_queue / rate, returning], weight, spec);
            let there = (up.local + switch_queue) / rate;
            up.send(now, [there, server_queue / rate], 1.0, spec);
        }

        self.carried[0] += serve_server(down, amount, &mut tokens[0], spec);
        self.carried[1] += serve_uploads(up, amount, &mut tokens[1], now, spec, sampler);
    }
}

/// Takes the bytes that a port can pass from a token bucket, and refills it by the port's capacity.
fn pass(waiting: f64, amount: f64, tokens: &mut f64, spec: &TcpSpec) -> f64 {
    let passed = waiting.min(amount + *tokens);
    *tokens = (*tokens + amount - passed).clamp(0.0, spec.burst);
    passed
}

/// The server's port: first in, first out, so every connection's share is its share of the queue.
fn serve_server(down: &mut [Connection], amount: f64, tokens: &mut f64, spec: &TcpSpec) -> f64 {
    let queue: f64 = down.iter().map(|connection| connection.local).sum();
    let served = pass(queue, amount, tokens, spec);
    let share = if queue > 0.0 { served / queue } else { 0.0 };
    for connection in down {
        let passed = connection.local * share;
        connection.local -= passed;
        connection.unacknowledged += passed;
        connection.delivered = passed;
    }
    served
}

/// Workers' own ports, then the switch's port towards the server; data beyond its queue are lost and sent again.
fn serve_uploads(
    up: &mut [Connection],
    amount: f64,
    tokens: &mut f64,
    now: f64,
    spec: &TcpSpec,
    sampler: &mut Sampler,
) -> f64 {
    let mut arrived = 0.0;
    for connection in up.iter_mut() {
        connection.arrived = pass(connection.local, amount, &mut connection.tokens, spec);
        connection.local -= connection.arrived;
        connection.switch += connection.arrived;
        connection.delivered = 0.0;
        arrived += connection.arrived;
    }
    let queue: f64 = up.iter().map(|connection| connection.switch).sum();
    let served = pass(queue, amount, tokens, spec);
    let mut left = served;
    // By weight, in rounds: no connection can be served more than it has queued.
    for _ in 0..3 {
        let weighted: f64 = up.iter().map(|connection| connection.switch * connection.weight).sum();
        if weighted <= 0.0 || left <= 1e-9 {
            break;
        }
        let per_weight = left / weighted;
        for connection in up.iter_mut() {
            let passed = (connection.switch * connection.weight * per_weight).min(connection.switch);
            connection.switch -= passed;
            connection.unacknowledged += passed;
            connection.delivered += passed;
            left -= passed;
        }
    }
    let excess = queue - served - (spec.queue * spec.rate + spec.burst);
    if excess > 0.0 && arrived > 0.0 {
        for (worker, connection) in up.iter_mut().enumerate() {
            let lost = (excess * connection.arrived / arrived).min(connection.switch);
            connection.switch -= lost;
            connection.backlog += lost;
            let noticed = 1.0 - (-lost / SEGMENT).exp();
            if lost > 0.0 && now > connection.recovers_at && sampler.uniform(worker as u32) < noticed {
                connection.lose(now);
            }
        }
    }
    served
}

impl<O: Observer> Engine<'_, O> {
    /// Gives a worker's connection more bytes to send.
    pub(in crate::engine) fn send_by_tcp(&mut self, worker: u32, up: bool, bytes: f64) {
        if let Some(tcp) = &mut self.stations.tcp {
            tcp.offer(self.now, worker, up, bytes, &mut self.sampler);
            self.schedule_tick();
        }
    }

    /// A tick of all connections has ended.
    pub(in crate::engine) fn tick(&mut self) {
        self.schedule.remove(Slot::Tcp);
        let Some(tcp) = &mut self.stations.tcp else { return };
        let before = tcp.carried;
        tcp.tick(self.now, &mut self.sampler);
        if O::LEVELS {
            // The bytes of a tick were carried before its end.
            let (whole, since) = (tcp.rate() * tcp.tick_length(), self.now - tcp.tick_length());
            for (up, carried) in [(false, tcp.carried[0] - before[0]), (true, tcp.carried[1] - before[1])] {
                self.observer.load(Shared::Tcp { up }, since.max(0.0), carried / whole, tcp.senders(up));
                if !tcp.is_busy() {
                    self.observer.load(Shared::Tcp { up }, self.now, 0.0, 0);
                }
            }
        }
        for index in 0..self.stations.tcp_lanes.len() {
            self.receive(self.stations.tcp_lanes[index]);
        }
        self.schedule_tick();
    }

    fn schedule_tick(&mut self) {
        let Some(tcp) = self.stations.tcp.as_ref().filter(|tcp| tcp.is_busy()) else { return };
        let time = self.now + tcp.tick_length();
        if !self.schedule.contains(Slot::Tcp) {
            let sequence = self.schedule.next_sequence();
            self.schedule.set(Slot::Tcp, time, sequence);
        }
    }

    /// Gives the bytes that arrived in the last tick to the chunks of a lane.
    fn receive(&mut self, lane: u32) {
        let Station::Tcp { worker, up } = self.lanes[lane as usize].spec.station else { return };
        let Some(tcp) = &self.stations.tcp else { return };
        let mut bytes = tcp.delivered(worker, up);
        let arrived = tcp.has_arrived(worker, up);
        while let Some(chunk) = &mut self.lanes[lane as usize].active {
            let taken = bytes.min(chunk.amount);
            chunk.amount -= taken;
            bytes -= taken;
            // The fluid model leaves fractions of bytes: a chunk with only such a remainder has arrived.
            if chunk.amount > 1e-3 && !(arrived && chunk.amount < 5.0) {
                break;
            }
            self.chunk_ended(lane);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The network with links `factor` times as fast and all times shorter by this factor.
    fn faster(spec: TcpSpec, factor: f64) -> TcpSpec {
        TcpSpec {
            rate: spec.rate * factor,
            round_trip: spec.round_trip / factor,
            queue: spec.queue / factor,
            idle: spec.idle / factor,
            hystart: spec.hystart / factor,
            cubic: spec.cubic * factor.powi(3),
            first_round_trip: spec.first_round_trip / factor,
            shortest_smoothed: spec.shortest_smoothed / factor,
            host_queue: spec.host_queue / factor,
            established: spec.established / factor,
            tick: spec.tick / factor,
            ..spec
        }
    }

    const WORKERS: u32 = 3;

    /// Bytes that every worker receives and sends, tick by tick: all pull, push when they have everything, and pause.
    fn carried(spec: TcpSpec, ticks: u32) -> Vec<[f64; 2]> {
        let mut sampler = Sampler::new(5, WORKERS as usize);
        let mut tcp = Tcp::new(spec, WORKERS as usize, &mut sampler);
        let mut all = Vec::new();
        for tick in 0..ticks {
            let now = f64::from(tick) * spec.tick;
            for worker in 0..WORKERS {
                // The second round begins after windows have shrunk for want of something to send.
                if tick == 40 * worker || tick == 6000 + 300 * worker {
                    tcp.offer(now, worker, false, 2e7, &mut sampler);
                }
                if tick == 1500 + 10 * worker {
                    tcp.offer(now, worker, true, 2e7, &mut sampler);
                }
            }
            tcp.tick(now + spec.tick, &mut sampler);
            all.extend(
                (0..WORKERS).map(|worker| [tcp.delivered(worker, false), tcp.delivered(worker, true)]),
            );
        }
        all
    }

    #[test]
    fn half_of_all_times_is_twice_the_rate() {
        let spec = TcpSpec::linux(1.25e8, 0.05);
        let (usual, faster) = (carried(spec, 9000), carried(faster(spec, 2.0), 9000));
        let sum = |all: &[[f64; 2]], way: usize| all.iter().map(|bytes| bytes[way]).sum::<f64>();
        for way in [0, 1] {
            assert!(sum(&usual, way) > 1.9e7 * f64::from(WORKERS), "{}", sum(&usual, way));
        }
        for (tick, (one, other)) in usual.iter().zip(&faster).enumerate() {
            for way in [0, 1] {
                assert!((one[way] - other[way]).abs() < 1.0, "{tick}: {one:?} {other:?}");
            }
        }
    }
}
