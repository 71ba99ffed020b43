//! Work of a stage once in a step, after its last backward pass: gradients, update and weights.

use super::memory::MemoryInputs;
use super::placement::{Group, Seats};
use super::spent::lost_beside;
use super::stages::Run;
use super::traffic::{self, Collective, Message, Reduction};
use super::{LayerKind, Split};
use stepcast_core::model::transformer::{Backward, Block, Parameters, Tuning};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{OverlapPreset, Overlaps, Sharding};

/// Exposed work of a stage after its last backward pass.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Tail {
    /// Sum of the gradients.
    pub gradients: Seconds,
    /// Gather of the weights, as far as it does not travel beside the next step.
    pub weights: Seconds,
    pub update: Seconds,
    /// Update by the host, with what goes there and comes back.
    pub offload: Seconds,
}

impl Tail {
    pub fn total(&self) -> Seconds {
        self.gradients + self.weights + self.update + self.offload
    }
}

/// DeepSpeed asks the device for the norm of each tensor's gradient and whether it is finite, one after another, while nothing else
/// runs: 0.18 to 0.24 ms a tensor on an H200 without sharding and with ZeRO-1 and 2 (four models of 146 to 292 tensors, DeepSpeed
/// 0.19). ZeRO-3 takes no less: its hooks of each module, which are not counted, take longer still.
const CHECKED: Seconds = Seconds::new(2e-4);

/// Sends and update of a stage once in a step, before overlap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TailWork {
    /// Sum of the gradients.
    pub gradients: Seconds,
    /// Gather of the weights.
    pub weights: Seconds,
    /// Sum of both gradients of a tied embedding.
    pub tied: Seconds,
    pub update: Seconds,
    /// Update by the host, with what goes there and comes back.
    pub offload: Seconds,
    /// Parts in which gradients and weights are sent; as many as there are layers if not given.
    buckets: Option<u64>,
    /// Loss of computing beside traffic, as a share of its time.
    interference: f64,
}

impl TailWork {
    /// Parts in which a stage with this number of layers sends its gradients and weights.
    pub fn buckets(&self, layers: u64) -> f64 {
        self.buckets.unwrap_or(layers).max(1) as f64
    }

    /// When the weights for the first forward pass of each of a stage's virtual stages have arrived, if they travel beside the
    /// step: all but the last bucket before the pass computes that bucket. Takes the stage's layers and the first passes of its
    /// virtual stages.
    pub(super) fn arrivals(
        &self,
        overlaps: &Overlaps,
        layers: u64,
        first: impl Iterator<Item = EndPass>,
    ) -> impl Iterator<Item = f64> {
        let buckets = self.buckets(layers);
        let all = if overlaps.weights { self.weights.get() } else { 0.0 };
        let mut arrived = None;
        first.map(move |pass| {
            if all <= 0.0 {
                return 0.0;
            }
            let sent = (1.0 - 1.0 / buckets) * all * pass.share;
            let lost = pass.lost_to(sent);
            let begin = arrived.unwrap_or_else(|| pass.first_bucket(buckets));
            // The first pass begins with the step.
            let end = if arrived.is_none() { pass.time + lost } else { 0.0 };
            let now = (begin + sent + lost).max(end);
            arrived = Some(now);
            now
        })
    }

    /// When gradients are summed, after the last pass of a stage at `end`. `last` has the last passes that compute
    /// gradients, one of each virtual stage, in order.
    pub(super) fn reduced(&self, overlaps: &Overlaps, layers: u64, end: f64, last: &[EndPass]) -> f64 {
        let all = self.gradients.get();
        if !overlaps.gradients || all <= 0.0 {
            return end + all;
        }
        let buckets = self.buckets(layers);
        let mut sent: Option<f64> = None;
        let mut lost = 0.0;
        for pass in last {
            let start = pass.start + lost;
            // The first bucket is complete.
            let begin = sent.map_or_else(|| start + pass.first_bucket(buckets), |sent| sent.max(start));
            let own = (1.0 - 1.0 / buckets) * all * pass.share;
            let beside = pass.lost_to(own);
            lost += beside;
            sent = Some(begin + own + beside);
        }
        sent.map_or(end, |sent| sent.max(end + lost)) + all / buckets
    }

    /// Work after the sum of the gradients: update by the device or the host, and weights unless they travel beside the next
    /// step. Passes of the stage, which take `passes` in all, are slower beside hidden traffic.
    pub(super) fn after(&self, overlaps: &Overlaps, layers: u64, passes: f64) -> Tail {
        let left = if overlaps.weights { self.weights / self.buckets(layers) } else { self.weights };
        let update = self.update + self.slows(overlaps, passes);
        Tail { gradients: Seconds::ZERO, weights: left, update, offload: self.offload }
    }

    /// Loss of passes of this length beside hidden gradients and weights.
    pub fn slows(&self, overlaps: &Overlaps, passes: f64) -> Seconds {
        let lost = |time: Seconds, hides: bool| match hides {
            true => lost_beside(time, Seconds::new(passes), self.interference),
            false => Seconds::ZERO,
        };
        lost(self.gradients, overlaps.gradients) + lost(self.weights, overlaps.weights)
    }

    /// A lower bound of the time at which a stage finishes whose last pass ends at `end` at the earliest and takes `time`.
    pub(super) fn finished_after(
        &self,
        overlaps: &Overlaps,
        layers: u64,
        end: f64,
        time: Option<f64>,
    ) -> f64 {
        let last = time.map(|time| EndPass { start: end - time, time, share: 1.0, busy: 0.0 });
        self.reduced(overlaps, layers, end, last.as_slice())
            + (self.tied + self.after(overlaps, layers, time.unwrap_or(0.0)).total()).get()
    }
}

/// The first forward pass of a virtual stage, or its last pass that computes gradients.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EndPass {
    /// When it begins, as far as that matters.
    pub(super) start: f64,
    pub(super) time: f64,
    /// The share of the stage's layers that it has.
    pub(super) share: f64,
    /// How long its own traffic keeps the link of weights and gradients busy.
    pub(super) busy: f64,
}

impl EndPass {
    /// The part of its time after which the first of the stage's buckets is done; without layers of its own, all of it.
    fn first_bucket(&self, buckets: f64) -> f64 {
        if self.share > 0.0 { self.time / (self.share * buckets) } else { self.time }
    }

    /// Its delay by traffic that would take `time` alone: both have half of the link while its own traffic is under way.
    fn lost_to(&self, time: f64) -> f64 {
        if self.time > 0.0 { time.min(self.time) * self.busy / self.time } else { 0.0 }
    }
}

/// Parameters of a layer on a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct LayerShard {
    /// All parameters but those of adapters.
    pub(super) all: u64,
    /// Trained ones: dense ones, and those of experts.
    pub(super) trained: [u64; 2],
}

/// Both ends of a pipeline wait for each other before they sum the gradients of a tied embedding.
pub(super) fn tie(reduced: &mut [f64], [first, last]: [&TailWork; 2]) {
    let (Some(&at_first), Some(&at_last)) = (reduced.first(), reduced.last()) else { return };
    let both = at_first.max(at_last);
    let end = reduced.len() - 1;
    for (stage, work) in [(0, first), (end, last)] {
        if work.tied > Seconds::ZERO {
            reduced[stage] = both + work.tied.get();
        }
    }
}

impl Run<'_> {
    /// Sends and update of a stage once in a step.
    pub fn tail_work(&self, held: &MemoryInputs<'_>, index: u64) -> TailWork {
        let plan = self.plan;
        let (dense, expert) = held.stage_trained(index);
        let (all_dense, all_expert) = held.stage_parameters(index);
        let (mut gradients, mut weights) = (Seconds::ZERO, Seconds::ZERO);
        // With every micro-batch, or once.
        let once = matches!(plan.sharding, Sharding::None | Sharding::Zero1 | Sharding::Keep);
        let gathered = matches!(plan.sharding, Sharding::Zero1 | Sharding::Zero2 | Sharding::Keep);
        let experts = Reduction { ranks: self.split().expert_replicas(), ..self.reduction() };
        let both = [
            (self.reduction(), self.sharding_seats(), dense, all_dense),
            (experts, self.expert_replica_seats(), expert, all_expert),
        ];
        // Each bucket is a message of its own.
        let in_buckets = |parameters: u64| plan.bucket.map(|bucket| parameters.div_ceil(bucket));
        for (reduction, seats, parameters, all) in both {
            let count = in_buckets(parameters).unwrap_or(1).max(1);
            for message in traffic::data_step(reduction, parameters, 1, self.widths()) {
                // Frozen weights are gathered only where ranks hold a part of them.
                let bytes = match message.collective {
                    Collective::AllGather if plan.sharding == Sharding::Keep => {
                        self.gathered_bytes(all, parameters)
                    }
                    _ => message.bytes,
                };
                let part = Message { count: 1, bytes: bytes.div_ceil(count), ..message };
                let time = self.time(&part, seats) * count as f64;
                match message.collective {
                    Collective::AllGather if gathered => weights += time,
                    Collective::AllGather => {}
                    _ if once => gradients += time,
                    _ => {}
                }
            }
        }
        let [mut update, offload] = match plan.offloaded().optimiser {
            true => [Seconds::ZERO, self.updated_by_host(dense, expert)],
            false => [self.update(dense, expert) + self.checked(held, index), Seconds::ZERO],
        };
        if plan.sharding == Sharding::Keep {
            update += self.copied([all_dense + all_expert, dense + expert]).into_iter().sum::<Seconds>();
        }
        let buckets = in_buckets(dense).zip(in_buckets(expert)).map(|(dense, expert)| dense + expert);
        let (tied, interference) = (self.tied(index), self.interference);
        TailWork { gradients, weights, tied, update, offload, buckets, interference }
    }

    /// Parameters of a layer on a rank before sharding.
    pub(super) fn layer_shard(&self, kind: LayerKind) -> LayerShard {
        let (shape, split) = (self.shape, self.split());
        let shard = |each: Parameters| {
            [each.dense_shard(split.tensor, shape.kv_heads), each.expert_shard(split.expert)]
        };
        let trained = match kind.backward {
            Backward::Nothing => Parameters::default(),
            Backward::Own | Backward::All => shape.trained_layer_parameters(kind.block),
        };
        let all = shard(shape.layer_parameters(kind.block)).iter().sum();
        LayerShard { all, trained: shard(trained) }
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
        self.time(&message, Seats { size: 2, per_node, nodes: 2 / per_node, ..pipeline })
    }

    /// Ranks with the same experts: every x-th in the numbering.
    pub(super) fn expert_replica_seats(&self) -> Seats {
        let split = self.split();
        let data = split.expert_replicas();
        let every = Split { tensor: split.expert, data, pipeline: split.pipeline, ..Split::WHOLE };
        Group::Data.seats(&every, self.node)
    }

    /// How long DeepSpeed looks at gradients before the update.
    fn checked(&self, held: &MemoryInputs<'_>, index: u64) -> Seconds {
        if self.plan.overlap != OverlapPreset::Deepspeed || self.shape.tuning != Tuning::default() {
            return Seconds::ZERO;
        }
        let tensors = |(block, count): (Block, u64)| count * self.shape.layer_tensors(block);
        CHECKED * held.layers(index).of(self.shape).map(tensors).sum::<u64>() as f64
    }

    fn update(&self, dense: u64, expert: u64) -> Seconds {
        self.compute.update(Bytes::new(self.owned(dense, expert) * self.updated_bytes()))
    }

    /// Bytes that an update moves for each parameter: gradients are read, optimiser states read and written, and weights
    /// written; read, too, where the optimiser has no copy of its own beside two moments of their width. Gradients of a graph,
    /// which keep their place, are zeroed before and added to (read twice and written).
    pub(super) fn updated_bytes(&self) -> f64 {
        let [weight, gradient, optimiser] = self.plan.states.bytes();
        let weights = if optimiser == 2 * weight { 2 * weight } else { weight };
        let kept = if self.plan.graphs { 4 * gradient } else { 0 };
        (weights + gradient + 2 * optimiser + kept) as f64
    }

    /// Number of parameters that a rank updates, of dense ones and those of experts.
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
