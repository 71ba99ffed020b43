//! A first-come, first-served queue with one server.
//!
//! This is Algorithm 1 of Zeng 2023 (and Algorithm 2, which differs only in the arrival times): with arrivals sorted,
//! the last one leaves at max over i of (ready_i + all service from i on) (errata 1.5). Identical arrivals share one
//! entry with a count, so the cost depends on the number of groups rather than workers.

use stepcast_core::quantity::Seconds;

/// `count` identical customers that arrive at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Arrival {
    /// Arrival time.
    pub ready: Seconds,
    pub service: Seconds,
    pub count: u32,
    /// Identifies the origin of the arrival; an index chosen by the caller.
    pub owner: u32,
}

impl Arrival {
    fn work(&self) -> Seconds {
        self.service * f64::from(self.count)
    }
}

/// Result of serving all arrivals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drained {
    pub end: Seconds,
    /// Index of the arrival that starts the last busy period.
    pub first: usize,
}

/// Sorts arrivals into the order of service: by time, then by owner.
///
/// Times are never negative, so their bit patterns sort like their values, and the whole key fits into one integer.
/// Sorting such keys without branches takes half the time.
pub fn sort(arrivals: &mut [Arrival]) {
    arrivals.sort_unstable_by_key(|arrival| {
        u128::from(arrival.ready.get().to_bits()) << u32::BITS | u128::from(arrival.owner)
    });
}

/// Serves sorted arrivals; O(n).
pub fn drain(sorted: &[Arrival]) -> Drained {
    let mut end = Seconds::ZERO;
    let mut first = 0;
    for (index, arrival) in sorted.iter().enumerate() {
        if arrival.ready > end || index == 0 {
            first = index;
            end = arrival.ready;
        }
        end += arrival.work();
    }
    Drained { end, first }
}

/// The latest time at which one customer of each (sorted) arrival could arrive without making the queue finish after
/// `end`; O(n log n).
///
/// Arrival j has the margin end − ready_j − (all service from j on). If customer i arrives later, the customers that
/// overtake it are served first, and only its own departure is delayed. It may fall behind j as long as the margin of
/// j covers its own service time, and stops before the first j for which it does not.
pub fn latest(sorted: &[Arrival], end: Seconds) -> Vec<Seconds> {
    let mut result = vec![Seconds::ZERO; sorted.len()];
    // Later arrivals whose margin is below all margins in between; only these can be the first j that stops a
    // customer. The nearest is on top; margins decrease towards the bottom.
    let mut barriers: Vec<(Seconds, Seconds)> = Vec::new();
    let mut behind = Seconds::ZERO;
    for (index, arrival) in sorted.iter().enumerate().rev() {
        let blocking = barriers.partition_point(|(margin, _)| *margin < arrival.service);
        let work_after = if blocking == 0 { Seconds::ZERO } else { barriers[blocking - 1].1 };
        result[index] = (end - arrival.service - work_after).max(arrival.ready);
        behind += arrival.work();
        let margin = end - arrival.ready - behind;
        while barriers.last().is_some_and(|(other, _)| *other >= margin) {
            barriers.pop();
        }
        barriers.push((margin, behind));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn arrivals(list: &[(f64, f64, u32)]) -> Vec<Arrival> {
        let each = |(owner, &(ready, service, count)): (usize, &(f64, f64, u32))| Arrival {
            ready: Seconds::new(ready),
            service: Seconds::new(service),
            count,
            owner: owner as u32,
        };
        let mut all: Vec<Arrival> = list.iter().enumerate().map(each).collect();
        sort(&mut all);
        all
    }

    /// Slow reference: every customer separately, with the end computed as the maximum of errata 1.5.
    fn end_by_maximum(arrivals: &[Arrival]) -> f64 {
        let mut each: Vec<(f64, f64)> = Vec::new();
        for arrival in arrivals {
            each.extend((0..arrival.count).map(|_| (arrival.ready.get(), arrival.service.get())));
        }
        each.sort_by(|a, b| a.0.total_cmp(&b.0));
        let from = |i: usize| each[i].0 + each[i..].iter().map(|(_, service)| service).sum::<f64>();
        (0..each.len()).map(from).fold(0.0, f64::max)
    }

    /// Slow reference for `latest`: move one customer and drain the queue again.
    fn end_if_moved(sorted: &[Arrival], index: usize, ready: f64) -> f64 {
        let mut moved = sorted.to_vec();
        moved[index].count -= 1;
        moved.push(Arrival { ready: Seconds::new(ready), count: 1, ..sorted[index] });
        moved.retain(|arrival| arrival.count > 0);
        sort(&mut moved);
        drain(&moved).end.get()
    }

    #[test]
    fn the_queue_of_figure_4() {
        // T = [1, 2, 6, 7], push 2: 1→3→5, then 6→8→10.
        let sorted = arrivals(&[(1.0, 2.0, 1), (2.0, 2.0, 1), (6.0, 2.0, 1), (7.0, 2.0, 1)]);
        let drained = drain(&sorted);
        assert_eq!(drained, Drained { end: Seconds::new(10.0), first: 2 });
        let latest: Vec<f64> = latest(&sorted, drained.end).iter().map(|time| time.get()).collect();
        // The first may arrive at 4 (its successor is served 2→4, then it 4→6), and so may the second; the third
        // determines the end; the fourth may arrive as late as 8.
        assert_eq!(latest, [4.0, 4.0, 6.0, 8.0]);
    }

    proptest! {
        #[test]
        fn drain_is_the_maximum(list in prop::collection::vec((0.0..50.0f64, 0.0..5.0f64, 1u32..4), 1..20)) {
            let sorted = arrivals(&list);
            let end = drain(&sorted).end.get();
            prop_assert!((end - end_by_maximum(&sorted)).abs() < 1e-9);
        }

        #[test]
        fn latest_is_tight(list in prop::collection::vec((0.0..50.0f64, 0.01..5.0f64, 1u32..4), 1..20)) {
            let sorted = arrivals(&list);
            let end = drain(&sorted).end;
            for (index, time) in latest(&sorted, end).iter().enumerate() {
                prop_assert!(time.get() >= sorted[index].ready.get());
                prop_assert!(end_if_moved(&sorted, index, time.get() - 1e-9) <= end.get() + 1e-9);
                prop_assert!(end_if_moved(&sorted, index, time.get() + 1e-6) > end.get());
            }
        }
    }
}
