//! All valid plans of a transformer on a number of workers.

use crate::request::launch::Proposal;
use std::collections::HashSet;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::scenario::Planning;
use stepcast_core::strategy::{
    ContextExchange, Framework, Plan, PlanChoice, Recompute, Recomputed, ScheduleKind, Sharding, has_layers,
};

/// Shardings that are tried unless the scenario lists others.
const SHARDINGS: [Sharding; 5] =
    [Sharding::None, Sharding::Zero1, Sharding::Zero2, Sharding::Zero3, Sharding::Hsdp];

/// Schedules with one chunk on each stage.
const WHOLE: [ScheduleKind; 3] = [ScheduleKind::OneFOneB, ScheduleKind::Gpipe, ScheduleKind::ZbH1];

/// Schedules with several chunks.
const CHUNKED: [ScheduleKind; 3] =
    [ScheduleKind::Interleaved, ScheduleKind::LoopedBfs, ScheduleKind::InterleavedZeroBubble];

/// Chunks on each stage that are tried even if they do not divide the layers.
const UNEVEN: [u64; 2] = [2, 4];

/// The choices on one number of workers.
#[derive(Debug, Clone, Copy)]
pub(super) struct PlanSpace<'a> {
    pub(super) shape: &'a Transformer,
    pub(super) base: &'a Plan,
    pub(super) bounds: &'a Planning,
    pub(super) workers: u64,
    /// Workers that fast links join.
    pub(super) node: u64,
    /// Workers of a machine, which frameworks start together.
    pub(super) machine: u64,
    pub(super) global_batch: u64,
    /// The framework that has to run the plans.
    pub(super) framework: Option<Framework>,
}

/// Tensor, context and pipeline ranks.
pub(super) type Ranks = [u64; 3];

fn listed<T: PartialEq>(list: Option<&Vec<T>>, value: &T) -> bool {
    list.is_none_or(|list| list.contains(value))
}

/// Divisors in ascending order.
fn divisors(of: u64) -> Vec<u64> {
    let root = (1..).take_while(|by| by * by <= of);
    let small: Vec<u64> = root.filter(|by| of.is_multiple_of(*by)).collect();
    let large = small.iter().rev().map(|by| of / by).filter(|by| by * by > of);
    small.iter().copied().chain(large).collect()
}

impl PlanSpace<'_> {
    /// Ways to divide tensors, sequences and layers that leave a number of replicas which divides the batch.
    pub(super) fn ranks(&self) -> Vec<Ranks> {
        let mut all = Vec::new();
        for tensor in self.tensor() {
            for context in self.context(tensor) {
                for pipeline in divisors(self.workers / tensor / context) {
                    let divides = has_layers(self.shape.layers, [pipeline, 1], ScheduleKind::OneFOneB)
                        && (pipeline == 1 || self.shape.target == 0);
                    let data = self.workers / tensor / context / pipeline;
                    let whole = self.global_batch.is_multiple_of(data);
                    if divides && whole && listed(self.bounds.pipeline.as_ref(), &pipeline) {
                        all.push([tensor, context, pipeline]);
                    }
                }
            }
        }
        all
    }

    /// Tensor-parallel ranks that divide heads and workers, within a machine unless more are allowed.
    pub(super) fn tensor(&self) -> Vec<u64> {
        let fits = |t: &u64| {
            self.workers.is_multiple_of(*t)
                && self.shape.divides_heads(*t)
                && (*t == 1 || self.base.optimiser_rank.is_none())
                && (self.bounds.tensor_across_nodes || self.node.is_multiple_of(*t))
                && listed(self.bounds.tensor.as_ref(), t)
        };
        divisors(self.shape.heads).into_iter().filter(fits).collect()
    }

    fn context(&self, tensor: u64) -> Vec<u64> {
        let heads = self.shape.heads / tensor;
        let exchanged = self.base.context_exchange == ContextExchange::AllToAll;
        let fits = |c: &u64| {
            self.shape.sequence.is_multiple_of(*c)
                && (*c == 1 || self.shape.pattern.is_none())
                && (!exchanged || heads.is_multiple_of(*c))
                && listed(self.bounds.context.as_ref(), c)
        };
        divisors(self.workers / tensor).into_iter().filter(fits).collect()
    }

    /// Schedules with their chunks. Without a pipeline there is nothing to schedule.
    fn schedules(&self, pipeline: u64) -> Vec<(ScheduleKind, u64)> {
        let layers = self.shape.layers;
        let allowed = |&(kind, chunks): &(ScheduleKind, u64)| {
            listed(self.bounds.schedule.as_ref(), &kind)
                && listed(self.bounds.virtual_stages.as_ref(), &chunks)
        };
        if pipeline == 1 {
            return [(ScheduleKind::OneFOneB, 1)].into_iter().filter(allowed).collect();
        }
        // Without overlap of a pair, `zbv` is never slower and holds less.
        let dual = self.base.overlap_experts || self.bounds.schedule.is_some();
        let mut all: Vec<(ScheduleKind, u64)> = WHOLE.map(|kind| (kind, 1)).to_vec();
        for chunks in 2..=(layers + 2) / pipeline {
            let places = pipeline * chunks;
            if [layers, layers + 2].iter().any(|all| all.is_multiple_of(places)) || UNEVEN.contains(&chunks) {
                all.extend(CHUNKED.map(|kind| (kind, chunks)));
                all.extend((chunks == 2).then_some((ScheduleKind::Zbv, 2)));
                all.extend((chunks == 2 && dual).then_some((ScheduleKind::DualPipeV, 2)));
            }
        }
        all.retain(|own| allowed(own) && has_layers(layers, [pipeline, own.1], own.0));
        all
    }

    /// Shardings of `replicas` ranks with the same weights. A single rank holds everything.
    fn shardings(&self, replicas: u64) -> Vec<(Sharding, Option<u64>)> {
        // torchtitan keeps gathered weights with a pipeline; so does FSDP by Accelerate and in recipes without resharding.
        let keeps = !matches!(self.framework, None | Some(Framework::Megatron | Framework::Deepspeed));
        let keep = [Sharding::Keep].into_iter().filter(|_| keeps);
        let usual = || SHARDINGS.into_iter().chain(keep).collect();
        let given = self.bounds.sharding.clone().unwrap_or_else(usual);
        let mut all = Vec::new();
        for sharding in given {
            match sharding {
                Sharding::None if replicas > 1 && self.base.offloaded().optimiser => {}
                Sharding::None => all.push((sharding, None)),
                // Moments of low rank need whole matrices.
                _ if replicas == 1 || self.base.optimiser_rank.is_some() => {}
                Sharding::Hsdp => {
                    let groups = divisors(replicas).into_iter().filter(|group| {
                        (2..replicas).contains(group) && listed(self.bounds.sharding_group.as_ref(), group)
                    });
                    all.extend(groups.map(|group| (sharding, Some(group))));
                }
                _ => all.push((sharding, None)),
            }
        }
        all
    }

    /// Possible recomputation: each part alone; and small parts of a layer, which only kernels of Megatron-LM can recompute alone,
    /// in all combinations with each other and with the MLP. Attention that keeps no scores has nothing to recompute, and models of
    /// Hugging Face recompute whole layers.
    fn recompute(&self) -> Vec<Recomputed> {
        let scores = self.base.attention_kind().keeps_scores();
        let layers_alone = self.base.implemented_by().is_hugging_face();
        let mut sets: Vec<Recomputed> = vec![Recomputed::NONE];
        for part in Recompute::ALL.iter().copied().filter(|part| *part != Recompute::None) {
            let small = [Recompute::Norms, Recompute::Activation, Recompute::Projections].contains(&part);
            let listed = match &self.bounds.recompute {
                Some(list) => list.contains(&part),
                None if layers_alone => part == Recompute::Layer,
                None => scores || part != Recompute::Attention,
            };
            let alone = self.base.recomputing(part);
            if !listed || (small && alone.check_recompute(self.shape).is_err()) {
                continue;
            }
            let with: Vec<Recomputed> = match part {
                Recompute::Operators | Recompute::Layer => vec![part.into()],
                _ => sets.iter().map(|own| own.parts().chain([part]).collect()).collect(),
            };
            sets.extend(with);
        }
        if self.bounds.recompute.as_ref().is_some_and(|list| !list.contains(&Recompute::None)) {
            sets.retain(|own| *own != Recompute::None);
        }
        let mut seen = HashSet::new();
        sets.retain(|own| seen.insert(*own));
        sets
    }

    fn experts(&self, ranks: u64) -> Vec<u64> {
        let count = self.shape.experts.map_or(1, |experts| experts.count);
        let divides = |x: &u64| *x == 1 || self.base.optimiser_rank.is_none();
        let fits = |x: &u64| ranks.is_multiple_of(*x) && divides(x) && listed(self.bounds.expert.as_ref(), x);
        divisors(count).into_iter().filter(fits).collect()
    }

    /// Calls `visit` with all plans that divide in this way, those that differ only in sharding together.
    pub(super) fn each(&self, [tensor, context, pipeline]: Ranks, mut visit: impl FnMut(&[PlanChoice])) {
        let data = self.workers / tensor / context / pipeline;
        let shardings = self.shardings(data * context);
        let recompute = self.recompute();
        // Modules of Hugging Face do not divide tokens among tensor-parallel ranks.
        let divides = tensor > 1 && !self.base.implemented_by().is_hugging_face();
        let both: &[bool] = if divides { &[true, false] } else { &[false] };
        let sequence_parallel: Vec<bool> =
            both.iter().copied().filter(|on| listed(self.bounds.sequence_parallel.as_ref(), on)).collect();
        let micro_batch: Vec<u64> = divisors(self.global_batch / data)
            .into_iter()
            .filter(|batch| listed(self.bounds.micro_batch.as_ref(), batch))
            .collect();
        let schedules = self.schedules(pipeline);
        let mut alike = Vec::with_capacity(shardings.len());
        for expert in self.experts(tensor * context * data) {
            for &(schedule, virtual_stages) in &schedules {
                for &micro_batch in &micro_batch {
                    let micro_batches = self.global_batch / data / micro_batch;
                    if pipeline > 1 && !schedule.takes(pipeline, micro_batches) {
                        continue;
                    }
                    for &sequence_parallel in &sequence_parallel {
                        for &recompute in &recompute {
                            let choices = shardings.iter().map(|&(sharding, sharding_group)| PlanChoice {
                                tensor,
                                sequence_parallel,
                                context,
                                pipeline,
                                virtual_stages,
                                schedule,
                                expert,
                                data,
                                sharding,
                                sharding_group,
                                micro_batch,
                                micro_batches,
                                recompute: recompute.into(),
                            });
                            let runs =
                                |it: &PlanChoice| self.framework.is_none_or(|own| self.runs_on(own, it));
                            alike.clear();
                            alike.extend(choices.filter(runs));
                            visit(&alike);
                        }
                    }
                }
            }
        }
    }

    /// A plan to run.
    pub(super) fn proposal<'a>(&'a self, choice: &'a PlanChoice) -> Proposal<'a> {
        let Self { shape, base, machine: node, .. } = *self;
        Proposal { shape, base, choice, node }
    }

    /// Whether a framework runs a plan.
    pub(super) fn runs_on(&self, framework: Framework, choice: &PlanChoice) -> bool {
        self.proposal(choice).runs_on(framework)
    }

    /// How many plans there are, up to `most`.
    pub(super) fn count(&self, most: u64) -> u64 {
        let mut plans = 0;
        for ranks in self.ranks() {
            self.each(ranks, |alike| plans += alike.len() as u64);
            if plans >= most {
                return most;
            }
        }
        plans
    }

    /// Whether there is any plan.
    pub(super) fn is_empty(&self) -> bool {
        !self.ranks().into_iter().any(|ranks| {
            let mut found = false;
            self.each(ranks, |alike| found |= !alike.is_empty());
            found
        })
    }
}
