//! The model of a job: what all jobs of a testbed share, and one job with its inputs, from a profile and a micro-benchmark.
//!
//! One rank stands for all: it computes as fast as the slowest of them on average does. Communication is that of
//! PyTorch's gloo back end: two messages at a time, each with a start-up time as long as the smallest all-reduce;
//! gradients are copied into buckets and out of them as fast as the optimiser goes through its parameters. Where a rank
//! has one core, its sockets and additions share that core with computing: while both are under way, computing and
//! transfers take 1 + c·w times as long, w being the bytes that a port carries a second and c the core time per byte.

use super::data::{Data, Job, Place, WorkerProfile, rate};
use crate::set::check_cancelled;
use crate::{Observer, Progress, ValidationError};
use serde::Serialize;
use serde_with::serde_as;
use stepcast_analytic::liu2022::{Flush, plan};
use stepcast_core::fitted::transfer::{Curve, Measured};
use stepcast_core::pass::{Layer, Pass};
use stepcast_core::quantity::{Bytes, BytesPerSec, InBaseUnits, Seconds};
use stepcast_core::strategy::Fusion;
use stepcast_fit::golden_section;
use stepcast_sim::{AllReduce, Blind, Bucket, Interference, Limits, Messages, run};
use stepcast_stats::{deviation, expected_maximum, mean, quantile};

const MIB: f64 = 1024.0 * 1024.0;

/// Threads of gloo's process group: messages under way at once.
const GLOO_THREADS: u32 = 2;

#[derive(Debug, Clone)]
pub(super) struct PreparedJob {
    pub(super) job: Job,
    /// The mean step of the profile, one layer for each bucket.
    pass: Pass,
    curve: Curve,
    /// Bytes that a port carries a second in a large all-reduce.
    wire: BytesPerSec,
    /// Time of the slowest of all ranks relative to a mean one.
    slowest: f64,
    /// Slowness of the host when the profile was taken, relative to the mean over all profiles.
    host: f64,
}

impl PreparedJob {
    pub(super) fn new(data: &Data, testbed: &Testbed, job: &Job) -> Option<Self> {
        let index = data
            .profiles
            .iter()
            .position(|profile| profile.model == job.model && profile.place.cores == job.place.cores);
        let index = index.or_else(|| data.profiles.iter().position(|profile| profile.model == job.model))?;
        let profile = &data.profiles[index];
        let (curve, largest) = match data.allreduce.get(&job.place) {
            Some(points) => (Curve::Measured(Measured::new(points).ok()?), *points.last()?),
            None => testbed.ring_law(&job.place)?,
        };
        Some(Self {
            pass: bucketed(profile, job.bucket * MIB, &curve)?,
            wire: largest.0 * job.place.share() / largest.1,
            curve,
            slowest: 1.0 + testbed.jitter * expected_maximum(job.place.ranks),
            host: testbed.host[index],
            job: job.clone(),
        })
    }

    /// Time of a step without communication, from the profile.
    pub(super) fn computing(&self) -> Seconds {
        self.pass.computing()
    }

    /// Number of parameters, each of four bytes.
    pub(super) fn parameters(&self) -> u64 {
        (self.pass.gradients().get() / 4.0) as u64
    }

    pub(super) fn measured(&self) -> Seconds {
        Seconds::new(mean(&self.job.iterations))
    }

    pub(super) fn predict(&self, parameters: &Parameters) -> Seconds {
        let slowness = parameters.slowness * self.slowest / self.host.sqrt();
        let pass = self.pass.scaled(slowness, Seconds::ZERO);
        let interference = Interference {
            slowdown: match self.job.place.cores {
                1 => parameters.core_per_byte.get() * self.wire.get(),
                _ => 0.0,
            },
            copy_byte: pass.update / pass.gradients().get(),
        };
        let bucket = |layer| Bucket { first: layer, last: layer, after: layer, wait: Seconds::ZERO };
        let training = AllReduce {
            messages: Messages::Buckets((0..pass.layers.len()).map(bucket).collect()),
            passes: vec![vec![pass]],
            kind: vec![0],
            startup: self.curve.startup(),
            curve: self.curve.clone(),
            channels: GLOO_THREADS,
            interference,
            period: 1,
        };
        let outcome =
            training.program().ok().and_then(|program| run(&program, 0, Limits::steps(1), &mut Blind).ok());
        Seconds::new(outcome.map_or(f64::NAN, |outcome| outcome.time))
    }

    /// Predicted by plain overlap, without fitted parameters.
    pub(super) fn plain(&self) -> Seconds {
        plan(&self.pass, &self.curve, &Fusion::None).outcome.iteration()
    }
}

/// The mean step with one layer for each of DDP's buckets. A cap that the job sets applies to the first bucket too.
fn bucketed(profile: &WorkerProfile, cap: f64, curve: &Curve) -> Option<Pass> {
    let last = profile.gradients.last()?.ready;
    let backward = Seconds::new(mean(&profile.backward));
    let ready: Vec<(Seconds, Bytes)> =
        profile.gradients.iter().map(|own| (backward * (own.ready / last), Bytes::new(own.bytes))).collect();
    let forward = Seconds::new(mean(&profile.forward));
    let pass = Pass::measured(forward, backward, &ready, Seconds::new(mean(&profile.optimiser))).ok()?;
    let cap = Bytes::new(cap);
    let flushes = plan(&pass, curve, &Fusion::Pytorch { first: cap, cap }).flushes;
    let layer = |flush: &Flush| {
        let layers = &pass.layers[flush.first..=flush.last];
        Layer { backward: layers.iter().map(|layer| layer.backward).sum(), gradients: flush.size }
    };
    Some(Pass { layers: flushes.iter().map(layer).collect(), ..pass })
}

impl Place {
    fn port(&self) -> Option<BytesPerSec> {
        rate(&self.rate).map(|rate| rate.to_bytes_per_sec())
    }

    /// Bytes on a port for a byte of gradients.
    fn share(&self) -> f64 {
        2.0 * f64::from(self.ranks - 1) / f64::from(self.ranks)
    }

    fn steps(&self) -> f64 {
        2.0 * f64::from(self.ranks.max(2) - 1)
    }
}

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
        let spread = |profile: &WorkerProfile| {
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
            goodput.push(last.0 * place.share() / last.1 / port);
            let step = first.1.get() / place.steps();
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
        let bandwidth: BytesPerSec = place.port()? * (self.goodput / place.share());
        let curve = Curve::AlphaBeta { startup: nearest.1 * place.steps(), bandwidth };
        let large = Bytes::new(1e8);
        let time = curve.time(large);
        Some((curve, (large, time)))
    }
}

/// Slowness of the host at each profile: the optimiser's time divided by bytes + ρ · tensors, where ρ minimises the
/// spread over all profiles. The geometric mean is 1.
fn host(profiles: &[WorkerProfile]) -> Vec<f64> {
    let residuals = |rho: f64| -> Vec<f64> {
        let of = |profile: &WorkerProfile| {
            let bytes: f64 = profile.gradients.iter().map(|gradient| gradient.bytes).sum();
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
    pub(super) fn fit(cases: &[&PreparedJob], observer: &Observer<'_>) -> Result<Self, ValidationError> {
        let loss = |core_per_byte: f64, slowness: f64| -> f64 {
            // A cancelled fit ends at once; its losses do not matter.
            if observer(Progress::Working).is_break() {
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
            return check_cancelled(observer).map(|()| fitted);
        }
        let grid: Vec<f64> =
            (0..=CORE_STEPS).map(|step| CORE_MOST * f64::from(step) / f64::from(CORE_STEPS)).collect();
        let losses: Vec<f64> = grid.iter().map(|&core| loss(core, slowness(core))).collect();
        let best = (0..grid.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap_or(0);
        let (low, high) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
        let core = golden_section(|core| loss(core, slowness(core)), low, high, 10);
        let fitted = Self { core_per_byte: Seconds::new(core), slowness: slowness(core) };
        check_cancelled(observer).map(|()| fitted)
    }
}

/// Range in which the slowness of a loaded host is searched.
const SLOWNESS: (f64, f64) = (0.7, 2.5);

/// The largest core time per byte that is tried, in seconds.
const CORE_MOST: f64 = 2.5e-9;
const CORE_STEPS: u32 = 10;
