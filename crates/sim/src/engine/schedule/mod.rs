//! Pending events: at most one for every source of events, taken in the order of their times.

mod heap;

pub(super) use heap::Due;
use heap::Heap;

/// A source of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// A lane: the end of its start-up time, or of a chunk at a station of its own.
    Lane(u32),
    /// A pool: its next chunk ends.
    Pool(u32),
    /// All links together: the next flow ends.
    Links,
    /// The next tick of the TCP connections.
    Tcp,
    /// The next end of an operation on a lane that serves all operations at once.
    Delays,
}

/// Pending events by slot.
///
/// The heap numbers lanes from 0, then pools, then the three slots that exist once. Always inlined, as the kind of slot is
/// known wherever an event is set.
#[derive(Debug, Clone)]
pub(super) struct Schedule {
    heap: Heap,
    lanes: u32,
    pools: u32,
    sequence: u64,
}

impl Schedule {
    pub(super) fn new(lanes: usize, pools: usize) -> Self {
        Self { heap: Heap::new(lanes + pools + 3), lanes: lanes as u32, pools: pools as u32, sequence: 0 }
    }

    #[inline(always)]
    fn index(&self, slot: Slot) -> u32 {
        match slot {
            Slot::Lane(lane) => lane,
            Slot::Pool(pool) => self.lanes + pool,
            Slot::Links => self.lanes + self.pools,
            Slot::Tcp => self.lanes + self.pools + 1,
            Slot::Delays => self.lanes + self.pools + 2,
        }
    }

    #[inline(always)]
    fn slot(&self, index: u32) -> Slot {
        let once = self.lanes + self.pools;
        match index {
            lane if lane < self.lanes => Slot::Lane(lane),
            pool if pool < once => Slot::Pool(pool - self.lanes),
            links if links == once => Slot::Links,
            tcp if tcp == once + 1 => Slot::Tcp,
            _ => Slot::Delays,
        }
    }

    /// A new sequence number: of events at the same time, the lower one comes first.
    #[inline(always)]
    pub(super) fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    /// The earliest event.
    #[inline(always)]
    pub(super) fn first(&self) -> Option<(Due, Slot)> {
        self.heap.first().map(|(due, index)| (due, self.slot(index)))
    }

    /// Sets or moves the event of a slot.
    #[inline(always)]
    pub(super) fn set(&mut self, slot: Slot, time: f64, sequence: u64) {
        self.heap.set(self.index(slot), Due { time, sequence });
    }

    /// Sets or moves the event of a slot, or removes it where nothing is due.
    #[inline(always)]
    pub(super) fn set_or_remove(&mut self, slot: Slot, due: Option<(f64, u64)>) {
        match due {
            Some((time, sequence)) => self.set(slot, time, sequence),
            None => self.remove(slot),
        }
    }

    /// Removes the event of a slot, if there is one.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: Slot) {
        self.heap.remove(self.index(slot));
    }

    /// Whether a slot has an event.
    #[inline(always)]
    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.heap.contains(self.index(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_has_an_index_of_its_own() {
        let schedule = Schedule::new(3, 2);
        let lanes = (0..3).map(Slot::Lane);
        let pools = (0..2).map(Slot::Pool);
        let slots = lanes.chain(pools).chain([Slot::Links, Slot::Tcp, Slot::Delays]);
        for (index, slot) in (0..).zip(slots) {
            assert_eq!((schedule.index(slot), schedule.slot(index)), (index, slot));
        }
    }
}
