//! Times of collective operations: what it costs N equal workers to combine or spread the same bytes.
//!
//! Every worker has one full-duplex port. A step of an algorithm costs α, a byte on a port 1/β, and
//! combining two numbers one operation at the rate π; [`Fabric`] holds these. Costs come apart by cause
//! ([`Cost`]), are linear in the size, and are zero where there is nothing to send or nobody to send to.
//!
//! The costs of ring, halving-doubling and tree algorithms are those of Thakur, Rabenseifner and Gropp 2005
//! (doi 10.1177/1094342005051521); that of two trees is the limit of small packets of Sanders, Speck and Träff
//! 2009 (doi 10.1016/j.parco.2009.09.001); no algorithm beats [`lower_bound`] (Chan et al. 2007,
//! doi 10.1002/cpe.1206).
//!
//! [`Curve`] is the time of a whole collective by its size, as the overlap models take it: a line, eq. 7 of
//! Liu et al. 2022, or its eq. 18.

use stepcast_core::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};

/// What joins workers, and how fast they combine what arrives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fabric {
    /// α: fixed cost of every step of an algorithm.
    pub step: Seconds,
    /// β: rate of a worker's port, one direction.
    pub bandwidth: BytesPerSec,
    /// π: rate at which a worker combines numbers; infinite: at no cost.
    pub reduce: FlopsPerSec,
    /// s: size of one number.
    pub element: Bytes,
}

/// Time of a collective, by cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Cost {
    /// Fixed costs of all steps.
    pub latency: Seconds,
    /// Bytes on the ports.
    pub transfer: Seconds,
    /// Combining numbers.
    pub reduction: Seconds,
}

impl Cost {
    /// Everything together.
    pub fn total(self) -> Seconds {
        self.latency + self.transfer + self.reduction
    }

    /// One collective after the other.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        Self {
            latency: self.latency + next.latency,
            transfer: self.transfer + next.transfer,
            reduction: self.reduction + next.reduction,
        }
    }
}

impl Fabric {
    /// `steps` steps in which the busiest port carries `carried` times `size` and the busiest worker combines
    /// `combined` times `size`.
    fn cost(&self, size: Bytes, steps: f64, carried: f64, combined: f64) -> Cost {
        if size <= Bytes::ZERO {
            return Cost::default();
        }
        Cost {
            latency: self.step * steps,
            transfer: size * carried / self.bandwidth,
            reduction: Flops::new(size * combined / self.element) / self.reduce,
        }
    }
}

/// (N - 1)/N: the share of the data that a worker does not end up with, or does not begin with.
fn others(workers: u32) -> f64 {
    f64::from(workers.saturating_sub(1)) / f64::from(workers.max(1))
}

/// Steps of a ring in one direction.
fn ring_steps(workers: u32) -> f64 {
    f64::from(workers.saturating_sub(1))
}

/// ⌈log₂ N⌉: rounds in which everybody can have heard from everybody.
fn rounds(workers: u32) -> f64 {
    f64::from(u32::BITS - workers.max(1).saturating_sub(1).leading_zeros())
}

/// How gradients are summed over all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AllReduce {
    /// Reduce-scatter, then all-gather, both around a ring:
    ///
    /// ```text
    /// 2(N-1) α + 2(N-1)/N D/β + (N-1)/N D/(sπ)
    /// ```
    #[default]
    Ring,
    /// Reduce-scatter by recursive halving, all-gather by recursive doubling, among the largest power of two
    /// p ≤ N; the other N - p workers first give all they have to a partner and get the sum back in the end:
    ///
    /// ```text
    /// 2 log₂(p) α + 2(p-1)/p D/β + (p-1)/p D/(sπ)     and, if p < N,     2α + 2 D/β + D/(sπ)
    /// ```
    HalvingDoubling,
    /// Reduction to one worker and broadcast from there along a binary (binomial) tree, whole messages, in
    /// ⌈log₂ N⌉ rounds each:
    ///
    /// ```text
    /// 2⌈log₂ N⌉ (α + D/β) + ⌈log₂ N⌉ D/(sπ)
    /// ```
    Tree,
    /// Two binary trees, each for half of the data, in which every worker is a leaf of one and an inner node of the
    /// other; cut into packets so small that the trees' depth costs only steps:
    ///
    /// ```text
    /// 2⌈log₂ N⌉ α + 2 D/β + D/(sπ)
    /// ```
    DoubleTree,
}

impl AllReduce {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Ring, Self::HalvingDoubling, Self::Tree, Self::DoubleTree];

    /// Cost of summing `size` bytes of every one of `workers`.
    pub fn cost(self, fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
        if workers <= 1 {
            return Cost::default();
        }
        let depth = rounds(workers);
        match self {
            Self::Ring => reduce_scatter(fabric, workers, size).then(all_gather(fabric, workers, size)),
            Self::HalvingDoubling => {
                let power = 1 << workers.ilog2();
                let share = others(power);
                let core = fabric.cost(size, 2.0 * rounds(power), 2.0 * share, share);
                if power == workers { core } else { core.then(fabric.cost(size, 2.0, 2.0, 1.0)) }
            }
            Self::Tree => fabric.cost(size, 2.0 * depth, 2.0 * depth, depth),
            Self::DoubleTree => fabric.cost(size, 2.0 * depth, 2.0, 1.0),
        }
    }

    /// Time of summing `size` bytes of every one of `workers`.
    pub fn time(self, fabric: &Fabric, workers: u32, size: Bytes) -> Seconds {
        self.cost(fabric, workers, size).total()
    }
}

/// Cost of leaving every worker with its share of the sum of `size` bytes of each, around a ring.
///
/// ```text
/// (N-1) α + (N-1)/N D/β + (N-1)/N D/(sπ)
/// ```
pub fn reduce_scatter(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, ring_steps(workers), others(workers), others(workers))
}

/// Cost of giving every worker all shares of `size` bytes, around a ring.
///
/// ```text
/// (N-1) α + (N-1)/N D/β
/// ```
pub fn all_gather(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, ring_steps(workers), others(workers), 0.0)
}

/// How one worker's data reaches all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Broadcast {
    /// Along a binomial tree, whole messages; for small sizes:
    ///
    /// ```text
    /// ⌈log₂ N⌉ (α + D/β)
    /// ```
    #[default]
    Tree,
    /// Shares to everybody along a tree, then an all-gather around a ring; for large sizes:
    ///
    /// ```text
    /// (⌈log₂ N⌉ + N-1) α + 2(N-1)/N D/β
    /// ```
    ScatterGather,
}

impl Broadcast {
    /// Cost of giving `size` bytes of one worker to all of `workers`.
    pub fn cost(self, fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
        let depth = rounds(workers);
        match self {
            Self::Tree => fabric.cost(size, depth, depth, 0.0),
            Self::ScatterGather => {
                fabric.cost(size, depth, others(workers), 0.0).then(all_gather(fabric, workers, size))
            }
        }
    }
}

/// Equal nodes with several workers each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hierarchy {
    /// Workers of one node.
    pub per_node: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Between workers of a node.
    pub intra: Fabric,
    /// Between nodes; `bandwidth` is that of a node's port, which its workers share.
    pub inter: Fabric,
}

impl Hierarchy {
    /// Cost of summing `size` bytes of every worker on two levels: reduce-scatter within nodes; ring all-reduce
    /// between nodes, every worker with its share; all-gather within nodes. For g workers on each of m nodes:
    ///
    /// ```text
    /// 2(g-1) α₁ + 2(g-1)/g D/β₁ + (g-1)/g D/(sπ₁)  +  2(m-1) α₂ + 2(m-1)/m D/β₂ + (m-1)/m D/(g s π₂)
    /// ```
    ///
    /// With one node, or with one worker on each, this is the ring.
    pub fn cost(&self, size: Bytes) -> Cost {
        let inside = AllReduce::Ring.cost(&self.intra, self.per_node, size);
        let mut between = AllReduce::Ring.cost(&self.inter, self.nodes, size);
        // A node's workers share its port, but each combines its own share.
        between.reduction = between.reduction / f64::from(self.per_node.max(1));
        inside.then(between)
    }

    /// Time of it.
    pub fn time(&self, size: Bytes) -> Seconds {
        self.cost(size).total()
    }
}

/// What no all-reduce can beat, each cause by itself: ⌈log₂ N⌉ α, 2(N-1)/N D/β and (N-1)/N D/(sπ).
pub fn lower_bound(fabric: &Fabric, workers: u32, size: Bytes) -> Cost {
    fabric.cost(size, rounds(workers), 2.0 * others(workers), others(workers))
}

/// Time of a collective by its size; nothing takes no time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Curve {
    /// α + D/β.
    AlphaBeta {
        /// α: whatever the size.
        startup: Seconds,
        /// β: of the whole collective.
        bandwidth: BytesPerSec,
    },
    /// Eq. 7 of Liu 2022.
    Ring(RingUpdate),
    /// Eq. 18 of Liu 2022.
    Piecewise(LogLinear),
}

impl Curve {
    /// Time of `size` bytes.
    pub fn time(&self, size: Bytes) -> Seconds {
        if size <= Bytes::ZERO {
            return Seconds::ZERO;
        }
        match self {
            Self::AlphaBeta { startup, bandwidth } => *startup + size / *bandwidth,
            Self::Ring(ring) => ring.time(size),
            Self::Piecewise(curve) => curve.time(size),
        }
    }
}

/// Ring all-reduce with one fixed cost (Liu 2022, eq. 7):
///
/// ```text
/// t(D) = 2(N-1)/(βN) D + (N-1)/(Nπs) D + δ
/// ```
///
/// Two departures from print: t(0) = 0, not δ (errata 4.2), and one worker takes no time, because it has nobody
/// to talk to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RingUpdate {
    per_byte: Seconds,
    overhead: Seconds,
}

impl RingUpdate {
    /// Eq. 7 with N workers on `fabric` (β, π, s; its α is not used) and δ for each all-reduce.
    pub fn new(fabric: &Fabric, workers: u32, overhead: Seconds) -> Self {
        let bytes = reduce_scatter(fabric, workers, Bytes::new(1.0)).then(all_gather(
            fabric,
            workers,
            Bytes::new(1.0),
        ));
        let overhead = if workers > 1 { overhead } else { Seconds::ZERO };
        Self { per_byte: bytes.transfer + bytes.reduction, overhead }
    }

    /// The ring whose steps cost α each: δ = 2(N-1)α.
    pub fn stepwise(fabric: &Fabric, workers: u32) -> Self {
        Self::new(fabric, workers, fabric.step * (2.0 * ring_steps(workers)))
    }

    /// δ: what every all-reduce costs whatever its size.
    pub fn overhead(&self) -> Seconds {
        self.overhead
    }

    /// Time of `size` bytes.
    pub fn time(&self, size: Bytes) -> Seconds {
        if size <= Bytes::ZERO {
            return Seconds::ZERO;
        }
        self.per_byte * size.get() + self.overhead
    }
}

/// A logarithm up to a threshold, a line from there (Liu 2022, eq. 18):
///
/// ```text
/// t(D) = a₁ log₂(D) + b₁   if D < D_Thresh,      a₂ D + b₂   otherwise
/// ```
///
/// The small sizes are those of a window that still opens. Print leaves a jump at the threshold
/// unless it is fitted away; here b₁ follows from the other three unless it is given. Sizes below one byte count as
/// one byte, and no time is negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogLinear {
    threshold: Bytes,
    per_doubling: Seconds,
    below: Seconds,
    bandwidth: BytesPerSec,
    overhead: Seconds,
}

impl LogLinear {
    /// The paper's threshold, the product of bandwidth and round trip: 25 Gbit/s and 14.4 µs.
    pub const PAPER_THRESHOLD: Bytes = Bytes::new(45_000.0);

    /// The continuous curve: from `threshold` on `overhead` (b₂) and `bandwidth` (1/a₂), below it
    /// `per_doubling` (a₁) less for every halving.
    pub fn continuous(
        threshold: Bytes,
        per_doubling: Seconds,
        bandwidth: BytesPerSec,
        overhead: Seconds,
    ) -> Self {
        let threshold = threshold.max(ONE_BYTE);
        let below = threshold / bandwidth + overhead - per_doubling * threshold.get().log2();
        Self { threshold, per_doubling, below, bandwidth, overhead }
    }

    /// The same with b₁ given: eq. 18 as printed, with a jump at the threshold where the fit has one.
    #[must_use]
    pub fn with_offset_below(self, offset: Seconds) -> Self {
        Self { below: offset, ..self }
    }

    /// The continuous curve that misses measured times by the least sum of squares. None where they do not
    /// determine it: fewer than two sizes from `threshold` on or none below it, or times that do not grow.
    pub fn fit(threshold: Bytes, measured: &[(Bytes, Seconds)]) -> Option<Self> {
        // t = v + a₁ min(log₂(D/T), 0) + a₂ max(D - T, 0). No size has both, so that eliminating a₁ and a₂ from the
        // normal equations leaves one for v.
        let threshold = threshold.max(ONE_BYTE);
        let (mut count, mut sum) = (0.0, 0.0);
        let mut low = Moments::default();
        let mut high = Moments::default();
        for &(size, time) in measured {
            let size = size.max(ONE_BYTE);
            count += 1.0;
            sum += time.get();
            if size < threshold {
                low.add((size / threshold).log2(), time.get());
            } else {
                high.add(size / threshold - 1.0, time.get());
            }
        }
        if low.xx <= 0.0 || high.xx <= 0.0 {
            return None;
        }
        let left = count - low.x * low.x / low.xx - high.x * high.x / high.xx;
        if left <= 1e-9 * count {
            return None;
        }
        let value = (sum - low.x * low.xy / low.xx - high.x * high.xy / high.xx) / left;
        let per_doubling = (low.xy - value * low.x) / low.xx;
        let per_threshold = (high.xy - value * high.x) / high.xx;
        if !(per_doubling >= 0.0 && per_threshold > 0.0) {
            return None;
        }
        let bandwidth = threshold / Seconds::new(per_threshold);
        let overhead = Seconds::new(value - per_threshold);
        Some(Self::continuous(threshold, Seconds::new(per_doubling), bandwidth, overhead))
    }

    /// Time of `size` bytes.
    pub fn time(&self, size: Bytes) -> Seconds {
        if size <= Bytes::ZERO {
            return Seconds::ZERO;
        }
        let time = if size < self.threshold {
            self.below + self.per_doubling * size.max(ONE_BYTE).get().log2()
        } else {
            self.overhead + size / self.bandwidth
        };
        time.max(Seconds::ZERO)
    }
}

/// The smallest size whose logarithm is not negative.
const ONE_BYTE: Bytes = Bytes::new(1.0);

/// Sums of a regression on one variable.
#[derive(Debug, Clone, Copy, Default)]
struct Moments {
    x: f64,
    xx: f64,
    xy: f64,
}

impl Moments {
    fn add(&mut self, x: f64, y: f64) {
        self.x += x;
        self.xx += x * x;
        self.xy += x * y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fabric() -> impl Strategy<Value = Fabric> {
        (0.0..1e-3f64, 1e6..1e11f64, 1e9..1e14f64).prop_map(|(step, bandwidth, reduce)| Fabric {
            step: Seconds::new(step),
            bandwidth: BytesPerSec::new(bandwidth),
            reduce: FlopsPerSec::new(reduce),
            element: Bytes::new(4.0),
        })
    }

    fn close(a: Seconds, b: Seconds) -> bool {
        (a.get() - b.get()).abs() <= 1e-12 * a.get().abs().max(b.get().abs())
    }

    fn no_less(a: Seconds, b: Seconds) -> bool {
        a.get() >= b.get() * (1.0 - 1e-12)
    }

    /// Every collective here, on N workers.
    fn all(fabric: &Fabric, workers: u32, size: Bytes) -> Vec<Cost> {
        let mut costs: Vec<Cost> =
            AllReduce::ALL.iter().map(|algorithm| algorithm.cost(fabric, workers, size)).collect();
        costs.push(reduce_scatter(fabric, workers, size));
        costs.push(all_gather(fabric, workers, size));
        costs.push(Broadcast::Tree.cost(fabric, workers, size));
        costs.push(Broadcast::ScatterGather.cost(fabric, workers, size));
        costs
    }

    #[test]
    fn rounds_are_the_logarithm_rounded_up() {
        let expected = [0.0, 0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 4.0];
        for (workers, rounds_of) in (0..).zip(expected) {
            assert_eq!(rounds(workers).to_bits(), f64::to_bits(rounds_of), "{workers}");
        }
        assert_eq!(rounds(u32::MAX).to_bits(), 32f64.to_bits());
    }

    #[test]
    fn by_hand_for_three_and_four_workers() {
        let fabric = Fabric {
            step: Seconds::new(1.0),
            bandwidth: BytesPerSec::new(12.0),
            reduce: FlopsPerSec::new(12.0),
            element: Bytes::new(1.0),
        };
        let parts = |cost: Cost| [cost.latency.get(), cost.transfer.get(), cost.reduction.get()];
        let size = Bytes::new(144.0);
        let near = |cost: Cost, expected: [f64; 3]| {
            for (part, expected) in parts(cost).into_iter().zip(expected) {
                assert!((part - expected).abs() < 1e-12, "{cost:?}, not {expected}");
            }
        };
        near(AllReduce::Ring.cost(&fabric, 4, size), [6.0, 18.0, 9.0]);
        near(AllReduce::Ring.cost(&fabric, 3, size), [4.0, 16.0, 8.0]);
        near(AllReduce::HalvingDoubling.cost(&fabric, 4, size), [4.0, 18.0, 9.0]);
        near(AllReduce::HalvingDoubling.cost(&fabric, 3, size), [4.0, 12.0 + 24.0, 6.0 + 12.0]);
        near(AllReduce::Tree.cost(&fabric, 3, size), [4.0, 48.0, 24.0]);
        near(AllReduce::DoubleTree.cost(&fabric, 4, size), [4.0, 24.0, 12.0]);
        near(Broadcast::Tree.cost(&fabric, 4, size), [2.0, 24.0, 0.0]);
        near(Broadcast::ScatterGather.cost(&fabric, 4, size), [5.0, 18.0, 0.0]);
    }

    #[test]
    fn a_line_through_measured_points_is_found_again() {
        let truth = LogLinear::continuous(
            LogLinear::PAPER_THRESHOLD,
            Seconds::new(3e-6),
            BytesPerSec::new(1.5e9),
            Seconds::new(6e-5),
        );
        let sizes = [64.0, 1e3, 8e3, 3e4, 6e4, 1e6, 3e7];
        let measured: Vec<(Bytes, Seconds)> =
            sizes.iter().map(|&size| (Bytes::new(size), truth.time(Bytes::new(size)))).collect();
        let found = LogLinear::fit(LogLinear::PAPER_THRESHOLD, &measured).unwrap();
        for size in [1.0, 100.0, 44_999.0, 45_000.0, 1e8] {
            let (a, b) = (found.time(Bytes::new(size)).get(), truth.time(Bytes::new(size)).get());
            assert!((a - b).abs() < 1e-9 * b.max(1e-5), "{size}: {a} {b}");
        }
        assert_eq!(LogLinear::fit(LogLinear::PAPER_THRESHOLD, &measured[..4]), None);
        assert_eq!(LogLinear::fit(LogLinear::PAPER_THRESHOLD, &measured[4..]), None);
        assert_eq!(LogLinear::fit(LogLinear::PAPER_THRESHOLD, &[]), None);
    }

    #[test]
    fn the_printed_curve_may_jump_and_the_default_does_not() {
        let curve = LogLinear::continuous(
            Bytes::new(1024.0),
            Seconds::new(1.0),
            BytesPerSec::new(1024.0),
            Seconds::new(20.0),
        );
        let at = |curve: &LogLinear, size: f64| curve.time(Bytes::new(size)).get();
        assert!((at(&curve, 1024.0) - 21.0).abs() < 1e-12);
        assert!((at(&curve, 512.0) - 20.0).abs() < 1e-12);
        assert!((at(&curve, 1.0) - 11.0).abs() < 1e-12);
        // Guards: less than a byte is a byte; nothing is nothing; no time is negative.
        assert!((at(&curve, 1e-9) - 11.0).abs() < 1e-12);
        assert!(at(&curve, 0.0).abs() < 1e-300);
        let printed = curve.with_offset_below(Seconds::new(-2.0));
        assert!((at(&printed, 512.0) - 7.0).abs() < 1e-12);
        assert!(at(&printed, 2.0).abs() < 1e-300);
        assert!((at(&printed, 1024.0) - 21.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn one_worker_or_no_bytes_take_no_time(fabric in fabric(), n in 1u32..200, size in 0.0..1e9f64) {
            for cost in all(&fabric, 1, Bytes::new(size)).into_iter().chain(all(&fabric, n, Bytes::ZERO)) {
                prop_assert_eq!(cost, Cost::default());
            }
            let curve = Curve::Ring(RingUpdate::new(&fabric, 1, Seconds::new(1.0)));
            prop_assert_eq!(curve.time(Bytes::new(size)), Seconds::ZERO);
        }

        #[test]
        fn more_bytes_take_no_less_time(
            fabric in fabric(), n in 1u32..200, size in 0.0..1e9f64, more in 0.0..1e9f64, per_doubling in 0.0..1e-5f64,
        ) {
            let (size, larger) = (Bytes::new(size), Bytes::new(size + more));
            for (a, b) in all(&fabric, n, size).into_iter().zip(all(&fabric, n, larger)) {
                prop_assert!(no_less(b.total(), a.total()));
            }
            let piecewise = LogLinear::continuous(
                LogLinear::PAPER_THRESHOLD, Seconds::new(per_doubling), fabric.bandwidth, fabric.step,
            );
            for curve in [
                Curve::AlphaBeta { startup: fabric.step, bandwidth: fabric.bandwidth },
                Curve::Ring(RingUpdate::stepwise(&fabric, n)),
                Curve::Piecewise(piecewise),
            ] {
                prop_assert!(no_less(curve.time(larger), curve.time(size)));
            }
        }

        #[test]
        fn the_ring_carries_its_share_twice(fabric in fabric(), n in 1u32..2000, size in 1.0..1e9f64) {
            let size = Bytes::new(size);
            let ring = AllReduce::Ring.cost(&fabric, n, size);
            let share = 2.0 * f64::from(n - 1) / f64::from(n);
            prop_assert!(close(ring.transfer, size / fabric.bandwidth * share));
            prop_assert!(close(ring.latency, fabric.step * (2.0 * f64::from(n - 1))));
            let halves = reduce_scatter(&fabric, n, size).then(all_gather(&fabric, n, size));
            prop_assert_eq!(ring, halves);
            // Eq. 7 with δ = 2(N-1)α is the ring.
            prop_assert!(close(Curve::Ring(RingUpdate::stepwise(&fabric, n)).time(size), ring.total()));
        }

        #[test]
        fn nothing_beats_the_lower_bounds(fabric in fabric(), n in 1u32..2000, size in 1.0..1e9f64) {
            let size = Bytes::new(size);
            let bound = lower_bound(&fabric, n, size);
            for algorithm in AllReduce::ALL {
                let cost = algorithm.cost(&fabric, n, size);
                prop_assert!(no_less(cost.latency, bound.latency));
                prop_assert!(no_less(cost.transfer, bound.transfer));
                prop_assert!(no_less(cost.reduction, bound.reduction));
            }
        }

        #[test]
        fn a_hierarchy_of_one_level_is_flat(
            intra in fabric(), inter in fabric(), n in 1u32..200, size in 0.0..1e9f64,
        ) {
            let size = Bytes::new(size);
            let one = Hierarchy { per_node: n, nodes: 1, intra, inter };
            prop_assert_eq!(one.cost(size), AllReduce::Ring.cost(&intra, n, size));
            let single = Hierarchy { per_node: 1, nodes: n, intra, inter };
            prop_assert_eq!(single.cost(size), AllReduce::Ring.cost(&inter, n, size));
        }

        #[test]
        fn a_hierarchy_obeys_the_bounds_and_saves_steps(
            fabric in fabric(), per_node in 1u32..17, nodes in 1u32..65, size in 1.0..1e9f64,
        ) {
            let size = Bytes::new(size);
            let cost = Hierarchy { per_node, nodes, intra: fabric, inter: fabric }.cost(size);
            let bound = lower_bound(&fabric, per_node * nodes, size);
            prop_assert!(no_less(cost.latency, bound.latency));
            prop_assert!(no_less(cost.transfer, bound.transfer));
            prop_assert!(close(cost.reduction, bound.reduction));
            prop_assert!(no_less(AllReduce::Ring.cost(&fabric, per_node * nodes, size).latency, cost.latency));
        }

        #[test]
        fn powers_of_two_suit_halving_and_doubling(fabric in fabric(), power in 0u32..12, size in 1.0..1e9f64) {
            let (n, size) = (1 << power, Bytes::new(size));
            let (ring, halving) =
                (AllReduce::Ring.cost(&fabric, n, size), AllReduce::HalvingDoubling.cost(&fabric, n, size));
            prop_assert!(close(ring.transfer, halving.transfer));
            prop_assert!(no_less(ring.latency, halving.latency));
        }
    }
}
