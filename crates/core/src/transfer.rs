//! How long a transfer takes by its size, as measured.

use crate::quantity::{Bytes, BytesPerSec, Seconds};
use serde::{Deserialize, Serialize};

/// A logarithm up to a threshold, a line from there (Liu 2022, eq. 18):
///
/// ```text
/// t(D) = a₁ log₂(D) + b₁   if D < D_Thresh,      a₂ D + b₂   otherwise
/// ```
///
/// The small sizes are those of a window that still opens. Print leaves a jump at the threshold
/// unless it is fitted away; here b₁ follows from the other three unless it is given. Sizes below one byte count as
/// one byte, and no time is negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
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
