//! Costs that depend on few properties of a plan, computed once for each combination of these.

use super::TimesOf;
use super::layout::{Class, EqualStages, Layout};
use crate::transformer::schedules::is_split;
use crate::transformer::spent::{Pass, Spent};
use crate::transformer::stages::Run;
use crate::transformer::tail::TailWork;
use crate::transformer::units::Units;
use crate::transformer::{kinds, offload};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{PlanChoice, Recomputation, Recompute, Recomputed, ScheduleKind, Sharding};

/// Device, host and links in one pass of a micro-batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lanes {
    device: f64,
    host: f64,
    /// Links within nodes and between them.
    busy: [f64; 2],
}

impl Lanes {
    fn from_spent(spent: &Spent) -> Self {
        Self { device: spent.on_device().get(), host: spent.host.get(), busy: spent.busy.map(Seconds::get) }
    }
}

/// Forward, backward and gradients of weights of a micro-batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passes([Lanes; 3]);

impl Passes {
    fn from_pass(pass: &Pass) -> Self {
        Self(pass.each(Lanes::from_spent))
    }

    pub(super) fn add(&mut self, other: &Self, count: f64) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.device += other.device * count;
            own.host += other.host * count;
            for (own, other) in own.busy.iter_mut().zip(other.busy) {
                *own += other * count;
            }
        }
    }

    /// The time of each pass: the larger of device and host.
    pub(super) fn times(&self) -> TimesOf {
        self.0.map(|lanes| lanes.device.max(lanes.host))
    }

    /// How long each pass keeps a level of the network busy.
    pub(super) fn busy(&self, level: usize) -> TimesOf {
        self.0.map(|lanes| lanes.busy[level])
    }

    /// Takes the time of the host out of all passes.
    pub(super) fn take_host(&mut self) -> f64 {
        self.0.iter_mut().map(|lanes| std::mem::take(&mut lanes.host)).sum()
    }
}

pub(super) fn layout_key(choice: &PlanChoice) -> PlanChoice {
    PlanChoice { tensor: 1, context: 1, expert: 1, ..state_key(&choice.without_sharding()) }
}

/// The dimensions on which the times of a micro-batch depend: in layers of each kind, the embedding and the output layer.
pub(super) fn layer_key(choice: &PlanChoice) -> PlanChoice {
    // 16-bit copies of sharded weights are not kept.
    let gathered = choice.sharding.stage() == 3;
    PlanChoice {
        pipeline: 1,
        virtual_stages: choice.virtual_stages.min(2),
        schedule: if is_split(choice.schedule) { ScheduleKind::ZbH1 } else { ScheduleKind::OneFOneB },
        sharding: if gathered { Sharding::Zero3 } else { Sharding::None },
        sharding_group: None,
        recompute: Recomputation { layers: choice.recompute.layers.map(|_| 1), ..choice.recompute },
        data: 1,
        micro_batches: 1,
        ..*choice
    }
}

pub(super) fn state_key(choice: &PlanChoice) -> PlanChoice {
    // Virtual stages go there and back.
    let folded = choice.schedule.is_folded();
    PlanChoice {
        sequence_parallel: false,
        schedule: if folded { ScheduleKind::Zbv } else { ScheduleKind::OneFOneB },
        micro_batch: 1,
        recompute: Recomputation { what: Recomputed::NONE, ..choice.recompute },
        data: 1,
        micro_batches: 1,
        ..*choice
    }
}

pub(super) fn send_key(choice: &PlanChoice) -> PlanChoice {
    PlanChoice {
        virtual_stages: choice.virtual_stages.min(2),
        schedule: ScheduleKind::OneFOneB,
        expert: 1,
        recompute: Recompute::None.into(),
        data: 1,
        micro_batches: 1,
        ..choice.without_sharding()
    }
}

/// Times of a micro-batch: forward, backward, gradients of weights.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerCosts {
    /// Layers with recomputation, and layers without.
    kinds: [[Passes; kinds::COUNT]; 2],
    /// Seconds of the host's link for the activations of a layer of each kind, if they are offloaded.
    offloaded: Option<[[f64; kinds::COUNT]; 2]>,
    embedding: Passes,
    head: Passes,
    /// Whether sharded weights are fetched ahead.
    ahead: bool,
    split: bool,
    shared: bool,
    /// Slowdown of computing beside traffic, as a share of its time.
    interference: f64,
}

impl LayerCosts {
    pub(super) fn from_run(run: &Run<'_>) -> Self {
        let shape = run.shape;
        let recompute = run.plan.recomputation();
        let layers = |what: Recomputed| kinds::each(shape, |kind| Passes::from_pass(&run.layer(kind, what)));
        let [some, others] = recompute.halves();
        let offloaded =
            |what: Recomputed| kinds::each(shape, |kind| run.offloaded_activations(kind, what).get());
        Self {
            offloaded: run.plan.offloaded().activations.then(|| [offloaded(some), offloaded(others)]),
            kinds: [
                layers(some),
                if recompute.layers.is_some() { layers(others) } else { [Passes::default(); kinds::COUNT] },
            ],
            embedding: Passes::from_pass(&run.embedding()),
            head: Passes::from_pass(&run.head()),
            ahead: run.overlaps().prefetch,
            split: is_split(run.plan.schedule_kind()),
            shared: run.plan.shares_links(),
            interference: run.interference,
        }
    }

    /// A micro-batch on a virtual stage. `sharded` has the gathers and reductions of its layers and its root unit, on links of this
    /// level; `offloaded` is the time to move its gradients to the host.
    pub(super) fn place(
        &self,
        class: &Class,
        ([shards, root], level): ([[Seconds; 2]; 2], usize),
        gradients: Seconds,
    ) -> Passes {
        let mut sum = Passes::default();
        for (passes, count) in class.each(&self.kinds) {
            sum.add(passes, count);
        }
        if shards[0] + shards[1] > Seconds::ZERO {
            let units = Units { sent: shards, count: class.count, ahead: self.ahead, split: self.split };
            let computed = [sum.0[0], sum.0[1]].map(|lanes| Seconds::new(lanes.device));
            for (lanes, slower) in sum.0.iter_mut().zip(units.slows(self.interference, computed)) {
                lanes.device += slower.get();
            }
            let cover = sum.0.map(|lanes| match self.shared {
                true => Seconds::new(lanes.device - lanes.busy[level]),
                false => Seconds::new(lanes.device),
            });
            let sent = units.exposed(cover).into_iter().zip(units.busy());
            for (lanes, (exposed, busy)) in sum.0.iter_mut().zip(sent) {
                lanes.device += exposed.get();
                lanes.busy[level] += busy.get();
            }
        }
        let kept = self.offloaded.iter().flat_map(|times| class.each(times));
        let activations: f64 = kept.map(|(time, count)| time * count).sum();
        if activations > 0.0 || gradients > Seconds::ZERO {
            let sent = [Seconds::new(activations), gradients];
            let beside = sum.0.map(|lanes| Seconds::new(lanes.device));
            let exposed = offload::exposed(sent, beside, self.split, self.ahead);
            for (lanes, exposed) in sum.0.iter_mut().zip(exposed) {
                lanes.device += exposed.get();
            }
        }
        for (has, more) in [(class.first, &self.embedding), (class.last, &self.head)] {
            if has {
                sum.add(more, 1.0);
            }
        }
        let behind = if self.split { 2 } else { 1 };
        for (lanes, time) in [0, behind].into_iter().zip(root) {
            sum.0[lanes].device += time.get();
            sum.0[lanes].busy[level] += time.get();
        }
        sum
    }
}

/// Traffic and memory of replicas, and the send between stages.
#[derive(Debug, Clone)]
pub(super) struct StateCosts {
    /// Gather and reduction of a layer and of the root unit, for every class of virtual stages.
    pub(super) sharded: Vec<[[Seconds; 2]; 2]>,
    /// The level of the network that gathers and reductions load.
    pub(super) level: usize,
    /// The level that gradients and weights load once in a step.
    pub(super) data: usize,
    /// Gradients of a micro-batch to the host, for every class of virtual stages.
    pub(super) offloaded: Vec<Seconds>,
    /// Sends and updates once in a step, for every kind of stage.
    pub(super) once: Vec<TailWork>,
    /// Weights, gradients, optimiser states and gathered weights, for every kind of stage.
    pub(super) states: Vec<Bytes>,
}

impl StateCosts {
    pub(super) fn from_run(run: &Run<'_>, layout: &Layout) -> Self {
        let held = run.held();
        let each = kinds::each(run.shape, |kind| run.layer_shard(kind));
        let parameters = |class: &Class| {
            class.layers.iter().fold([0; 3], |[all, dense, expert], layers| {
                let (own, count) = (&each[layers.kind], layers.count);
                let [own_dense, own_expert] = own.trained;
                [all + own.all * count, dense + own_dense * count, expert + own_expert * count]
            })
        };
        let sharded = |class: &Class| {
            let [all, dense, expert] = parameters(class);
            [run.sharded_layer(class.count, [all, dense + expert]), run.root(class.first, class.last)]
        };
        let offloaded = |class: &Class| {
            let [_, dense, expert] = parameters(class);
            run.offloaded_gradients([dense + held.trained_ends(class.first, class.last), expert])
        };
        let states = |alike: &EqualStages| {
            let rank = held.rank(alike.first as u64);
            rank.weights + rank.gradients + rank.optimiser + rank.unsharded
        };
        Self {
            sharded: layout.classes.iter().map(sharded).collect(),
            level: run.sharding_seats().level(),
            data: run.levels().data,
            offloaded: layout.classes.iter().map(offloaded).collect(),
            once: layout.alike.iter().map(|alike| run.tail_work(&held, alike.first as u64)).collect(),
            states: layout.alike.iter().map(states).collect(),
        }
    }
}
