//! The graph of a pipeline's step.

use super::list::{Amount, List};
use super::{Mark, Phase, Pipeline, Role, Task, Traffic};
use crate::graph::OpId;
use crate::program::{Program, ProgramError};

/// A program, and what its operations are.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The program.
    pub program: Program,
    /// By operation.
    pub marks: Vec<Mark>,
}

/// How far a stage is.
#[derive(Debug, Clone, Default)]
struct Stage {
    /// Passes that have been added.
    done: usize,
    /// What the next pass waits for.
    free: Vec<OpId>,
    /// What ends the last pass.
    last: Vec<OpId>,
    /// Gradients that are under way.
    gradients: Vec<OpId>,
    /// The last pass that the host has issued.
    issued: Option<OpId>,
}

/// What a pass of a virtual stage hands to its neighbour, by phase, place and micro-batch; none before it is added.
struct Arrivals {
    micro_batches: usize,
    places: usize,
    after: Vec<Option<Vec<OpId>>>,
}

impl Arrivals {
    fn slot(&self, phase: Phase, place: usize, micro_batch: u32) -> usize {
        (phase as usize * self.places + place) * self.micro_batches + micro_batch as usize
    }

    /// What a pass waits for on other virtual stages; none if that has not been added.
    fn before(&self, task: &Task) -> Option<&[OpId]> {
        let place = task.place as usize;
        let neighbour = match task.phase {
            Phase::Forward => place.checked_sub(1),
            Phase::Backward => Some(place + 1).filter(|&next| next < self.places),
            Phase::Weight => None,
        };
        match neighbour {
            Some(place) => self.after[self.slot(task.phase, place, task.micro_batch)].as_deref(),
            None => Some(&[]),
        }
    }
}

/// All operations of a step.
pub(super) fn operations(pipeline: &Pipeline) -> Result<List<'_>, ProgramError> {
    let places = pipeline.stage_of.len();
    let micro_batches = pipeline.micro_batches as usize;
    let mut list = List::new(pipeline);
    let mut stages = vec![Stage::default(); pipeline.stages()];
    let slots = 2 * places * micro_batches;
    let mut arrivals = Arrivals { micro_batches, places, after: vec![None; slots] };
    loop {
        let mut moved = false;
        for (stage, state) in stages.iter_mut().enumerate() {
            while let Some(task) = pipeline.orders[stage].get(state.done) {
                let Some(before) = arrivals.before(task) else { break };
                let mut after = state.free.clone();
                after.extend(before);
                let ended = pass(&mut list, pipeline, stage, state, task, after);
                state.free.clone_from(&ended);
                state.last.clone_from(&ended);
                if task.phase != Phase::Weight {
                    let handed = hand_over(&mut list, pipeline, stage, state, task, ended);
                    let slot = arrivals.slot(task.phase, task.place as usize, task.micro_batch);
                    arrivals.after[slot] = Some(handed);
                }
                state.done += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    if let Some(stage) = (0..stages.len()).find(|&stage| stages[stage].done < pipeline.orders[stage].len()) {
        return Err(ProgramError(format!("stage {stage} of the pipeline waits for itself")));
    }
    tails(&mut list, &stages);
    Ok(list)
}

/// Adds a pass with its traffic, and returns what ends it.
fn pass(
    list: &mut List<'_>,
    pipeline: &Pipeline,
    stage: usize,
    state: &mut Stage,
    task: &Task,
    after: Vec<OpId>,
) -> Vec<OpId> {
    let mark = |role| Mark { role, stage: stage as u32, micro_batch: Some(task.micro_batch) };
    let traffic = |kind, exposed| mark(Role::Traffic { kind, exposed });
    let order = &pipeline.orders[stage];
    let same = |other: &Task| other.phase == task.phase && other.place == task.place;
    let named = |kind: Traffic| {
        let letter = task.phase.letter();
        move |list: &List<'_>| format!("{} {}", kind.name(), list.name(letter, task))
    };
    let mut ended = Vec::new();
    for (index, kind) in Traffic::OF_A_PASS.into_iter().enumerate() {
        let amount = Amount::Hidden(*task, index);
        ended.extend(list.transfer(named(kind), (stage, kind), &after, traffic(kind, false), amount));
    }
    if task.phase == Phase::Forward && task.micro_batch == 0 {
        let (kind, amount) = (Traffic::Weights, Amount::HiddenWeights(*task, stage));
        ended.extend(list.transfer(named(kind), (stage, kind), &after, traffic(kind, false), amount));
    }
    if task.phase != Phase::Forward && !order[state.done + 1..].iter().any(same) {
        state.gradients.extend(hidden_gradients(list, pipeline, stage, task, &after));
    }
    let issue_after = match pipeline.stages() {
        1 => state.issued.into_iter().collect(),
        _ => after.clone(),
    };
    let mut begin = after;
    if list.exists(Amount::Recompute(*task)) {
        let name = list.name('R', task);
        let lane = Pipeline::computing(stage);
        begin = vec![list.add(name, lane, begin, mark(Role::Recompute), Amount::Recompute(*task))];
    }
    let name = list.name(task.phase.letter(), task);
    let role = mark(Role::Pass(task.phase));
    let mut last = list.add(name, Pipeline::computing(stage), begin, role, Amount::Compute(*task));
    for (index, kind) in Traffic::OF_A_PASS.into_iter().enumerate() {
        let amount = Amount::Exposed(*task, index);
        let sent = list.transfer(named(kind), (stage, kind), &[last], traffic(kind, true), amount);
        last = sent.unwrap_or(last);
    }
    ended.push(last);
    if list.exists(Amount::Host(*task)) {
        let name = list.name('H', task);
        let role = mark(Role::Host { last });
        let issued = list.add(name, pipeline.waiting(), issue_after, role, Amount::Host(*task));
        state.issued = Some(issued);
        ended.push(issued);
    }
    ended
}

/// Adds gradients that are reduced beside a virtual stage's last pass, from its first bucket on.
fn hidden_gradients(
    list: &mut List<'_>,
    pipeline: &Pipeline,
    stage: usize,
    task: &Task,
    after: &[OpId],
) -> Option<OpId> {
    let (kind, amount) = (Traffic::Gradients, Amount::HiddenGradients(*task, stage));
    if !list.exists(amount) {
        return None;
    }
    let mark = Mark { role: Role::Wait, stage: stage as u32, micro_batch: Some(task.micro_batch) };
    let bucket = Amount::FirstBucket(*task, stage);
    let first = list.add("first bucket".to_owned(), pipeline.waiting(), after.to_vec(), mark, bucket);
    let mark = Mark { role: Role::Traffic { kind, exposed: false }, ..mark };
    let name = |list: &List<'_>| format!("gradients {}", list.name(task.phase.letter(), task));
    list.transfer(name, (stage, kind), &[first], mark, amount)
}

/// Sends the result of a pass to another stage, if it goes to one, and returns what its receiver waits for.
fn hand_over(
    list: &mut List<'_>,
    pipeline: &Pipeline,
    stage: usize,
    state: &mut Stage,
    task: &Task,
    ended: Vec<OpId>,
) -> Vec<OpId> {
    let place = task.place as usize;
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
    let exposed = pipeline.blocking;
    let role = Role::Traffic { kind, exposed };
    let mark = Mark { role, stage: stage as u32, micro_batch: Some(task.micro_batch) };
    let name = |list: &List<'_>| format!("send {}", list.name(task.phase.letter(), task));
    match list.transfer(name, (stage, kind), &ended, mark, Amount::Send(stage)) {
        Some(send) => {
            if exposed {
                state.free = vec![send];
            }
            vec![send]
        }
        None => ended,
    }
}

/// Adds gradients, update and weights of every stage.
fn tails(list: &mut List<'_>, stages: &[Stage]) {
    let mark = |stage: usize, role| Mark { role, stage: stage as u32, micro_batch: None };
    let traffic = |stage: usize, kind| ((stage, kind), mark(stage, Role::Traffic { kind, exposed: true }));
    let mut reduced: Vec<Vec<OpId>> = Vec::with_capacity(stages.len());
    for (stage, state) in stages.iter().enumerate() {
        let after: Vec<OpId> = state.last.iter().chain(&state.gradients).copied().collect();
        let (place, mark) = traffic(stage, Traffic::Gradients);
        let named = |_: &List<'_>| "gradients".to_owned();
        let sent = list.transfer(named, place, &after, mark, Amount::Gradients(stage));
        reduced.push(sent.map_or(after, |sent| vec![sent]));
    }
    // Both ends wait for each other.
    if let Some(last) = stages.len().checked_sub(1) {
        let both: Vec<OpId> =
            if last == 0 { reduced[0].clone() } else { [&reduced[0][..], &reduced[last][..]].concat() };
        let ends = if last == 0 { vec![0] } else { vec![0, last] };
        for stage in ends {
            let (place, mark) = traffic(stage, Traffic::Gradients);
            let named = |_: &List<'_>| "tied embedding".to_owned();
            if let Some(tied) = list.transfer(named, place, &both, mark, Amount::Tied(stage)) {
                reduced[stage] = vec![tied];
            }
        }
    }
    for (stage, after) in reduced.into_iter().enumerate() {
        let lane = Pipeline::computing(stage);
        let role = mark(stage, Role::Update);
        let mut update = list.add("update".to_owned(), lane, after, role, Amount::Update(stage));
        let (place, on_host) = traffic(stage, Traffic::Offload);
        let named = |_: &List<'_>| "update by the host".to_owned();
        let sent = list.transfer(named, place, &[update], on_host, Amount::Offload(stage));
        update = sent.unwrap_or(update);
        let (place, mark) = traffic(stage, Traffic::Weights);
        let named = |_: &List<'_>| "weights".to_owned();
        list.transfer(named, place, &[update], mark, Amount::Weights(stage));
    }
}
