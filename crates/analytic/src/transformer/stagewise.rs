//! The layers of every stage, and how many of them are computed again, chosen for each stage by itself (the idea of
//! Galvatron: Miao 2022).
//!
//! A stage needs memory for its own layers alone, and no step becomes shorter if a stage recomputes more. So a stage with given
//! layers recomputes the fewest with which it fits. What is left is to divide the layers. With c the time of a micro-batch
//! on a stage and A that of the stages before it, there and back, no step is shorter than the largest A + m·c. The least
//! such bound of the stages from k on, which begin with layer l,
//!
//! B(k, l) = min over n of max(m·c(k, l, n), c(k, l, n) + B(k + 1, l + n)),
//!
//! is computed backward over stages. Divisions are then tried in the order of these bounds until none is left whose bound
//! is below the shortest step found.
//!
//! With several chunks on a stage layers stay as they are, and all chunks of a stage recompute the same number.

use super::memory::MemoryInputs;
use super::schedules;
use super::spent::Pass;
use super::stages::Run;
use super::step::LayerPasses;
use std::collections::HashMap;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::strategy::{Plan, Sends, stage_share};

/// Limits: number of divisions, and total passes of micro-batches through stages over all of them.
const MOST_STEPS: u64 = 256;
const MOST_PASSES: u64 = 100_000;

/// Largest number of choices tried for a stage.
const MOST_CHOICES: usize = 50_000;

/// Bounds are computed in another order than steps: allowance for rounding.
const ROUNDING: f64 = 1e-9;

/// Layers and recomputation of every stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Stagewise {
    pub layers: Vec<u64>,
    /// Recomputed layers of each stage, counted from its first.
    pub again: Vec<u64>,
    pub step: Seconds,
    /// Memory of the tensors of the fullest rank.
    pub memory: Bytes,
    /// No other division of the layers over these stages has a shorter step than this.
    pub least: Seconds,
}

impl Stagewise {
    pub fn plan(&self, plan: &Plan) -> Plan {
        let (all, places) = (self.layers.iter().sum(), self.layers.len() as u64);
        let usual = (0..).zip(&self.layers).all(|(place, own)| *own == stage_share(all, places, place));
        let none = self.again.iter().all(|again| *again == 0);
        Plan {
            stage_layers: (!usual).then(|| self.layers.clone()),
            recompute: if none { Vec::new() } else { plan.recompute.clone() },
            recompute_layers: None,
            stage_recompute: (!none).then(|| self.again.clone()),
            ..plan.clone()
        }
    }
}

/// A stage with some layers.
#[derive(Debug, Clone, Copy)]
struct Cell {
    again: u64,
    /// Time of all micro-batches.
    busy: f64,
    /// Time of all micro-batches without the gradients of weights, which may come after the last of them has gone back.
    returned: f64,
    /// Time of a micro-batch there and back.
    path: f64,
    /// Time of a micro-batch there.
    forward: f64,
    /// Time after the last micro-batch.
    tail: f64,
    memory: Bytes,
}

/// The stages of `run`, whose plan gives the kind of recomputation, with the shortest step below `limit` that fits.
pub fn stagewise(run: &Run<'_>, fits: &dyn Fn(Bytes) -> bool, limit: Seconds) -> Option<Stagewise> {
    match (run.plan.pipeline, run.plan.virtual_stages) {
        (1, _) => None,
        (_, 1) => Search::new(run, fits, limit).divided(),
        _ => chunked(run, fits).filter(|found| found.step < limit),
    }
}

/// The usual layers, and for every stage the fewest recomputed layers with which it fits.
fn chunked(run: &Run<'_>, fits: &dyn Fn(Bytes) -> bool) -> Option<Stagewise> {
    let Plan { pipeline, virtual_stages, .. } = *run.plan;
    let places = pipeline * virtual_stages;
    let layers: Vec<u64> = (0..places).map(|place| stage_share(run.shape.layers, places, place)).collect();
    let each = layers.iter().copied().max().unwrap_or(0);
    let stage_of = |place: u64| schedules::stage_of(run.plan.schedule_kind(), pipeline, place);
    let mut again = vec![0; places as usize];
    let mut memory = Bytes::ZERO;
    for stage in 0..pipeline {
        let with = |count: u64| {
            let own = |place: u64| if stage_of(place) == stage { count } else { 0 };
            let stage_recompute: Vec<u64> = (0..places).map(own).collect();
            let held = run.held();
            MemoryInputs { stage_layers: &[], stage_recompute: &stage_recompute, ..held }.rank(stage).total()
        };
        let (count, own) = (0..=each).map(|count| (count, with(count))).find(|(_, total)| fits(*total))?;
        memory = memory.max(own);
        for place in (0..places).filter(|place| stage_of(*place) == stage) {
            again[place as usize] = count.min(layers[place as usize]);
        }
    }
    let mut found = Stagewise { layers, again, step: Seconds::ZERO, memory, least: Seconds::ZERO };
    let plan = found.plan(run.plan);
    found.step = Run { plan: &plan, ..*run }.step().ok()?.time;
    found.least = found.step;
    Some(found)
}

struct Search<'a> {
    run: &'a Run<'a>,
    fits: &'a dyn Fn(Bytes) -> bool,
    /// By kind of stage.
    kinds: Vec<(Run<'a>, LayerPasses)>,
    /// Whether all layers are of one kind, so that it does not matter which of them a stage has.
    alike: bool,
    send: f64,
    blocking: bool,
    cells: HashMap<[u64; 3], Option<Cell>>,
    quickest: HashMap<[u64; 3], f64>,
    /// Layers and recomputed layers of every stage, as passed to the memory model; kept to avoid allocation.
    asked: [Vec<u64>; 2],
    /// B, by stage and layer.
    bounds: Vec<Vec<f64>>,
    limit: f64,
    best: Option<Stagewise>,
    /// Steps that may still be computed.
    steps: u64,
    choices: usize,
}

impl<'a> Search<'a> {
    fn new(run: &'a Run<'a>, fits: &'a dyn Fn(Bytes) -> bool, limit: Seconds) -> Self {
        let shape = run.shape;
        let (send, blocking) = run.send();
        let stages = run.plan.pipeline as usize;
        Self {
            run,
            fits,
            kinds: run.by_kind_of_stage().into_iter().map(|run| (run, run.layer_passes())).collect(),
            alike: shape.window.is_none()
                && shape.pattern.is_none()
                && !shape.tuning.frozen_embedding
                && [0, shape.layers].contains(&shape.expert_layers()),
            send: send.get(),
            blocking: blocking && run.plan.stage_sends() == Sends::Blocking,
            cells: HashMap::new(),
            quickest: HashMap::new(),
            asked: [vec![0; stages], vec![0; stages]],
            bounds: Vec::new(),
            limit: limit.get(),
            best: None,
            steps: (MOST_PASSES / (run.plan.pipeline * run.division.micro_batches).max(1))
                .clamp(1, MOST_STEPS),
            choices: 0,
        }
    }

    fn divided(mut self) -> Option<Stagewise> {
        self.bound();
        let least = self.bounds[0][0];
        if least >= self.limit {
            return None;
        }
        let stages = self.run.plan.pipeline as usize;
        let mut chosen = Vec::with_capacity(stages);
        self.visit(&mut chosen, Before::default());
        let whole = self.steps > 0 && self.choices < MOST_CHOICES;
        let mut best = self.best?;
        best.least = if whole { best.step } else { Seconds::new(least).min(best.step) };
        Some(best)
    }

    fn stages(&self) -> u64 {
        self.run.plan.pipeline
    }

    /// Numbers of layers that `stage` may have from layer `from` on, leaving one for each stage behind it.
    fn counts(&self, stage: u64, from: u64) -> std::ops::RangeInclusive<u64> {
        let left = self.run.shape.layers - from;
        let behind = self.stages() - 1 - stage;
        match behind {
            0 => left..=left,
            _ => 1..=left.saturating_sub(behind),
        }
    }

    /// Fills in B.
    fn bound(&mut self) {
        let (stages, layers) = (self.stages(), self.run.shape.layers);
        let open = f64::INFINITY;
        self.bounds = vec![vec![open; layers as usize + 1]; stages as usize + 1];
        self.bounds[stages as usize][layers as usize] = 0.0;
        for stage in (0..stages).rev() {
            let first = if stage == 0 { 0..=0 } else { stage..=layers - (stages - stage) };
            for from in first {
                let least = self.possible(stage, from).into_iter().map(|(_, cell, behind)| {
                    let tail = if stage == 0 { cell.tail } else { 0.0 };
                    cell.returned.max(cell.path + behind) + tail
                });
                let least = least.fold(open, f64::min) * (1.0 - ROUNDING);
                self.bounds[stage as usize][from as usize] = least;
            }
        }
    }

    /// Numbers of layers that `stage` may have from layer `from` on, its times with them, and the bound of the stages behind.
    fn possible(&mut self, stage: u64, from: u64) -> Vec<(u64, Cell, f64)> {
        let mut found = Vec::new();
        for count in self.counts(stage, from) {
            let behind = self.bounds[stage as usize + 1][(from + count) as usize];
            if behind == f64::INFINITY {
                continue;
            }
            if self.run.division.micro_batches as f64 * self.quickest(stage, from, count) >= self.limit {
                // More layers take longer.
                break;
            }
            found.extend(self.cell(stage, from, count).map(|cell| (count, cell, behind)));
        }
        found
    }

    fn pass(&self, stage: u64, from: u64, count: u64, again: u64) -> [f64; 3] {
        let (run, layers) = &self.kinds[self.run.kind_of_stage(self.stages(), stage)];
        let Pass { forward, backward, weight } = run.place(layers, stage, from..from + count, again);
        [forward.total().get(), backward.total().get(), weight.total().get()]
    }

    fn key(&self, stage: u64, from: u64, count: u64) -> [u64; 3] {
        [stage, if self.alike { 0 } else { from }, count]
    }

    /// A micro-batch without recomputation.
    fn quickest(&mut self, stage: u64, from: u64, count: u64) -> f64 {
        let key = self.key(stage, from, count);
        if let Some(known) = self.quickest.get(&key) {
            return *known;
        }
        let sum = self.pass(stage, from, count, 0).iter().sum();
        self.quickest.insert(key, sum);
        sum
    }

    /// Times and recomputation of a stage with these layers; none if it cannot fit.
    fn cell(&mut self, stage: u64, from: u64, count: u64) -> Option<Cell> {
        let key = self.key(stage, from, count);
        if let Some(known) = self.cells.get(&key) {
            return *known;
        }
        let made = self.make(stage, from, count);
        self.cells.insert(key, made);
        made
    }

    fn make(&mut self, stage: u64, from: u64, count: u64) -> Option<Cell> {
        let at = stage as usize;
        let [mut layers, mut recomputed] = std::mem::take(&mut self.asked);
        layers.fill(0);
        // All earlier layers lie on the first stage.
        layers[0] = from;
        layers[at] = count;
        let held = |recomputed: &[u64]| {
            MemoryInputs { stage_layers: &layers, stage_recompute: recomputed, ..self.run.held() }
                .rank(stage)
                .total()
        };
        let found = (0..=count).find_map(|again| {
            recomputed[at] = again;
            let memory = held(&recomputed);
            (self.fits)(memory).then_some((again, memory))
        });
        let once = self.run.tail_work(&MemoryInputs { stage_layers: &layers, ..self.run.held() }, stage);
        self.asked = [layers, recomputed];
        let (again, memory) = found?;
        let [forward, backward, weight] = self.pass(stage, from, count, again);
        let m = self.run.division.micro_batches as f64;
        let ends = u32::from(stage > 0) + u32::from(stage + 1 < self.stages());
        let sent = (m * f64::from(ends) - 1.0).max(0.0) * self.send;
        let blocked = if self.blocking { sent } else { 0.0 };
        let last = if schedules::is_split(self.run.plan.schedule_kind()) { weight } else { backward };
        Some(Cell {
            again,
            busy: m * (forward + backward + weight) + blocked,
            returned: (m * (forward + backward) + blocked).max(sent),
            path: forward + backward + 2.0 * self.send,
            forward: forward + self.send,
            tail: once.finished_after(&self.run.overlaps(), count, 0.0, Some(last)),
            memory,
        })
    }

    /// Tries the layers of the next stage, the most promising first.
    fn visit(&mut self, chosen: &mut Vec<(u64, Cell)>, before: Before) {
        let stage = chosen.len() as u64;
        if stage == self.stages() {
            return self.try_step(chosen);
        }
        let possible = self.possible(stage, before.layers).into_iter();
        let bounded = possible.map(|(count, cell, behind)| {
            (before.bound(&cell, stage == 0, behind) * (1.0 - ROUNDING), count, cell)
        });
        let mut next: Vec<(f64, u64, Cell)> = bounded.collect();
        next.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (bound, count, cell) in next {
            self.choices += 1;
            if bound >= self.limit || self.steps == 0 || self.choices >= MOST_CHOICES {
                return;
            }
            chosen.push((count, cell));
            self.visit(chosen, before.with(&cell, stage == 0, count));
            chosen.pop();
        }
    }

    fn try_step(&mut self, chosen: &[(u64, Cell)]) {
        self.steps -= 1;
        let mut found = Stagewise {
            layers: chosen.iter().map(|(count, _)| *count).collect(),
            again: chosen.iter().map(|(_, cell)| cell.again).collect(),
            step: Seconds::ZERO,
            memory: chosen.iter().map(|(_, cell)| cell.memory).fold(Bytes::ZERO, Bytes::max),
            least: Seconds::ZERO,
        };
        let plan = found.plan(self.run.plan);
        let Ok(step) = (Run { plan: &plan, ..*self.run }).step() else { return };
        if step.time.get() < self.limit {
            self.limit = step.time.get();
            found.step = step.time;
            self.best = Some(found);
        }
    }
}

/// The stages before one.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    layers: u64,
    /// A micro-batch there and back, and there.
    path: f64,
    forward: f64,
    /// Time of the first stage after the last micro-batch.
    tail: f64,
    bound: f64,
}

impl Before {
    /// A lower bound of a step in which such a stage follows, and then stages with the bound `behind`.
    fn bound(&self, cell: &Cell, first: bool, behind: f64) -> f64 {
        let own = self.with(cell, first, 0);
        own.bound.max(own.path + behind + own.tail)
    }

    fn with(&self, cell: &Cell, first: bool, count: u64) -> Self {
        let tail = if first { cell.tail } else { self.tail };
        let own = (self.path + cell.returned + tail).max(self.forward + cell.busy + cell.tail);
        Self {
            layers: self.layers + count,
            path: self.path + cell.path,
            forward: self.forward + cell.forward,
            tail,
            bound: self.bound.max(own),
        }
    }
}
