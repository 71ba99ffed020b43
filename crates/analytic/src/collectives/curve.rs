//! How long an all-reduce takes by its size: by two figures, by a ring's, or as measured.

use super::{Fabric, all_gather, reduce_scatter, ring_steps};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::transfer::LogLinear;

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
