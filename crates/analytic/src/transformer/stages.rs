//! What a micro-batch takes on every virtual stage: computing and the communication that it waits for.

use super::compute::{Compute, Computed, Shard};
use super::flops::{self, LayerFlops, Work};
use super::placement::{Group, Links, Route, Seats};
use super::spent::{Pass, Spent, uncovered};
use super::traffic::{self, Message, Phase};
use super::{Split, compute, schedules};
use stepcast_core::model::transformer::Transformer;
use stepcast_core::quantity::{Bytes, BytesPerSec, Flops, FlopsPerSec, Seconds};
use stepcast_core::strategy::{Attention, Division, Loss, Mask, Overlaps, Plan, Recompute};

/// A plan on machines: all that times depend on.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The transformer.
    pub shape: &'a Transformer,
    /// How it is split.
    pub plan: &'a Plan,
    /// What the plan leaves open.
    pub division: Division,
    /// Both levels of the network.
    pub links: Links,
    /// Ranks of a node.
    pub node: u64,
    /// How fast the slowest device computes.
    pub compute: Compute,
    /// Whether element-wise work is fused.
    pub fused: bool,
    /// Bytes of a weight as it is gathered.
    pub weight_width: u64,
    /// Rate between a device and its host, one direction.
    pub host_link: BytesPerSec,
}

impl Run<'_> {
    /// How many ranks divide the transformer, by kind.
    pub fn split(&self) -> Split {
        Split {
            tensor: self.plan.tensor,
            sequence_parallel: self.plan.sequence_parallel,
            context: self.plan.context,
            pipeline: self.plan.pipeline,
            chunks: self.plan.virtual_stages,
            data: self.division.data,
            expert: self.plan.expert,
        }
    }

    /// What is sent while computing goes on.
    pub fn overlaps(&self) -> Overlaps {
        self.plan.overlaps()
    }

    /// Where the ranks of a group are.
    pub fn seats(&self, group: Group) -> Seats {
        group.seats(&self.split(), self.node)
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
        match seats.nodes {
            0 | 1 => by(Route::Flat),
            _ => by(Route::Flat).min(by(Route::Hierarchical)),
        }
    }

    /// Tokens of a micro-batch, with the pairs that are really computed: flash attention skips what is masked.
    fn work(&self) -> Work {
        let mask = match (self.shape.causal, self.plan.attention) {
            (true, Attention::Flash) => Mask::Causal,
            _ => Mask::None,
        };
        Work { sequence: self.shape.sequence, batch: self.plan.micro_batch, mask }
    }

    /// One layer of which this is computed again, without what the ranks of a sharding group send for it.
    pub fn layer(&self, with_experts: bool, window: Option<u64>, recompute: Recompute) -> Pass {
        let plan = self.plan;
        let computed = match &self.compute {
            Compute::OneRate { rate, .. } => self.at_one_rate(*rate, with_experts, window),
            Compute::Parts(parts) => parts.layer(&self.shard(with_experts, window)),
        };
        let (again, checkpoint) = match (recompute, plan.attention) {
            (Recompute::Layer, _) => (computed.forward, self.compute.checkpoint()),
            (Recompute::Operators, _) => (computed.alternate, self.compute.checkpoint()),
            (Recompute::Attention, Attention::Unfused) => (computed.core[0], self.compute.checkpoint()),
            _ => (compute::Work::default(), Seconds::ZERO),
        };
        let mut pass = self.pass_of(&computed);
        pass.backward.recompute = again.device;
        pass.backward.host += self.compute.issuing(again) + checkpoint;
        let halves = [computed.input.device, computed.weight.device];
        self.add_tensor(&mut pass, with_experts, recompute, halves);
        self.add_context(&mut pass, recompute, computed.core.map(|work| work.device));
        if with_experts {
            self.add_expert(&mut pass, recompute);
        }
        self.joined(pass)
    }

    /// The shard of a layer that a rank computes.
    pub fn shard(&self, with_experts: bool, window: Option<u64>) -> Shard<'_> {
        Shard::new(self.shape, self.plan, &self.split(), [with_experts, self.fused], window, self.work())
    }

    fn pass_of(&self, computed: &Computed) -> Pass {
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

    /// A layer whose operations all run at one rate.
    fn at_one_rate(&self, rate: FlopsPerSec, with_experts: bool, window: Option<u64>) -> Computed {
        let (plan, split) = (self.plan, self.split());
        let flops = LayerFlops::of(self.shape, with_experts, window, self.work());
        let inner = (split.tensor * split.context) as f64;
        // Every token-parallel rank has its own tokens for the experts.
        let routed = (flops.router as f64 + flops.experts as f64 * plan.expert_skew)
            / (split.context * split.token_ranks()) as f64;
        let linear = (flops.linear() - flops.router - flops.experts) as f64 / inner + routed;
        let core = flops.core() as f64 / inner;
        let in_kernel = match plan.attention {
            Attention::Flash => flops.scores as f64 / inner,
            Attention::Unfused => 0.0,
        };
        let work = |operations: f64| compute::Work { device: Flops::new(operations) / rate, kernels: 0.0 };
        Computed {
            forward: work(linear + core),
            input: work(linear + 2.0 * core + in_kernel),
            weight: work(linear),
            core: [work(core), work(2.0 * core + in_kernel)],
            alternate: work(flops.alternate as f64 / inner),
        }
    }

    /// Adds tensor parallelism: the forward pass waits; backward, sums run beside the gradients of weights, and the
    /// gathers of saved inputs beside those of inputs, if the framework does so and the backward pass is not split.
    fn add_tensor(
        &self,
        pass: &mut Pass,
        with_experts: bool,
        recompute: Recompute,
        [input, weight]: [Seconds; 2],
    ) {
        let (plan, split) = (self.plan, self.split());
        let seats = self.seats(Group::Tensor);
        let beside = self.overlaps().tensor_backward && !schedules::is_split(plan.schedule_kind());
        let mut sums = Seconds::ZERO;
        let mut gathers = Seconds::ZERO;
        for message in traffic::tensor_layer(self.shape, &split, plan.micro_batch, with_experts, recompute) {
            let time = self.time(&message, seats);
            match (message.phase, message.collective) {
                (Phase::Forward, _) => pass.forward.tensor += time,
                (Phase::BackwardWeight, _) => gathers += time,
                (Phase::Backward, traffic::Collective::AllReduce | traffic::Collective::ReduceScatter) => {
                    sums += time;
                }
                _ => pass.backward.tensor += time,
            }
        }
        pass.backward.tensor += uncovered(sums, weight, beside);
        pass.weight.tensor += uncovered(gathers, input, beside);
    }

    /// Adds context parallelism: keys and values of the next step around the ring travel beside the attention of this
    /// one, (c−1)/c of which is left when the first arrive.
    fn add_context(&self, pass: &mut Pass, recompute: Recompute, [forward, backward]: [Seconds; 2]) {
        let (plan, split) = (self.plan, self.split());
        let seats = self.seats(Group::Context);
        let rest = (split.context - 1) as f64 / split.context as f64;
        let ring = plan.context_exchange == stepcast_core::strategy::ContextExchange::Ring;
        let beside = self.overlaps().context && ring;
        let messages =
            traffic::context_layer(self.shape, &split, plan.micro_batch, plan.context_exchange, recompute);
        let (mut there, mut back, mut again) = (Seconds::ZERO, Seconds::ZERO, Seconds::ZERO);
        for message in messages {
            let time = self.time(&message, seats);
            match message.phase {
                Phase::Forward => there += time,
                Phase::Recompute => again += time,
                _ => back += time,
            }
        }
        pass.forward.context += uncovered(there, forward * rest, beside);
        pass.backward.context +=
            uncovered(back, backward * rest, beside) + uncovered(again, forward * rest, beside);
    }

    /// Adds expert parallelism: the hottest rank's time counts, and nothing runs beside it.
    fn add_expert(&self, pass: &mut Pass, recompute: Recompute) {
        let (plan, split) = (self.plan, self.split());
        let message = traffic::expert_layer(self.shape, &split, plan.micro_batch, recompute);
        let Some(message) = message.filter(|message| message.ranks > 1) else { return };
        let seats = self.expert_seats();
        let pair = self.time(&Message { count: 2, ..message }, seats) * plan.expert_skew;
        pass.forward.expert += pair;
        pass.backward.expert += pair * (message.count as f64 / 2.0 - 1.0);
    }

    /// Without a split backward, the gradients of weights belong to the backward pass.
    fn joined(&self, pass: Pass) -> Pass {
        match schedules::is_split(self.plan.schedule_kind()) {
            true => pass,
            false => {
                Pass { backward: pass.backward.plus(&pass.weight, 1.0), weight: Spent::default(), ..pass }
            }
        }
    }

    /// Rows of the vocabulary on a rank.
    fn vocabulary_rows(&self) -> f64 {
        self.shape.vocabulary as f64 / self.plan.tensor as f64
    }

    /// The embedding and its sum, on the first virtual stage.
    pub fn embedding(&self) -> Pass {
        let mut pass = match &self.compute {
            Compute::OneRate { .. } => Pass::default(),
            Compute::Parts(parts) => {
                self.pass_of(&parts.embedding(&self.shard(false, None), self.vocabulary_rows()))
            }
        };
        if let Some(vocabulary) = self.vocabulary() {
            pass.forward.tensor = self.time(&vocabulary.embedding, self.seats(Group::Tensor));
        }
        self.joined(pass)
    }

    /// The output layer and the loss, on the last virtual stage.
    pub fn head(&self) -> Pass {
        let split = self.split();
        let computed = match &self.compute {
            Compute::OneRate { rate, .. } => {
                let logits = flops::logits(self.shape, self.work()) as f64;
                let time = Flops::new(logits / (split.tensor * split.context) as f64) / *rate;
                let work = compute::Work { device: time, kernels: 0.0 };
                Computed { forward: work, input: work, weight: work, ..Computed::default() }
            }
            Compute::Parts(parts) => parts.head(&self.shard(false, None), self.vocabulary_rows()),
        };
        let chunked = self.plan.loss == Some(Loss::Chunked);
        let computed = if chunked { computed.in_forward() } else { computed };
        let mut pass = self.pass_of(&computed);
        if let Some(vocabulary) = self.vocabulary() {
            let seats = self.seats(Group::Tensor);
            let gather = self.time(&vocabulary.gathers, seats) * 0.5;
            pass.forward.tensor = gather + self.time(&vocabulary.loss, seats);
            pass.backward.tensor = self.time(&vocabulary.logits, seats);
            pass.weight.tensor = gather;
        }
        self.joined(pass)
    }

    fn vocabulary(&self) -> Option<traffic::Vocabulary> {
        let split = self.split();
        let tokens = self.shape.sequence * self.plan.micro_batch / split.context;
        traffic::vocabulary(self.shape, &split, tokens)
    }
}
