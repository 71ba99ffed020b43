//! The GPU and update threads of a node and the parts of their iterations (Tables 3 and 4).
//!
//! Eq. 8 says how long update threads wait for the thread that has the most gradients to sum: in one update, the number X
//! of a node's buffers with new gradients is assumed to be binomial, B(G, p). The all-reduce starts when the node with the
//! largest X of all N nodes has finished summing; the others wait.

use stepcast_core::prediction::{Part, PartKind};
use stepcast_core::quantity::Seconds;

/// The parts of a GPU thread's iteration in the order of Algorithm 1, with the paper's names.
pub const GPU_PARTS: [(PartKind, &str); 8] = [
    (PartKind::LockWeights, "LockWeights_G"),
    (PartKind::FetchWeights, "FetchWeights"),
    (PartKind::LoadImages, "LoadImage"),
    (PartKind::DeformImages, "DeformImage"),
    (PartKind::Compute, "ComputeGradient"),
    (PartKind::ScaleGradient, "ComputeUpdateVal"),
    (PartKind::LockGradient, "LockGradient_G"),
    (PartKind::UpdateGradient, "UpdateGradient"),
];

/// The parts of an update thread's iteration in the order of Algorithm 2, with the paper's names.
pub const UPDATE_PARTS: [(PartKind, &str); 8] = [
    (PartKind::LockGradients, "LockGradient_U"),
    (PartKind::SumGradients, "SumGradient"),
    (PartKind::KeepOldWeights, "UpdateOldWeights"),
    (PartKind::AddMomentum, "AddMomentum"),
    (PartKind::AllReduce, "Allreduce"),
    (PartKind::UpdateMomentum, "UpdateMomentum"),
    (PartKind::LockWeights, "LockWeights_U"),
    (PartKind::UpdateWeights, "UpdateWeights"),
];

/// Times that do not depend on the interaction of threads: coefficients times parameters, samples and nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threads {
    /// N_Node.
    pub nodes: u32,
    /// N_GPU, per node.
    pub gpus: u32,
    /// N_Subbatch.
    pub batch: u32,
    /// FetchWeights when there are new weights.
    pub fetch_weights: Seconds,
    /// LoadImage.
    pub load_images: Seconds,
    /// DeformImage.
    pub deform_images: Seconds,
    /// ComputeGradient.
    pub compute: Seconds,
    /// ComputeUpdateVal.
    pub scale_gradient: Seconds,
    /// UpdateGradient.
    pub update_gradient: Seconds,
    /// SumGradient of one buffer.
    pub sum_buffer: Seconds,
    /// UpdateOldWeights for the node's slice.
    pub keep_old_weights: Seconds,
    /// AddMomentum for the node's slice.
    pub add_momentum: Seconds,
    /// Allreduce without the barrier.
    pub all_reduce: Seconds,
    /// UpdateMomentum for the node's slice.
    pub update_momentum: Seconds,
    /// UpdateWeights.
    pub update_weights: Seconds,
}

/// The parts of both iterations, given the iteration times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// One entry for each of [`GPU_PARTS`].
    pub gpu: [Seconds; 8],
    /// One entry for each of [`UPDATE_PARTS`]; the all-reduce includes the barrier.
    pub update: [Seconds; 8],
    /// T_Barrier.
    pub barrier: Seconds,
}

impl Threads {
    /// Time of a GPU thread's iteration that does not depend on the other threads.
    pub(super) fn gpu_alone(&self) -> Seconds {
        self.load_images + self.deform_images + self.compute + self.scale_gradient + self.update_gradient
    }

    /// Time of an update thread's iteration that does not depend on the other threads.
    pub(super) fn update_alone(&self) -> Seconds {
        self.keep_old_weights
            + self.add_momentum
            + self.all_reduce
            + self.update_momentum
            + self.update_weights
    }

    /// Tables 3 and 4 for the iteration times T_GPU and T_Update. Lock waits square the expected critical section, as
    /// printed (errata 2.5, item 4).
    pub fn times(&self, gpu: Seconds, update: Seconds) -> Times {
        let gpus = f64::from(self.gpus);
        let new_gradient = (update / gpu).min(1.0);
        let new_weights = (gpu / update).min(1.0);
        let fetch = self.fetch_weights * new_weights;
        let sum = self.sum_buffer * (gpus * new_gradient);
        let barrier = self.sum_buffer * buffers_waited_for(self.gpus, new_gradient, self.nodes);
        Times {
            gpu: [
                wait(self.update_weights, update) + wait(fetch, gpu) * (gpus - 1.0),
                fetch,
                self.load_images,
                self.deform_images,
                self.compute,
                self.scale_gradient,
                wait(sum / gpus, update),
                self.update_gradient,
            ],
            update: [
                wait(self.update_gradient, gpu) * gpus,
                sum,
                self.keep_old_weights,
                self.add_momentum,
                barrier + self.all_reduce,
                self.update_momentum,
                wait(fetch, gpu) * gpus,
                self.update_weights,
            ],
            barrier,
        }
    }
}

/// Eq. 7: the expected wait for the critical section of one competing thread with this iteration time.
fn wait(critical: Seconds, iteration: Seconds) -> Seconds {
    critical * (0.5 * (critical / iteration))
}

impl Times {
    /// The parts of a GPU thread's iteration.
    pub fn gpu_parts(&self) -> Vec<Part> {
        GPU_PARTS.iter().zip(self.gpu).map(|((kind, _), time)| Part { kind: *kind, time }).collect()
    }

    /// The parts of an update thread's iteration.
    pub fn update_parts(&self) -> Vec<Part> {
        UPDATE_PARTS.iter().zip(self.update).map(|((kind, _), time)| Part { kind: *kind, time }).collect()
    }
}

/// E[max of `nodes` independent B(`gpus`, `p`)]: Σ_{i<G} 1 − F(i)^N. Increases with p and with the number of nodes.
pub fn most_buffers(gpus: u32, p: f64, nodes: u32) -> f64 {
    let all = f64::from(gpus);
    if p >= 1.0 {
        return all;
    }
    if nodes == 1 || p <= 0.0 {
        return all * p.max(0.0);
    }
    tails(gpus, p).map(|above| -(f64::from(nodes) * (-above).ln_1p()).exp_m1()).sum()
}

/// E[X_M − X_1]: number of buffers that the slowest node sums beyond the mean. The waiting time is this number times
/// α' of eq. 8, the time to sum one buffer (errata 2.2).
pub fn buffers_waited_for(gpus: u32, p: f64, nodes: u32) -> f64 {
    (most_buffers(gpus, p, nodes) - f64::from(gpus) * p.clamp(0.0, 1.0)).max(0.0)
}

/// 1 − F(i) of B(G, p) for each i < G, 0 < p < 1, in some order. The sum starts at the more likely end, where the
/// first term is at least 2^-G, so that no term is lost. The tails are summed directly because for small p the
/// difference 1 − F would lose digits.
fn tails(gpus: u32, p: f64) -> impl Iterator<Item = f64> {
    let rare = p <= 0.5;
    let (likely, odds) = if rare { (1.0 - p, p / (1.0 - p)) } else { (p, (1.0 - p) / p) };
    let mut probability = likely.powi(gpus.cast_signed());
    // P(X > i) from below, P(X ≥ G − i) from above.
    let mut tail = if rare { -(f64::from(gpus) * (-p).ln_1p()).exp_m1() } else { probability };
    (0..gpus).map(move |i| {
        let now = tail.clamp(0.0, 1.0);
        probability *= odds * f64::from(gpus - i) / f64::from(i + 1);
        tail += if rare { -probability } else { probability };
        now
    })
}
