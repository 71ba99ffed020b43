//! When every stage ends, by recurrences over stages in place of a graph of operations.
//!
//! In one step u of 1F1B and of interleaved schedules, stage s does forward u−s and backward u−(ahead+s) of its list,
//! `ahead` being the forwards before its first backward. All their inputs were computed in step u−1, or earlier in
//! step u: a few numbers for each stage are the whole state. Between the first and the last micro-batches the recurrence
//! repeats every p·v steps; times only shift. Once a state equals an earlier one shifted by a constant, all further states
//! do (a max-plus linear system that has reached its period; Baccelli 1992, theorem 3.109), and the remaining
//! micro-batches are skipped.

use crate::transformer::schedules::{self, PassKind, Sends, Sizes, Times, beside_sends, is_split};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

/// Relative difference of shifts that counts as rounding.
const ROUNDING: f64 = 1e-14;

/// Durations of a micro-batch on every virtual stage, and the sends between them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pipeline<'a> {
    pub(super) kind: ScheduleKind,
    pub(super) stages: usize,
    pub(super) chunks: usize,
    pub(super) micro_batches: usize,
    pub(super) forward: &'a [f64],
    pub(super) backward: &'a [f64],
    pub(super) weight: &'a [f64],
    /// How long each pass keeps the link of sends busy; empty if that is for sends alone.
    pub(super) busy: [&'a [f64]; 3],
    /// Earliest end of the first forward of every virtual stage; empty if its weights have arrived.
    pub(super) weights: &'a [f64],
    pub(super) send: f64,
    pub(super) sends: Sends,
    /// Host time after every operation.
    pub(super) issue: f64,
}

/// Memory of the recurrences, kept between plans.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    free: Vec<f64>,
    /// Until when the link of every stage has something to send.
    link: Vec<f64>,
    /// When the last forward and backward of every stage have arrived where they are needed.
    forward: Vec<f64>,
    backward: Vec<f64>,
    kept: Vec<f64>,
    ring: Vec<f64>,
    at: Vec<[usize; 3]>,
    first: Vec<[usize; 2]>,
    pub(super) ends: Vec<f64>,
    /// Start of the last pass of every virtual stage that computes gradients of weights.
    pub(super) last: Vec<f64>,
}

fn reset<T: Clone>(list: &mut Vec<T>, length: usize, value: T) {
    list.clear();
    list.resize(length, value);
}

impl Scratch {
    fn clear(&mut self, stages: usize, places: usize) {
        for list in [&mut self.free, &mut self.link, &mut self.forward, &mut self.backward, &mut self.ends] {
            reset(list, stages, 0.0);
        }
        reset(&mut self.last, places, 0.0);
        self.kept.clear();
    }

    fn keep(&mut self) {
        self.kept.clear();
        for list in [&self.free, &self.link, &self.forward, &self.backward] {
            self.kept.extend_from_slice(list);
        }
    }

    /// Time shift between this state and the kept one, if constant.
    fn shift(&self) -> Option<f64> {
        let by = self.free.first()? - self.kept.first()?;
        let now = self.free.iter().chain(&self.link).chain(&self.forward).chain(&self.backward);
        let same = |(now, kept): (&f64, &f64)| (now - kept - by).abs() <= ROUNDING * now.abs();
        now.zip(&self.kept).all(same).then_some(by)
    }

    fn shift_by(&mut self, by: f64) {
        for list in [&mut self.free, &mut self.link, &mut self.forward, &mut self.backward] {
            list.iter_mut().for_each(|time| *time += by);
        }
    }
}

/// Looks for the period of the steps between `from` and `to` (Brent's algorithm).
struct Period {
    from: usize,
    to: usize,
    /// Steps after which the pattern of operations repeats.
    pattern: usize,
    kept: Option<usize>,
    /// Patterns until another state is kept.
    reach: usize,
    found: bool,
}

impl Period {
    const fn new(from: usize, to: usize, pattern: usize) -> Self {
        Self { from, to, pattern, kept: None, reach: 1, found: false }
    }

    /// After step `at`: how many steps may be left out, the state having been shifted as if they had been made.
    fn skipped(&mut self, at: usize, state: &mut Scratch) -> usize {
        if self.found || at < self.from || at >= self.to || !(at - self.from).is_multiple_of(self.pattern) {
            return 0;
        }
        if let Some(kept) = self.kept {
            let period = at - kept;
            if let Some(by) = state.shift() {
                self.found = true;
                let times = (self.to - at) / period;
                state.shift_by(by * times as f64);
                return times * period;
            }
            if period < self.reach * self.pattern {
                return 0;
            }
            self.reach *= 2;
        }
        state.keep();
        self.kept = Some(at);
        0
    }
}

impl Pipeline<'_> {
    /// Writes the end of every stage to `scratch.ends` and the last starts to `scratch.last`; nothing if a schedule waits
    /// for itself, which none does.
    pub(super) fn ends(&self, scratch: &mut Scratch) -> Option<()> {
        let (p, m) = (self.stages, self.micro_batches);
        if p == 1 {
            scratch.clear(1, 1);
            let [forward, backward, weight] = [self.forward[0], self.backward[0], self.weight[0]];
            let waited = self.weights.first().map_or(0.0, |weights| (weights - forward).max(0.0));
            scratch.ends[0] = waited + (forward + backward + weight) * m as f64;
            scratch.last[0] = scratch.ends[0] - if is_split(self.kind) { weight } else { backward };
            return Some(());
        }
        let sizes = self.sizes();
        if !schedules::is_long(&sizes) {
            return self.simulate_all(scratch);
        }
        let all = schedules::ends_of_any(&sizes, |m| {
            let some = Self { micro_batches: m as usize, ..*self };
            some.simulate_all(scratch).map(|()| [&scratch.ends[..], &scratch.last].concat()).ok_or(())
        });
        let all = all.ok()?;
        scratch.ends = all[..p].to_vec();
        scratch.last = all[p..].to_vec();
        Some(())
    }

    /// Runs every micro-batch, or skips whole periods.
    fn simulate_all(&self, scratch: &mut Scratch) -> Option<()> {
        let (p, m) = (self.stages, self.micro_batches);
        scratch.clear(p, p * self.chunks);
        // Recurrences know neither receives that are posted late nor a slow host.
        if matches!(self.sends, Sends::OnDemand | Sends::Planned) || self.issue > 0.0 {
            return self.executed(scratch);
        }
        match self.kind {
            ScheduleKind::OneFOneB | ScheduleKind::ZbH1 => self.one_f_one_b(scratch),
            ScheduleKind::Interleaved | ScheduleKind::InterleavedZeroBubble if m.is_multiple_of(p) => {
                self.interleaved(scratch);
            }
            ScheduleKind::Gpipe | ScheduleKind::LoopedBfs => self.looped(scratch),
            _ => return self.executed(scratch),
        }
        Some(())
    }

    fn sizes(&self) -> Sizes {
        let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Sizes {
            stages: narrow(self.stages),
            micro_batches: narrow(self.micro_batches),
            chunks: narrow(self.chunks),
            group: None,
        }
    }

    /// Runs a pass of a virtual stage whose input arrives at `arrival`, and returns its start and its end.
    fn pass(
        &self,
        scratch: &mut Scratch,
        stage: usize,
        kind: PassKind,
        place: usize,
        arrival: f64,
    ) -> [f64; 2] {
        let times = [self.forward, self.backward, self.weight];
        let begin = arrival.max(scratch.free[stage]);
        let mut end = begin + times[kind as usize][place];
        if let Some(&busy) = self.busy[kind as usize].get(place) {
            end = beside_sends(&mut scratch.link[stage], begin, end, busy);
        }
        scratch.ends[stage] = end;
        scratch.free[stage] = end;
        [begin, end]
    }

    /// The end of the first forward of a virtual stage, which waits for its weights.
    fn with_weights(&self, scratch: &mut Scratch, stage: usize, place: usize, end: f64) -> f64 {
        let end = self.weights.get(place).map_or(end, |weights| end.max(*weights));
        scratch.free[stage] = end;
        end
    }

    /// Sends what a stage has computed at `end`, and returns when it arrives.
    fn sent(&self, scratch: &mut Scratch, stage: usize, end: f64) -> f64 {
        let arrival = scratch.link[stage].max(end) + self.send;
        scratch.link[stage] = arrival;
        if self.sends == Sends::Blocking {
            scratch.free[stage] = arrival;
        }
        arrival
    }

    /// 1F1B, and ZB-H1, in which stage s computes gradients of weights from step p−1+s on.
    fn one_f_one_b(&self, scratch: &mut Scratch) {
        let (p, m) = (self.stages, self.micro_batches);
        let split = is_split(self.kind);
        let steady = if split { 2 * (p - 1) } else { p - 1 };
        let mut period = Period::new(steady, m - 1, 1);
        let mut step = 0;
        while step < m + p - 1 {
            let (lowest, highest) = ((step + 1).saturating_sub(m), step.min(p - 1));
            for stage in (lowest..=highest).rev() {
                let arrival = if stage == 0 { 0.0 } else { scratch.forward[stage - 1] };
                let [_, mut end] = self.pass(scratch, stage, PassKind::Forward, stage, arrival);
                if step == stage {
                    end = self.with_weights(scratch, stage, stage, end);
                }
                scratch.forward[stage] = if stage + 1 < p { self.sent(scratch, stage, end) } else { end };
            }
            if step + 1 >= p {
                let mut arrival = 0.0;
                for stage in (0..p).rev() {
                    let [begin, end] = self.pass(scratch, stage, PassKind::Backward, stage, arrival);
                    arrival = if stage > 0 { self.sent(scratch, stage, end) } else { end };
                    scratch.backward[stage] = arrival;
                    scratch.last[stage] = begin;
                    if split && step + 1 - p >= stage {
                        self.weigh(stage, stage, scratch);
                    }
                }
            }
            step += 1 + period.skipped(step, scratch);
        }
        if split {
            for stage in 1..p {
                for _ in 0..stage.min(m) {
                    self.weigh(stage, stage, scratch);
                }
            }
        }
    }

    /// Interleaved 1F1B over whole groups of p micro-batches, with a split backward or without. The n-th forward of the
    /// first stage waits for the (n−p)-th of the last one, and the n-th backward of the last stage for the (n−p)-th of
    /// the first.
    fn interleaved(&self, scratch: &mut Scratch) {
        let (p, v) = (self.stages, self.chunks);
        let (all, pattern) = (self.micro_batches * v, p * v);
        let split = is_split(self.kind);
        // Steps before the first backward of stage s: 2(p−1)−s + (v−1)p.
        let ahead = 2 * (p - 1) + (v - 1) * p;
        // First virtual stage of the chunk of the n-th forward and backward of a pattern.
        scratch.first.clear();
        scratch.first.extend((0..pattern).map(|n| [n / p * p, (v - 1 - n / p) * p]));
        // Positions of the next forward, backward and gradient of weights in their patterns.
        reset(&mut scratch.at, p, [0; 3]);
        let next = |at: &mut usize| {
            let now = *at;
            *at = if now + 1 == pattern { 0 } else { now + 1 };
            now
        };
        let mut period = Period::new(ahead, all - 1, pattern);
        let mut step = 0;
        while step < all + ahead {
            let (lowest, highest) = ((step + 1).saturating_sub(all), step.min(p - 1));
            let around = scratch.forward[p - 1];
            for stage in (lowest..=highest).rev() {
                let position = next(&mut scratch.at[stage][0]);
                let place = scratch.first[position][0] + stage;
                let arrival = match stage {
                    0 if position < p => 0.0,
                    0 => around,
                    _ => scratch.forward[stage - 1],
                };
                let [_, mut end] = self.pass(scratch, stage, PassKind::Forward, place, arrival);
                if position.is_multiple_of(p) && step - stage < pattern {
                    end = self.with_weights(scratch, stage, place, end);
                }
                scratch.forward[stage] =
                    if place + 1 < pattern { self.sent(scratch, stage, end) } else { end };
            }
            let around = scratch.backward[0];
            // Stage s begins in step ahead−s.
            let (lowest, highest) = (ahead.saturating_sub(step), (all + ahead - 1 - step).min(p - 1));
            for stage in lowest..=highest {
                let position = next(&mut scratch.at[stage][1]);
                let place = scratch.first[position][1] + stage;
                let arrival = match stage + 1 == p {
                    true if position < p => 0.0,
                    true => around,
                    false => scratch.backward[stage + 1],
                };
                let [begin, end] = self.pass(scratch, stage, PassKind::Backward, place, arrival);
                scratch.backward[stage] = if place > 0 { self.sent(scratch, stage, end) } else { end };
                scratch.last[place] = begin;
                if split && step + stage - ahead >= stage {
                    let position = next(&mut scratch.at[stage][2]);
                    self.weigh(stage, scratch.first[position][1] + stage, scratch);
                }
            }
            step += 1 + period.skipped(step, scratch);
        }
        if split {
            for stage in 1..p {
                for _ in 0..stage.min(all) {
                    let position = next(&mut scratch.at[stage][2]);
                    self.weigh(stage, scratch.first[position][1] + stage, scratch);
                }
            }
        }
    }

    /// The gradients of weights of a virtual stage.
    fn weigh(&self, stage: usize, place: usize, scratch: &mut Scratch) {
        let [begin, _] = self.pass(scratch, stage, PassKind::Weight, place, 0.0);
        scratch.last[place] = begin;
    }

    /// All forwards chunk by chunk, then all backwards: in reverse, or with one chunk in the same order.
    fn looped(&self, scratch: &mut Scratch) {
        let (p, v, m) = (self.stages, self.chunks, self.micro_batches);
        reset(&mut scratch.ring, m, 0.0);
        for chunk in 0..v {
            for micro_batch in 0..m {
                let mut arrival = if chunk == 0 { 0.0 } else { scratch.ring[micro_batch] };
                for stage in 0..p {
                    let place = chunk * p + stage;
                    let [_, mut end] = self.pass(scratch, stage, PassKind::Forward, place, arrival);
                    if micro_batch == 0 {
                        end = self.with_weights(scratch, stage, place, end);
                    }
                    arrival = if place + 1 < p * v { self.sent(scratch, stage, end) } else { end };
                }
                scratch.ring[micro_batch] = arrival;
            }
        }
        let reversed = self.kind == ScheduleKind::LoopedBfs;
        for chunk in (0..v).rev() {
            for index in 0..m {
                let micro_batch = if reversed { m - 1 - index } else { index };
                let mut arrival = if chunk + 1 == v { 0.0 } else { scratch.ring[micro_batch] };
                for stage in (0..p).rev() {
                    let place = chunk * p + stage;
                    let [begin, end] = self.pass(scratch, stage, PassKind::Backward, place, arrival);
                    scratch.last[place] = begin;
                    arrival = if place > 0 { self.sent(scratch, stage, end) } else { end };
                }
                scratch.ring[micro_batch] = arrival;
            }
        }
    }

    /// Any schedule, by running the orders of all stages.
    fn executed(&self, scratch: &mut Scratch) -> Option<()> {
        let seconds = |times: &[f64]| times.iter().map(|&time| Seconds::new(time)).collect::<Vec<_>>();
        let sizes = self.sizes();
        let [forward, backward, weight] = [self.forward, self.backward, self.weight].map(seconds);
        let (busy, weights) = (self.busy.map(seconds), seconds(self.weights));
        let times = Times {
            issue: Seconds::new(self.issue),
            send: Seconds::new(self.send),
            sends: self.sends,
            busy: busy.each_ref().map(Vec::as_slice),
            weights: &weights,
            ..Times::new(&forward, &backward, &weight)
        };
        let orders = schedules::orders(self.kind, &sizes);
        let timeline = schedules::execute(self.kind, &sizes, &orders, &times).ok()?;
        let lists = [(&mut scratch.ends, timeline.last_end), (&mut scratch.last, timeline.last_start)];
        for (to, from) in lists {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = from.get());
        }
        Some(())
    }
}
