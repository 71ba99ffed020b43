//! Operations of a pipeline as they are added, each with what its work is.

use super::{Cost, Costs, Mark, Phase, Pipeline, Role, Task, Traffic};
use crate::graph::{LocalLane, OpId, OpSpec, StepGraph};
use crate::program::StepWork;

/// What the work of an operation is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Amount {
    /// Nothing: replicas meet.
    Meeting,
    Recompute(Task),
    Compute(Task),
    Host(Task),
    /// By kind of a pass.
    Exposed(Task, usize),
    Hidden(Task, usize),
    /// Until the first bucket of gradients of a pass is there.
    FirstBucket(Task, usize),
    /// The part of a stage's hidden gradients that a pass covers.
    HiddenGradients(Task, usize),
    /// The part of a stage's hidden weights that a pass covers.
    HiddenWeights(Task, usize),
    Send(usize),
    Gradients(usize),
    Tied(usize),
    Update(usize),
    Offload(usize),
    Weights(usize),
}

/// Seconds of the passes of every stage that hide gradients, and of those that hide weights.
pub(super) struct Covers {
    pub(super) backward: Vec<f64>,
    pub(super) forward: Vec<f64>,
}

impl Covers {
    fn of(pipeline: &Pipeline, costs: &Costs) -> Self {
        let mut covers =
            Self { backward: vec![0.0; pipeline.stages()], forward: vec![0.0; pipeline.stages()] };
        for (place, &stage) in pipeline.stage_of.iter().enumerate() {
            let [forward, backward, weight] = &costs.passes[place];
            covers.forward[stage as usize] += forward.total();
            covers.backward[stage as usize] += backward.total() + weight.total();
        }
        covers
    }
}

fn cost<'a>(costs: &'a Costs, task: &Task) -> &'a Cost {
    &costs.passes[task.place as usize][task.phase as usize]
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Amount {
    fn seconds(self, costs: &Costs, covers: &Covers) -> f64 {
        match self {
            Self::Meeting => 0.0,
            Self::Recompute(task) => cost(costs, &task).recompute,
            Self::Compute(task) => cost(costs, &task).compute,
            Self::Host(task) => cost(costs, &task).host,
            Self::Exposed(task, kind) => cost(costs, &task).exposed[kind],
            Self::Hidden(task, kind) => cost(costs, &task).hidden[kind],
            Self::FirstBucket(task, stage) => cost(costs, &task).total() / costs.tails[stage].layers.max(1.0),
            Self::HiddenGradients(task, stage) => {
                let part = share(cost(costs, &task).total(), covers.backward[stage]);
                costs.tails[stage].hidden_gradients * part
            }
            Self::HiddenWeights(task, stage) => {
                let part = share(cost(costs, &task).total(), covers.forward[stage]);
                costs.tails[stage].hidden_weights * part
            }
            Self::Send(stage) => costs.sends[stage],
            Self::Gradients(stage) => costs.tails[stage].gradients,
            Self::Tied(stage) => costs.tails[stage].tied,
            Self::Update(stage) => costs.tails[stage].update,
            Self::Offload(stage) => costs.tails[stage].offload,
            Self::Weights(stage) => costs.tails[stage].weights,
        }
    }
}

/// Operations with their amounts and roles, in an order in which each follows what it waits for.
pub(super) struct List<'a> {
    pipeline: &'a Pipeline,
    covers: Vec<Covers>,
    pub(super) specs: Vec<OpSpec>,
    pub(super) marks: Vec<Mark>,
    amounts: Vec<Amount>,
    /// By stage: where its replicas met last.
    met: Vec<Option<OpId>>,
    /// By virtual stage: its number among those of its stage, if there are several.
    chunk: Vec<Option<usize>>,
}

impl<'a> List<'a> {
    pub(super) fn new(pipeline: &'a Pipeline) -> Self {
        let several = pipeline.stage_of.len() > pipeline.stages();
        let before = |place: usize| {
            let stage = pipeline.stage_of[place];
            pipeline.stage_of[..place].iter().filter(|&&other| other == stage).count()
        };
        Self {
            covers: pipeline.costs.iter().map(|costs| Covers::of(pipeline, costs)).collect(),
            pipeline,
            specs: Vec::new(),
            marks: Vec::new(),
            amounts: Vec::new(),
            met: vec![None; pipeline.stages()],
            chunk: (0..pipeline.stage_of.len()).map(|place| several.then(|| before(place))).collect(),
        }
    }

    /// The name of a pass: F3, or F3.1 for chunk 1.
    pub(super) fn name(&self, letter: char, task: &Task) -> String {
        match self.chunk[task.place as usize] {
            Some(chunk) => format!("{letter}{}.{chunk}", task.micro_batch),
            None => format!("{letter}{}", task.micro_batch),
        }
    }

    /// Adds an operation.
    pub(super) fn add(
        &mut self,
        name: String,
        lane: LocalLane,
        after: Vec<OpId>,
        mark: Mark,
        amount: Amount,
    ) -> OpId {
        self.specs.push(OpSpec { name, lane, after, releases: None });
        self.marks.push(mark);
        self.amounts.push(amount);
        self.specs.len() as OpId - 1
    }

    /// Whether an amount is more than nothing for some replica.
    pub(super) fn exists(&self, amount: Amount) -> bool {
        let kinds = self.pipeline.costs.iter().zip(&self.covers);
        kinds.into_iter().any(|(costs, covers)| amount.seconds(costs, covers) > 0.0)
    }

    /// Adds traffic if there is any, behind a meeting of the replicas if all take part.
    pub(super) fn transfer(
        &mut self,
        name: impl FnOnce(&Self) -> String,
        (stage, kind): (usize, Traffic),
        after: &[OpId],
        mark: Mark,
        amount: Amount,
    ) -> Option<OpId> {
        if !self.exists(amount) {
            return None;
        }
        let mut after = after.to_vec();
        if self.pipeline.joint[kind as usize] && self.pipeline.replicas.len() > 1 {
            after.extend(self.met[stage]);
            after.sort_unstable();
            after.dedup();
            let waiting = Mark { role: Role::Wait, ..mark };
            let met =
                self.add("meeting".to_owned(), Pipeline::meeting(stage), after, waiting, Amount::Meeting);
            self.met[stage] = Some(met);
            after = vec![met];
        }
        let name = name(self);
        Some(self.add(name, Pipeline::traffic(stage, kind), after, mark, amount))
    }

    /// The work of a step with these times.
    pub(super) fn work(&self, costs: &Costs, graph: &StepGraph) -> StepWork {
        let covers = Covers::of(self.pipeline, costs);
        StepWork {
            work: self.amounts.iter().map(|amount| amount.seconds(costs, &covers)).collect(),
            sources: graph.sources().to_vec(),
            rank: Vec::new(),
            share: 1.0,
        }
    }
}

impl Phase {
    /// The letter of its passes.
    pub(super) const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::Weight => 'W',
        }
    }
}
