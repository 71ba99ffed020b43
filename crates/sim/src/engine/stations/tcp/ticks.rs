//! TCP connections in the engine: they advance by ticks, and what arrives is given to the chunks of lanes.

use crate::engine::lane::Station;
use crate::engine::observe::{Observer, Shared};
use crate::engine::schedule::Slot;
use crate::engine::state::Engine;

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
            // What a tick has carried was carried before its end.
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

    /// Gives what has arrived in the last tick to the chunks of a lane.
    fn receive(&mut self, lane: u32) {
        let Station::Tcp { worker, up } = self.lanes[lane as usize].spec.station else { return };
        let Some(tcp) = &self.stations.tcp else { return };
        let mut bytes = tcp.delivered(worker, up);
        let arrived = tcp.has_arrived(worker, up);
        while let Some(chunk) = &mut self.lanes[lane as usize].active {
            let taken = bytes.min(chunk.amount);
            chunk.amount -= taken;
            bytes -= taken;
            // The fluid model leaves fractions of bytes behind: a chunk with no more than those left has arrived.
            if chunk.amount > 1e-3 && !(arrived && chunk.amount < 5.0) {
                break;
            }
            self.chunk_ended(lane);
        }
    }
}
