//! One TCP connection: its window, and its data under way.

use super::TcpSpec;

/// Bytes of a segment's payload.
pub(super) const SEGMENT: f64 = 1448.0;

/// CUBIC's share of the window that remains after a loss.
const CUBIC_BETA: f64 = 0.7;

/// Largest host queue of one connection beside the window: two buffers of generic segmentation offload.
const OFFLOAD: f64 = 65_536.0;

#[derive(Debug, Clone)]
pub(super) struct Connection {
    /// Bytes to be sent.
    pub(super) backlog: f64,
    /// Bytes in the queue of the sender's port.
    pub(super) local: f64,
    /// Bytes in the queue of the switch's port towards the server (uploads only).
    pub(super) switch: f64,
    /// Bytes delivered but not yet acknowledged.
    pub(super) unacknowledged: f64,
    window: f64,
    threshold: f64,
    largest_window: f64,
    /// Beginning of CUBIC's current epoch, and its two figures.
    epoch: Option<f64>,
    inflection: f64,
    origin: f64,
    last_sent: f64,
    round_trip: f64,
    pub(super) recovers_at: f64,
    pub(super) weight: f64,
    busy_since: f64,
    /// Tokens of the worker's own port (uploads only).
    pub(super) tokens: f64,
    /// Bytes that came through that port in the last tick.
    pub(super) arrived: f64,
    /// Bytes that its receiver got in the last tick.
    pub(super) delivered: f64,
}

impl Connection {
    pub(super) fn new(spec: &TcpSpec, window: f64) -> Self {
        Self {
            backlog: 0.0,
            local: 0.0,
            switch: 0.0,
            unacknowledged: 0.0,
            window,
            threshold: f64::INFINITY,
            largest_window: 0.0,
            epoch: None,
            inflection: 0.0,
            origin: 0.0,
            last_sent: 0.0,
            round_trip: spec.first_round_trip,
            recovers_at: f64::NEG_INFINITY,
            weight: 1.0,
            busy_since: 0.0,
            tokens: spec.burst,
            arrived: 0.0,
            delivered: 0.0,
        }
    }

    fn queued(&self) -> f64 {
        self.local + self.switch + self.unacknowledged
    }

    pub(super) fn is_busy(&self) -> bool {
        self.backlog > 0.0 || self.queued() >= 1.0
    }

    pub(super) fn is_established(&self, now: f64, spec: &TcpSpec) -> bool {
        self.is_busy() && now - self.busy_since >= spec.established
    }

    fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    /// Grows the window by the acknowledged bytes, if the window limited the sender.
    fn grow(&mut self, now: f64, acknowledged: f64, round_trip: f64, spec: &TcpSpec) {
        let in_flight = self.queued() + acknowledged;
        if self.in_slow_start() {
            if in_flight >= 0.5 * self.window {
                self.window = (self.window + acknowledged).min(self.threshold);
                if round_trip > spec.hystart + spec.round_trip && self.window > 16.0 * SEGMENT {
                    self.threshold = self.window;
                }
            }
        } else if in_flight >= self.window - SEGMENT {
            let epoch = match self.epoch {
                Some(epoch) => epoch,
                None => {
                    let below = (self.largest_window - self.window).max(0.0);
                    self.inflection = (below / SEGMENT / spec.cubic).cbrt();
                    self.origin = self.largest_window.max(self.window);
                    self.epoch = Some(now);
                    now
                }
            };
            let since = now - epoch + round_trip - self.inflection;
            let target = (self.origin + spec.cubic * since.powi(3) * SEGMENT).min(1.5 * self.window);
            let share = acknowledged / self.window;
            // Never slower than the additive increase that CUBIC's decrease is fair to (RFC 9438, section 4.3).
            let additive = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA) * SEGMENT;
            self.window += ((target - self.window).max(0.0)).max(additive) * share;
        }
    }

    /// An idle connection has something to send again: its window has shrunk with the time that it was idle.
    pub(super) fn wake(&mut self, now: f64, spec: &TcpSpec) {
        let idle = now - self.last_sent;
        let timeout = spec.idle + self.round_trip;
        if idle > timeout {
            self.threshold = self.threshold.max(0.75 * self.window);
            let halvings = ((idle - timeout) / timeout).ceil().min(60.0);
            self.window = (self.window * 0.5f64.powf(halvings)).max(10.0 * SEGMENT);
            self.epoch = None;
        }
        self.epoch = self.epoch.map(|epoch| epoch + idle);
        self.busy_since = now;
    }

    /// One tick of the sender: `delays` are the delays of the way there and of the way back.
    pub(super) fn send(&mut self, now: f64, delays: [f64; 2], weight: f64, spec: &TcpSpec) {
        let [there, back] = delays;
        let round_trip = spec.round_trip + there + back;
        self.round_trip += (round_trip - self.round_trip) * spec.tick
            / (spec.tick + 4.0 * round_trip.max(spec.shortest_smoothed));
        if !self.is_busy() {
            return;
        }
        let acknowledged = self.unacknowledged * (1.0 - (-spec.tick / (spec.round_trip + back)).exp());
        self.unacknowledged -= acknowledged;
        let slow_start = self.in_slow_start();
        self.grow(now, acknowledged, round_trip, spec);
        let pace = if slow_start { 2.0 } else { 1.2 } * self.window / self.round_trip.max(spec.round_trip);
        let host_limit = (2.0 * OFFLOAD).max(pace * spec.host_queue).min(4e6) * weight;
        let allowed = (self.window - self.queued()).min(host_limit - self.local);
        let sent = allowed.min(self.backlog).max(0.0);
        if sent > 0.0 {
            self.backlog -= sent;
            if self.backlog < 1e-6 {
                self.backlog = 0.0;
            }
            self.local += sent;
            self.last_sent = now;
        }
    }

    /// A segment was lost: the window shrinks (CUBIC with fast convergence).
    pub(super) fn lose(&mut self, now: f64) {
        self.recovers_at = now + self.round_trip;
        let fast_convergence = 0.5 * (1.0 + CUBIC_BETA);
        self.largest_window =
            if self.window < self.largest_window { fast_convergence * self.window } else { self.window };
        self.window = (CUBIC_BETA * self.window).max(2.0 * SEGMENT);
        self.threshold = self.window;
        self.epoch = None;
    }
}
