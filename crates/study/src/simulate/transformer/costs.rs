//! The work of a micro-batch and a step on every stage, for the engine.
//!
//! Durations of single operations and messages come from `analytic`; the framework's
//! [overlaps](stepcast_core::strategy::Overlaps) determine which of them run concurrently. The engine finds the exposed time.
//!
//! Layers of a virtual stage that are alike are one piece of work, many times as long: while they take turns with the same
//! traffic, either computing or traffic is the longer one for all of them.

use stepcast_analytic::transformer::planned;
use stepcast_analytic::transformer::schedules::{self, PassKind, Sizes};
use stepcast_analytic::transformer::spent::Spent;
use stepcast_analytic::transformer::stages::{LayerWork, Run};
use stepcast_analytic::transformer::step::{StageTraffic, StageWork};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_sim::pipeline::Work::{Beside, Compute, InTurn, Recompute, Traffic};
use stepcast_sim::pipeline::{Exchange, Pass, Phase, Tail, Task, Traffic as Kind, Work};

/// The work of one set of devices, on all stages.
#[derive(Debug, Clone)]
pub(super) struct StepWork {
    /// By virtual stage.
    pub(super) passes: Vec<[Pass; Phase::COUNT]>,
    /// By stage.
    pub(super) tails: Vec<Tail>,
    pub(super) send: f64,
}

impl StepWork {
    /// The work of `scenario` on its slowest device and port.
    pub(super) fn new(scenario: &Scenario) -> Result<Self, Fault> {
        Ok(Self::from_run(&planned(scenario)?.run()))
    }

    pub(super) fn from_run(run: &Run<'_>) -> Self {
        Self {
            passes: run.stage_works().iter().map(|work| passes(run, work)).collect(),
            tails: (0..).zip(run.last_passes()).map(|(stage, pass)| tail(run, stage, pass)).collect(),
            send: run.send().0.get(),
        }
    }
}

/// Work of a stage after its last passes, which take this long.
fn tail(run: &Run<'_>, stage: u64, pass: f64) -> Tail {
    let (held, overlaps) = (run.held(), run.overlaps());
    let work = run.tail_work(&held, stage);
    let layers = held.layers(stage);
    Tail {
        buckets: work.buckets(layers.count()),
        gradients: Exchange { time: work.gradients.get(), overlapped: overlaps.gradients },
        tied: work.tied.get(),
        update: (work.update + work.slows(&overlaps, pass)).get(),
        offload: work.offload.get(),
        weights: Exchange { time: work.weights.get(), overlapped: overlaps.weights },
    }
}

fn passes(run: &Run<'_>, stage: &StageWork) -> [Pass; Phase::COUNT] {
    let is_split = schedules::is_split(run.plan.schedule_kind());
    let StageTraffic { unit, units, offload, ends, outside } = stage.traffic;
    let units = Units { count: units as f64, gather: unit[0].get(), reduce: unit[1].get(), run };
    let [activations, gradients] = offload.map(Seconds::get);
    let host = |index: usize| {
        let layers = stage.layers.iter().map(|(layer, count)| layer.host[index] * *count as f64);
        layers.sum::<Seconds>().get()
    };
    let sum = |of: &dyn Fn(&LayerWork) -> Vec<Work>| {
        InTurn(stage.layers.iter().map(|(layer, count)| InTurn(of(layer)).scaled(*count as f64)).collect())
    };
    let whole = |work: Work,
                 offloaded: f64,
                 host: f64,
                 of: fn(&stepcast_analytic::transformer::spent::Pass) -> &Spent| {
        let work = together(work, Traffic(Kind::Offload, offloaded), run.overlaps().prefetch);
        let ends: Vec<&Spent> = ends.iter().flatten().map(of).collect();
        let more = ends.iter().flat_map(|spent| {
            let sent = [(Kind::Tensor, spent.tensor), (Kind::Sharded, spent.sharded)];
            [Compute(spent.compute.get())]
                .into_iter()
                .chain(sent.map(|(kind, time)| Traffic(kind, time.get())))
        });
        let issue: f64 = ends.iter().map(|spent| spent.host.get()).sum();
        Pass { work: merged([work].into_iter().chain(more).collect()), host: host + issue }
    };
    let forward = units.forward(sum(&|layer| forward(run, layer)));
    let forward = whole(forward, activations, host(0), |pass| &pass.forward);
    let input = sum(&|layer| input(run, layer));
    let weight = sum(&|layer| weight(run, layer));
    let host = |half: usize| host(half) + if half == 1 { outside.get() } else { 0.0 };
    if is_split {
        let backward = whole(units.input(input), activations, host(1), |pass| &pass.backward);
        return [forward, backward, whole(units.weight(weight), gradients, host(2), |pass| &pass.weight)];
    }
    let both = InTurn(vec![input, weight]);
    let sent = activations.max(gradients);
    [forward, whole(units.backward(both), sent, host(1) + host(2), |pass| &pass.backward), Pass::default()]
}

/// `main` and `other`, which begin together if the framework does so.
fn together(main: Work, other: Work, overlapped: bool) -> Work {
    if matches!(other, Traffic(_, time) if time <= 0.0) {
        return main;
    }
    if overlapped { Beside(vec![main, other]) } else { InTurn(vec![main, other]) }
}

/// The forward pass of a layer: keys and values travel around the ring beside attention.
fn forward(run: &Run<'_>, layer: &LayerWork) -> Vec<Work> {
    let [beside, _] = run.beside_ring(&layer.computed).map(Seconds::get);
    let [there, ..] = layer.context.map(Seconds::get);
    let compute = layer.computed.forward.device.get();
    let mut work = around(run, Compute, compute, beside, there);
    work.extend([
        Traffic(Kind::Tensor, layer.tensor.forward.get()),
        Traffic(Kind::Expert, layer.expert[0].get()),
    ]);
    work
}

/// Computing, of which `attention` may hide traffic around the ring.
fn around(run: &Run<'_>, of: fn(f64) -> Work, compute: f64, attention: f64, ring: f64) -> Vec<Work> {
    if run.plan.context == 1 {
        return vec![of(compute)];
    }
    let attention = attention.min(compute);
    let ring = Traffic(Kind::Context, ring);
    vec![of(compute - attention), together(of(attention), ring, run.hides_context())]
}

/// Recomputation and the gradients of inputs of a layer. Gathers of saved inputs run beside these.
fn input(run: &Run<'_>, layer: &LayerWork) -> Vec<Work> {
    let [forward, backward] = run.beside_ring(&layer.computed).map(Seconds::get);
    let [_, back, again] = layer.context.map(Seconds::get);
    let mut work = around(run, Recompute, layer.again.get(), forward, again);
    let input = around(run, Compute, layer.computed.input.device.get(), backward, back);
    match run.hides_tensor() && run.plan.tensor > 1 {
        true => {
            let gathers = Traffic(Kind::Tensor, layer.tensor.gathers.get());
            work.push(together(InTurn(input), gathers, true));
        }
        false => work.extend(input),
    }
    work.push(Traffic(Kind::Tensor, layer.tensor.backward.get()));
    if !run.hides_tensor() {
        work.push(Traffic(Kind::Tensor, layer.tensor.sums.get()));
    }
    work.push(Traffic(Kind::Expert, layer.expert[1].get()));
    work
}

/// The gradients of weights of a layer. Sums of the gradients of inputs run beside them.
fn weight(run: &Run<'_>, layer: &LayerWork) -> Vec<Work> {
    let compute = Compute(layer.computed.weight.device.get());
    match run.hides_tensor() && run.plan.tensor > 1 {
        true => vec![together(compute, Traffic(Kind::Tensor, layer.tensor.sums.get()), true)],
        false if run.hides_tensor() => vec![compute],
        false => vec![compute, Traffic(Kind::Tensor, layer.tensor.gathers.get())],
    }
}

/// Layers whose weights or gradients are sharded, each a unit: its weights are gathered before it computes, its gradients
/// reduced afterwards; ahead and behind, beside the computing of its neighbours, if the framework does so.
struct Units<'a> {
    count: f64,
    gather: f64,
    reduce: f64,
    run: &'a Run<'a>,
}

impl Units<'_> {
    fn sent(&self, time: f64) -> Work {
        Traffic(Kind::Sharded, time)
    }

    /// `count` of the units of `work`, beside traffic.
    fn some(&self, work: &Work, count: f64, time: f64) -> Work {
        together(work.scaled(count / self.count), self.sent(time), true)
    }

    fn is_ahead(&self) -> bool {
        self.run.overlaps().prefetch
    }

    fn forward(&self, work: Work) -> Work {
        let n = self.count;
        if self.gather <= 0.0 || n < 1.0 {
            return work;
        }
        match self.is_ahead() {
            true => InTurn(vec![self.sent(self.gather), self.input(work)]),
            false => InTurn(vec![work, self.sent(n * self.gather)]),
        }
    }

    /// Gradients of inputs alone: their first weights were fetched before.
    fn input(&self, work: Work) -> Work {
        let (n, gather) = (self.count, self.gather);
        if gather <= 0.0 || n < 1.0 {
            return work;
        }
        if !self.is_ahead() {
            return InTurn(vec![work, self.sent(n * gather)]);
        }
        InTurn(vec![self.some(&work, n - 1.0, (n - 1.0) * gather), work.scaled(1.0 / n)])
    }

    /// Gradients of weights alone: the gradients of a unit are reduced beside the next unit.
    fn weight(&self, work: Work) -> Work {
        let (n, reduce) = (self.count, self.reduce);
        if reduce <= 0.0 || n < 1.0 {
            return work;
        }
        if !self.is_ahead() {
            return InTurn(vec![work, self.sent(n * reduce)]);
        }
        let others = self.some(&work, n - 1.0, (n - 1.0) * reduce);
        InTurn(vec![work.scaled(1.0 / n), others, self.sent(reduce)])
    }

    /// A whole backward pass: its first weights were fetched before, and the last reduction follows it.
    fn backward(&self, work: Work) -> Work {
        let (n, gather, reduce) = (self.count, self.gather, self.reduce);
        if gather + reduce <= 0.0 || n < 1.0 {
            return work;
        }
        if !self.is_ahead() {
            return InTurn(vec![work, self.sent(n * (gather + reduce))]);
        }
        if n < 2.0 {
            return InTurn(vec![work, self.sent(reduce)]);
        }
        InTurn(vec![
            self.some(&work, 1.0, gather),
            self.some(&work, n - 2.0, (n - 2.0) * (gather + reduce)),
            self.some(&work, 1.0, reduce),
            self.sent(reduce),
        ])
    }
}

/// Sequential work, with pieces of the same kind and traffic merged: work without overlap is first recomputed, then computed,
/// then sent, kind by kind.
fn merged(list: Vec<Work>) -> Work {
    let mut flat = Vec::new();
    flatten(InTurn(list), &mut flat);
    let mut again = 0.0;
    let mut compute = 0.0;
    let mut sent = [0.0; Kind::COUNT];
    let mut rest = Vec::new();
    for work in flat {
        match work {
            Recompute(time) => again += time,
            Compute(time) => compute += time,
            Traffic(kind, time) => sent[kind as usize] += time,
            Beside(list) => {
                rest.push(Beside(list.into_iter().map(|work| merged(vec![work])).collect()));
            }
            InTurn(_) => {}
        }
    }
    let mut all = vec![Recompute(again), Compute(compute)];
    all.extend(rest);
    all.extend(Kind::OF_A_PASS.into_iter().map(|kind| Traffic(kind, sent[kind as usize])));
    InTurn(all)
}

fn flatten(work: Work, flat: &mut Vec<Work>) {
    match work {
        InTurn(list) => list.into_iter().for_each(|work| flatten(work, flat)),
        other => flat.push(other),
    }
}

/// The share of every virtual stage in the layers of its stage.
pub(super) fn shares(run: &Run<'_>, stage_of: &[u32]) -> Vec<f64> {
    let layers: Vec<u64> =
        run.plan.stage_ranges(run.shape.layers).map(|range| range.end - range.start).collect();
    let mut all = vec![0; run.plan.pipeline as usize];
    for (layers, &stage) in layers.iter().zip(stage_of) {
        all[stage as usize] += layers;
    }
    let share = |(layers, &stage): (&u64, &u32)| *layers as f64 / all[stage as usize].max(1) as f64;
    layers.iter().zip(stage_of).map(share).collect()
}

/// The stage of every virtual stage, and the passes of every stage in the order of its schedule.
pub(super) fn orders(run: &Run<'_>) -> (Vec<u32>, Vec<Vec<Task>>) {
    let kind = run.plan.schedule_kind();
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let (p, v) = (run.plan.pipeline, run.plan.virtual_stages);
    let sizes = Sizes {
        stages: narrow(p),
        micro_batches: narrow(run.division.micro_batches),
        chunks: narrow(v),
        group: None,
    };
    let stage_of: Vec<u32> = (0..p * v).map(|place| narrow(schedules::stage_of(kind, p, place))).collect();
    let order = |stage: u32| {
        let places: Vec<u32> =
            (0..).zip(&stage_of).filter(|(_, on)| **on == stage).map(|(place, _)| place).collect();
        let task = |operation: &schedules::Operation| Task {
            phase: match operation.kind {
                PassKind::Forward => Phase::Forward,
                PassKind::Backward => Phase::Backward,
                PassKind::Weight => Phase::Weight,
            },
            micro_batch: operation.micro_batch,
            place: places[operation.chunk as usize],
            with_next: operation.with_next,
        };
        schedules::order(kind, &sizes, stage).iter().map(task).collect()
    };
    let orders = (0..sizes.stages).map(order).collect();
    (stage_of, orders)
}
