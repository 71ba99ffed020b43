//! Gives the chunks of lanes to stations, and continues when they have been served.

use super::Engine;
use super::lane::{Chunk, Discipline, Station};
use super::observe::{Observer, Shared};
use super::schedule::Slot;
use super::stations::pools::Rule;

/// Number of examined flows and ports that cost as much as an event.
const LOOKS_OF_AN_EVENT: u64 = 4;

impl<O: Observer> Engine<'_, O> {
    /// The start-up of a lane's chunk is over, or the chunk itself; or a cycle of its rendezvous begins.
    pub(super) fn lane_due(&mut self, lane: u32) {
        match &mut self.lanes[lane as usize].active {
            Some(chunk) if chunk.starting => {
                chunk.starting = false;
                self.schedule.remove(Slot::Lane(lane));
                self.serve(lane);
            }
            Some(_) => self.chunk_ended(lane),
            None => {
                self.schedule.remove(Slot::Lane(lane));
                self.go_on(lane);
            }
        }
    }

    /// Gives the active chunk of a lane to its station.
    pub(super) fn serve(&mut self, lane: u32) {
        let state = &self.lanes[lane as usize];
        let Some(chunk) = state.active else { return };
        let sequence = self.schedule.next_sequence();
        match state.spec.station {
            _ if chunk.starting => match state.spec.startup_pool {
                Some(pool) => self.join_pool(pool, lane, sequence, state.spec.startup),
                None => {
                    let time = self.now + state.spec.startup + state.before;
                    self.schedule.set(Slot::Lane(lane), time, sequence);
                }
            },
            Station::Own(rate) => {
                let time = self.now + chunk.amount / rate;
                self.schedule.set(Slot::Lane(lane), time, sequence);
            }
            Station::Pool(pool) => self.join_pool(pool, lane, sequence, chunk.amount),
            // It ends with the tick in which its last bytes arrive.
            Station::Tcp { .. } => {}
            Station::Links(route) => {
                let demand = self.demand(lane, Rule { weighted: true, shared: true });
                self.stations.links.add(self.now, lane, sequence, chunk.amount, route, demand);
            }
        }
    }

    pub(super) fn chunk_ended(&mut self, lane: u32) {
        if let Discipline::Rendezvous(which) = self.lanes[lane as usize].spec.discipline {
            return self.rendezvous_ended(lane, which);
        }
        let Some(chunk) = self.lanes[lane as usize].complete(self.now) else { return };
        self.add_copies(lane, &chunk);
        let (worker, op) = (chunk.job.worker, chunk.job.op);
        self.observer.chunk(worker, op, lane, chunk.since, self.now);
        if !chunk.more {
            self.completions.push(worker, op);
            self.release_successors();
        }
        self.lanes[lane as usize].active = None;
        self.go_on(lane);
    }

    /// Counts the busy time of the lanes of workers that the worker of a chunk stands for.
    #[inline]
    fn add_copies(&mut self, lane: u32, chunk: &Chunk) {
        let others = self.workers.copies(chunk.job.worker) - 1;
        if others > 0 {
            self.lanes[lane as usize].busy += f64::from(others) * (self.now - chunk.since);
        }
    }

    #[inline]
    pub(super) fn go_on_if_idle(&mut self, lane: u32) {
        if self.lanes[lane as usize].active.is_none() {
            self.go_on(lane);
        }
    }

    /// Selects the next chunk of an idle lane that serves.
    pub(super) fn go_on(&mut self, lane: u32) {
        let discipline = self.lanes[lane as usize].spec.discipline;
        match discipline {
            Discipline::Lock | Discipline::Barrier(_) | Discipline::Delay => return,
            Discipline::Rendezvous(which) => return self.go_on_with_rendezvous(lane, which),
            _ => {}
        }
        if self.lanes[lane as usize].select(self.now).is_some() {
            self.observe_queue(lane);
            self.serve(lane);
        } else {
            self.schedule.remove(Slot::Lane(lane));
        }
    }

    /// Shows the observer how many operations wait in a lane.
    #[inline]
    pub(super) fn observe_queue(&mut self, lane: u32) {
        if O::LEVELS {
            let waiting = self.lanes[lane as usize].waiting() as u32;
            self.observer.waiting(lane, self.now, waiting);
        }
    }

    /// The next flow over links has ended.
    pub(super) fn links_due(&mut self) {
        let lane = self.stations.links.pop(self.now);
        if let Some(lane) = lane {
            self.chunk_ended(lane);
        }
    }

    /// Finds the rates of flows again if some have begun or ended, once for all that do so at one moment.
    #[inline(always)]
    pub(super) fn settle_links(&mut self) {
        if self.stations.links.settle() {
            self.links_settled();
        }
    }

    /// All rates of flows are new.
    fn links_settled(&mut self) {
        let links = &self.stations.links;
        let effort = links.looked() / LOOKS_OF_AN_EVENT;
        if O::LEVELS {
            for port in 0..links.ports() {
                let (share, flows) = links.load(port);
                self.observer.load(Shared::Port(port), self.now, share, flows);
            }
        }
        self.schedule.set_or_remove(Slot::Links, links.next());
        self.spend(effort);
    }
}
