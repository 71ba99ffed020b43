//! Parameters that all jobs of a testbed share.

use super::data::{Data, Place, ProfileRow};
use super::prepared::PreparedJob;
use crate::set::look;
use crate::{Progress, Reached, ValidationError};
use serde::Serialize;
use serde_with::serde_as;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::quantity::{Bytes, BytesPerSec, InBaseUnits, Seconds};
use stepcast_fit::golden_section;
use stepcast_stats::{deviation, mean, quantile};

/// Parameters from profiles and micro-benchmarks alone: no job enters them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Testbed {
    /// Spread of a worker's steps relative to their mean.
    pub(super) jitter: f64,
    /// Slowness of the host when each profile was taken, relative to their mean. The optimiser does the same to every
    /// parameter of every model, so the time it takes for its bytes and tensors shows the state of the host.
    pub(super) host: Vec<f64>,
    /// Share of the links' nominal rate that large all-reduces reach.
    pub(super) goodput: f64,
    /// Time of a step of a small all-reduce, by cores of a rank.
    #[serde(skip)]
    latency: Vec<(u32, Seconds)>,
}

/// Parameters that are fitted to jobs, once for a testbed.
#[serde_as]
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Parameters {
    /// c: time that a byte on the port takes of a rank's only core.
    #[serde(rename = "core_per_byte_s")]
    #[serde_as(as = "InBaseUnits")]
    pub(super) core_per_byte: Seconds,
    /// Time of computing on the loaded host relative to the profile.
    pub(super) slowness: f64,
}

impl Testbed {
    pub(super) fn measure(data: &Data) -> Self {
        let spread = |profile: &ProfileRow| {
            let steps: Vec<f64> = profile
                .forward
                .iter()
                .zip(&profile.backward)
                .map(|(forward, backward)| forward + backward)
                .collect();
            deviation(&steps).unwrap_or(0.0) / mean(&steps)
        };
        let mut spreads: Vec<f64> = data.profiles.iter().map(spread).collect();
        let mut goodput = Vec::new();
        let mut latency: Vec<(u32, Vec<f64>)> = Vec::new();
        for (place, points) in &data.allreduce {
            let (Some(port), Some(first), Some(last)) = (place.port(), points.first(), points.last()) else {
                continue;
            };
            goodput.push(last.0 * share(place) / last.1 / port);
            let step = first.1.get() / steps(place);
            match latency.iter_mut().find(|(cores, _)| *cores == place.cores) {
                Some((_, steps)) => steps.push(step),
                None => latency.push((place.cores, vec![step])),
            }
        }
        Self {
            jitter: quantile(&mut spreads, 0.5),
            host: host(&data.profiles),
            goodput: quantile(&mut goodput, 0.5),
            latency: latency
                .into_iter()
                .map(|(cores, mut steps)| (cores, Seconds::new(quantile(&mut steps, 0.5))))
                .collect(),
        }
    }

    /// The curve of a place without a micro-benchmark: a ring on links that behave as those of other places, and its time
    /// for a large size.
    pub(super) fn ring_law(&self, place: &Place) -> Option<(Curve, (Bytes, Seconds))> {
        let nearest = self.latency.iter().min_by_key(|(cores, _)| cores.abs_diff(place.cores))?;
        let bandwidth: BytesPerSec = place.port()? * (self.goodput / share(place));
        let curve = Curve::AlphaBeta { startup: nearest.1 * steps(place), bandwidth };
        let large = Bytes::new(1e8);
        let time = curve.time(large);
        Some((curve, (large, time)))
    }
}

/// Bytes on a port for a byte of gradients.
fn share(place: &Place) -> f64 {
    2.0 * f64::from(place.ranks - 1) / f64::from(place.ranks)
}

/// Steps of a ring.
fn steps(place: &Place) -> f64 {
    2.0 * f64::from(place.ranks.max(2) - 1)
}

/// Slowness of the host at each profile: the optimiser's time divided by bytes + ρ · tensors, where ρ minimises the
/// spread over all profiles. The geometric mean is 1.
fn host(profiles: &[ProfileRow]) -> Vec<f64> {
    let residuals = |rho: f64| -> Vec<f64> {
        let of = |profile: &ProfileRow| {
            let bytes: f64 = profile.gradients.iter().map(|(_, size)| size.get()).sum();
            (mean(&profile.optimiser) / (bytes + rho * profile.gradients.len() as f64)).ln()
        };
        let logs: Vec<f64> = profiles.iter().map(of).collect();
        let mean = mean(&logs);
        logs.iter().map(|log| log - mean).collect()
    };
    let spread = |log_rho: f64| residuals(log_rho.exp()).iter().map(|residual| residual.powi(2)).sum();
    let best = golden_section(spread, 5e3_f64.ln(), 5e5_f64.ln(), 40);
    residuals(best.exp()).into_iter().map(f64::exp).collect()
}

impl Parameters {
    /// The parameters with the least sum of squared logarithmic errors on `cases`. Where all ranks have several cores, the
    /// core time per byte cannot be determined and is zero.
    pub(super) fn fit(cases: &[&PreparedJob], progress: &Progress<'_>) -> Result<Self, ValidationError> {
        let loss = |core_per_byte: f64, slowness: f64| -> f64 {
            // What is no longer wanted ends at once, with losses that nobody looks at.
            if progress(Reached::Working).is_break() {
                return f64::INFINITY;
            }
            let parameters = Self { core_per_byte: Seconds::new(core_per_byte), slowness };
            cases.iter().map(|case| (case.predict(&parameters) / case.measured()).ln().powi(2)).sum()
        };
        let slowness = |core: f64| {
            golden_section(|log: f64| loss(core, log.exp()), SLOWNESS.0.ln(), SLOWNESS.1.ln(), 14).exp()
        };
        if !cases.iter().any(|case| case.job.place.cores == 1) {
            let fitted = Self { core_per_byte: Seconds::ZERO, slowness: slowness(0.0) };
            return look(progress).map(|()| fitted);
        }
        let grid: Vec<f64> =
            (0..=CORE_STEPS).map(|step| CORE_MOST * f64::from(step) / f64::from(CORE_STEPS)).collect();
        let losses: Vec<f64> = grid.iter().map(|&core| loss(core, slowness(core))).collect();
        let best = (0..grid.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
        let (low, high) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
        let core = golden_section(|core| loss(core, slowness(core)), low, high, 10);
        let fitted = Self { core_per_byte: Seconds::new(core), slowness: slowness(core) };
        look(progress).map(|()| fitted)
    }
}

/// Range in which the slowness of a loaded host is searched.
const SLOWNESS: (f64, f64) = (0.7, 2.5);

/// The largest core time per byte that is tried, in seconds.
const CORE_MOST: f64 = 2.5e-9;
const CORE_STEPS: u32 = 10;
