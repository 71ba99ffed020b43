//! Giving work to stations, and hearing from them.
//!
//! Slots of the heap: one for every lane, one for every pool, then one each for the links, for the ticks of TCP and for
//! operations on lanes where nobody waits.

use super::state::Engine;
use crate::heap::Due;
use crate::lane::{Discipline, Station};
use crate::observe::{Observer, Shared};

impl<O: Observer> Engine<'_, O> {
    pub(super) fn dispatch(&mut self, slot: u32) {
        let lanes = self.lanes.len();
        let pools = self.pools.len();
        let slot = slot as usize;
        if slot < lanes {
            self.served(slot as u32);
        } else if slot < lanes + pools {
            let lane = self.pools[slot - lanes].pop(self.now);
            self.changed(slot - lanes);
            self.couple(slot - lanes);
            if let Some(lane) = lane {
                self.served(lane);
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

    /// The start-up of a lane's chunk is over, or the chunk itself.
    fn served(&mut self, lane: u32) {
        match &mut self.lanes[lane as usize].active {
            Some(chunk) if chunk.starting => {
                chunk.starting = false;
                self.heap.remove(lane);
                self.serve(lane);
            }
            Some(_) => self.chunk_ended(lane),
            // The beginning of a cycle.
            None => {
                self.heap.remove(lane);
                self.go_on(lane);
            }
        }
    }

    /// Gives the active chunk of a lane to its station.
    pub(super) fn serve(&mut self, lane: u32) {
        let state = &self.lanes[lane as usize];
        let Some(chunk) = state.active else { return };
        self.sequence += 1;
        let sequence = self.sequence;
        match state.spec.station {
            _ if chunk.starting => match state.spec.startup_pool {
                Some(pool) => self.join_pool(pool, lane, sequence, state.spec.startup),
                None => {
                    let time = self.now + state.spec.startup + state.before;
                    self.heap.set(lane, Due { time, sequence });
                }
            },
            Station::Own(rate) => {
                let time = self.now + chunk.amount / rate;
                self.heap.set(lane, Due { time, sequence });
            }
            Station::Pool(pool) => self.join_pool(pool, lane, sequence, chunk.amount),
            // What arrives decides: see `receive`.
            Station::Tcp { .. } => {}
            Station::Links(route) => {
                self.network.add(self.now, lane, sequence, chunk.amount, route);
                self.retime_network();
            }
        }
    }

    fn join_pool(&mut self, pool: u32, lane: u32, sequence: u64, amount: f64) {
        self.pools[pool as usize].add(self.now, lane, sequence, amount);
        self.changed(pool as usize);
        self.couple(pool as usize);
    }

    pub(super) fn chunk_ended(&mut self, lane: u32) {
        if let Discipline::Gathering(which) = self.lanes[lane as usize].spec.discipline {
            return self.gathering_ended(lane, which);
        }
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
    pub(super) fn go_on(&mut self, lane: u32) {
        let discipline = self.lanes[lane as usize].spec.discipline;
        match discipline {
            Discipline::Lock | Discipline::Barrier(_) | Discipline::Delay => return,
            Discipline::Gathering(which) => return self.go_on_gathering(lane, which),
            _ => {}
        }
        if self.lanes[lane as usize].select(self.now).is_some() {
            self.tell_waiting(lane);
            self.serve(lane);
        } else {
            self.heap.remove(lane);
        }
    }

    /// Tells how many operations wait in a lane.
    #[inline]
    pub(super) fn tell_waiting(&mut self, lane: u32) {
        if O::LEVELS {
            let waiting = self.lanes[lane as usize].waiting() as u32;
            self.observer.waiting(lane, self.now, waiting);
        }
    }

    /// A tick of the TCP connections: what arrives is given to the lanes' chunks.
    pub(super) fn tick(&mut self) {
        let slot = (self.lanes.len() + self.pools.len() + 1) as u32;
        self.heap.remove(slot);
        let Some(mut tcp) = self.tcp.take() else { return };
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
        self.tcp = Some(tcp);
        for index in 0..self.tcp_lanes.len() {
            self.receive(self.tcp_lanes[index]);
        }
        self.schedule_tick();
    }

    pub(super) fn schedule_tick(&mut self) {
        let Some(tcp) = self.tcp.as_ref().filter(|tcp| tcp.is_busy()) else { return };
        let time = self.now + tcp.tick_length();
        let slot = (self.lanes.len() + self.pools.len() + 1) as u32;
        if !self.heap.contains(slot) {
            self.sequence += 1;
            self.heap.set(slot, Due { time, sequence: self.sequence });
        }
    }

    pub(super) fn receive(&mut self, lane: u32) {
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

    pub(super) fn retime_delayed(&mut self) {
        let slot = (self.lanes.len() + self.pools.len() + 2) as u32;
        match self.delayed.peek() {
            Some(next) => self.heap.set(slot, Due { time: next.until, sequence: next.sequence }),
            None => self.heap.remove(slot),
        }
    }

    /// A pool has another first customer, or another rate. Most events make one customer leave and the next one join
    /// the same pool, so its event is moved once, when the next event is looked for, and not at every change.
    #[inline]
    pub(super) fn changed(&mut self, pool: usize) {
        if self.unsettled != Some(pool) {
            self.settle();
            self.unsettled = Some(pool);
        }
    }

    /// Moves the event of the pool that has changed.
    #[inline]
    pub(super) fn settle(&mut self) {
        let Some(pool) = self.unsettled.take() else { return };
        if O::LEVELS {
            let (share, customers) = self.pools[pool].load();
            self.observer.load(Shared::Pool(pool as u32), self.now, share, customers);
        }
        let slot = (self.lanes.len() + pool) as u32;
        match self.pools[pool].next() {
            Some((time, sequence)) => self.heap.set(slot, Due { time, sequence }),
            None => self.heap.remove(slot),
        }
    }

    pub(super) fn retime_network(&mut self) {
        if O::LEVELS {
            for port in 0..self.network.capacities().len() as u32 {
                let (share, flows) = self.network.load(port);
                self.observer.load(Shared::Port(port), self.now, share, flows);
            }
        }
        let slot = (self.lanes.len() + self.pools.len()) as u32;
        match self.network.next() {
            Some((time, sequence)) => self.heap.set(slot, Due { time, sequence }),
            None => self.heap.remove(slot),
        }
    }
}
