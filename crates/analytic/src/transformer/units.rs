//! A forward and a backward pass over units whose weights or gradients are sharded, unit by unit.
//!
//! One link carries all collectives in the order in which they are begun. A unit's weights are gathered before it
//! computes, its gradients are reduced after it went backward. Collectives either block, or weights are gathered one unit
//! ahead, beside the computing of the unit before, and reductions run behind the backward pass.

use stepcast_core::quantity::Seconds;

/// A part of the model whose weights are gathered together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// Forward pass.
    pub forward: Seconds,
    /// Backward pass.
    pub backward: Seconds,
    /// Gather of its weights.
    pub gather: Seconds,
    /// Reduction of its gradients.
    pub reduce: Seconds,
}

/// What is gathered and reduced when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Weights are gathered before the forward pass of a unit.
    pub forward: bool,
    /// Weights are gathered before the backward pass of a unit.
    pub backward: bool,
    /// Gradients are reduced after the backward pass of a unit.
    pub reduce: bool,
    /// The next unit's weights are gathered while this one computes.
    pub ahead: bool,
    /// Reductions run behind the backward pass.
    pub behind: bool,
}

/// Time and the link, which carries one collective after the other.
#[derive(Default)]
struct Clock {
    now: f64,
    link: f64,
}

impl Clock {
    /// Begins a collective; when it ends.
    fn begin(&mut self, time: Seconds) -> f64 {
        self.link = self.link.max(self.now) + time.get();
        self.link
    }

    /// Goes through units of which each gathers its weights, computes and perhaps reduces.
    fn pass<'a>(
        &mut self,
        units: impl Iterator<Item = &'a Unit>,
        gathers: bool,
        ahead: bool,
        mut compute: impl FnMut(&mut Self, &Unit),
    ) {
        let mut units = units.peekable();
        let mut ready = self.now;
        if let Some(first) = units.peek().filter(|_| gathers) {
            ready = self.begin(first.gather);
        }
        while let Some(unit) = units.next() {
            self.now = self.now.max(ready);
            let next = units.peek().filter(|_| gathers);
            if let Some(next) = next.filter(|_| ahead) {
                ready = self.begin(next.gather);
            }
            compute(self, unit);
            if let Some(next) = next.filter(|_| !ahead) {
                ready = self.begin(next.gather);
            }
        }
    }
}

/// Ends of the forward and of the backward pass with its last reduction.
pub fn passes(units: &[Unit], exchange: &Exchange) -> [Seconds; 2] {
    let mut clock = Clock::default();
    clock.pass(units.iter(), exchange.forward, exchange.ahead, |clock, unit| {
        clock.now += unit.forward.get();
    });
    let forward = Seconds::new(clock.now);
    let mut reduced = 0.0_f64;
    clock.pass(units.iter().rev(), exchange.backward, exchange.ahead, |clock, unit| {
        clock.now += unit.backward.get();
        if exchange.reduce {
            reduced = clock.begin(unit.reduce);
            if !exchange.behind {
                clock.now = reduced;
            }
        }
    });
    [forward, Seconds::new(clock.now.max(reduced))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unit(times: [u32; 4]) -> Unit {
        let [forward, backward, gather, reduce] = times.map(|time| Seconds::new(f64::from(time)));
        Unit { forward, backward, gather, reduce }
    }

    const BLOCKING: Exchange =
        Exchange { forward: true, backward: true, reduce: true, ahead: false, behind: false };
    const OVERLAPPED: Exchange = Exchange { ahead: true, behind: true, ..BLOCKING };

    proptest! {
        /// Blocking collectives add up; overlap hides some of them, and never more than the link or computing needs.
        #[test]
        fn overlap_saves_time_within_limits(times in prop::collection::vec(any::<[u8; 4]>(), 1..9)) {
            let units: Vec<Unit> = times.iter().map(|times| unit(times.map(u32::from))).collect();
            let [_, blocking] = passes(&units, &BLOCKING);
            let [_, overlapped] = passes(&units, &OVERLAPPED);
            let sum = |of: fn(&Unit) -> Seconds| units.iter().map(|unit| of(unit).get()).sum::<f64>();
            let computing = sum(|unit| unit.forward) + sum(|unit| unit.backward);
            let sent = 2.0 * sum(|unit| unit.gather) + sum(|unit| unit.reduce);
            prop_assert!((blocking.get() - computing - sent).abs() < 1e-9);
            prop_assert!(overlapped <= blocking);
            prop_assert!(overlapped.get() >= computing.max(sent));
        }

        /// Equal units: all gathers but the first are hidden as far as computing lasts.
        #[test]
        fn equal_units_have_a_closed_form(forward in 0_u32..50, gather in 0_u32..50, count in 1_usize..9) {
            let units = vec![unit([forward, 0, gather, 0]); count];
            let [end, _] = passes(&units, &OVERLAPPED);
            let n = f64::from(u32::try_from(count).unwrap());
            let (forward, gather) = (f64::from(forward), f64::from(gather));
            let exposed = gather + (gather - forward).max(0.0) * (n - 1.0);
            prop_assert!((end.get() - n * forward - exposed).abs() < 1e-9);
        }
    }
}
