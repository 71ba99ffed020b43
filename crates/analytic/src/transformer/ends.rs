//! When the passes of all stages end, and how long links are occupied meanwhile.

use super::placement::Group;
use super::schedules::{self, Deadlock, Sizes, Times};
use super::spent::{Pass, Spent};
use super::stages::Run;
use super::tail::{EndPass, TailWork};
use stepcast_core::quantity::Seconds;

/// A virtual stage of a stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnPlace {
    pub(super) place: usize,
    pub(super) layers: u64,
    /// Share of the stage's layers.
    pub(super) share: f64,
    /// Sends to other stages for one micro-batch.
    pub(super) sends: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Ends {
    /// By stage: the end of its last pass.
    pub(super) stages: Vec<f64>,
    /// By virtual stage: the start of its last pass that computes gradients of weights.
    pub(super) last: Vec<f64>,
    /// By stage: how long its first forward passes wait for weights.
    pub(super) waited: Vec<f64>,
}

/// Levels of the network that kinds of traffic load ([`Seats::level`](super::placement::Seats::level)).
#[derive(Debug, Clone, Copy)]
pub(super) struct Levels {
    /// Whether kinds of traffic share links.
    pub(super) shared: bool,
    /// Level of sends between stages.
    pub(super) sends: usize,
    /// Level of gradients and weights, sent once in a step.
    pub(super) data: usize,
}

impl Levels {
    /// How long the busiest link of a stage is occupied in a step whose passes keep each level `busy`.
    pub(super) fn occupied(&self, busy: [Seconds; 2], sends: Seconds, once: &TailWork) -> Seconds {
        if !self.shared {
            return sends;
        }
        let mut busy = busy;
        busy[self.sends] += sends;
        busy[self.data] += once.gradients + once.weights;
        busy[0].max(busy[1])
    }
}

impl Run<'_> {
    pub(super) fn ends(
        &self,
        places: &[Pass],
        owned: &[Vec<OwnPlace>],
        works: &[TailWork],
        send: Seconds,
    ) -> Result<Ends, Deadlock> {
        let (split, m) = (self.split(), self.division.micro_batches);
        let of = |which: fn(&Pass) -> &Spent, time: &dyn Fn(&Spent) -> Seconds| {
            places.iter().map(|pass| time(which(pass))).collect::<Vec<_>>()
        };
        let passes: [fn(&Pass) -> &Spent; 3] =
            [|pass| &pass.forward, |pass| &pass.backward, |pass| &pass.weight];
        let [forward, backward, weight] = passes.map(|which| of(which, &Spent::total));
        let mut weights = vec![Seconds::ZERO; places.len()];
        for (own, work) in owned.iter().zip(works) {
            let first = own.iter().map(|own| self.end_pass(own, &places[own.place].forward, 0.0));
            let layers = own.iter().map(|own| own.layers).sum();
            for (own, arrived) in own.iter().zip(work.arrivals(&self.overlaps(), layers, first)) {
                weights[own.place] = Seconds::new(arrived);
            }
        }
        let kind = self.plan.schedule_kind();
        if split.pipeline == 1 {
            let waited = (weights[0] - forward[0]).max(Seconds::ZERO).get();
            let end = waited + (forward[0] + backward[0] + weight[0]).get() * m as f64;
            let last = if schedules::is_split(kind) { weight[0] } else { backward[0] };
            return Ok(Ends { stages: vec![end], last: vec![end - last.get()], waited: vec![waited] });
        }
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let sizes = Sizes {
            stages: narrow(split.pipeline),
            micro_batches: narrow(m),
            chunks: narrow(split.chunks),
            group: None,
        };
        let Levels { shared, sends: level, .. } = self.levels();
        let busy = passes.map(|which| match shared {
            true => of(which, &|spent| spent.busy[level]),
            false => Vec::new(),
        });
        let times = Times {
            issue: self.plan.issue_time,
            send,
            sends: self.plan.stage_sends(),
            busy: busy.each_ref().map(Vec::as_slice),
            weights: &weights,
            ..Times::new(&forward, &backward, &weight)
        };
        let all = schedules::ends_of_any(&sizes, |micro_batches| {
            let sizes = Sizes { micro_batches, ..sizes };
            let timeline = schedules::execute(kind, &sizes, &schedules::orders(kind, &sizes), &times)?;
            let all = [timeline.last_end, timeline.last_start, timeline.waited].concat();
            Ok(all.into_iter().map(Seconds::get).collect())
        })?;
        let (stages, rest) = all.split_at(split.pipeline as usize);
        let (last, waited) = rest.split_at(places.len());
        Ok(Ends { stages: stages.to_vec(), last: last.to_vec(), waited: waited.to_vec() })
    }

    /// How long a step keeps the busiest link of a stage occupied: no step is shorter.
    pub(super) fn occupied(&self, pass: &Pass, sends: Seconds, once: &TailWork) -> Seconds {
        let m = self.division.micro_batches as f64;
        let [forward, backward, weight] = pass.each(|spent| spent.busy);
        let busy = [0, 1].map(|level| forward[level] + backward[level] + weight[level]);
        self.levels().occupied(busy.map(|time| time * m), sends * m, once)
    }

    /// Which kind of traffic loads which level of the network.
    pub(super) fn levels(&self) -> Levels {
        Levels {
            shared: self.plan.shares_links(),
            sends: self.seats(Group::Pipeline).level(),
            data: self.seats(Group::DataContext).level(),
        }
    }

    /// The last pass of a virtual stage that computes gradients.
    pub(super) fn last_pass(&self, own: &OwnPlace, places: &[Pass], ends: &Ends) -> EndPass {
        self.end_pass(own, self.last_of(&places[own.place]), ends.last[own.place])
    }

    /// How long the last passes of every stage's virtual stages take in all.
    pub fn last_passes(&self) -> Vec<f64> {
        let places = self.places();
        let time = |own: &OwnPlace| {
            let pass = match self.plan.pipeline {
                1 => places[own.place].without_host(),
                _ => places[own.place],
            };
            self.last_of(&pass).total().get()
        };
        self.owned_places().iter().map(|own| own.iter().map(time).sum()).collect()
    }

    /// The pass that ends with gradients of weights.
    fn last_of<'p>(&self, pass: &'p Pass) -> &'p Spent {
        if schedules::is_split(self.plan.schedule_kind()) { &pass.weight } else { &pass.backward }
    }

    fn end_pass(&self, own: &OwnPlace, spent: &Spent, start: f64) -> EndPass {
        let Levels { shared, data, .. } = self.levels();
        let busy = if shared { spent.busy[data].get() } else { 0.0 };
        EndPass { start, time: spent.total().get(), share: own.share, busy }
    }

    /// The virtual stages of every stage, in order.
    pub(super) fn owned_places(&self) -> Vec<Vec<OwnPlace>> {
        let (split, kind) = (self.split(), self.plan.schedule_kind());
        let count = split.pipeline * split.chunks;
        let stage_of = |place: u64| schedules::stage_of(kind, split.pipeline, place);
        let mut owned = vec![Vec::new(); split.pipeline as usize];
        for (place, range) in (0..).zip(self.plan.stage_ranges(self.shape.layers)) {
            let stage = stage_of(place);
            let leaves = |other: u64| u32::from(other < count && stage_of(other) != stage);
            owned[stage as usize].push(OwnPlace {
                place: place as usize,
                layers: range.end - range.start,
                share: 0.0,
                sends: leaves(place + 1) + leaves(place.wrapping_sub(1)),
            });
        }
        for own in &mut owned {
            let all: u64 = own.iter().map(|own| own.layers).sum();
            own.iter_mut().for_each(|own| own.share = own.layers as f64 / all as f64);
        }
        owned
    }
}
