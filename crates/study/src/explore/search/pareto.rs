//! The Pareto front of time and cost.

/// A Pareto front of two figures to minimise: ascending in the first, descending in the second.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Front<T> {
    entries: Vec<Entry<T>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry<T> {
    time: f64,
    cost: f64,
    index: u64,
    what: T,
}

impl<T> Front<T> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// Adds the entry that `what` creates unless an existing one is at least as good in both figures; among equals
    /// the lowest index stays. The front does not depend on the order in which entries are added.
    pub(super) fn add(&mut self, time: f64, cost: f64, index: u64, what: impl FnOnce() -> T) {
        let place = self.entries.partition_point(|entry| entry.time < time);
        let beaten = place > 0 && self.entries[place - 1].cost <= cost;
        let at_once = self.entries.get(place).filter(|entry| entry.time <= time);
        let beaten_at_once =
            at_once.is_some_and(|entry| entry.cost < cost || (entry.cost <= cost && entry.index <= index));
        if beaten || beaten_at_once {
            return;
        }
        let worse = self.entries[place..].iter().take_while(|entry| entry.cost >= cost).count();
        let entry = Entry { time, cost, index, what: what() };
        self.entries.splice(place..place + worse, [entry]);
    }

    pub(super) fn merge(&mut self, other: Self) {
        for entry in other.entries {
            self.add(entry.time, entry.cost, entry.index, || entry.what);
        }
    }

    pub(super) fn into_entries(self) -> impl Iterator<Item = T> {
        self.entries.into_iter().map(|entry| entry.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference: compares every pair.
    fn slowly(points: &[(u8, u8)]) -> Vec<usize> {
        let beats = |a: usize, b: usize| {
            let ((ta, ca), (tb, cb)) = (points[a], points[b]);
            ta <= tb && ca <= cb && (ta < tb || ca < cb || a < b)
        };
        let mut front: Vec<usize> = (0..points.len())
            .filter(|&place| (0..points.len()).all(|other| other == place || !beats(other, place)))
            .collect();
        front.sort_by_key(|&place| points[place]);
        front
    }

    proptest! {
        #[test]
        fn the_front_is_what_comparing_all_pairs_finds(
            points in proptest::collection::vec((0u8..20, 0u8..20), 0..60),
            cut in 0usize..60,
        ) {
            let half = |range: std::ops::Range<usize>| {
                let mut front = Front::new();
                for place in range {
                    let (time, cost) = points[place];
                    front.add(time.into(), cost.into(), place as u64, || place);
                }
                front
            };
            let cut = cut.min(points.len());
            // The halves are added in reverse order, which must not matter.
            let mut front = half(cut..points.len());
            front.merge(half(0..cut));
            prop_assert_eq!(front.into_entries().collect::<Vec<_>>(), slowly(&points));
        }
    }
}
