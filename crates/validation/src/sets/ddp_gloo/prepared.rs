//! One job with its inputs, from a profile and a micro-benchmark.
//!
//! One rank stands for all: it computes as fast as the slowest of them on average does. Communication is that of
//! PyTorch's gloo back end: two messages at a time, each with a start-up time as long as the smallest all-reduce;
//! gradients are copied into buckets and out of them as fast as the optimiser goes through its parameters. Where a rank
//! has one core, its sockets and additions share that core with computing: while both are under way, computing and
//! transfers take 1 + c·w times as long, w being the bytes that a port carries a second and c the core time per byte.

use super::data::{Data, Job, Place, ProfileRow, rate};
use super::testbed::{Parameters, Testbed};
use stepcast_analytic::liu2022::{Schedule, plan};
use stepcast_core::fitted::transfer::{Curve, Measured};
use stepcast_core::pass::{Layer, Pass};
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_sim::{AllReduce, Blind, Bucket, Interference, Limits, Messages, run};
use stepcast_stats::{expected_maximum, mean};

const MIB: f64 = 1024.0 * 1024.0;

/// Threads of gloo's process group: messages under way at once.
const GLOO_THREADS: u32 = 2;

/// One job with its inputs.
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
            .position(|profile| profile.model == job.model && profile.cores == job.place.cores);
        let index = index.or_else(|| data.profiles.iter().position(|profile| profile.model == job.model))?;
        let profile = &data.profiles[index];
        let ranks = f64::from(job.place.ranks);
        let (curve, largest) = match data.allreduce.get(&job.place) {
            Some(points) => (Curve::Measured(Measured::new(points).ok()?), *points.last()?),
            None => testbed.ring_law(&job.place)?,
        };
        let share = 2.0 * (ranks - 1.0) / ranks;
        Some(Self {
            pass: bucketed(profile, job.bucket * MIB, &curve)?,
            wire: largest.0 * share / largest.1,
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

    /// Measured time of a step.
    pub(super) fn measured(&self) -> Seconds {
        Seconds::new(mean(&self.job.iterations))
    }

    /// Predicted time of a step.
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
        plan(&self.pass, &self.curve, &Schedule::PerLayer).outcome.iteration()
    }
}

/// The mean step with one layer for each of DDP's buckets. A cap that the job sets applies to the first bucket too.
fn bucketed(profile: &ProfileRow, cap: f64, curve: &Curve) -> Option<Pass> {
    let last = profile.gradients.last()?.0;
    let backward = Seconds::new(mean(&profile.backward));
    let ready: Vec<(Seconds, Bytes)> =
        profile.gradients.iter().map(|(time, size)| (backward * (*time / last), *size)).collect();
    let forward = Seconds::new(mean(&profile.forward));
    let pass = Pass::measured(forward, backward, &ready, Seconds::new(mean(&profile.optimiser))).ok()?;
    let cap = Bytes::new(cap);
    let flushes = plan(&pass, curve, &Schedule::Pytorch { first: cap, cap }).flushes;
    let layer = |flush: &stepcast_analytic::liu2022::Flush| {
        let layers = &pass.layers[flush.first..=flush.last];
        Layer { backward: layers.iter().map(|layer| layer.backward).sum(), gradients: flush.size }
    };
    Some(Pass { layers: flushes.iter().map(layer).collect(), ..pass })
}

impl Place {
    /// Nominal rate of a port.
    pub(super) fn port(&self) -> Option<BytesPerSec> {
        rate(&self.rate).map(|rate| rate.to_bytes_per_sec())
    }
}
