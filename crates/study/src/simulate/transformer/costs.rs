//! What a micro-batch and a step cost on every stage, from the closed form: computing, traffic that a stage waits for,
//! and traffic beside computing.
//!
//! The closed form knows what is exposed of every kind of traffic. What is hidden is the rest: its traffic if nothing were
//! sent beside computing, less what is exposed.

use stepcast_analytic::transformer::schedules::{self, Sizes};
use stepcast_analytic::transformer::spent::{Pass, Spent};
use stepcast_analytic::transformer::stages::Run;
use stepcast_analytic::transformer::step::StageStep;
use stepcast_analytic::transformer::tail::Tail;
use stepcast_analytic::transformer::{planned, run};
use stepcast_core::fault::Fault;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;
use stepcast_sim::pipeline::{self, Cost, Phase, Task, Traffic};

/// Traffic below this share of what is exposed is rounding.
const ROUNDING: f64 = 1e-9;

/// The closed form of one set of devices, on all stages.
#[derive(Debug, Clone)]
pub(super) struct Closed {
    /// By virtual stage.
    pub(super) passes: Vec<[Cost; Phase::COUNT]>,
    /// By stage.
    pub(super) tails: Vec<pipeline::Tail>,
    /// One send between stages.
    pub(super) send: f64,
}

impl Closed {
    /// The times of `scenario` on its slowest device and port.
    pub(super) fn of(scenario: &Scenario) -> Result<Self, Fault> {
        let (shape, plan) = planned(scenario)?;
        let run = run(scenario, &shape, plan)?;
        let in_turn = plan.without_overlap();
        let alone = Run { plan: &in_turn, ..run };
        let (exposed, all) = (run.places(), alone.places());
        let (step, alone) = (stages(&run)?, stages(&alone)?);
        let tail = |(index, (stage, alone)): (usize, (&StageStep, &StageStep))| {
            tail(stage, &alone.tail, run.tied(index as u64))
        };
        Ok(Self {
            passes: exposed.iter().zip(&all).map(|(exposed, all)| passes(exposed, all)).collect(),
            tails: step.iter().zip(&alone).enumerate().map(tail).collect(),
            send: run.send().0.get(),
        })
    }
}

fn stages(run: &Run<'_>) -> Result<Vec<StageStep>, Fault> {
    let stuck =
        |_| Fault::in_key("strategy.plan.schedule", "a stage waits for itself", "use another schedule");
    Ok(run.step().map_err(stuck)?.stages)
}

/// What is left of `all` beside `exposed`.
fn hidden(exposed: Seconds, all: Seconds) -> f64 {
    let left = (all - exposed).get();
    if left > ROUNDING * all.get() { left } else { 0.0 }
}

fn cost(exposed: &Spent, all: &Spent) -> Cost {
    let kinds = |spent: &Spent| [spent.tensor, spent.context, spent.expert, spent.sharded, spent.offload];
    let mut cost = Cost {
        recompute: exposed.recompute.get(),
        compute: exposed.compute.get(),
        host: exposed.host.get(),
        exposed: kinds(exposed).map(Seconds::get),
        hidden: [0.0; Traffic::OF_A_PASS.len()],
    };
    for (to, (exposed, all)) in cost.hidden.iter_mut().zip(kinds(exposed).into_iter().zip(kinds(all))) {
        *to = hidden(exposed, all);
    }
    cost
}

/// The passes of a virtual stage. With a split backward, sharded weights, gradients and what the host's memory holds
/// travel beside both parts of it. The weights with which the backward pass begins may take longer than all of it: they
/// were fetched before.
fn passes(exposed: &Pass, all: &Pass) -> [Cost; Phase::COUNT] {
    let forward = cost(&exposed.forward, &all.forward);
    let mut backward = cost(&exposed.backward, &all.backward);
    let mut weight = cost(&exposed.weight, &all.weight);
    let (first, second) = (backward.total(), weight.total());
    for kind in [Traffic::Sharded as usize, Traffic::Offload as usize] {
        let all = backward.hidden[kind].min(first + second);
        backward.hidden[kind] = all;
        if second > 0.0 {
            backward.hidden[kind] = all * first / (first + second);
            weight.hidden[kind] += all - backward.hidden[kind];
        }
    }
    [forward, backward, weight]
}

fn tail(stage: &StageStep, alone: &Tail, tied: Seconds) -> pipeline::Tail {
    let tail = &stage.tail;
    pipeline::Tail {
        layers: (stage.layers.dense + stage.layers.expert) as f64,
        gradients: (tail.gradients - tied).max(Seconds::ZERO).get(),
        hidden_gradients: hidden(tail.gradients, alone.gradients),
        tied: tied.get(),
        update: tail.update.get(),
        offload: tail.offload.get(),
        weights: tail.weights.get(),
        hidden_weights: hidden(tail.weights, alone.weights),
    }
}

/// The stage of every virtual stage, and the passes of every stage in the order of its schedule.
pub(super) fn orders(run: &Run<'_>) -> (Vec<u32>, Vec<Vec<Task>>) {
    let kind = run.plan.schedule_kind();
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let (p, v) = (run.plan.pipeline, run.plan.virtual_stages);
    let sizes = Sizes {
        stages: narrow(p),
        micro_batches: narrow(run.division.micro_batches),
        chunks: narrow(v),
        group: None,
    };
    let stage_of: Vec<u32> = (0..p * v).map(|place| narrow(schedules::stage_of(kind, p, place))).collect();
    let order = |stage: u32| {
        let places: Vec<u32> =
            (0..).zip(&stage_of).filter(|(_, on)| **on == stage).map(|(place, _)| place).collect();
        let task = |operation: &schedules::Operation| Task {
            phase: match operation.kind {
                schedules::Kind::Forward => Phase::Forward,
                schedules::Kind::Backward => Phase::Backward,
                schedules::Kind::Weight => Phase::Weight,
            },
            micro_batch: operation.micro_batch,
            place: places[operation.chunk as usize],
        };
        schedules::order(kind, &sizes, stage).iter().map(task).collect()
    };
    let orders = (0..sizes.stages).map(order).collect();
    (stage_of, orders)
}
