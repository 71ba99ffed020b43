//! The two kinds of threads of a node and what their iterations are made of (Tables 3 and 4).

use super::barrier;
use stepcast_core::prediction::Part;
use stepcast_core::quantity::Seconds;

/// What a GPU thread's iteration is made of, in the order of Algorithm 1, and the paper's names.
pub const GPU_PARTS: [(&str, &str); 8] = [
    ("lock weights", "LockWeights_G"),
    ("fetch weights", "FetchWeights"),
    ("load images", "LoadImage"),
    ("deform images", "DeformImage"),
    ("compute", "ComputeGradient"),
    ("scale gradient", "ComputeUpdateVal"),
    ("lock gradient", "LockGradient_G"),
    ("update gradient", "UpdateGradient"),
];

/// What an update thread's iteration is made of, in the order of Algorithm 2, and the paper's names.
pub const UPDATE_PARTS: [(&str, &str); 8] = [
    ("lock gradients", "LockGradient_U"),
    ("sum gradients", "SumGradient"),
    ("keep old weights", "UpdateOldWeights"),
    ("add momentum", "AddMomentum"),
    ("all-reduce", "Allreduce"),
    ("update momentum", "UpdateMomentum"),
    ("lock weights", "LockWeights_U"),
    ("update weights", "UpdateWeights"),
];

/// The times that do not depend on how threads meet: coefficients times parameters, samples and nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threads {
    /// N_Node.
    pub nodes: u32,
    /// N_GPU, of one node.
    pub gpus: u32,
    /// N_Subbatch.
    pub batch: u32,
    /// FetchWeights where weights are new.
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
    /// UpdateOldWeights, of the node's slice.
    pub keep_old_weights: Seconds,
    /// AddMomentum, of the node's slice.
    pub add_momentum: Seconds,
    /// Allreduce without the barrier.
    pub all_reduce: Seconds,
    /// UpdateMomentum, of the node's slice.
    pub update_momentum: Seconds,
    /// UpdateWeights.
    pub update_weights: Seconds,
}

/// What the iterations are made of, given how long they are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Times {
    /// By [`GPU_PARTS`].
    pub gpu: [Seconds; 8],
    /// By [`UPDATE_PARTS`]; the all-reduce includes the barrier.
    pub update: [Seconds; 8],
    /// T_Barrier.
    pub barrier: Seconds,
}

impl Threads {
    /// What a GPU thread does whatever the others do.
    pub(super) fn gpu_alone(&self) -> Seconds {
        self.load_images + self.deform_images + self.compute + self.scale_gradient + self.update_gradient
    }

    /// What an update thread does whatever the others do.
    pub(super) fn update_alone(&self) -> Seconds {
        self.keep_old_weights
            + self.add_momentum
            + self.all_reduce
            + self.update_momentum
            + self.update_weights
    }

    /// Tables 3 and 4 for iterations of T_GPU and T_Update. Lock waits square the expected critical section, as printed
    /// (errata 2.5, item 4).
    pub fn times(&self, gpu: Seconds, update: Seconds) -> Times {
        let gpus = f64::from(self.gpus);
        let new_gradient = (update / gpu).min(1.0);
        let new_weights = (gpu / update).min(1.0);
        let fetch = self.fetch_weights * new_weights;
        let sum = self.sum_buffer * (gpus * new_gradient);
        let barrier = self.sum_buffer * barrier::buffers_waited_for(self.gpus, new_gradient, self.nodes);
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

/// Eq. 7: the wait for one competitor's critical section, whose thread iterates in `iteration`.
fn wait(critical: Seconds, iteration: Seconds) -> Seconds {
    critical * (0.5 * (critical / iteration))
}

impl Times {
    /// The parts of a GPU thread's iteration.
    pub fn gpu_parts(&self) -> Vec<Part> {
        GPU_PARTS.iter().zip(self.gpu).map(|((name, _), time)| Part { name, time }).collect()
    }

    /// The parts of an update thread's iteration.
    pub fn update_parts(&self) -> Vec<Part> {
        UPDATE_PARTS.iter().zip(self.update).map(|((name, _), time)| Part { name, time }).collect()
    }
}
