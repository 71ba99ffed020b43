//! Time of a micro-batch on every virtual stage: computing and the communication that it waits for.

use super::compute::{Compute, Computed, Shard};
use super::flops::{self, LayerFlops, Work};
use super::loads::ExpertLoads;
use super::placement::{Group, Links, Route, Seats};
use super::spent::{Pass, Spent, lost_beside, uncovered};
use super::tail::LayerShard;
use super::traffic::{self, Collective, Message, Phase};
use super::unequal::TwoKinds;
use super::{LayerKind, Split, compute, schedules};
use stepcast_core::model::transformer::{Backward, Target, Transformer};
use stepcast_core::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};
use stepcast_core::strategy::{
    ContextExchange, Dispatcher, Division, Mask, Overlaps, Plan, Recompute, Recomputed,
};

/// A plan on machines: all that times depend on.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    pub shape: &'a Transformer,
    pub plan: &'a Plan,
    /// Replicas and micro-batches, which the plan leaves open.
    pub division: Division,
    /// Both levels of the network.
    pub links: Links,
    /// Ranks that links within nodes join.
    pub node: u64,
    /// Ranks of a machine, which share its host.
    pub machine: u64,
    /// How fast the slowest device computes.
    pub compute: Compute,
    /// Both kinds of devices, if there are two.
    pub kinds: Option<TwoKinds>,
    /// Ranks of this kind of replica and of the other, where replicas differ by kind.
    pub apart: Option<[u64; 2]>,
    pub fused: bool,
    /// Bytes of a weight as it is gathered.
    pub weight_width: u64,
    /// Rate between a device and its host, one direction, and rate of the host's memory, as far as offloading reaches them.
    pub host_link: BytesPerSec,
    pub host_memory: BytesPerSec,
    /// Additional time of computing while traffic is under way beside it, as a share of that time: collectives take
    /// multiprocessors and memory rate.
    pub interference: f64,
}

/// A micro-batch on one layer, before overlap.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LayerWork {
    pub computed: Computed,
    /// Computing again, before the backward pass.
    pub again: Seconds,
    /// Host time to issue the forward pass and both halves of the backward pass.
    pub host: [Seconds; 3],
    pub tensor: TensorTraffic,
    /// Context parallelism: forward, backward and for recomputation.
    pub context: [Seconds; 3],
    /// Expert parallelism, forward and backward.
    pub expert: [Seconds; 2],
}

/// Tensor parallelism of one layer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TensorTraffic {
    /// With the forward pass, which waits for it.
    pub forward: Seconds,
    /// With the gradients of inputs, which wait for it.
    pub backward: Seconds,
    /// Sums of the gradients of inputs, which gradients of weights may hide.
    pub sums: Seconds,
    /// Gathers of saved inputs, which gradients of inputs may hide.
    pub gathers: Seconds,
}

impl Run<'_> {
    /// How many ranks divide the transformer, by kind.
    pub fn split(&self) -> Split {
        Split::from_choice(&self.plan.choice(&self.division))
    }

    /// Which traffic overlaps computing.
    pub fn overlaps(&self) -> Overlaps {
        self.plan.overlaps()
    }

    pub fn seats(&self, group: Group) -> Seats {
        match self.apart {
            Some(ranks) => self.seats_by_kind(group, ranks),
            None => group.seats(&self.split(), self.node),
        }
    }

    /// Where expert-parallel ranks are: neighbours in the numbering.
    pub fn expert_seats(&self) -> Seats {
        let split = self.split();
        let neighbours = Split { tensor: split.expert, data: split.world() / split.expert, ..Split::WHOLE };
        Group::Tensor.seats(&neighbours, self.node)
    }

    /// Time of a message over its group: as measured, or by the faster route.
    pub fn time(&self, message: &Message, seats: Seats) -> Seconds {
        let size = Bytes::new(message.bytes as f64);
        let active = self.split().world();
        let measured = self
            .plan
            .collectives
            .as_ref()
            .and_then(|measured| measured.curves.time(message.collective, seats.size, size, active));
        if let Some(time) = measured {
            return time * message.count as f64;
        }
        let by = |route| self.links.message(message, seats, route);
        match (seats.nodes, message.collective) {
            (0 | 1, _) | (_, Collective::AllToAll | Collective::Send) => by(Route::Flat),
            (_, Collective::AllReduce) => by(Route::Flat).min(by(Route::Hierarchical)).min(by(Route::Trees)),
            (_, Collective::AllGather | Collective::ReduceScatter) => {
                by(Route::Flat).min(by(Route::Hierarchical))
            }
        }
    }

    /// Tokens of a micro-batch, with the pairs that are really computed: flash attention skips what is masked.
    pub(super) fn work(&self) -> Work {
        let mask = match self.shape.causal && !self.plan.attention_kind().keeps_scores() {
            true => Mask::Causal,
            false => Mask::None,
        };
        Work { sequence: self.shape.sequence, batch: self.plan.micro_batch, mask }
    }

    /// One layer with this recomputation, excluding sharded traffic.
    pub fn layer(&self, kind: LayerKind, recompute: Recomputed) -> Pass {
        let work = self.layer_work(kind, recompute);
        let LayerWork { computed, host, tensor, .. } = &work;
        let spent = |work: compute::Work, host| Spent { compute: work.device, host, ..Spent::default() };
        let mut pass = Pass {
            forward: spent(computed.forward, host[0]),
            backward: spent(computed.input, host[1]),
            weight: spent(computed.weight, host[2]),
        };
        pass.backward.recompute = work.again;
        let hides = self.hides_context();
        let [forward, backward] = self.beside_ring(computed);
        let [there, back, again] = work.context;
        let back = uncovered(back, backward, hides);
        pass.forward.context = uncovered(there, forward, hides);
        pass.backward.context = back + uncovered(again, forward, hides);
        let hides = self.hides_tensor();
        pass.forward.tensor = tensor.forward;
        pass.backward.tensor = tensor.backward + uncovered(tensor.sums, computed.weight.device, hides);
        // Gathers also go on while computing waits for the ring.
        pass.weight.tensor = uncovered(tensor.gathers, computed.input.device + back, hides);
        [pass.forward.expert, pass.backward.expert] = work.expert;
        self.load(&mut pass, &work);
        self.on_shared_links(self.joined(pass))
    }

    /// Notes how long the traffic of a layer keeps links busy.
    fn load(&self, pass: &mut Pass, work: &LayerWork) {
        let LayerWork { tensor, context, expert, .. } = work;
        let loads = [
            (self.seats(Group::Tensor), [tensor.forward, tensor.backward + tensor.sums, tensor.gathers]),
            (self.seats(Group::Context), [context[0], context[1] + context[2], Seconds::ZERO]),
            (self.expert_seats(), [expert[0], expert[1], Seconds::ZERO]),
        ];
        for (seats, times) in loads {
            for (spent, time) in pass.each_mut().into_iter().zip(times) {
                spent.busy[seats.level()] += time;
            }
        }
    }

    /// The pass where kinds of traffic share links: no pass is shorter than its links are busy.
    fn on_shared_links(&self, mut pass: Pass) -> Pass {
        if self.plan.shares_links() {
            for spent in pass.each_mut() {
                let busy = spent.busy[0].max(spent.busy[1]);
                spent.context += (busy - spent.on_device()).max(Seconds::ZERO);
            }
        }
        pass
    }

    /// One layer and the part of it that is recomputed, before any overlap.
    pub fn layer_work(&self, kind: LayerKind, recompute: Recomputed) -> LayerWork {
        let LayerShard { all, trained: [dense, expert] } = self.layer_shard(kind);
        let (kind, recompute) = (kind.recomputing(self.shape, recompute), kind.recomputes(recompute));
        let mut computed = match &self.compute {
            Compute::OneRate { rate, .. } => self.at_one_rate(*rate, kind),
            Compute::Parts(parts) => self.with_weights(parts).layer(&self.shard(kind)),
        };
        computed = computed.with_slower_core(self.imbalance());
        // Every part has a checkpoint of its own.
        let (mut again, mut checkpoint) = (compute::Work::default(), Seconds::ZERO);
        for part in recompute.parts() {
            again = again.and(match part {
                Recompute::Layer => computed.forward.without(computed.last),
                Recompute::Attention => computed.core[0],
                _ => computed.again[part as usize],
            });
            checkpoint += self.compute.checkpoint();
        }
        if self.plan.sharding.stage() == 3 {
            let [gathered, reduced] = self.copied([all, dense + expert]);
            computed.forward.device += gathered;
            computed.input.device += gathered;
            computed.weight.device += reduced;
        }
        let tensor = self.tensor_traffic(kind, recompute);
        let context = self.context_traffic(kind, recompute);
        let mut computed = self.beside_traffic(computed, &tensor, context);
        let tensor = self.beside_products(&mut computed, tensor);
        let expert = self.expert_traffic(kind, recompute);
        let expert = self.beside_experts(&mut computed, expert);
        let issue = |work| self.compute.issuing(work);
        // A part that is computed again passes through some of the layer's modules.
        let share =
            |work: compute::Work, whole: compute::Work| (work.kernels / whole.kernels.max(1.0)).min(1.0);
        let enter = |work, whole| self.compute.entering() * share(work, whole);
        LayerWork {
            host: [
                issue(computed.forward) + enter(computed.forward, computed.forward),
                issue(computed.input)
                    + enter(computed.input, computed.input)
                    + (issue(again) + enter(again, computed.forward) + checkpoint),
                issue(computed.weight),
            ],
            again: again.device,
            tensor,
            context,
            expert,
            computed,
        }
    }

    /// Attention of the replica whose documents are longest, against the mean.
    fn imbalance(&self) -> f64 {
        let Division { data, micro_batches, .. } = self.division;
        let sequences = self.plan.micro_batch * micro_batches;
        self.shape.documents.map_or(1.0, |own| own.imbalance(self.shape.sequence, sequences, data))
    }

    /// Computing of a layer while its own hidden traffic is under way.
    fn beside_traffic(
        &self,
        mut computed: Computed,
        tensor: &TensorTraffic,
        context: [Seconds; 3],
    ) -> Computed {
        let slow = |work: &mut compute::Work, traffic| {
            work.device += lost_beside(traffic, work.device, self.interference);
        };
        if self.hides_tensor() {
            slow(&mut computed.weight, tensor.sums);
            slow(&mut computed.input, tensor.gathers);
        }
        if self.hides_context() {
            slow(&mut computed.forward, context[0]);
            slow(&mut computed.input, context[1] + context[2]);
        }
        computed
    }

    /// Exposed traffic of products if it goes around a ring beside them, in as many parts as there are ranks
    /// (Wang 2023): a rank begins with its own part of what is gathered, and only its last part of a sum follows its product.
    fn beside_products(&self, computed: &mut Computed, tensor: TensorTraffic) -> TensorTraffic {
        if !(self.plan.overlap_products && self.plan.sequence_parallel) {
            return tensor;
        }
        let ranks = self.plan.tensor as f64;
        // Half of what the forward pass sends are sums; what is left of the backward pass are gathers.
        let beside = |sent: Seconds, last: f64, work: &mut compute::Work, core: compute::Work| {
            let products = work.device - core.device;
            work.device += lost_beside(sent * (1.0 - last), products, self.interference);
            (sent - products).max(sent * last)
        };
        let core = computed.core;
        TensorTraffic {
            forward: beside(tensor.forward, 0.5 / ranks, &mut computed.forward, core[0]),
            backward: beside(tensor.backward, 0.0, &mut computed.input, core[1]),
            ..tensor
        }
    }

    /// Whether tensor-parallel sums of the backward pass run beside the gradients of weights, and gathers of saved inputs
    /// beside those of inputs.
    pub fn hides_tensor(&self) -> bool {
        self.overlaps().tensor_backward && !schedules::is_split(self.plan.schedule_kind())
    }

    /// Whether keys and values travel around the ring beside attention.
    pub fn hides_context(&self) -> bool {
        self.overlaps().context && self.plan.context_exchange == ContextExchange::Ring
    }

    /// Attention, forward and backward, that is left when the first keys and values have come around the ring: (c−1)/c.
    pub fn beside_ring(&self, computed: &Computed) -> [Seconds; 2] {
        let ranks = self.plan.context as f64;
        computed.core.map(|work| work.device * ((ranks - 1.0) / ranks))
    }

    pub fn shard(&self, kind: LayerKind) -> Shard<'_> {
        Shard::new(self.shape, self.plan, &self.split(), kind, self.fused, self.work())
    }

    pub(super) fn pass_of(&self, computed: &Computed) -> Pass {
        let spent = |work: compute::Work| Spent {
            compute: work.device,
            host: self.compute.issuing(work),
            ..Spent::default()
        };
        Pass {
            forward: spent(computed.forward),
            backward: spent(computed.input),
            weight: spent(computed.weight),
        }
    }

    fn at_one_rate(&self, rate: FlopsPerSec, kind: LayerKind) -> Computed {
        let LayerKind { block, window, backward } = kind;
        let (plan, split) = (self.plan, self.split());
        let flops = LayerFlops::new(self.shape, block, window, self.work());
        let inner = (split.tensor * split.context) as f64;
        // Every token-parallel rank has its own tokens for the experts.
        let routed = (flops.router as f64 + flops.experts as f64 * self.fullest())
            / (split.context * split.token_ranks()) as f64;
        let linear = (flops.linear() - flops.router - flops.experts) as f64 / inner + routed;
        let core = flops.core() as f64 / inner;
        let in_kernel = flops.again_in_kernel(plan.attention_kind()) as f64 / inner;
        let work = |operations: f64| compute::Work { device: Flops::new(operations) / rate, kernels: 0.0 };
        let adapters = flops::adapters(self.shape, block, self.work()) as f64 / inner;
        let matrices = if self.shape.trains_matrices() { linear } else { 0.0 };
        let inputs = if backward == Backward::All { linear } else { linear - flops.qkv as f64 / inner };
        let goes = if backward == Backward::Nothing { 0.0 } else { 1.0 };
        let mut again = [compute::Work::default(); Recompute::ALL.len()];
        again[Recompute::Projections as usize] = work(flops.widened as f64 / inner);
        again[Recompute::Mlp as usize] = work((flops.mlp + flops.shared) as f64 / inner + routed);
        again[Recompute::Operators as usize] = work(flops.alternate as f64 / inner);
        Computed {
            forward: work(linear + core + adapters),
            input: work(goes * (inputs + 2.0 * core + in_kernel + adapters)),
            weight: work(goes * (matrices + adapters)),
            core: [work(core), work(goes * (2.0 * core + in_kernel))],
            again,
            last: compute::Work::default(),
        }
    }

    fn tensor_traffic(&self, kind: LayerKind, recompute: Recomputed) -> TensorTraffic {
        let kept = self.shape.needs_input(Target::ALL);
        let seats = self.seats(Group::Tensor);
        let mut sum = TensorTraffic::default();
        let (split, batch) = (self.split(), self.plan.micro_batch);
        for message in traffic::tensor_layer(self.shape, &split, batch, kind.block, recompute) {
            match message.phase {
                Phase::Forward => {}
                _ if kind.backward == Backward::Nothing => continue,
                Phase::BackwardWeight if !kept => continue,
                _ => {}
            }
            *match (message.phase, message.collective) {
                (Phase::Forward, _) => &mut sum.forward,
                (Phase::BackwardWeight, _) => &mut sum.gathers,
                (Phase::Backward, traffic::Collective::AllReduce | traffic::Collective::ReduceScatter) => {
                    &mut sum.sums
                }
                _ => &mut sum.backward,
            } += self.time(&message, seats);
        }
        sum
    }

    fn context_traffic(&self, kind: LayerKind, recompute: Recomputed) -> [Seconds; 3] {
        let (plan, split) = (self.plan, self.split());
        let seats = self.seats(Group::Context);
        let mut sum = [Seconds::ZERO; 3];
        let exchange = plan.context_exchange;
        // PyTorch's ring has keys and values of all heads, and adds up their gradients in 32 bits.
        let is_eager = plan.implemented_by().is_eager() && exchange == ContextExchange::Ring;
        let heads_of_each = if is_eager && self.shape.mla.is_none() {
            self.shape.heads / self.shape.kv_heads.max(1)
        } else {
            1
        };
        for mut message in traffic::context_layer(self.shape, &split, plan.micro_batch, exchange, recompute) {
            let width = if is_eager && message.phase == Phase::BackwardKeyValue { 2 } else { 1 };
            message.bytes *= heads_of_each * width;
            let index = match message.phase {
                Phase::Forward => 0,
                Phase::Recompute => 2,
                _ => 1,
            };
            if index == 0 || kind.backward != Backward::Nothing {
                sum[index] += self.time(&message, seats);
            }
        }
        sum
    }

    /// Expected load of the fullest expert rank, for which the others wait in every layer.
    fn fullest(&self) -> f64 {
        ExpertLoads::of_plan(self.shape, self.plan).map_or(1.0, |loads| loads.expected())
    }

    /// Expert-parallel traffic, forward and backward, of the fullest rank.
    fn expert_traffic(&self, kind: LayerKind, recompute: Recomputed) -> [Seconds; 2] {
        let (plan, split) = (self.plan, self.split());
        let message = traffic::expert_layer(self.shape, &split, plan.micro_batch, recompute);
        let Some(message) = message.filter(|message| kind.block.has_experts() && message.ranks > 1) else {
            return [Seconds::ZERO; 2];
        };
        let seats = self.expert_seats();
        let active = self.shape.experts.map_or(1, |experts| experts.active);
        let tokens = message.bytes / active;
        let pair = match plan.dispatcher_kind() {
            Dispatcher::AllGather => {
                let collective = traffic::Collective::AllGather;
                let bytes = tokens * message.ranks;
                self.time(&Message { collective, bytes, count: 2, ..message }, seats)
            }
            Dispatcher::Flex if plan.collectives.is_none() => {
                self.links.fan_out(seats, Bytes::new(tokens as f64), active, plan.expert_nodes) * 2.0
            }
            Dispatcher::AllToAll | Dispatcher::Flex => self.time(&Message { count: 2, ..message }, seats),
        };
        let pair = pair * self.fullest();
        let backward =
            if kind.backward == Backward::Nothing { 0.0 } else { message.count as f64 / 2.0 - 1.0 };
        [pair, pair * backward]
    }

    /// Exposed expert traffic beside the backward and the forward pass of another micro-batch, and the loss of these passes.
    fn beside_experts(&self, computed: &mut Computed, expert: [Seconds; 2]) -> [Seconds; 2] {
        if !self.plan.overlap_experts {
            return expert;
        }
        let [forward, backward] = [computed.forward.device, computed.input.device + computed.weight.device];
        computed.input.device += lost_beside(expert[0], backward, self.interference);
        computed.forward.device += lost_beside(expert[1], forward, self.interference);
        [uncovered(expert[0], backward, true), uncovered(expert[1], forward, true)]
    }

    /// Without a split backward, the gradients of weights belong to the backward pass.
    pub(super) fn joined(&self, pass: Pass) -> Pass {
        match schedules::is_split(self.plan.schedule_kind()) {
            true => pass,
            false => {
                Pass { backward: pass.backward.plus(&pass.weight, 1.0), weight: Spent::default(), ..pass }
            }
        }
    }
}
