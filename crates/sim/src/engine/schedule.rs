//! Pending events: at most one for every source of events, taken in the order of their times.

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

    #[inline(always)]
    pub(super) fn first(&self) -> Option<(Due, Slot)> {
        self.heap.first().map(|(due, index)| (due, self.slot(index)))
    }

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

    #[inline(always)]
    pub(super) fn remove(&mut self, slot: Slot) {
        self.heap.remove(self.index(slot));
    }

    #[inline(always)]
    pub(super) fn contains(&self, slot: Slot) -> bool {
        self.heap.contains(self.index(slot))
    }
}

// An indexed binary heap: every slot has at most one pending event, which can be re-timed in place.
//
// Sharing changes re-time one event per resource instead of leaving dead ones behind. Ties are broken by the
// sequence number, so the order of events never depends on the shape of the heap.

/// When an event is due; earlier sequence numbers go first among equals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Due {
    pub(crate) time: f64,
    pub(crate) sequence: u64,
}

impl Due {
    /// The bits of non-negative times sort like the times, and one comparison of integers is faster than three.
    #[inline]
    fn key(self) -> u128 {
        debug_assert!(self.time.is_sign_positive(), "no event is due before the beginning: {}", self.time);
        u128::from(self.time.to_bits()) << 64 | u128::from(self.sequence)
    }

    #[inline]
    fn before(self, other: Self) -> bool {
        self.key() < other.key()
    }
}

const ABSENT: u32 = u32::MAX;

/// Pending events by slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heap {
    /// Slot and due time together, so that sifting touches one array.
    entries: Vec<(Due, u32)>,
    /// Position of the event of each slot.
    position: Vec<u32>,
}

impl Heap {
    pub(crate) fn new(slots: usize) -> Self {
        Self { entries: Vec::with_capacity(slots), position: vec![ABSENT; slots] }
    }

    #[inline]
    pub(crate) fn first(&self) -> Option<(Due, u32)> {
        self.entries.first().copied()
    }

    #[inline]
    pub(crate) fn set(&mut self, slot: u32, due: Due) {
        let at = self.position[slot as usize];
        if at == ABSENT {
            self.entries.push((due, slot));
            self.up(self.entries.len() - 1);
            return;
        }
        let at = at as usize;
        let earlier = due.before(self.entries[at].0);
        self.entries[at].0 = due;
        if earlier { self.up(at) } else { self.down(at) }
    }

    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.position[slot as usize] != ABSENT
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let at = self.position[slot as usize];
        if at == ABSENT {
            return;
        }
        self.position[slot as usize] = ABSENT;
        let at = at as usize;
        let Some(last) = self.entries.pop() else { return };
        if at < self.entries.len() {
            let earlier = last.0.before(self.entries[at].0);
            self.entries[at] = last;
            if earlier { self.up(at) } else { self.down(at) }
        }
    }

    #[inline]
    fn up(&mut self, mut at: usize) {
        let entry = self.entries[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if !entry.0.before(self.entries[parent].0) {
                break;
            }
            self.place(at, self.entries[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    #[inline]
    fn down(&mut self, mut at: usize) {
        let entry = self.entries[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.entries.len() {
                break;
            }
            if child + 1 < self.entries.len() && self.entries[child + 1].0.before(self.entries[child].0) {
                child += 1;
            }
            if !self.entries[child].0.before(entry.0) {
                break;
            }
            self.place(at, self.entries[child]);
            at = child;
        }
        self.place(at, entry);
    }

    #[inline]
    fn place(&mut self, at: usize, entry: (Due, u32)) {
        self.entries[at] = entry;
        self.position[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against the slow twin: a table that is searched.
        #[test]
        fn behaves_like_a_table(changes in prop::collection::vec((0u32..12, prop::option::of(0u8..6)), 1..200)) {
            let mut heap = Heap::new(12);
            let mut table: Vec<Option<Due>> = vec![None; 12];
            for (sequence, (slot, time)) in changes.into_iter().enumerate() {
                match time {
                    Some(time) => {
                        let due = Due { time: f64::from(time), sequence: sequence as u64 };
                        heap.set(slot, due);
                        table[slot as usize] = Some(due);
                    }
                    None => {
                        heap.remove(slot);
                        table[slot as usize] = None;
                    }
                }
                let entries = table.iter().enumerate().filter_map(|(slot, due)| due.map(|due| (due, slot as u32)));
                let first = entries.reduce(|a, b| if b.0.before(a.0) { b } else { a });
                prop_assert_eq!(heap.first(), first);
            }
        }
    }

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
