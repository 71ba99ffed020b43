//! Time of a transfer or a collective as a function of its size: linear, or logarithmic up to a threshold.

use crate::quantity::{Bytes, BytesPerSec, Seconds};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Time of a collective as a function of its size; zero bytes take no time.
#[derive(Debug, Clone, PartialEq)]
pub enum Curve {
    /// α + D/β. Eq. 7 of Liu 2022 has this form.
    AlphaBeta {
        /// α: fixed time.
        startup: Seconds,
        /// β: bandwidth of the whole collective.
        bandwidth: BytesPerSec,
    },
    /// Eq. 18 of Liu 2022.
    Piecewise(LogLinear),
    Measured(Measured),
    /// Fitted to measured sizes.
    Fitted {
        path: Arc<str>,
        model: TransferModel,
    },
}

impl Curve {
    pub fn time(&self, size: Bytes) -> Seconds {
        if size <= Bytes::ZERO {
            return Seconds::ZERO;
        }
        match self {
            Self::AlphaBeta { startup, bandwidth } => *startup + size / *bandwidth,
            Self::Piecewise(curve) => curve.time(size),
            Self::Measured(curve) => curve.time(size),
            Self::Fitted { model, .. } => model.curve.time(size),
        }
    }

    /// The smallest and the largest measured size; none if the curve is not based on measurements.
    pub fn measured(&self) -> Option<[Bytes; 2]> {
        match self {
            Self::AlphaBeta { .. } | Self::Piecewise(_) => None,
            Self::Measured(curve) => Some([curve.0.first()?.0, curve.0.last()?.0]),
            Self::Fitted { model, .. } => Some([model.least, model.most]),
        }
    }

    /// Fixed cost of every transfer: the time of the smallest one.
    pub fn startup(&self) -> Seconds {
        match self {
            Self::AlphaBeta { startup, .. } => *startup,
            Self::Piecewise(curve) => curve.time(ONE_BYTE),
            Self::Measured(curve) => curve.time(ONE_BYTE),
            Self::Fitted { model, .. } => model.curve.time(ONE_BYTE),
        }
    }
}

/// Measured times by size, with linear interpolation in between. Sizes below the first take as long as the first;
/// beyond the last, the mean slope from the first to the last applies.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured(Arc<[(Bytes, Seconds)]>);

/// Why measured times do not define a curve.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum NoCurve {
    /// A single point does not define a slope.
    #[error("{0} measured size does not make a curve")]
    TooFew(usize),
    /// Sizes are not strictly increasing.
    #[error("measured sizes must grow, and {1} stands after {0}")]
    Unsorted(Bytes, Bytes),
    /// A size or time is not plausible.
    #[error("{1} for {0} cannot be a measured time")]
    Absurd(Bytes, Seconds),
}

impl Measured {
    pub fn new(points: &[(Bytes, Seconds)]) -> Result<Self, NoCurve> {
        if points.len() < 2 {
            return Err(NoCurve::TooFew(points.len()));
        }
        let sound = |value: f64| value > 0.0 && value.is_finite();
        if let Some(&(size, time)) =
            points.iter().find(|(size, time)| !(sound(size.get()) && sound(time.get())))
        {
            return Err(NoCurve::Absurd(size, time));
        }
        if let Some(pair) = points.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
            return Err(NoCurve::Unsorted(pair[0].0, pair[1].0));
        }
        Ok(Self(points.into()))
    }

    pub fn points(&self) -> &[(Bytes, Seconds)] {
        &self.0
    }

    pub fn time(&self, size: Bytes) -> Seconds {
        if size <= Bytes::ZERO {
            return Seconds::ZERO;
        }
        let above = self.0.partition_point(|(measured, _)| *measured < size);
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        let (low, high) = match above {
            0 => return first.1,
            _ if above == self.0.len() => (first, last),
            _ => (self.0[above - 1], self.0[above]),
        };
        let slope = (high.1 - low.1) / (high.0 - low.0).get();
        if above == self.0.len() {
            return last.1 + slope.max(Seconds::ZERO) * (size - last.0).get();
        }
        low.1 + slope * (size - low.0).get()
    }
}

/// Logarithmic up to a threshold and linear from there on (Liu 2022, eq. 18):
///
/// ```text
/// t(D) = a₁ log₂(D) + b₁   if D < D_Thresh,      a₂ D + b₂   otherwise
/// ```
///
/// In small transfers the congestion window is still opening. As printed, the curve jumps at the threshold unless the
/// fit avoids it; here b₁ follows from the other three parameters unless it is given. Sizes below one byte count as
/// one byte, and no time is negative.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LogLinear {
    /// D_Thresh.
    pub threshold: Bytes,
    /// a₁.
    pub per_doubling: Seconds,
    /// b₁: the time of one byte.
    pub below: Seconds,
    /// 1/a₂.
    pub bandwidth: BytesPerSec,
    /// b₂.
    pub overhead: Seconds,
}

impl LogLinear {
    /// The paper's threshold, the bandwidth-delay product of 25 Gbit/s and 14.4 µs.
    pub const PAPER_THRESHOLD: Bytes = Bytes::new(45_000.0);

    /// The continuous curve with `overhead` (b₂) and `bandwidth` (1/a₂) from `threshold` on; below it, the time falls
    /// by `per_doubling` (a₁) with every halving.
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

    /// This curve with a given b₁: eq. 18 as printed, possibly with a jump at the threshold.
    #[must_use]
    pub fn with_offset_below(self, offset: Seconds) -> Self {
        Self { below: offset, ..self }
    }

    /// The continuous curve with the least squared error. None if the measured times do not determine it: fewer than
    /// two sizes from `threshold` on, none below it, or times that do not increase.
    pub fn fit(threshold: Bytes, measured: &[(Bytes, Seconds)]) -> Option<Self> {
        // t = v + a₁ min(log₂(D/T), 0) + a₂ max(D - T, 0). At most one of the two terms is nonzero for any size, so
        // eliminating a₁ and a₂ from the normal equations leaves one equation for v.
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

/// A curve fitted to transfers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "shape")]
pub enum TransferCurve {
    /// α + D/β.
    Line {
        /// α.
        startup: Seconds,
        /// β.
        bandwidth: BytesPerSec,
    },
    /// Eq. 18 of Liu 2022.
    LogLinear(LogLinear),
}

/// A fitted curve with its range of measured sizes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TransferModel {
    pub least: Bytes,
    pub most: Bytes,
    pub curve: TransferCurve,
}

impl TransferCurve {
    pub fn time(&self, size: Bytes) -> Seconds {
        self.log_linear().time(size)
    }

    /// The curve in logarithmic-linear form; a line is the special case with a threshold of one byte.
    pub fn log_linear(&self) -> LogLinear {
        match *self {
            Self::Line { startup, bandwidth } => {
                LogLinear::continuous(ONE_BYTE, Seconds::ZERO, bandwidth, startup)
            }
            Self::LogLinear(curve) => curve,
        }
    }
}

impl TransferModel {
    pub(crate) fn check(&self) -> Result<(), String> {
        let LogLinear { threshold, per_doubling, below, bandwidth, overhead } = self.curve.log_linear();
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if !(positive(bandwidth.get()) && positive(threshold.get())) {
            return Err("a rate is not positive, or a size".to_owned());
        }
        match [per_doubling, below, overhead].iter().all(|time| time.is_finite()) {
            true => Ok(()),
            false => Err("a time is endless".to_owned()),
        }
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
