//! Pipeline jobs: replayed, from their own stage times, and from profiles.

use super::data::{Data, PipelineJob, Span, median};
use super::profile::LayerTimes;
use crate::judged::Judged;
use std::collections::BTreeMap;
use stepcast_analytic::transformer::schedules::{
    self, Operation, Order, PassKind, Sends, Sizes, Times, execute, stage_of,
};
use stepcast_analytic::transformer::traffic::Collective;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_core::strategy::ScheduleKind;

pub(super) fn figures(data: &Data) -> Result<Vec<Judged>, Fault> {
    let mut figures = Vec::new();
    let issue = issue(data);
    for job in &data.pipelines {
        let run = Run::of(data, job, issue)?;
        let name = format!(
            "{} {} p {} v {} m {} b {} d {} at {}",
            job.job.model, job.schedule, job.p, job.v, job.m, job.job.b, job.dp, job.job.place.rate
        );
        let mut push = |family: &str, predicted: f64| {
            figures.push(Judged::new(family, &name, predicted, job.job.measured()));
        };
        if job.dp == 1 {
            push("pipeline, replayed", run.replayed()?);
            push("pipeline, from its stage times", run.by_stage_times()?);
            push("pipeline, from a profile", run.by_profile(data)?);
        } else {
            push("pipeline x data, from a profile", run.by_profile(data)?);
        }
    }
    Ok(figures)
}

struct Run<'a> {
    job: &'a PipelineJob,
    kind: ScheduleKind,
    sizes: Sizes,
    orders: Vec<Order>,
    send: Seconds,
    sends: Sends,
    issue: f64,
}

impl<'a> Run<'a> {
    fn of(data: &Data, job: &'a PipelineJob, issue: f64) -> Result<Self, Fault> {
        let (kind, sends) = match job.schedule.as_str() {
            "gpipe" => (ScheduleKind::Gpipe, Sends::OnDemand),
            "f1b" => (ScheduleKind::OneFOneB, Sends::OnDemand),
            "interleaved" => (ScheduleKind::Interleaved, Sends::Planned),
            "looped_bfs" => (ScheduleKind::LoopedBfs, Sends::Planned),
            "izb" => (ScheduleKind::InterleavedZeroBubble, Sends::Planned),
            "zbv" => (ScheduleKind::Zbv, Sends::Planned),
            other => {
                let remedy = "use gpipe, f1b, interleaved, looped_bfs, izb or zbv";
                return Err(Fault::new(format!("there is no schedule \"{other}\""), remedy));
            }
        };
        let sizes = Sizes { stages: job.p, micro_batches: job.m, chunks: job.v, group: None };
        let send = data.time(&job.job.place, Collective::Send, 2, job.act_bytes, 2)?;
        Ok(Self { job, kind, sizes, orders: schedules::orders(kind, &sizes), send, sends, issue })
    }

    fn place(&self, stage: usize, operation: &Operation) -> u32 {
        match self.kind.is_folded() && operation.chunk == 1 {
            true => 2 * self.job.p - 1 - stage as u32,
            false => operation.chunk * self.job.p + stage as u32,
        }
    }

    fn last(&self) -> u32 {
        self.job.p * self.job.v - 1
    }

    /// Executes the schedule with a duration for every operation; when each stage ends.
    fn ends(&self, duration: impl Fn(u32, &Operation) -> f64) -> Result<Vec<f64>, Fault> {
        let of = |(stage, order): (usize, &Order)| -> Vec<Seconds> {
            order.iter().map(|op| Seconds::new(duration(self.place(stage, op), op))).collect()
        };
        let each: Vec<Vec<Seconds>> = self.orders.iter().enumerate().map(of).collect();
        let times = Times {
            each: &each,
            issue: Seconds::new(self.issue),
            send: self.send,
            sends: self.sends,
            ..Times::new(&[], &[], &[])
        };
        let timeline = execute(self.kind, &self.sizes, &self.orders, &times).map_err(|stuck| {
            Fault::new(format!("stage {} waits for itself", stuck.stage), "use another schedule")
        })?;
        Ok(timeline.last_end.iter().map(|end| end.get()).collect())
    }

    fn letter(&self, kind: PassKind) -> &'static str {
        match kind {
            PassKind::Forward => "F",
            PassKind::Backward if schedules::is_split(self.kind) => "I",
            PassKind::Backward => "B",
            PassKind::Weight => "W",
        }
    }

    /// The loss, which the recording has between a forward of the last virtual stage and what follows it: the smallest
    /// gap, less what the host takes.
    fn loss(&self) -> f64 {
        let stage = stage_of(self.kind, self.job.p.into(), self.last().into()) as u32;
        let mut spans: Vec<&Span> = self.job.timeline.iter().filter(|span| span.0 == stage).collect();
        spans.sort_by(|a, b| a.4.total_cmp(&b.4));
        let gaps = spans.windows(2).filter(|pair| pair[0].1 == self.last() && pair[0].2 == "F");
        let least = gaps.map(|pair| pair[1].4 - pair[0].5).fold(f64::INFINITY, f64::min);
        if least.is_finite() { (least - self.issue).max(0.0) } else { 0.0 }
    }

    /// Update of the slowest rank, as recorded.
    fn update(&self) -> f64 {
        self.job.job.parts.iter().filter_map(|parts| parts.last()).copied().fold(0.0, f64::max)
    }

    /// From the durations of every operation of the recorded iteration.
    fn replayed(&self) -> Result<f64, Fault> {
        let recorded: BTreeMap<(u32, &str, u32), f64> = self
            .job
            .timeline
            .iter()
            .map(|span| ((span.1, span.2.as_str(), span.3), span.5 - span.4))
            .collect();
        let loss = self.loss();
        let ends = self.ends(|place, operation| {
            let key = (place, self.letter(operation.kind), operation.micro_batch);
            let is_loss = operation.kind == PassKind::Forward && place == self.last();
            recorded.get(&key).copied().unwrap_or(f64::NAN) + if is_loss { loss } else { 0.0 }
        })?;
        Ok(ends.into_iter().fold(0.0, f64::max) + self.update())
    }

    /// From the median of each stage's forwards and backwards.
    fn by_stage_times(&self) -> Result<f64, Fault> {
        let loss = self.loss();
        let ends = self.ends(|place, operation| {
            let name = format!("{place}{}", self.letter(operation.kind));
            let is_loss = operation.kind == PassKind::Forward && place == self.last();
            self.job.ops.get(&name).copied().unwrap_or(f64::NAN) + if is_loss { loss } else { 0.0 }
        })?;
        Ok(ends.into_iter().fold(0.0, f64::max) + self.update())
    }

    /// From layers that were profiled apart; replicas sum their gradients at the end.
    fn by_profile(&self, data: &Data) -> Result<f64, Fault> {
        let mut layers = LayerTimes::of(data, &self.job.job, 1, false)?;
        if schedules::is_split(self.kind) {
            layers = layers.split(data);
        }
        let of = |place: u32, figure: fn(&super::data::Layer) -> f64| {
            let blocks = f64::from(self.job.split.get(place as usize).copied().unwrap_or(0));
            let first = if place == 0 { figure(&layers.embedding) } else { 0.0 };
            let last = if place == self.last() { figure(&layers.head) } else { 0.0 };
            blocks * figure(&layers.block) + first + last
        };
        let split = schedules::is_split(self.kind);
        let ends = self.ends(|place, operation| match operation.kind {
            PassKind::Forward => of(place, |it| it.fwd),
            // The first virtual stage has no gradient of an input: all of its backward pass is that of weights.
            PassKind::Backward if split && place == 0 => 0.0,
            PassKind::Backward => of(place, |it| it.bwd_input),
            PassKind::Weight if place == 0 => of(place, |it| it.bwd_input + it.bwd_weight),
            PassKind::Weight => of(place, |it| it.bwd_weight),
        })?;
        let job = &self.job;
        let active = u64::from(job.p) * job.dp;
        let mut most = 0.0_f64;
        for (stage, end) in ends.into_iter().enumerate() {
            let own = |place: &u32| stage_of(self.kind, job.p.into(), (*place).into()) == stage as u64;
            let update: f64 = (0..=self.last()).filter(own).map(|place| of(place, |it| it.opt)).sum();
            let bytes = job.job.grad_bytes.get(stage).copied().unwrap_or(0.0);
            let reduce = match job.dp {
                1 => Seconds::ZERO,
                ranks => data.time(&job.job.place, Collective::AllReduce, ranks, bytes, active)?,
            };
            most = most.max(end + update + reduce.get());
        }
        Ok(most)
    }
}

/// What the host takes to issue the messages of an operation: the median gap between two forwards of the first stage,
/// which wait for nothing, over all recorded iterations.
fn issue(data: &Data) -> f64 {
    let mut gaps = Vec::new();
    for job in &data.pipelines {
        let mut spans: Vec<&Span> = job.timeline.iter().filter(|span| span.0 == 0).collect();
        spans.sort_by(|a, b| a.4.total_cmp(&b.4));
        let plain = |span: &Span| span.1 == 0 && span.2 == "F";
        let pairs = spans.windows(2).filter(|pair| plain(pair[0]) && plain(pair[1]));
        gaps.extend(pairs.map(|pair| pair[1].4 - pair[0].5));
    }
    if gaps.is_empty() { 0.0 } else { median(&gaps) }
}
