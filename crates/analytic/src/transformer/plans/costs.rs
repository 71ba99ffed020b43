//! What depends on few properties of a plan, computed once for each of their combinations.

use super::TimesOf;
use super::layout::{Class, EqualStages, Layout};
use crate::transformer::schedules::is_split;
use crate::transformer::spent::{Pass, Spent};
use crate::transformer::stages::Run;
use crate::transformer::tail::TailWork;
use crate::transformer::{kinds, offload, units};
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{PlanChoice, Recomputation, Recompute, ScheduleKind, Sharding};

/// Device and host in one pass of a micro-batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lanes {
    device: f64,
    host: f64,
}

impl Lanes {
    fn from_spent(spent: &Spent) -> Self {
        Self { device: spent.on_device().get(), host: spent.host.get() }
    }

    /// The larger of both.
    pub(super) fn total(self) -> f64 {
        self.device.max(self.host)
    }

    /// What the device waits for the host.
    fn starved(self) -> f64 {
        (self.host - self.device).max(0.0)
    }
}

/// Forward, backward and gradients of weights of a micro-batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Passes([Lanes; 3]);

impl Passes {
    fn from_pass(pass: &Pass) -> Self {
        Self([&pass.forward, &pass.backward, &pass.weight].map(Lanes::from_spent))
    }

    pub(super) fn add(&mut self, other: &Self, count: f64) {
        for (own, other) in self.0.iter_mut().zip(&other.0) {
            own.device += other.device * count;
            own.host += other.host * count;
        }
    }

    /// The time of each pass.
    pub(super) fn times(&self) -> TimesOf {
        self.0.map(Lanes::total)
    }

    /// The forward pass and both halves of the backward pass, as what is sent beside them sees them ([`Pass::beside`]).
    pub(super) fn beside(&self, ahead: bool) -> [Seconds; 2] {
        let time = |lanes: Lanes| if ahead { lanes.device } else { lanes.total() };
        let [forward, backward, weight] = self.0.map(time);
        [Seconds::new(forward), Seconds::new(backward + weight)]
    }

    /// What the device waits for the host.
    pub(super) fn starved(&self) -> f64 {
        self.0.iter().map(|lanes| lanes.starved()).sum()
    }

    /// The same where the host runs ahead of passes that follow each other ([`Pass::running_ahead`]).
    fn running_ahead(&self) -> Self {
        let sum = |of: fn(&Lanes) -> f64| self.0.iter().map(of).sum::<f64>();
        let (device, host) = (sum(|lanes| lanes.device), sum(|lanes| lanes.host));
        let share = host / device.max(f64::MIN_POSITIVE);
        Self(self.0.map(|lanes| Lanes { host: lanes.device * share, ..lanes }))
    }
}

/// What a layout depends on.
pub(super) fn layout_key(choice: &PlanChoice) -> PlanChoice {
    PlanChoice { tensor: 1, context: 1, expert: 1, ..state_key(&choice.without_sharding()) }
}

/// What the times of a micro-batch depend on, on a layer of each kind, on the embedding and on the output layer.
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

/// What sharding depends on.
pub(super) fn state_key(choice: &PlanChoice) -> PlanChoice {
    // Virtual stages go there and back.
    let folded = choice.schedule == ScheduleKind::Zbv;
    PlanChoice {
        sequence_parallel: false,
        schedule: if folded { ScheduleKind::Zbv } else { ScheduleKind::OneFOneB },
        micro_batch: 1,
        recompute: Recomputation { what: Recompute::None, ..choice.recompute },
        data: 1,
        micro_batches: 1,
        ..*choice
    }
}

/// What a send depends on.
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
    /// Of which something may be computed again, and the others.
    kinds: [[Passes; kinds::COUNT]; 2],
    /// Seconds of the host's link for what a layer of each kind keeps, if it goes there.
    offloaded: Option<[[f64; kinds::COUNT]; 2]>,
    embedding: Passes,
    head: Passes,
    /// Host time of a step outside of its layers.
    outside: f64,
    /// Whether sharded weights are fetched ahead.
    prefetch: bool,
}

impl LayerCosts {
    pub(super) fn from_run(run: &Run<'_>) -> Self {
        let shape = run.shape;
        let recompute = run.plan.recomputation();
        let layers = |what: Recompute| {
            kinds::each(shape, |with_experts, window| {
                Passes::from_pass(&run.layer(with_experts, window, what))
            })
        };
        let [some, others] = recompute.halves();
        let offloaded = |what: Recompute| {
            kinds::each(shape, |with_experts, _| run.offloaded_activations(with_experts, what).get())
        };
        Self {
            offloaded: run.plan.offloaded().activations.then(|| [offloaded(some), offloaded(others)]),
            kinds: [
                layers(some),
                if recompute.layers.is_some() { layers(others) } else { [Passes::default(); kinds::COUNT] },
            ],
            embedding: Passes::from_pass(&run.embedding()),
            head: Passes::from_pass(&run.head()),
            outside: run.compute.outside().get(),
            prefetch: run.overlaps().prefetch,
        }
    }

    /// A micro-batch on a virtual stage whose layers gather and reduce as `shards` says, and whose gradients take this
    /// long to the host.
    pub(super) fn place(
        &self,
        class: &Class,
        shards: [Seconds; 2],
        gradients: Seconds,
        micro_batches: u64,
    ) -> Passes {
        let alone = class.first && class.last;
        let mut sum = Passes::default();
        for (passes, count) in class.each(&self.kinds) {
            sum.add(passes, count);
        }
        if shards[0] + shards[1] > Seconds::ZERO {
            let [forward, backward] = units::exposed(shards, class.count(), sum.beside(alone), self.prefetch);
            sum.0[0].device += forward.get();
            sum.0[1].device += backward.get();
        }
        let kept = self.offloaded.iter().flat_map(|times| class.each(times));
        let activations: f64 = kept.map(|(time, count)| time * count).sum();
        if activations > 0.0 || gradients > Seconds::ZERO {
            let sent = [Seconds::new(activations), gradients];
            let [forward, backward] = offload::exposed(sent, sum.beside(alone), self.prefetch);
            sum.0[0].device += forward.get();
            sum.0[1].device += backward.get();
        }
        for (has, more) in [(class.first, &self.embedding), (class.last, &self.head)] {
            if has {
                sum.add(more, 1.0);
            }
        }
        if alone {
            sum.0[1].host += self.outside / micro_batches as f64;
            sum = sum.running_ahead();
        }
        sum
    }
}

/// What replicas send and hold, and the send between stages.
#[derive(Debug, Clone)]
pub(super) struct StateCosts {
    /// Gather and reduction of a layer, for every class of virtual stages.
    pub(super) shards: Vec<[Seconds; 2]>,
    /// Gradients of a micro-batch to the host, for every class of virtual stages.
    pub(super) offloaded: Vec<Seconds>,
    /// What stages send and update once, for every kind of stage.
    pub(super) once: Vec<TailWork>,
    /// Weights, gradients, optimiser states and gathered weights, for every kind of stage.
    pub(super) states: Vec<Bytes>,
}

impl StateCosts {
    pub(super) fn from_run(run: &Run<'_>, layout: &Layout) -> Self {
        let held = run.held();
        let each = kinds::each(run.shape, |with_experts, _| run.layer_shard(with_experts));
        let parameters = |class: &Class| {
            let counted = class.layers.iter().flat_map(|half| half.iter().zip(each));
            counted.fold([0, 0], |[dense, expert], (count, [a, b])| [dense + a * count, expert + b * count])
        };
        let shards = |class: &Class| {
            let [dense, expert] = parameters(class);
            run.sharded_layer(class.count(), dense + expert)
        };
        let offloaded = |class: &Class| {
            let [dense, expert] = parameters(class);
            run.offloaded_gradients([dense + held.end_parameters(class.first, class.last), expert])
        };
        let states = |alike: &EqualStages| {
            let rank = held.rank(alike.first as u64);
            rank.weights + rank.gradients + rank.optimiser + rank.unsharded
        };
        Self {
            shards: layout.classes.iter().map(shards).collect(),
            offloaded: layout.classes.iter().map(offloaded).collect(),
            once: layout.alike.iter().map(|alike| run.tail_work(&held, alike.first as u64)).collect(),
            states: layout.alike.iter().map(states).collect(),
        }
    }
}
