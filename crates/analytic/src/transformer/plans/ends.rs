//! When every stage ends, by recurrences over stages in place of a graph of operations.
//!
//! In one step u of 1F1B and of interleaved schedules, stage s does forward u−s and backward u−(ahead+s) of its list,
//! `ahead` being the forwards before its first backward. All that these wait for was then computed in step u−1, or
//! earlier in step u: a few numbers for each stage are the whole state. In between the first and the last micro-batches
//! a step depends on the one before in the same way every p·v steps; times only shift. Once a state is an earlier one
//! shifted by a constant, all further ones are (a max-plus linear system that has reached its period; Baccelli 1992,
//! theorem 3.109), and the micro-batches that are left are skipped.

use crate::transformer::schedules::{self, Sends, Sizes, Times, is_split};
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

/// Differences of a shift that are rounding.
const ROUNDING: f64 = 1e-14;

/// Durations of a micro-batch on every virtual stage, and what joins them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pipeline<'a> {
    pub(super) kind: ScheduleKind,
    pub(super) stages: usize,
    pub(super) chunks: usize,
    pub(super) micro_batches: usize,
    pub(super) forward: &'a [f64],
    pub(super) backward: &'a [f64],
    pub(super) weight: &'a [f64],
    pub(super) send: f64,
    pub(super) sends: Sends,
    /// What the host takes after every operation.
    pub(super) issue: f64,
}

/// Memory of the recurrences, kept between plans.
#[derive(Debug, Clone, Default)]
pub(super) struct Scratch {
    free: Vec<f64>,
    forward: Vec<f64>,
    backward: Vec<f64>,
    kept: Vec<f64>,
    ring: Vec<f64>,
    at: Vec<[usize; 3]>,
    first: Vec<[usize; 2]>,
    /// End of every stage.
    pub(super) ends: Vec<f64>,
}

fn reset<T: Clone>(list: &mut Vec<T>, length: usize, value: T) {
    list.clear();
    list.resize(length, value);
}

impl Scratch {
    fn clear(&mut self, stages: usize) {
        for list in [&mut self.free, &mut self.forward, &mut self.backward, &mut self.ends] {
            reset(list, stages, 0.0);
        }
        self.kept.clear();
    }

    /// Keeps the state.
    fn keep(&mut self) {
        self.kept.clear();
        for list in [&self.free, &self.forward, &self.backward] {
            self.kept.extend_from_slice(list);
        }
    }

    /// The constant by which the state is the kept one shifted.
    fn shift(&self) -> Option<f64> {
        let by = self.free.first()? - self.kept.first()?;
        let now = self.free.iter().chain(&self.forward).chain(&self.backward);
        let same = |(now, kept): (&f64, &f64)| (now - kept - by).abs() <= ROUNDING * now.abs();
        now.zip(&self.kept).all(same).then_some(by)
    }

    fn shift_by(&mut self, by: f64) {
        for list in [&mut self.free, &mut self.forward, &mut self.backward] {
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
    /// Where the kept state is from.
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
    /// Writes the end of every stage to `scratch.ends`; nothing if a schedule waits for itself, which none does.
    pub(super) fn ends(&self, scratch: &mut Scratch) -> Option<()> {
        let (p, m) = (self.stages, self.micro_batches);
        scratch.clear(p);
        if p == 1 {
            let sum: f64 = self.forward.iter().chain(self.backward).chain(self.weight).sum();
            scratch.ends[0] = sum * m as f64;
            return Some(());
        }
        let sizes = self.sizes();
        if !schedules::is_long(&sizes) {
            return self.worked_off(scratch);
        }
        let ends = schedules::ends_of_any(&sizes, |m| {
            let some = Self { micro_batches: m as usize, ..*self };
            some.worked_off(scratch).map(|()| scratch.ends.clone()).ok_or(())
        });
        scratch.ends = ends.ok()?;
        Some(())
    }

    /// The same, with every micro-batch worked off, or skipped once the schedule repeats itself.
    fn worked_off(&self, scratch: &mut Scratch) -> Option<()> {
        let (p, m) = (self.stages, self.micro_batches);
        scratch.clear(p);
        // Recurrences know neither receives that are posted late nor a slow host.
        if matches!(self.sends, Sends::OnDemand | Sends::Planned) || self.issue > 0.0 {
            return self.executed(scratch);
        }
        match self.kind {
            ScheduleKind::Gpipe => self.gpipe(scratch),
            ScheduleKind::OneFOneB | ScheduleKind::ZbH1 => self.one_f_one_b(scratch),
            ScheduleKind::Interleaved | ScheduleKind::InterleavedZeroBubble if m.is_multiple_of(p) => {
                self.interleaved(scratch);
            }
            ScheduleKind::LoopedBfs => self.looped(scratch),
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

    /// What a sender is busy with after an operation.
    fn blocked(&self) -> f64 {
        if self.sends == Sends::Blocking { self.send } else { 0.0 }
    }

    /// A flow shop of equal jobs, there and back: the last job leaves a stage after the sum of all stages up to it and
    /// m−1 times the longest of them. A blocking send is part of its stage.
    fn gpipe(&self, scratch: &mut Scratch) {
        let (p, more) = (self.stages, (self.micro_batches - 1) as f64);
        let busy = self.blocked();
        let hop = self.send - busy;
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for (stage, &time) in self.forward.iter().enumerate() {
            let last = stage + 1 == p;
            let time = if last { time } else { time + busy };
            sum += time + if last { 0.0 } else { hop };
            most = most.max(time);
        }
        let forward = sum + more * most;
        (sum, most) = (0.0, 0.0);
        for stage in (0..p).rev() {
            let sends = if stage == 0 { 0.0 } else { busy };
            let time = self.backward[stage] + sends;
            sum += time;
            most = most.max(time);
            scratch.ends[stage] = forward + sum + more * most - sends;
            sum += hop;
        }
    }

    /// 1F1B, and ZB-H1, in which stage s computes gradients of weights from step p−1+s on.
    fn one_f_one_b(&self, scratch: &mut Scratch) {
        let (p, m) = (self.stages, self.micro_batches);
        let (send, blocked, split) = (self.send, self.blocked(), is_split(self.kind));
        let steady = if split { 2 * (p - 1) } else { p - 1 };
        let mut period = Period::new(steady, m - 1, 1);
        let mut step = 0;
        while step < m + p - 1 {
            let (lowest, highest) = ((step + 1).saturating_sub(m), step.min(p - 1));
            for stage in (lowest..=highest).rev() {
                let arrival = if stage == 0 { 0.0 } else { scratch.forward[stage - 1] + send };
                let end = arrival.max(scratch.free[stage]) + self.forward[stage];
                scratch.forward[stage] = end;
                scratch.free[stage] = if stage + 1 < p { end + blocked } else { end };
            }
            if step + 1 >= p {
                let mut arrival = 0.0;
                for stage in (0..p).rev() {
                    let end = scratch.free[stage].max(arrival) + self.backward[stage];
                    arrival = end + send;
                    scratch.backward[stage] = end;
                    scratch.ends[stage] = end;
                    scratch.free[stage] = if stage > 0 { end + blocked } else { end };
                    if split && step + 1 - p >= stage {
                        scratch.free[stage] += self.weight[stage];
                        scratch.ends[stage] = scratch.free[stage];
                    }
                }
            }
            step += 1 + period.skipped(step, scratch);
        }
        if split {
            for stage in 1..p {
                let left = stage.min(m) as f64;
                scratch.ends[stage] = scratch.free[stage] + left * self.weight[stage];
            }
        }
    }

    /// Interleaved 1F1B over whole groups of p micro-batches, with a split backward or without. The n-th forward of the
    /// first stage waits for the (n−p)-th of the last one, and the n-th backward of the last stage for the (n−p)-th of
    /// the first.
    fn interleaved(&self, scratch: &mut Scratch) {
        let (p, v) = (self.stages, self.chunks);
        let (all, pattern) = (self.micro_batches * v, p * v);
        let (send, blocked, split) = (self.send, self.blocked(), is_split(self.kind));
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
                    0 => around + send,
                    _ => scratch.forward[stage - 1] + send,
                };
                let end = arrival.max(scratch.free[stage]) + self.forward[place];
                scratch.forward[stage] = end;
                scratch.free[stage] = if place + 1 < pattern { end + blocked } else { end };
            }
            let around = scratch.backward[0];
            // Stage s begins in step ahead−s.
            let (lowest, highest) = (ahead.saturating_sub(step), (all + ahead - 1 - step).min(p - 1));
            for stage in lowest..=highest {
                let position = next(&mut scratch.at[stage][1]);
                let place = scratch.first[position][1] + stage;
                let arrival = match stage + 1 == p {
                    true if position < p => 0.0,
                    true => around + send,
                    false => scratch.backward[stage + 1] + send,
                };
                let end = arrival.max(scratch.free[stage]) + self.backward[place];
                scratch.backward[stage] = end;
                scratch.ends[stage] = end;
                scratch.free[stage] = if place > 0 { end + blocked } else { end };
                if split && step + stage - ahead >= stage {
                    self.weigh(stage, next(&mut scratch.at[stage][2]), scratch);
                }
            }
            step += 1 + period.skipped(step, scratch);
        }
        if split {
            for stage in 1..p {
                for _ in 0..stage.min(all) {
                    self.weigh(stage, next(&mut scratch.at[stage][2]), scratch);
                }
            }
        }
    }

    /// The gradients of weights at a position of their pattern.
    fn weigh(&self, stage: usize, position: usize, scratch: &mut Scratch) {
        scratch.free[stage] += self.weight[scratch.first[position][1] + stage];
        scratch.ends[stage] = scratch.free[stage];
    }

    /// All forwards chunk by chunk, then all backwards in reverse.
    fn looped(&self, scratch: &mut Scratch) {
        let (p, v, m) = (self.stages, self.chunks, self.micro_batches);
        let (send, blocked) = (self.send, self.blocked());
        reset(&mut scratch.ring, m, 0.0);
        for chunk in 0..v {
            for micro_batch in 0..m {
                let mut arrival = if chunk == 0 { 0.0 } else { scratch.ring[micro_batch] };
                for stage in 0..p {
                    let place = chunk * p + stage;
                    let end = arrival.max(scratch.free[stage]) + self.forward[place];
                    scratch.free[stage] = if place + 1 < p * v { end + blocked } else { end };
                    arrival = end + send;
                }
                scratch.ring[micro_batch] = arrival;
            }
        }
        for chunk in (0..v).rev() {
            for micro_batch in (0..m).rev() {
                let mut arrival = if chunk + 1 == v { 0.0 } else { scratch.ring[micro_batch] };
                for stage in (0..p).rev() {
                    let place = chunk * p + stage;
                    let end = arrival.max(scratch.free[stage]) + self.backward[place];
                    scratch.free[stage] = if place > 0 { end + blocked } else { end };
                    scratch.ends[stage] = end;
                    arrival = end + send;
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
        let times = Times {
            issue: Seconds::new(self.issue),
            send: Seconds::new(self.send),
            sends: self.sends,
            ..Times::new(&forward, &backward, &weight)
        };
        let orders = schedules::orders(self.kind, &sizes);
        let timeline = schedules::execute(self.kind, &sizes, &orders, &times).ok()?;
        scratch.ends.iter_mut().zip(timeline.last_end).for_each(|(end, last)| *end = last.get());
        Some(())
    }
}
