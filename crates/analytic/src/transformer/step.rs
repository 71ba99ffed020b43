//! The closed form of a whole step: the pipeline of all micro-batches, then gradients, update and weights.
//!
//! All ranks of a stage are alike, so that one rank stands for each stage. After its last backward pass a stage does not
//! wait for the other stages, except for the gradient of a tied embedding.

use super::memory::{MemoryInputs, StageLayers};
use super::placement::Group;
use super::schedules::{self, Deadlock, Sends};
use super::spent::{Pass, Spent};
use super::stages::{LayerWork, Run};
use super::tail::{self, EndPass, LayerShard, Tail, TailWork};
use super::traffic::{self, Collective, Message};
use super::units::Units;
use super::{kinds, offload};
use std::ops::Range;
use stepcast_core::quantity::Seconds;

/// One stage in a step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageStep {
    pub layers: StageLayers,
    /// A micro-batch on all its chunks.
    pub pass: Pass,
    /// Blocking sends of a micro-batch.
    pub sends: Seconds,
    /// How long its first forward passes wait for weights that are still under way.
    pub waited: Seconds,
    /// End of its last backward pass.
    pub end: Seconds,
    /// Work after the last backward pass.
    pub tail: Tail,
}

impl StageStep {
    /// Computing and communicating for one micro-batch.
    pub fn busy(&self) -> Seconds {
        let Pass { forward, backward, weight } = self.pass;
        forward.total() + backward.total() + weight.total() + self.sends
    }

    /// Time that its device waits for the host in one micro-batch.
    pub fn starved(&self) -> Seconds {
        let Pass { forward, backward, weight } = self.pass;
        forward.starved() + backward.starved() + weight.starved()
    }

    /// Its time for one micro-batch, by cause.
    pub fn spent(&self) -> Spent {
        let Pass { forward, backward, weight } = self.pass;
        forward.plus(&backward, 1.0).plus(&weight, 1.0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub time: Seconds,
    /// The stage that ends it.
    pub slowest: usize,
    pub stages: Vec<StageStep>,
    /// Share of the time of all stages, until the last backward pass, in which they wait for each other.
    pub bubble: f64,
    /// Time that a device alone in its pipeline waits for its host, which runs ahead of it.
    pub host: Seconds,
}

/// A micro-batch on a layer of every kind: with recomputation, and without.
#[derive(Debug, Clone, Copy)]
pub(super) struct LayerPasses {
    passes: [[Pass; kinds::COUNT]; 2],
    /// Time of activations to the host's memory.
    offloaded: [[Seconds; kinds::COUNT]; 2],
    /// Parameters on a rank.
    parameters: [LayerShard; kinds::COUNT],
}

/// A micro-batch on a virtual stage, before overlap.
#[derive(Debug, Clone, PartialEq)]
pub struct StageWork {
    pub layers: Vec<(LayerWork, u64)>,
    /// Its traffic and work beside the layers.
    pub traffic: StageTraffic,
}

/// Traffic and work of a virtual stage for a micro-batch, beside its layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTraffic {
    /// Gather of the weights and reduction of the gradients of one layer.
    pub unit: [Seconds; 2],
    /// Layers.
    pub units: u64,
    /// To the host's memory: activations, each way, and gradients.
    pub offload: [Seconds; 2],
    /// The embedding and the output layer, if it has them; nothing of their traffic is hidden.
    pub ends: [Option<Pass>; 2],
    /// Host time outside of the layers for one micro-batch, if the device is alone in its pipeline.
    pub outside: Seconds,
}

impl<'a> Run<'a> {
    /// Memory of a rank.
    pub fn held(&self) -> MemoryInputs<'a> {
        MemoryInputs {
            compiled: self.fused && self.plan.implemented_by().is_eager(),
            ..MemoryInputs::new(self.shape, self.plan, &self.division)
        }
    }

    /// The step. An error only if a schedule waits for itself, which none does.
    pub fn step(&self) -> Result<Step, Deadlock> {
        self.step_of(&self.places())
    }

    /// The step, given a micro-batch on every virtual stage.
    pub fn step_of(&self, places: &[Pass]) -> Result<Step, Deadlock> {
        let split = self.split();
        let (p, m) = (split.pipeline as usize, self.division.micro_batches as f64);
        // The host of a device that is alone in its pipeline runs ahead, over the ends of passes and steps.
        let mut host = Seconds::ZERO;
        let mut places = places.to_vec();
        if p == 1 {
            host = places.iter().flat_map(|pass| pass.each(|spent| spent.host)).sum::<Seconds>() * m
                + self.compute.outside();
            places.iter_mut().for_each(|pass| *pass = pass.without_host());
        }
        let (send, blocking) = self.send();
        let held = self.held();
        let owned = self.owned_places();
        let works: Vec<TailWork> = (0..p as u64).map(|stage| self.tail_work(&held, stage)).collect();
        let ends = self.ends(&places, &owned, &works, send)?;
        let overlaps = self.overlaps();
        let mut reduced = Vec::with_capacity(p);
        let mut stages: Vec<StageStep> = Vec::with_capacity(p);
        for (stage, own) in owned.iter().enumerate() {
            let pass = own.iter().fold(Pass::default(), |sum, own| sum.plus(&places[own.place], 1.0));
            let layers = held.layers(stage as u64);
            let count = own.iter().map(|own| own.sends).sum::<u32>();
            let mut last: Vec<EndPass> = own.iter().map(|own| self.last_pass(own, &places, &ends)).collect();
            last.sort_by(|a, b| a.start.total_cmp(&b.start));
            let all = layers.count();
            reduced.push(works[stage].reduced(&overlaps, all, ends.stages[stage], &last));
            stages.push(StageStep {
                layers,
                pass,
                sends: if blocking { send * f64::from(count) } else { Seconds::ZERO },
                waited: Seconds::new(ends.waited[stage]),
                end: Seconds::new(ends.stages[stage]),
                tail: works[stage].after(&overlaps, all, last.iter().map(|pass| pass.time).sum()),
            });
        }
        tail::tie(&mut reduced, [&works[0], &works[p - 1]]);
        let mut least = host;
        for (stage, own) in owned.iter().enumerate() {
            stages[stage].tail.gradients = Seconds::new(reduced[stage]) - stages[stage].end;
            let sends = send * f64::from(own.iter().map(|own| own.sends).sum::<u32>());
            least = least.max(self.occupied(&stages[stage].pass, sends, &works[stage]));
        }
        let last = stages.iter().map(|stage| stage.end).fold(Seconds::ZERO, Seconds::max);
        let busy = |stage: &StageStep| stage.busy() * m + stage.waited;
        let waited: f64 = stages.iter().map(|stage| (last - busy(stage)).get()).sum();
        let end = |stage: &StageStep| stage.end + stage.tail.total();
        let (slowest, device) =
            stages.iter().map(end).enumerate().fold((0, Seconds::ZERO), |most, (index, end)| {
                if end > most.1 { (index, end) } else { most }
            });
        Ok(Step {
            time: device.max(least),
            slowest,
            bubble: (waited / (p as f64 * last.get())).max(0.0),
            host: (host - device).max(Seconds::ZERO),
            stages,
        })
    }

    /// A micro-batch on every virtual stage.
    pub fn places(&self) -> Vec<Pass> {
        let kinds: Vec<(Self, LayerPasses)> =
            self.by_kind_of_stage().into_iter().map(|run| (run, run.layer_passes())).collect();
        let stages = self.plan.pipeline;
        let stage_of = |place: u64| schedules::stage_of(self.plan.schedule_kind(), stages, place);
        let on_its_kind = |(place, own, again): (u64, Range<u64>, u64)| {
            let (run, layers) = &kinds[self.kind_of_stage(stages, stage_of(place))];
            run.place(layers, place, own, again)
        };
        self.virtual_stages().map(on_its_kind).collect()
    }

    pub(super) fn layer_passes(&self) -> LayerPasses {
        let shape = self.shape;
        let halves = self.plan.recomputation().halves();
        LayerPasses {
            passes: halves.map(|what| kinds::each(shape, |kind| self.layer(kind, what))),
            offloaded: halves.map(|what| kinds::each(shape, |kind| self.offloaded_activations(kind, what))),
            parameters: kinds::each(shape, |kind| self.layer_shard(kind)),
        }
    }

    /// A micro-batch on the virtual stage at `place`, which has the layers `own`, the first `again` of them recomputed.
    pub(super) fn place(&self, layers: &LayerPasses, place: u64, own: Range<u64>, again: u64) -> Pass {
        let mut pass = self.pass_over(layers, &own, again);
        let traffic = self.stage_traffic(layers, place, own, again);
        let StageTraffic { offload, ends, .. } = traffic;
        let split = schedules::is_split(self.plan.schedule_kind());
        let (shared, ahead) = (self.plan.shares_links(), self.overlaps().prefetch);
        let level = self.sharding_seats().level();
        let units = self.units(&traffic);
        let [forward, backward] = self.lost_to_units(&units, &pass);
        // Hidden traffic costs computing time, which counts as waiting for it.
        pass.forward.sharded += forward;
        pass.backward.sharded += backward;
        // Traffic on the same link does not hide it.
        let cover = pass.each(|spent| match shared {
            true => spent.on_device() - spent.busy[level],
            false => spent.on_device(),
        });
        let sent = units.exposed(cover).into_iter().zip(units.busy());
        for (spent, (exposed, busy)) in pass.each_mut().into_iter().zip(sent) {
            spent.sharded += exposed;
            spent.busy[level] += busy;
        }
        let exposed = offload::exposed(offload, pass.each(Spent::on_device), split, ahead);
        for (spent, exposed) in pass.each_mut().into_iter().zip(exposed) {
            spent.offload += exposed;
        }
        for end in ends.iter().flatten() {
            pass = pass.plus(end, 1.0);
        }
        pass
    }

    /// A micro-batch on layers, without the sends of their virtual stage.
    fn pass_over(&self, layers: &LayerPasses, own: &Range<u64>, again: u64) -> Pass {
        let mut pass = Pass::default();
        for (half, counts) in self.kinds_of(own, again).into_iter().enumerate() {
            for (kind, count) in counts.into_iter().enumerate() {
                pass = pass.plus(&layers.passes[half][kind], count as f64);
            }
        }
        pass
    }

    fn units(&self, traffic: &StageTraffic) -> Units {
        let split = schedules::is_split(self.plan.schedule_kind());
        Units { sent: traffic.unit, count: traffic.units, ahead: self.overlaps().prefetch, split }
    }

    /// Loss of a forward and a backward pass over layers to the traffic of their weights and gradients.
    fn lost_to_units(&self, units: &Units, pass: &Pass) -> [Seconds; 2] {
        units.slows(self.interference, [pass.forward, pass.backward].map(|spent| spent.on_device()))
    }

    /// Layers by kind: those that recompute something, and the others.
    fn kinds_of(&self, own: &Range<u64>, again: u64) -> [[u64; kinds::COUNT]; 2] {
        let first = own.start + again;
        [own.start..first, first..own.end].map(|range| kinds::count(self.shape, &range))
    }

    /// Traffic and work of a virtual stage for a micro-batch, beside its layers.
    fn stage_traffic(&self, layers: &LayerPasses, place: u64, own: Range<u64>, again: u64) -> StageTraffic {
        let count = self.plan.pipeline * self.plan.virtual_stages;
        let (first, last) = (place == 0, place + 1 == count);
        let mut activations = Seconds::ZERO;
        let mut parameters = [self.held().trained_ends(first, last), 0];
        let mut sharded = [0; 2];
        for (half, counts) in self.kinds_of(&own, again).into_iter().enumerate() {
            for (kind, count) in counts.into_iter().enumerate() {
                activations += layers.offloaded[half][kind] * count as f64;
                let LayerShard { all, trained: [dense, expert] } = layers.parameters[kind];
                parameters = [parameters[0] + dense * count, parameters[1] + expert * count];
                sharded = [sharded[0] + all * count, sharded[1] + (dense + expert) * count];
            }
        }
        let units = own.end - own.start;
        let mut ends = [first.then(|| self.embedding()), last.then(|| self.head())];
        if let Some(end) = ends.iter_mut().flatten().next() {
            let [gather, reduce] = self.root(first, last);
            let level = self.sharding_seats().level();
            let split = schedules::is_split(self.plan.schedule_kind());
            let behind = if split { &mut end.weight } else { &mut end.backward };
            for (spent, time) in [(&mut end.forward, gather), (behind, reduce)] {
                spent.sharded += time;
                spent.busy[level] += time;
            }
        }
        StageTraffic {
            unit: self.sharded_layer(units, sharded),
            units,
            offload: [activations, self.offloaded_gradients(parameters)],
            ends,
            outside: match count {
                1 => self.compute.outside() / self.division.micro_batches as f64,
                _ => Seconds::ZERO,
            },
        }
    }

    /// All virtual stages, before overlap.
    pub fn stage_works(&self) -> Vec<StageWork> {
        let halves = self.plan.recomputation().halves();
        let works = halves.map(|what| kinds::each(self.shape, |kind| self.layer_work(kind, what)));
        let layers = self.layer_passes();
        let work = |(place, own, again): (u64, Range<u64>, u64)| {
            let counts = self.kinds_of(&own, again);
            let all = works.iter().flatten().zip(counts.into_iter().flatten());
            let pass = self.pass_over(&layers, &own, again);
            let traffic = self.stage_traffic(&layers, place, own, again);
            let units = self.units(&traffic);
            let [forward, backward] = self.lost_to_units(&units, &pass).map(|lost| lost / units.count as f64);
            let slowed = |work: &LayerWork| {
                let mut slowed = *work;
                slowed.computed.forward.device += forward;
                slowed.again += backward;
                slowed
            };
            StageWork {
                layers: all
                    .filter(|(_, count)| *count > 0)
                    .map(|(work, count)| (slowed(work), count))
                    .collect(),
                traffic,
            }
        };
        self.virtual_stages().map(work).collect()
    }

    /// Number, layers and recomputed layers of every virtual stage.
    fn virtual_stages(&self) -> impl Iterator<Item = (u64, Range<u64>, u64)> {
        let recompute = self.plan.recomputation();
        (0..).zip(self.plan.stage_ranges(self.shape.layers)).map(move |(place, own)| {
            let again = recompute.among_at(place, own.end - own.start, self.plan.given_recompute());
            (place, own, again)
        })
    }

    fn boundary(&self) -> traffic::Boundary {
        let split = self.split();
        let states = traffic::hidden_states(self.shape, &split, self.plan.micro_batch);
        traffic::boundary(states, &split, split.tensor > 1)
    }

    /// Time of one send between stages, and whether the sender waits for it.
    pub fn send(&self) -> (Seconds, bool) {
        let split = self.split();
        if split.pipeline == 1 {
            return (Seconds::ZERO, false);
        }
        let boundary = self.boundary();
        let message = |collective, ranks, bytes| Message {
            phase: traffic::Phase::Forward,
            collective,
            ranks,
            count: 1,
            bytes,
        };
        let mut time = self
            .time(&message(Collective::Send, split.pipeline, boundary.bytes), self.seats(Group::Pipeline));
        if boundary.gathered > 0 {
            let whole = boundary.bytes * split.tensor;
            let gather = message(Collective::AllGather, split.tensor, whole);
            time += self.time(&gather, self.seats(Group::Tensor));
        }
        (time, self.plan.stage_sends() == Sends::Blocking)
    }
}
