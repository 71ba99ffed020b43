//! What a stage does once in a step, after its last backward pass: gradients, update and weights.

use super::Split;
use super::memory::MemoryInputs;
use super::placement::{Group, Seats};
use super::stages::Run;
use super::traffic::{self, Collective, Message, Reduction};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{Overlaps, Sharding};

/// What a stage does after its last backward pass, as far as it is not hidden.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tail {
    /// Sum of the gradients.
    pub gradients: Seconds,
    /// Gather of the weights, which the next step's forward pass may hide.
    pub weights: Seconds,
    /// Update of the weights.
    pub update: Seconds,
    /// Update by the host, with what goes there and comes back.
    pub offload: Seconds,
}

impl Tail {
    /// All of it.
    pub fn total(&self) -> Seconds {
        self.gradients + self.weights + self.update + self.offload
    }
}

/// What a stage sends and updates once in a step, before computing hides any of it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TailWork {
    /// Sum of the gradients.
    pub gradients: Seconds,
    /// Gather of the weights.
    pub weights: Seconds,
    /// Sum of both gradients of a tied embedding.
    pub tied: Seconds,
    /// Update of the weights.
    pub update: Seconds,
    /// Update by the host, with what goes there and comes back.
    pub offload: Seconds,
    /// Parts in which gradients and weights are sent; as many as there are layers if not given.
    buckets: Option<u64>,
}

impl TailWork {
    /// Parts in which a stage with this number of layers sends its gradients and weights.
    pub fn buckets(&self, layers: u64) -> f64 {
        self.buckets.unwrap_or(layers).max(1) as f64
    }

    /// What is left of it beside the forward and the backward pass of a micro-batch on `layers`. A device that is alone
    /// in its pipeline updates while it would otherwise wait for its host, which it does for `starved` in a step.
    pub(super) fn exposed(
        &self,
        overlaps: &Overlaps,
        layers: u64,
        [forward, backward]: [Seconds; 2],
        starved: Seconds,
    ) -> Tail {
        let buckets = self.buckets(layers);
        let hidden = |time: Seconds, beside: Seconds, overlapped: bool| match overlapped {
            // The last bucket, or what does not fit.
            true => (time / buckets).max(time - beside * ((buckets - 1.0) / buckets)),
            false => time,
        };
        Tail {
            gradients: hidden(self.gradients, backward, overlaps.gradients) + self.tied,
            weights: hidden(self.weights, forward, overlaps.weights),
            update: (self.update - starved).max(Seconds::ZERO),
            offload: self.offload,
        }
    }
}

impl Run<'_> {
    /// What a stage sends and updates once in a step.
    pub fn tail_work(&self, held: &MemoryInputs<'_>, index: u64) -> TailWork {
        let plan = self.plan;
        let (dense, expert) = held.stage_parameters(index);
        let (mut gradients, mut weights) = (Seconds::ZERO, Seconds::ZERO);
        // With every micro-batch, or once.
        let once = matches!(plan.sharding, Sharding::None | Sharding::Zero1 | Sharding::Keep);
        let gathered = matches!(plan.sharding, Sharding::Zero1 | Sharding::Zero2 | Sharding::Keep);
        let experts = Reduction { ranks: self.split().expert_replicas(), ..self.reduction() };
        let both = [
            (self.reduction(), self.sharding_seats(), dense),
            (experts, self.expert_replica_seats(), expert),
        ];
        // Each bucket is a message of its own.
        let in_buckets = |parameters: u64| plan.bucket.map(|bucket| parameters.div_ceil(bucket));
        for (reduction, seats, parameters) in both {
            let count = in_buckets(parameters).unwrap_or(1).max(1);
            for message in traffic::data_step(reduction, parameters, 1, self.widths()) {
                let part = Message { count: 1, bytes: message.bytes.div_ceil(count), ..message };
                let time = self.time(&part, seats) * count as f64;
                match message.collective {
                    Collective::AllGather if gathered => weights += time,
                    Collective::AllGather => {}
                    _ if once => gradients += time,
                    _ => {}
                }
            }
        }
        let [update, offload] = match plan.offloaded().optimiser {
            true => [Seconds::ZERO, self.updated_by_host(dense, expert)],
            false => [self.update(dense, expert), Seconds::ZERO],
        };
        let buckets = in_buckets(dense).zip(in_buckets(expert)).map(|(dense, expert)| dense + expert);
        TailWork { gradients, weights, tied: self.tied(index), update, offload, buckets }
    }

    /// Parameters of a layer on a rank before sharding: dense ones, and those of its experts.
    pub(super) fn layer_shard(&self, with_experts: bool) -> [u64; 2] {
        let (shape, split) = (self.shape, self.split());
        let each = shape.layer_parameters(with_experts);
        [each.dense_shard(split.tensor, shape.kv_heads), each.expert_shard(split.expert)]
    }

    /// The sum of both gradients of a tied embedding, on the first and the last stage.
    fn tied(&self, index: u64) -> Seconds {
        let split = self.split();
        let ends = index == 0 || index + 1 == split.pipeline;
        let Some(message) = traffic::tied_gradient(self.shape, &split).filter(|_| ends) else {
            return Seconds::ZERO;
        };
        let pipeline = self.seats(Group::Pipeline);
        let per_node = if pipeline.nodes > 1 { 1 } else { 2 };
        self.time(&message, Seats { size: 2, per_node, nodes: 2 / per_node })
    }

    /// Ranks with the same experts: every x-th in the numbering.
    fn expert_replica_seats(&self) -> Seats {
        let split = self.split();
        let data = split.expert_replicas();
        let every = Split { tensor: split.expert, data, pipeline: split.pipeline, ..Split::WHOLE };
        Group::Data.seats(&every, self.node)
    }

    fn update(&self, dense: u64, expert: u64) -> Seconds {
        self.compute.update(Bytes::new(self.owned(dense, expert) * self.updated_bytes()))
    }

    /// Bytes that an update moves for each parameter: gradients are read, optimiser states read and written, and weights
    /// written; read, too, where the optimiser has no copy of its own beside two moments of their width.
    pub(super) fn updated_bytes(&self) -> f64 {
        let [weight, gradient, optimiser] = self.plan.states.bytes();
        let weights = if optimiser == 2 * weight { 2 * weight } else { weight };
        (weights + gradient + 2 * optimiser) as f64
    }

    /// Of dense parameters and those of experts, the ones that a rank updates.
    pub(super) fn owned(&self, dense: u64, expert: u64) -> f64 {
        let split = self.split();
        match self.plan.sharding {
            Sharding::None => (dense + expert) as f64,
            _ => {
                let ranks =
                    |replicas: u64| self.plan.sharding_group.map_or(replicas, |z| z.min(replicas)) as f64;
                dense as f64 / ranks(split.replicas()) + expert as f64 / ranks(split.expert_replicas())
            }
        }
    }
}
