//! A step put together again: without its sums of gradients, and then with sums that take as long as they did.
//!
//! A sum starts when what was launched before it has been computed and when those sums have ended that had ended before it in the
//! trace. Collectives of one process group run one after another, so that a sum may delay those that stay in the step, and with
//! them all that follows; the rest of the step waits for all sums. How far the result is from the recorded step shows what
//! the profile loses.

use super::rank::{Bucket, Rank, Step};
use super::records::{Span, Time};
use std::collections::BTreeMap;
use stepcast_core::quantity::BytesPerSec;

/// A collective of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Exchange {
    pub(super) ran: Span,
    /// When everything was computed that had been launched before it.
    pub(super) ready: Time,
    /// Its process group; none if unknown.
    pub(super) group: Option<u32>,
    pub(super) sums_gradients: bool,
}

impl Step {
    /// How long the step takes with its sums of gradients as recorded.
    pub(super) fn replayed(&self) -> Time {
        let clock = &self.timeline;
        let mut delay = 0;
        let mut all = Ends::default();
        let mut of_group = BTreeMap::<Option<u32>, Ends>::new();
        for exchange in &self.exchanges {
            let own = of_group.entry(exchange.group).or_default();
            if exchange.sums_gradients {
                let ready = clock.clock_at_end(exchange.ready) + delay;
                let end = ready.max(all.of_those_before(exchange.ran)) + exchange.ran.length();
                all.add(exchange.ran, end);
                own.add(exchange.ran, end);
            } else {
                delay =
                    delay.max(own.of_those_before(exchange.ran) - clock.clock_at_start(exchange.ran.start));
            }
        }
        clock.length() + delay.max(all.last() - self.backward_end())
    }
}

/// When sums ended in the trace, in order, and when the last of those up to each ends in the replay.
#[derive(Default)]
struct Ends {
    ends: Vec<(Time, Time)>,
}

impl Ends {
    fn add(&mut self, ran: Span, end: Time) {
        let (recorded, replayed) = self.ends.last().copied().unwrap_or((ran.end, end));
        self.ends.push((recorded.max(ran.end), replayed.max(end)));
    }

    /// The end of all that had ended before this one began; 0 if there are none.
    fn of_those_before(&self, next: Span) -> Time {
        let before = self.ends.partition_point(|(recorded, _)| *recorded <= next.start);
        before.checked_sub(1).map_or(0, |last| self.ends[last].1)
    }

    fn last(&self) -> Time {
        self.ends.last().map_or(0, |(_, replayed)| *replayed)
    }
}

impl Bucket {
    /// Bytes that each link of a ring carries in an all-reduce of it.
    fn ring_bytes(&self) -> Option<f64> {
        let ranks = Some(f64::from(self.ranks)).filter(|ranks| *ranks > 1.0)?;
        let element = if self.element == 0 { 4.0 } else { f64::from(self.element) };
        Some(2.0 * (ranks - 1.0) / ranks * self.elements? as f64 * element)
    }
}

/// The rate of a link at which a ring all-reduce of all sums takes as long as they did.
pub(super) fn ring_rate(rank: &Rank) -> Option<BytesPerSec> {
    let sums = rank.steps.iter().flat_map(|step| &step.buckets);
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for bucket in sums {
        bytes += bucket.ring_bytes()?;
        seconds += bucket.ran?.length() as f64 / 1e9;
    }
    (bytes > 0.0 && seconds > 0.0).then(|| BytesPerSec::new(bytes / seconds))
}
