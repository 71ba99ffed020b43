//! The best plan if the objective is not a closed form: local search over cuts, starting from the plans of the rules.
//!
//! A plan is a set of cuts between gradients. From the best few plans known, every single cut is added, removed or
//! moved by one place as long as that helps; the number of evaluations is bounded. On up to twelve gradients all plans
//! are tried. The step time under a rule comes from the closed form if it holds, otherwise from the event engine.

use super::Line;
use crate::simulate::{BUDGET as BUDGET_KEY, all_reduce};
use stepcast_analytic::collectives::curve;
use stepcast_analytic::contention::Contention;
use stepcast_analytic::liu2022::{Mean, Plan, optimum_while, passes, plan, rule};
use stepcast_core::fault::Fault;
use stepcast_core::fitted::transfer::Curve;
use stepcast_core::method::CancelCheck;
use stepcast_core::pass::Pass;
use stepcast_core::prediction::Communication;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::{BufferReading, Fusion};
use stepcast_sim::{AllReduce, Messages};
use stepcast_stats::{deviation, mean, quantile};

/// Gradients up to which all plans are tried.
const FEW: usize = 12;

/// Evaluations after which the search ends.
const BUDGET: usize = 1_500;

const STARTS: usize = 3;

/// The best plan that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BestFusion {
    /// Gradients of each message.
    pub counts: Vec<u32>,
    /// How it was found.
    pub how: String,
}

/// The best plan, at least as good as any of `lines`.
pub(super) fn best(evaluator: &Evaluator<'_>, lines: &[Line]) -> Result<BestFusion, Fault> {
    let exact = evaluator.optimum()?;
    match exact {
        Some(exact) if evaluator.is_exact() => {
            Ok(BestFusion { counts: exact, how: "exact: no plan is faster".to_owned() })
        }
        _ if evaluator.pass().tensors() <= FEW => exhaustive(evaluator),
        exact => improved(evaluator, exact, lines),
    }
}

/// Improves the best of the plans of the rules and the plan `exact` of the closed form, where there was time to find it.
pub fn improved(
    evaluator: &Evaluator<'_>,
    exact: Option<Vec<u32>>,
    lines: &[Line],
) -> Result<BestFusion, Fault> {
    let beyond = match exact {
        Some(_) => String::new(),
        None => format!("; the exact plan needs `{BUDGET_KEY}` from {} on", evaluator.budget_of_optimum()),
    };
    let exact = exact.unwrap_or_else(|| vec![evaluator.pass().tensors() as u32]);
    let mut starts: Vec<(Seconds, Vec<bool>)> = vec![(evaluator.time(&exact)?, cuts(&exact))];
    for line in lines {
        let plan = cuts(&line.buckets);
        if !starts.iter().any(|(_, known)| *known == plan) {
            starts.push((evaluator.time(&line.buckets)?, plan));
        }
    }
    starts.sort_by(|a, b| a.0.get().total_cmp(&b.0.get()));
    let budget = evaluator.affordable().min(BUDGET);
    let mut search = Search { evaluator, left: budget };
    let mut best = starts[0].clone();
    for start in starts.into_iter().take(STARTS) {
        let found = search.improve(start)?;
        if found.0 < best.0 {
            best = found;
        }
    }
    let tried = budget - search.left;
    let why = if search.left > 0 { "no single cut made it faster" } else { "the budget was spent" };
    Ok(BestFusion {
        counts: counts(&best.1),
        how: format!("searched: {tried} plans were tried until {why}{beyond}"),
    })
}

struct Search<'a, 'b> {
    evaluator: &'a Evaluator<'b>,
    left: usize,
}

impl Search<'_, '_> {
    /// Takes the first change that helps, position by position, until a whole round brings no improvement.
    fn improve(&mut self, mut best: (Seconds, Vec<bool>)) -> Result<(Seconds, Vec<bool>), Fault> {
        let places = best.1.len();
        let mut unchanged = 0;
        let mut place = 0;
        while unchanged < places && self.left > 0 {
            let changes = [vec![place], vec![place, (place + 1) % places.max(1)]];
            let mut improved = false;
            for change in changes {
                let mut plan = best.1.clone();
                let moves = change.len() > 1;
                if moves && plan[change[0]] == plan[change[1]] {
                    continue;
                }
                for &cut in &change {
                    plan[cut] = !plan[cut];
                }
                if self.left == 0 {
                    break;
                }
                self.left -= 1;
                let time = self.evaluator.time(&counts(&plan))?;
                if time < best.0 {
                    best = (time, plan);
                    improved = true;
                }
            }
            unchanged = if improved { 0 } else { unchanged + 1 };
            place = (place + 1) % places;
        }
        Ok(best)
    }
}

/// The best of all plans, each of them tried.
pub fn exhaustive(evaluator: &Evaluator<'_>) -> Result<BestFusion, Fault> {
    let places = evaluator.pass().tensors().saturating_sub(1);
    let mut best: Option<(Seconds, Vec<u32>)> = None;
    for mask in 0..1_u32 << places {
        let plan: Vec<bool> = (0..places).map(|place| mask & (1 << place) != 0).collect();
        let counts = counts(&plan);
        let time = evaluator.time(&counts)?;
        if best.as_ref().is_none_or(|(fastest, _)| time < *fastest) {
            best = Some((time, counts));
        }
    }
    let counts = best.map_or_else(Vec::new, |(_, counts)| counts);
    Ok(BestFusion { counts, how: "exact: all plans were tried".to_owned() })
}

/// Whether there is a cut after each gradient but the last.
fn cuts(counts: &[u32]) -> Vec<bool> {
    let mut cuts = Vec::new();
    for &count in counts {
        cuts.extend(std::iter::repeat_n(false, count.saturating_sub(1) as usize));
        cuts.push(true);
    }
    cuts.pop();
    cuts
}

fn counts(cuts: &[bool]) -> Vec<u32> {
    let mut counts = vec![1];
    for &cut in cuts {
        match counts.last_mut() {
            Some(last) if !cut => *last += 1,
            _ => counts.push(1),
        }
    }
    counts
}

/// Number of message times that cost as much as one event of the engine.
const TIMES_PER_EVENT: u64 = 10;

/// Events of a gradient tensor in a simulated step: forward, backward, copies and a message.
const EVENTS_PER_TENSOR: u64 = 5;

/// Sampled steps for the interval of the gain.
const REPLICAS: u64 = 64;

/// Most workers that are sampled to find the slowest: more change little.
const SAMPLED_WORKERS: u64 = 64;

#[derive(Debug, Clone)]
pub(super) struct Evaluation {
    pub(super) iteration: Seconds,
    pub(super) scaling_factor: f64,
    pub(super) communication: Communication,
    /// Number of gradients in each message.
    pub(super) buckets: Vec<u32>,
}

/// Finds the times of plans of a scenario.
pub struct Evaluator<'a> {
    scenario: &'a Scenario,
    pass: Pass,
    update: Curve,
    contention: Contention,
    /// A single worker that represents all, if closed forms do not hold.
    engine: Option<AllReduce>,
    wanted: &'a CancelCheck<'a>,
}

impl<'a> Evaluator<'a> {
    /// An evaluator of an all-reduce scenario, with cancellation.
    pub fn new(scenario: &'a Scenario, wanted: &'a CancelCheck<'a>) -> Result<Self, Fault> {
        let passes = passes(scenario)?;
        let pass = Pass::slowest(&passes).unwrap_or_else(|| Pass::new(Vec::new()));
        let contention = Contention::from_scenario(scenario);
        let exchange = &scenario.strategy.exchange;
        let simple = exchange.channels <= 1 && exchange.interference <= 0.0 && exchange.copy_rate.is_none();
        let engine = match simple {
            true => None,
            false => {
                let one = AllReduce {
                    passes: vec![vec![contention.slowed(&pass)]],
                    kind: vec![0],
                    ..all_reduce::training(scenario)?
                };
                Some(one)
            }
        };
        Ok(Self { scenario, update: curve(scenario), pass, contention, engine, wanted })
    }

    /// A mean step of the slowest worker.
    pub(super) fn pass(&self) -> &Pass {
        &self.pass
    }

    /// How buffers wait: as in the paper if the scenario is one of the paper and the closed form holds.
    pub(super) fn reading(&self) -> BufferReading {
        match self.scenario.as_published && self.engine.is_none() {
            true => BufferReading::Serial,
            false => BufferReading::Concurrent,
        }
    }

    /// Whether the best plan of the schedule alone is the best plan: no contention, no engine.
    fn is_exact(&self) -> bool {
        self.engine.is_none() && self.contention == Contention::NONE
    }

    /// The best plan of the schedule alone; none if the budget is too small.
    pub fn optimum(&self) -> Result<Option<Vec<u32>>, Fault> {
        if self.budget_of_optimum() > self.scenario.methods.simulate.budget {
            return Ok(None);
        }
        let pass = self.contention.slowed(&self.pass);
        optimum_while(&pass, &self.update, self.wanted).map(Some).ok_or_else(stopped)
    }

    /// The budget of an engine that takes as long as the best plan of the schedule alone.
    fn budget_of_optimum(&self) -> u64 {
        let tensors = self.pass.tensors() as u64;
        tensors.saturating_mul(tensors) / (2 * TIMES_PER_EVENT)
    }

    /// Number of plans that the budget pays for.
    pub(super) fn affordable(&self) -> usize {
        let each = match self.engine {
            Some(_) => EVENTS_PER_TENSOR * TIMES_PER_EVENT,
            None => 1,
        };
        let most = self.scenario.methods.simulate.budget.saturating_mul(TIMES_PER_EVENT);
        (most / each.saturating_mul(self.pass.tensors().max(1) as u64)).max(1) as usize
    }

    pub(super) fn evaluate(&self, fusion: &Fusion) -> Result<Evaluation, Fault> {
        if (self.wanted)().is_break() {
            return Err(stopped());
        }
        let rule = rule(self.scenario, fusion);
        let plan = plan(&self.contention.slowed(&self.pass), &self.update, &rule);
        let buckets = self.buckets(&plan);
        let Some(engine) = &self.engine else {
            let Mean { outcome, communication } = self.contention.mean(&self.pass, &self.update, &rule);
            let iteration = outcome.iteration();
            return Ok(Evaluation {
                iteration,
                scaling_factor: self.alone() / iteration,
                communication,
                buckets,
            });
        };
        let messages = all_reduce::messages(&self.pass, &self.update, &rule);
        let (iteration, communication) = self.simulate(engine, messages)?;
        Ok(Evaluation { iteration, scaling_factor: self.alone() / iteration, communication, buckets })
    }

    /// Computing time of a step in which nothing is exchanged.
    fn alone(&self) -> Seconds {
        self.pass.computing() + self.pass.update
    }

    /// The time of a step with these numbers of gradients in its messages.
    pub fn time(&self, counts: &[u32]) -> Result<Seconds, Fault> {
        Ok(self.evaluate(&Fusion::Buckets(counts.into()))?.iteration)
    }

    fn simulate(&self, engine: &AllReduce, messages: Messages) -> Result<(Seconds, Communication), Fault> {
        all_reduce::mean_step(&AllReduce { messages, ..engine.clone() })
    }

    fn buckets(&self, plan: &Plan) -> Vec<u32> {
        let tensors = |first: usize, last: usize| {
            let layers = &self.pass.layers[first..=last];
            layers.iter().filter(|layer| layer.gradients > Bytes::ZERO).count() as u32
        };
        plan.flushes.iter().map(|flush| tensors(flush.first, flush.last)).collect()
    }

    /// The 5 % and 95 % quantiles, over steps with varying computing times, of the gain of the plan `counts` over
    /// `fusion`: the slowest of all workers decides.
    pub(super) fn gain_interval(&self, fusion: &Fusion, counts: &[u32]) -> Result<[f64; 2], Fault> {
        let workers = self.scenario.cluster.workers().min(SAMPLED_WORKERS) as usize;
        let mut gains = Vec::with_capacity(REPLICAS as usize);
        let mut factors = (0..).flat_map(|round| {
            let seed = self.scenario.methods.simulate.seed.wrapping_add(round);
            stepcast_sim::jitter_factors(self.jitter(), seed).collect::<Vec<_>>()
        });
        for _ in 0..REPLICAS {
            let slowest = factors.by_ref().take(workers).fold(0.0, f64::max);
            let replica = Self {
                scenario: self.scenario,
                wanted: self.wanted,
                pass: self.pass.scaled(slowest, Seconds::ZERO),
                update: self.update.clone(),
                contention: self.contention,
                engine: self.engine.as_ref().map(|engine| AllReduce {
                    passes: vec![vec![self.contention.slowed(&self.pass.scaled(slowest, Seconds::ZERO))]],
                    ..engine.clone()
                }),
            };
            gains.push(replica.evaluate(fusion)?.iteration / replica.time(counts)? - 1.0);
        }
        Ok([quantile(&mut gains, 0.05), quantile(&mut gains, 0.95)])
    }

    /// Relative standard deviation of steps, measured or given in the scenario.
    fn jitter(&self) -> f64 {
        match self.scenario.profile() {
            Some(profile) if profile.steps.len() > 1 => {
                let lengths: Vec<f64> = profile.steps.iter().map(|step| step.length).collect();
                deviation(&lengths).unwrap_or(0.0) / mean(&lengths)
            }
            _ => self.scenario.methods.simulate.varied(),
        }
    }
}

fn stopped() -> Fault {
    Fault::new("it was stopped before it was done", "ask again")
}
