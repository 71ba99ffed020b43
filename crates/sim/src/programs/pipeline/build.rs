//! The graph of a pipeline's step.

use super::state::{Arrivals, Stage};
use super::{Costs, Mark, Pass, Phase, Pipeline, Role, Task, Traffic, Work};
use crate::graph::{LocalLane, OpId, OpSpec, StepGraph};
use crate::program::{Program, ProgramError, StepWork};

#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    pub program: Program,
    /// By operation.
    pub marks: Vec<Mark>,
    /// By operation: for traffic and hosts beside something else, the operations that end it.
    pub beside: Vec<Vec<OpId>>,
}

/// By virtual stage and phase, the time of a pass if nothing else uses the links: the larger of device and host. The host of
/// a device that is alone in its pipeline runs ahead.
fn alone(pipeline: &Pipeline, costs: &Costs) -> Vec<[f64; Phase::COUNT]> {
    let host = |pass: &Pass| if pipeline.is_alone() { 0.0 } else { pass.host };
    let time = |pass: &Pass| pass.work.alone().max(host(pass));
    costs.passes.iter().map(|passes| passes.each_ref().map(time)).collect()
}

pub(super) fn operations(pipeline: &Pipeline) -> Result<Built, ProgramError> {
    let mut list = List::new(pipeline);
    let mut stages = vec![Stage::default(); pipeline.stages()];
    if pipeline.orders.len() > 1 && pipeline.stage_of.len() > stages.len() {
        let reason = "kinds of replicas with micro-batches of their own have one chunk on a stage";
        return Err(ProgramError(reason.to_owned()));
    }
    for kind in 0..pipeline.orders.len() {
        list.kind = kind;
        list.passes(&mut stages)?;
    }
    list.tails(&stages);
    let graph = StepGraph::new(&list.specs, pipeline.local_lanes()?)?;
    let kinds = pipeline.costs.len();
    let steps = (0..kinds).map(|kind| {
        vec![StepWork {
            work: list.amounts.iter().skip(kind).step_by(kinds).copied().collect(),
            sources: graph.sources().to_vec(),
            rank: Vec::new(),
            share: 1.0,
        }]
    });
    let steps = steps.collect();
    Ok(Built { program: Program::new(graph, steps), marks: list.marks, beside: list.beside })
}

/// Operations in the order in which they are added: each follows its dependencies.
struct List<'a> {
    pipeline: &'a Pipeline,
    /// The kind of replicas whose passes are added, where each has its own.
    kind: usize,
    /// By kind of replica, virtual stage and phase: the time of a pass by itself.
    alone: Vec<Vec<[f64; Phase::COUNT]>>,
    /// The phase that computes gradients of weights.
    gradients: Phase,
    specs: Vec<OpSpec>,
    marks: Vec<Mark>,
    beside: Vec<Vec<OpId>>,
    /// Seconds by operation and kind of replica.
    amounts: Vec<f64>,
    /// By stage: where its replicas met last.
    met: Vec<Option<OpId>>,
    /// By virtual stage: its number among those of its stage, if there are several.
    chunk: Vec<Option<usize>>,
}

impl<'a> List<'a> {
    fn new(pipeline: &'a Pipeline) -> Self {
        let several = pipeline.stage_of.len() > pipeline.stages();
        let before = |place: usize| {
            let stage = pipeline.stage_of[place];
            pipeline.stage_of[..place].iter().filter(|&&other| other == stage).count()
        };
        let is_split = pipeline.orders.iter().flatten().flatten().any(|task| task.phase == Phase::Weight);
        let gradients = if is_split { Phase::Weight } else { Phase::Backward };
        Self {
            alone: pipeline.costs.iter().map(|costs| alone(pipeline, costs)).collect(),
            pipeline,
            kind: 0,
            gradients,
            specs: Vec::new(),
            marks: Vec::new(),
            beside: Vec::new(),
            amounts: Vec::new(),
            met: vec![None; pipeline.stages()],
            chunk: (0..pipeline.stage_of.len()).map(|place| several.then(|| before(place))).collect(),
        }
    }

    /// Adds the passes of all stages. They take no time on replicas of other kinds, which have their own.
    fn passes(&mut self, stages: &mut [Stage]) -> Result<(), ProgramError> {
        let (orders, places) = (&self.pipeline.orders[self.kind], self.pipeline.stage_of.len());
        let micro_batches =
            orders.iter().flatten().map(|task| task.micro_batch + 1).max().unwrap_or(0) as usize;
        let mut arrivals = Arrivals::new(places, micro_batches);
        stages.iter_mut().for_each(Stage::begin);
        loop {
            let mut moved = false;
            for (stage, state) in stages.iter_mut().enumerate() {
                while state.done < orders[stage].len() {
                    let rest = &orders[stage][state.done..];
                    let last = rest.iter().position(|task| !task.with_next).unwrap_or(rest.len() - 1);
                    let group = &rest[..=last];
                    let before: Option<Vec<&[OpId]>> =
                        group.iter().map(|task| arrivals.before(task)).collect();
                    let Some(before) = before else { break };
                    let mut ended = [&state.free[..], &before.concat()].concat();
                    for task in group {
                        ended = self.pass(stage, state, task, ended)?;
                        state.done += 1;
                    }
                    state.free.clone_from(&ended);
                    state.last.clone_from(&ended);
                    for task in group.iter().filter(|task| task.phase != Phase::Weight) {
                        let handed = self.hand_over(stage, state, task, ended.clone());
                        let slot = arrivals.slot(task.phase, task.place as usize, task.micro_batch);
                        arrivals.after[slot] = Some(handed);
                    }
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        match stages.iter().zip(orders).position(|(state, order)| state.done < order.len()) {
            Some(stage) => Err(ProgramError(format!("stage {stage} of the pipeline waits for itself"))),
            None => Ok(()),
        }
    }

    /// Whether the passes that are added are those of a kind of replicas.
    fn has_passes(&self, kind: usize) -> bool {
        self.pipeline.orders.len() == 1 || kind == self.kind
    }

    /// The name of a pass: F3, or F3.1 for chunk 1.
    fn name(&self, letter: char, task: &Task) -> String {
        match self.chunk[task.place as usize] {
            Some(chunk) => format!("{letter}{}.{chunk}", task.micro_batch),
            None => format!("{letter}{}", task.micro_batch),
        }
    }

    /// An amount for each kind of replica.
    fn each(&self, of: impl Fn(&Costs) -> f64) -> Vec<f64> {
        self.pipeline.costs.iter().map(of).collect()
    }

    /// An amount for each kind of replica, 0 for kinds whose passes are not the ones being added.
    fn each_with_passes(&self, of: impl Fn(&Costs) -> f64) -> Vec<f64> {
        let costs = self.pipeline.costs.iter().enumerate();
        costs.map(|(kind, costs)| if self.has_passes(kind) { of(costs) } else { 0.0 }).collect()
    }

    /// Computing time in this pass of the first bucket of a virtual stage, or of the last one, for each kind of
    /// replica.
    fn bucket(&self, stage: usize, task: &Task) -> Vec<f64> {
        let (place, share) = (task.place as usize, self.pipeline.shares[task.place as usize]);
        let all = self.pipeline.costs.iter().zip(&self.alone);
        let time = |(costs, alone): (&Costs, &Vec<[f64; Phase::COUNT]>)| {
            alone[place][task.phase as usize] / (share * costs.tails[stage].parts())
        };
        all.map(time).collect()
    }

    fn add(
        &mut self,
        name: String,
        lane: LocalLane,
        mut after: Vec<OpId>,
        mark: Mark,
        amounts: &[f64],
    ) -> OpId {
        after.sort_unstable();
        after.dedup();
        self.specs.push(OpSpec { name, lane, after, releases: None });
        self.marks.push(mark);
        self.beside.push(Vec::new());
        self.amounts.extend(amounts);
        self.specs.len() as OpId - 1
    }

    /// Adds traffic if there is any, behind a meeting of the replicas if all take part.
    fn transfer(
        &mut self,
        name: impl FnOnce(&Self) -> String,
        kind: Traffic,
        after: &[OpId],
        mark: Mark,
        amounts: &[f64],
    ) -> Option<OpId> {
        if amounts.iter().all(|amount| *amount <= 0.0) {
            return None;
        }
        let mut after = after.to_vec();
        let stage = mark.stage as usize;
        if self.pipeline.joint[kind as usize] && self.pipeline.replicas.len() > 1 {
            after.extend(self.met[stage]);
            let waiting = Mark { role: Role::Wait, ..mark };
            let nothing = vec![0.0; amounts.len()];
            let met = self.add("meeting".to_owned(), Pipeline::meeting(stage), after, waiting, &nothing);
            self.met[stage] = Some(met);
            after = vec![met];
        }
        let name = name(self);
        Some(self.add(name, Pipeline::traffic(stage, kind), after, mark, amounts))
    }

    /// Adds a pass with its traffic, and returns the operations that end it.
    fn pass(
        &mut self,
        stage: usize,
        state: &mut Stage,
        task: &Task,
        after: Vec<OpId>,
    ) -> Result<Vec<OpId>, ProgramError> {
        let mark = |role| Mark { role, stage: stage as u32, micro_batch: Some(task.micro_batch) };
        let (place, phase) = (task.place as usize, task.phase as usize);
        let order = &self.pipeline.orders[self.kind][stage];
        let is_again = |other: &Task| other.phase == task.phase && other.place == task.place;
        if task.phase == self.gradients && !order[state.done + 1..].iter().any(is_again) {
            self.hidden_gradients(stage, state, task, &after);
        }
        let pipeline = self.pipeline;
        // A host whose device is alone in its pipeline runs ahead of it.
        let issue_after = match pipeline.is_alone() {
            true => state.issued.into_iter().collect(),
            false => after.clone(),
        };
        let passes = || pipeline.costs.iter().map(|costs| &costs.passes[place][phase]).enumerate();
        let nothing: Vec<Option<Work>> =
            passes().map(|(kind, pass)| (!self.has_passes(kind)).then(|| pass.work.scaled(0.0))).collect();
        let works: Vec<&Work> =
            passes().map(|(kind, pass)| nothing[kind].as_ref().unwrap_or(&pass.work)).collect();
        let device = self.work(stage, task, &works, after)?;
        let mut ended = device.clone();
        if task.phase == Phase::Forward && task.micro_batch == 0 {
            ended.extend(self.hidden_weights(stage, state, task, &device));
        }
        let host = self.each_with_passes(|costs| costs.passes[place][phase].host);
        if host.iter().any(|time| *time > 0.0) {
            let name = self.name('H', task);
            let issued = self.add(name, pipeline.waiting(), issue_after, mark(Role::Host), &host);
            state.issued = Some(issued);
            if !pipeline.is_alone() {
                self.beside[issued as usize] = device;
                ended.push(issued);
            }
        }
        Ok(ended)
    }

    /// Adds the work of a pass, given for each kind of replica, and returns the operations that end it.
    fn work(
        &mut self,
        stage: usize,
        task: &Task,
        works: &[&Work],
        after: Vec<OpId>,
    ) -> Result<Vec<OpId>, ProgramError> {
        let mark = |role| Mark { role, stage: stage as u32, micro_batch: Some(task.micro_batch) };
        let children = works[0].children().len();
        let is_alike = |work: &&Work| {
            std::mem::discriminant(*work) == std::mem::discriminant(works[0])
                && work.children().len() == children
        };
        if !works.iter().all(is_alike) {
            return Err(ProgramError("replicas have passes of different structure".to_owned()));
        }
        let child = |index: usize| works.iter().map(|work| &work.children()[index]).collect::<Vec<_>>();
        let amounts: Vec<f64> = works.iter().map(|work| work.alone()).collect();
        if amounts.iter().all(|amount| *amount <= 0.0) {
            return Ok(after);
        }
        let (letter, role) = match works[0] {
            Work::Compute(_) => (task.phase.letter(), Role::Pass(task.phase)),
            Work::Recompute(_) => ('R', Role::Recompute),
            Work::Traffic(kind, _) => {
                let letter = task.phase.letter();
                let name = |list: &Self| format!("{} {}", kind.name(), list.name(letter, task));
                let mark = mark(Role::Traffic { kind: *kind, overlapped: false });
                let sent = self.transfer(name, *kind, &after, mark, &amounts);
                return Ok(sent.map_or(after, |sent| vec![sent]));
            }
            Work::InTurn(_) => {
                return (0..children)
                    .try_fold(after, |after, index| self.work(stage, task, &child(index), after));
            }
            Work::Beside(_) => {
                let main = self.work(stage, task, &child(0), after.clone())?;
                let mut ended = main.clone();
                for index in 1..children {
                    let (works, first) = (child(index), self.specs.len());
                    if works.iter().all(|work| work.alone() <= 0.0) {
                        continue;
                    }
                    ended.extend(self.work(stage, task, &works, after.clone())?);
                    for op in first..self.specs.len() {
                        if let Role::Traffic { overlapped, .. } = &mut self.marks[op].role {
                            *overlapped = true;
                            self.beside[op].clone_from(&main);
                        }
                    }
                }
                return Ok(ended);
            }
        };
        let name = self.name(letter, task);
        Ok(vec![self.add(name, Pipeline::computing(stage), after, mark(role), &amounts)])
    }

    /// Adds gradients that travel beside the last pass of a virtual stage that computes them; the stage's first ones leave
    /// when their first bucket is complete. In equal buckets, this equals sending each when it is complete: either the first or
    /// the last decides.
    fn hidden_gradients(&mut self, stage: usize, state: &mut Stage, task: &Task, after: &[OpId]) {
        let share = self.pipeline.shares[task.place as usize];
        let overlapped = self.each(|costs| {
            let tail = &costs.tails[stage];
            tail.gradients.hidden(tail.parts()) * share
        });
        if overlapped.iter().all(|time| *time <= 0.0) {
            return;
        }
        let mark = |role| Mark { role, stage: stage as u32, micro_batch: Some(task.micro_batch) };
        let mut after = after.to_vec();
        // Gradients of all kinds of replicas travel together.
        after.append(&mut state.begun);
        if self.kind + 1 < self.pipeline.orders.len() {
            state.begun = after;
            return;
        }
        if state.gradients.is_empty() {
            let (name, lane) = ("first bucket".to_owned(), self.pipeline.waiting());
            let bucket = self.bucket(stage, task);
            after = vec![self.add(name, lane, after, mark(Role::Wait), &bucket)];
        }
        after.extend(state.gradients.last());
        let name = |list: &Self| format!("gradients {}", list.name(task.phase.letter(), task));
        let (kind, overlap) =
            (Traffic::Gradients, mark(Role::Traffic { kind: Traffic::Gradients, overlapped: true }));
        state.gradients.extend(self.transfer(name, kind, &after, overlap, &overlapped));
    }

    /// Adds weights that travel from the beginning of a step on, of which a virtual stage needs its part for its first
    /// forward pass: all but those of the last bucket before it computes that bucket.
    fn hidden_weights(
        &mut self,
        stage: usize,
        state: &mut Stage,
        task: &Task,
        device: &[OpId],
    ) -> Option<OpId> {
        if self.kind > 0 {
            let sent = *state.weights.last()?;
            self.beside[sent as usize].extend(device);
            return Some(sent);
        }
        let share = self.pipeline.shares[task.place as usize];
        let overlapped = self.each(|costs| {
            let tail = &costs.tails[stage];
            tail.weights.hidden(tail.parts()) * share
        });
        if overlapped.iter().all(|time| *time <= 0.0) {
            return None;
        }
        let mark = |role| Mark { role, stage: stage as u32, micro_batch: Some(task.micro_batch) };
        let after = match state.weights.last() {
            Some(&last) => last,
            None => {
                let (name, lane) = ("last bucket".to_owned(), self.pipeline.waiting());
                let bucket = self.bucket(stage, task);
                self.add(name, lane, Vec::new(), mark(Role::Wait), &bucket)
            }
        };
        let name = |list: &Self| format!("weights {}", list.name(task.phase.letter(), task));
        let (kind, overlap) =
            (Traffic::Weights, mark(Role::Traffic { kind: Traffic::Weights, overlapped: true }));
        let sent = self.transfer(name, kind, &[after], overlap, &overlapped)?;
        self.beside[sent as usize] = device.to_vec();
        state.weights.push(sent);
        Some(sent)
    }

    /// Sends the result of a pass to another stage, if any, and returns the operations that its receiver waits for.
    fn hand_over(&mut self, stage: usize, state: &mut Stage, task: &Task, ended: Vec<OpId>) -> Vec<OpId> {
        let (pipeline, place) = (self.pipeline, task.place as usize);
        let (kind, next) = match task.phase {
            Phase::Forward => (Traffic::SendForward, pipeline.stage_of.get(place + 1)),
            _ => {
                let before = place.checked_sub(1).and_then(|before| pipeline.stage_of.get(before));
                (Traffic::SendBackward, before)
            }
        };
        if next.is_none_or(|&next| next as usize == stage) {
            return ended;
        }
        let role = Role::Traffic { kind, overlapped: !pipeline.blocking };
        let mark = Mark { role, stage: stage as u32, micro_batch: Some(task.micro_batch) };
        let name = |list: &Self| format!("send {}", list.name(task.phase.letter(), task));
        let time = self.each_with_passes(|costs| costs.sends[stage]);
        match self.transfer(name, kind, &ended, mark, &time) {
            Some(send) => {
                if pipeline.blocking {
                    state.free = vec![send];
                }
                vec![send]
            }
            None => ended,
        }
    }

    /// Adds traffic after the last pass of a stage, and returns the operations that end it.
    fn tail(&mut self, name: &str, stage: usize, kind: Traffic, after: Vec<OpId>, time: &[f64]) -> Vec<OpId> {
        let role = Role::Traffic { kind, overlapped: false };
        let mark = Mark { role, stage: stage as u32, micro_batch: None };
        let sent = self.transfer(|_| name.to_owned(), kind, &after, mark, time);
        sent.map_or(after, |sent| vec![sent])
    }

    /// Adds gradients, update and weights of every stage.
    fn tails(&mut self, stages: &[Stage]) {
        let mut reduced: Vec<Vec<OpId>> = Vec::with_capacity(stages.len());
        for (stage, state) in stages.iter().enumerate() {
            let last: Vec<OpId> = state.last.iter().chain(&state.ended).copied().collect();
            for &op in &state.gradients {
                self.beside[op as usize].clone_from(&last);
            }
            let after: Vec<OpId> = last.iter().chain(&state.gradients).copied().collect();
            let time = self.each(|costs| costs.tails[stage].gradients.left(costs.tails[stage].parts()));
            reduced.push(self.tail("gradients", stage, Traffic::Gradients, after, &time));
        }
        // Both ends wait for each other.
        if let Some(last) = stages.len().checked_sub(1) {
            let both = [&reduced[0][..], &reduced[last][..]].concat();
            for stage in if last == 0 { vec![0] } else { vec![0, last] } {
                let time = self.each(|costs| costs.tails[stage].tied);
                if time.iter().any(|time| *time > 0.0) {
                    reduced[stage] =
                        self.tail("tied embedding", stage, Traffic::Gradients, both.clone(), &time);
                }
            }
        }
        for (stage, after) in reduced.into_iter().enumerate() {
            let mark = Mark { role: Role::Update, stage: stage as u32, micro_batch: None };
            let time = self.each(|costs| costs.tails[stage].update);
            let update = self.add("update".to_owned(), Pipeline::computing(stage), after, mark, &time);
            let time = self.each(|costs| costs.tails[stage].offload);
            let after = self.tail("update by the host", stage, Traffic::Offload, vec![update], &time);
            let time = self.each(|costs| costs.tails[stage].weights.left(costs.tails[stage].parts()));
            let ended = self.tail("weights", stage, Traffic::Weights, after, &time);
            let issued = stages[stage].issued.iter().chain(&stages[stage].hosts);
            for &issued in issued.filter(|_| self.pipeline.is_alone()) {
                self.beside[issued as usize].clone_from(&ended);
            }
        }
    }
}
