//! From a scenario with a plan to the engine's program.

use super::costs::{StepWork, orders, shares};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use stepcast_analytic::transformer::outer::Outer;
use stepcast_analytic::transformer::placement::Group;
use stepcast_analytic::transformer::planned;
use stepcast_analytic::transformer::stages::Run;
use stepcast_core::fault::Fault;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Sends;
use stepcast_sim::pipeline::{Costs, Links, Pipeline, Tail, Traffic};

/// Divisor of the budget that limits the cost of a step of every replica, so that several steps are run.
const STEPS_IN_BUDGET: u64 = 20;

/// Events of a pass: computing, traffic and a send.
const EVENTS_OF_A_PASS: u64 = 4;

/// A pipeline, and the number of replicas that each simulated one stands for.
pub(super) struct Training {
    pub(super) pipeline: Pipeline,
    pub(super) samples: u64,
    /// Replicas that one stands for; more than 1 only where steps vary and there are too many for the budget.
    pub(super) stands_for: u64,
    /// The exchange of outer gradients; each replica is simulated separately.
    pub(super) outer: Option<Outer>,
}

/// The training of a scenario, with all replicas if steps vary and with one of each kind otherwise.
pub(super) fn training(scenario: &Scenario) -> Result<Training, Fault> {
    let planned = planned(scenario)?;
    let (plan, run) = (planned.plan, planned.run());
    let ranks = plan.tensor * plan.context;
    let kinds = run.by_replica();
    let (mut stages, orders): (Vec<_>, Vec<_>) = kinds.iter().map(orders).unzip();
    let stage_of = stages.swap_remove(0);
    let (costs, count) = match run.shared() {
        Some(count) => {
            (kinds.iter().map(|own| on_its_kind(StepWork::from_run(own))).collect(), count.to_vec())
        }
        None => {
            let replicas = Replicas::new(&scenario.cluster.groups, plan.pipeline, run.division.data, ranks);
            (costs(scenario, &replicas, &stage_of)?, replicas.count)
        }
    };
    let jitter = scenario.methods.simulate.given_jitter();
    let passes: usize = orders.iter().flatten().map(Vec::len).sum();
    let affordable =
        scenario.methods.simulate.budget / (STEPS_IN_BUDGET * EVENTS_OF_A_PASS * passes as u64).max(1);
    let (simulated, stands_for) = simulated(&count, jitter, affordable);
    let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let pipeline = Pipeline {
        shares: shares(&run, &stage_of),
        stage_of,
        orders,
        costs,
        replicas: simulated,
        blocking: plan.pipeline > 1 && plan.stage_sends() == Sends::Blocking,
        links: match plan.shares_links() {
            true => Links::Shared { slowdown: plan.interference },
            false => Links::Apart,
        },
        between: between(&kinds),
        joint: joint(&run, kinds.len() > 1),
        jitter,
        ranks: narrow(ranks * stands_for),
    };
    let outer = Outer::of(scenario, &run);
    Ok(Training { pipeline, samples: run.division.global_batch, stands_for, outer })
}

fn simulated(count: &[u64], jitter: f64, affordable: u64) -> (Vec<usize>, u64) {
    if jitter <= 0.0 {
        return ((0..count.len()).collect(), 1);
    }
    let all: u64 = count.iter().sum();
    let stands_for = all.div_ceil(affordable.clamp(1, all));
    let of_kind =
        |(kind, count): (usize, &u64)| std::iter::repeat_n(kind, count.div_ceil(stands_for) as usize);
    (count.iter().enumerate().flat_map(of_kind).collect(), stands_for)
}

/// The times of every kind of replica. Exchanges go at the pace of the slowest replica.
fn costs(scenario: &Scenario, replicas: &Replicas, stage_of: &[u32]) -> Result<Vec<Costs>, Fault> {
    let mut works: BTreeMap<Span, StepWork> = BTreeMap::new();
    for &span in replicas.kinds.iter().flatten().chain(&replicas.together) {
        if let Entry::Vacant(open) = works.entry(span) {
            let all = span == (0, scenario.cluster.groups.len() - 1);
            open.insert(if all { StepWork::new(scenario)? } else { StepWork::new(&on(scenario, span))? });
        }
    }
    let of_kind = |devices: &Vec<Span>| {
        let tail = |(stage, (own, together)): (usize, (&Span, &Span))| Tail {
            update: works[own].tails[stage].update,
            ..works[together].tails[stage]
        };
        let places = stage_of.iter().enumerate();
        Costs {
            passes: places
                .map(|(place, &stage)| works[&devices[stage as usize]].passes[place].clone())
                .collect(),
            sends: devices.iter().map(|own| works[own].send).collect(),
            tails: devices.iter().zip(&replicas.together).enumerate().map(tail).collect(),
        }
    };
    Ok(replicas.kinds.iter().map(of_kind).collect())
}

/// The times of replicas whose stages all have devices of one kind.
fn on_its_kind(work: StepWork) -> Costs {
    Costs { passes: work.passes, sends: vec![work.send; work.tails.len()], tails: work.tails }
}

fn between(kinds: &[Run<'_>]) -> [bool; Traffic::COUNT] {
    Traffic::ALL.map(|kind| {
        let seats = |run: &Run<'_>| match kind {
            Traffic::Tensor => Some(run.seats(Group::Tensor)),
            Traffic::Context => Some(run.seats(Group::Context)),
            Traffic::Expert => Some(run.expert_seats()),
            Traffic::Sharded => Some(run.sharding_seats()),
            Traffic::Offload => None,
            Traffic::SendForward | Traffic::SendBackward => Some(run.seats(Group::Pipeline)),
            Traffic::Gradients | Traffic::Weights => Some(run.seats(Group::DataContext)),
        };
        kinds.iter().filter_map(seats).any(|seats| seats.nodes > 1)
    })
}

/// Whether all replicas take part in each kind of traffic; replicas with different numbers of micro-batches meet at the end of a step.
fn joint(run: &Run<'_>, apart: bool) -> [bool; Traffic::COUNT] {
    let split = run.split();
    Traffic::ALL.map(|kind| match kind {
        Traffic::Gradients | Traffic::Weights => true,
        Traffic::Sharded => !apart,
        Traffic::Expert => !apart && split.expert > split.tensor * split.context,
        Traffic::Tensor
        | Traffic::Context
        | Traffic::Offload
        | Traffic::SendForward
        | Traffic::SendBackward => false,
    })
}

// Which devices every stage of every replica has, and which replicas are alike.
//
// Ranks are numbered tensor fastest, then context, data and pipeline; worker groups fill them in the order in which they
// are listed.

/// Neighbouring worker groups: the first and the last.
pub(super) type Span = (usize, usize);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Replicas {
    /// By kind of replica: its devices, by stage.
    pub(super) kinds: Vec<Vec<Span>>,
    pub(super) count: Vec<u64>,
    /// By stage: the devices of all replicas.
    pub(super) together: Vec<Span>,
}

impl Replicas {
    /// The replicas of `groups`, `ranks` of which compute a stage of one of `data` replicas.
    pub(super) fn new(groups: &[WorkerGroup], stages: u64, data: u64, ranks: u64) -> Self {
        let mut ends = Vec::with_capacity(groups.len());
        for group in groups {
            ends.push(ends.last().copied().unwrap_or(0) + u64::from(group.count));
        }
        let group_of = |rank: u64| ends.partition_point(|end| *end <= rank).min(groups.len().max(1) - 1);
        let span = |first: u64, count: u64| (group_of(first), group_of(first + count - 1));
        let mut kinds: BTreeMap<Vec<Span>, u64> = BTreeMap::new();
        let replicas = if groups.len() > 1 { data } else { 1 };
        for replica in 0..replicas {
            let devices = (0..stages).map(|stage| span((stage * data + replica) * ranks, ranks)).collect();
            *kinds.entry(devices).or_default() += data / replicas;
        }
        let (kinds, count) = kinds.into_iter().unzip();
        let together = (0..stages).map(|stage| span(stage * data * ranks, data * ranks)).collect();
        Self { kinds, count, together }
    }
}

/// The scenario with only the devices of `span`, in the same total number.
pub(super) fn on(scenario: &Scenario, (first, last): Span) -> Scenario {
    let mut part = scenario.clone();
    part.cluster.groups = scenario.cluster.groups[first..=last].to_vec();
    let missing = scenario.cluster.workers() - part.cluster.workers();
    if let Some(group) = part.cluster.groups.first_mut() {
        group.count += u32::try_from(missing).unwrap_or(u32::MAX - group.count);
    }
    part
}
