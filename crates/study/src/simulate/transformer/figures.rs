//! Breakdown of the time of every stage, from the first replica.

use crate::simulate::measure::Recorder;
use stepcast_core::prediction::{Part, PartKind};
use stepcast_core::quantity::Seconds;
use stepcast_sim::pipeline::{Built, Role, Traffic};
use stepcast_sim::{Observer, StepRecord, Steps};

/// Seconds of one stage, summed over steps.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct StageTimes {
    pub(super) compute: f64,
    pub(super) recompute: f64,
    pub(super) update: f64,
    /// Waiting for the host.
    pub(super) host: f64,
    /// Traffic that the stage waits for outside of its passes.
    after_passes: f64,
    /// By kind: traffic that the stage waits for.
    pub(super) exposed: [f64; Traffic::COUNT],
    /// End of its last pass, from the beginning of the step.
    pub(super) end: f64,
    /// End of all its work.
    pub(super) last: f64,
}

impl StageTimes {
    fn exposed(&self, kind: Traffic) -> f64 {
        self.exposed[kind as usize]
    }

    /// Passes and their waits.
    fn busy(&self) -> f64 {
        self.compute + self.recompute + self.host + self.exposed.iter().sum::<f64>() - self.after_passes
    }

    fn add(&mut self, other: &Self, scale: f64) {
        self.compute += scale * other.compute;
        self.recompute += scale * other.recompute;
        self.update += scale * other.update;
        self.host += scale * other.host;
        self.after_passes += scale * other.after_passes;
        for (to, from) in self.exposed.iter_mut().zip(other.exposed) {
            *to += scale * from;
        }
        self.end += scale * other.end;
        self.last += scale * other.last;
    }
}

/// Observes the stages of the first replica.
pub(super) struct Stages<'a> {
    built: &'a Built,
    steps: Steps,
    /// By operation: when it ended in the step under way, if it has.
    done: Vec<Option<f64>>,
    /// The step under way, with ends in simulated time.
    now: Vec<StageTimes>,
    sum: Vec<StageTimes>,
    counted: u64,
}

impl<'a> Stages<'a> {
    pub(super) fn new(built: &'a Built, stages: usize) -> Self {
        let nothing = vec![StageTimes::default(); stages];
        Self {
            built,
            steps: Steps::default(),
            done: vec![None; built.marks.len()],
            now: nothing.clone(),
            sum: nothing,
            counted: 0,
        }
    }

    pub(super) fn mean(&self) -> Vec<StageTimes> {
        let scale = 1.0 / self.counted.max(1) as f64;
        let mut mean = vec![StageTimes::default(); self.sum.len()];
        for (mean, sum) in mean.iter_mut().zip(&self.sum) {
            mean.add(sum, scale);
        }
        mean
    }
}

impl Recorder for Stages<'_> {
    fn records(&self) -> &[StepRecord] {
        &self.steps.records
    }
}

impl Observer for Stages<'_> {
    fn chunk(&mut self, worker: u32, op: u32, _lane: u32, since: f64, until: f64) {
        if worker > 0 {
            return;
        }
        self.done[op as usize] = Some(until);
        let mark = &self.built.marks[op as usize];
        // The stage's wait for work beside its passes counts from their end, if they have ended.
        let beside = &self.built.beside[op as usize];
        let ended = beside.iter().map(|&other| self.done[other as usize]);
        let ended = ended.reduce(|a, b| Some(a?.max(b?))).flatten();
        let waited = ended.map_or(0.0, |ended| until - ended.max(since));
        let stage = &mut self.now[mark.stage as usize];
        let time = until - since;
        let is_pass = match mark.role {
            Role::Pass(_) => {
                stage.compute += time;
                true
            }
            Role::Recompute => {
                stage.recompute += time;
                true
            }
            Role::Update => {
                stage.update += time;
                false
            }
            Role::Host => {
                stage.host += waited;
                ended.is_some()
            }
            Role::Traffic { kind, overlapped } => {
                let shown = if overlapped { waited } else { time };
                stage.exposed[kind as usize] += shown;
                let of_pass = mark.micro_batch.is_some() && kind != Traffic::Gradients;
                stage.after_passes += if of_pass { 0.0 } else { shown };
                of_pass && Traffic::OF_A_PASS.contains(&kind)
            }
            Role::Wait => false,
        };
        if is_pass {
            stage.end = stage.end.max(until);
        }
        stage.last = stage.last.max(until);
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.steps.step(worker, since, until, stale);
        if worker > 0 {
            return;
        }
        for (now, sum) in self.now.iter_mut().zip(&mut self.sum) {
            now.end -= since;
            now.last -= since;
            sum.add(now, 1.0);
            *now = StageTimes::default();
        }
        self.done.fill(None);
        self.counted += 1;
    }
}

/// Share of the time of all stages, until the last pass, in which they wait for each other.
pub(super) fn bubble(stages: &[StageTimes]) -> f64 {
    let last = stages.iter().map(|stage| stage.end).fold(0.0, f64::max);
    let waited: f64 = stages.iter().map(|stage| last - stage.busy()).sum();
    if last > 0.0 { (waited / (stages.len() as f64 * last)).max(0.0) } else { 0.0 }
}

pub(super) fn slowest(stages: &[StageTimes]) -> usize {
    let last = |index: &usize| stages[*index].last;
    (0..stages.len()).rev().max_by(|a, b| last(a).total_cmp(&last(b))).unwrap_or(0)
}

/// The time of a step on a stage by cause, with the names of the closed form.
pub(super) fn breakdown(stage: &StageTimes, iteration: Seconds) -> Vec<Part> {
    let sends = stage.exposed(Traffic::SendForward) + stage.exposed(Traffic::SendBackward);
    let times = [
        (PartKind::Compute, stage.compute + stage.update),
        (PartKind::Recompute, stage.recompute),
        (PartKind::Host, stage.host),
        (PartKind::TensorParallelism, stage.exposed(Traffic::Tensor)),
        (PartKind::ContextParallelism, stage.exposed(Traffic::Context)),
        (PartKind::ExpertParallelism, stage.exposed(Traffic::Expert)),
        (PartKind::ShardedWeights, stage.exposed(Traffic::Sharded) + stage.exposed(Traffic::Weights)),
        (PartKind::Offload, stage.exposed(Traffic::Offload)),
        (PartKind::PipelineSends, sends),
        (PartKind::Gradients, stage.exposed(Traffic::Gradients)),
    ];
    let known: f64 = times.iter().map(|(_, time)| time).sum();
    let rest = (iteration.get() - known).max(0.0);
    let all = times.into_iter().chain([(PartKind::PipelineBubble, rest)]).enumerate();
    let shown = all.filter(|(index, (_, time))| *index < 2 || *time > 0.0);
    shown.map(|(_, (kind, time))| Part { kind, time: Seconds::new(time) }).collect()
}
