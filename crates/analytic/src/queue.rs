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
