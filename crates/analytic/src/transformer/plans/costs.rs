//! What depends on few properties of a plan, computed once for each of their combinations.

use super::layout::{Alike, Class, Layout};
use super::{Choice, TimesOf};
use crate::transformer::stages::{Pass, Run, exposed_shards};
use crate::transformer::step::Once;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::Recompute;

fn times(pass: &Pass) -> TimesOf {
    [pass.forward, pass.backward, pass.weight].map(|spent| spent.total().get())
}

/// A micro-batch on a layer of each kind, on the embedding and on the output layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct LayerKey {
    tensor: u64,
    context: u64,
    expert: u64,
    micro_batch: u64,
    sequence_parallel: bool,
    recompute: Recompute,
    split: bool,
    chunks: bool,
}

impl LayerKey {
    pub(super) fn of(choice: &Choice) -> Self {
        Self {
            tensor: choice.tensor,
            context: choice.context,
            expert: choice.expert,
            micro_batch: choice.micro_batch,
            sequence_parallel: choice.sequence_parallel,
            recompute: choice.recompute,
            split: crate::transformer::schedules::is_split(choice.schedule),
            chunks: choice.chunks > 1,
        }
    }
}

/// Times of a micro-batch: forward, backward, gradients of weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerCosts {
    kinds: [TimesOf; 4],
    embedding: TimesOf,
    head: TimesOf,
    /// Whether sharded weights are fetched ahead.
    prefetch: bool,
}

impl LayerCosts {
    pub(super) fn of(run: &Run<'_>) -> Self {
        let shape = run.shape;
        let layer = |with_experts: bool, window: Option<u64>| {
            let layers = shape.expert_layers();
            let exists = if with_experts { layers > 0 } else { layers < shape.layers };
            if exists { times(&run.layer(with_experts, window)) } else { [0.0; 3] }
        };
        Self {
            kinds: [
                layer(false, shape.window),
                layer(false, None),
                layer(true, shape.window),
                layer(true, None),
            ],
            embedding: times(&run.embedding()),
            head: times(&run.head()),
            prefetch: run.overlaps().prefetch,
        }
    }

    /// A micro-batch on a virtual stage whose layers gather and reduce as `shards` says.
    pub(super) fn place(&self, class: &Class, shards: [Seconds; 2]) -> TimesOf {
        let mut sum = [0.0; 3];
        for (times, &count) in self.kinds.iter().zip(&class.layers) {
            for (sum, time) in sum.iter_mut().zip(times) {
                *sum += time * count as f64;
            }
        }
        if shards[0] + shards[1] > Seconds::ZERO {
            let passes = [Seconds::new(sum[0]), Seconds::new(sum[1] + sum[2])];
            let [forward, backward] =
                exposed_shards(shards, class.layers.iter().sum(), passes, self.prefetch);
            sum[0] += forward.get();
            sum[1] += backward.get();
        }
        for (has, more) in [(class.first, &self.embedding), (class.last, &self.head)] {
            if has {
                sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
            }
        }
        sum
    }
}

/// What replicas send and hold, and the send between stages.
#[derive(Debug, Clone)]
pub(super) struct StateCosts {
    /// Gather and reduction of a layer, for every class of virtual stages.
    pub(super) shards: Vec<[Seconds; 2]>,
    /// What stages send and update once, for every kind of stage.
    pub(super) once: Vec<Once>,
    /// Weights, gradients, optimiser states and gathered weights, for every kind of stage.
    pub(super) states: Vec<Bytes>,
}

/// What sharding depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct StateKey {
    tensor: u64,
    context: u64,
    expert: u64,
    pipeline: u64,
    chunks: u64,
    folded: bool,
    sharding: stepcast_core::strategy::Sharding,
    group: Option<u64>,
}

impl StateKey {
    pub(super) fn of(choice: &Choice) -> Self {
        Self {
            tensor: choice.tensor,
            context: choice.context,
            expert: choice.expert,
            pipeline: choice.pipeline,
            chunks: choice.chunks,
            folded: choice.is_folded(),
            sharding: choice.sharding,
            group: choice.sharding_group,
        }
    }
}

impl StateCosts {
    pub(super) fn of(run: &Run<'_>, layout: &Layout) -> Self {
        let (shape, split) = (run.shape, run.split());
        let held = run.held();
        let parameters = |with_experts: bool| {
            let each = shape.layer_parameters(with_experts);
            each.dense_shard(split.tensor, shape.kv_heads) + each.expert_shard(split.expert)
        };
        let shards = |class: &Class| {
            let [a, b, c, d] = class.layers;
            let held = parameters(false) * (a + b) + parameters(true) * (c + d);
            run.sharded_layer(a + b + c + d, held)
        };
        let states = |alike: &Alike| {
            let rank = held.rank(alike.first as u64);
            rank.weights + rank.gradients + rank.optimiser + rank.unsharded
        };
        Self {
            shards: layout.classes.iter().map(shards).collect(),
            once: layout.alike.iter().map(|alike| run.once(&held, alike.first as u64)).collect(),
            states: layout.alike.iter().map(states).collect(),
        }
    }
}

/// What a send depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SendKey {
    tensor: u64,
    context: u64,
    pipeline: u64,
    micro_batch: u64,
    sequence_parallel: bool,
    chunks: bool,
}

impl SendKey {
    pub(super) fn of(choice: &Choice) -> Self {
        Self {
            tensor: choice.tensor,
            context: choice.context,
            pipeline: choice.pipeline,
            micro_batch: choice.micro_batch,
            sequence_parallel: choice.sequence_parallel,
            chunks: choice.chunks > 1,
        }
    }
}
