//! From a step to training: time, interruptions, cost and energy, for a number of machines.

use super::report::{Checkpoints, EndlessTraining, Energy as EnergyReport, Training};
use crate::predict::interval::of_product;
use stepcast_analytic::reliability::{
    Interrupted, best_spares, daly, enough_spares, held_back, spares_for, young,
};
use stepcast_analytic::transformer::compute::compilation;
use stepcast_core::fault::Fault;
use stepcast_core::machine::{Assumed, Reliability};
use stepcast_core::model::transformer::Transformer;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::strategy::Plan;

/// Goodput below which a run counts as endless; below, the goodput from which it counts as making progress.
const LEAST_GOODPUT: f64 = 0.01;
const PROGRESS: f64 = 0.5;

/// Share of the time for which the recommended spare machines suffice.
const SPARES_SUFFICE: f64 = 0.99;

/// Largest slowdown; infinite ones could not be compared.
const MOST_SLOWDOWN: f64 = 1e9;

/// Time and cost of a run on some machines, for each second of its steps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrainingRates {
    /// Steps to make, if the tokens are known.
    pub(super) steps: Option<f64>,
    /// Time of a run for each second of steps.
    pub(crate) slowdown: f64,
    /// Time of steps with evaluations, relative to steps without.
    evaluated: f64,
    /// Time to compile the first step.
    pub(crate) compilation: f64,
    /// Cost of all machines, spares included, for a second.
    pub(crate) cost: Option<f64>,
    run: TrainingInputs,
}

/// Inputs and intermediate figures of the slowdown.
#[derive(Debug, Clone, PartialEq)]
struct TrainingInputs {
    interrupted: Interrupted,
    interval: Option<f64>,
    checkpoint: f64,
    /// Time between interruptions and slowdown at the ends of the range of their rate, the fewest first.
    range: Option<[(f64, f64); 2]>,
    under_repair: Option<f64>,
    available: f64,
    spares: u32,
    /// Time of a step with slow machines, relative to a step without.
    slow: f64,
    /// Slow machines replaced per second.
    replaced: Option<f64>,
}

impl TrainingRates {
    /// The rates of `scenario`, whose cluster has the machines of the plans.
    pub(crate) fn new(
        scenario: &Scenario,
        shape: &Transformer,
        plan: &Plan,
        tokens: Option<f64>,
        global_batch: u64,
    ) -> Result<Self, Fault> {
        let assumed = Reliability::shipped()?;
        let given = scenario.failures;
        let workers = scenario.cluster.workers() as f64;
        let node = f64::from(scenario.cluster.workers_per_node());
        let nodes = (workers / node).ceil();
        let per_step = (global_batch * shape.sequence) as f64;
        let tokens = tokens.or_else(|| {
            let data = scenario.data?;
            Some(scenario.epoch_samples()? as f64 * data.epochs as f64 * shape.sequence as f64)
        });
        let time = |given: Option<Seconds>, assumed: f64| given.map_or(assumed, Seconds::get);
        let hourly = given.and_then(|it| it.rate).unwrap_or(assumed.interruptions.value);
        let by_machines = given.map_or(0.0, |it| it.node_rate) * nodes;
        // Slow machines of all, in an hour.
        let slow_rate = given.and_then(|it| Some(it.slow_share * nodes * 3600.0 / it.slow_time?.get()));
        let between = |hourly: f64, replaced: bool| {
            let slow = slow_rate.filter(|_| replaced).unwrap_or(0.0);
            match hourly * workers + by_machines + slow {
                rate if rate > 0.0 => 3600.0 / rate,
                _ => f64::INFINITY,
            }
        };
        let range = given.and_then(|it| it.rate_range);
        let range = range.or(given.and_then(|it| it.rate).is_none().then_some(assumed.interruptions.range));
        if let Some([least, most]) = range
            && !(0.0 <= least && least <= hourly && hourly <= most && most.is_finite())
        {
            let reason = format!("{least} to {most} does not hold the rate, {hourly}");
            return Err(Fault::in_key(
                "failures.rate-range",
                reason,
                "give the least and the most, with `rate` between them",
            ));
        }
        let restart = time(given.and_then(|it| it.detection), assumed.detection.value)
            + time(given.and_then(|it| it.restart), assumed.restart.value);
        let storage = given.and_then(|it| it.storage).map_or(assumed.storage.value, BytesPerSec::get);
        // Weights and optimiser states, once; with adapters, only the adapters'.
        let [weight, _, optimiser] = plan.states.bytes();
        let kept = match shape.tuning.adapters {
            Some(_) => shape.trained_parameters(),
            None => shape.parameters(),
        };
        let checkpoint = kept as f64 * (weight + optimiser) as f64;
        let writing = checkpoint / (storage * nodes);
        let (stall, lag) = match given.filter(|it| it.asynchronous) {
            Some(it) => (it.snapshot.get(), writing),
            None => (writing, 0.0),
        };
        let with = |replaced: bool| {
            let between = |hourly: f64| between(hourly, replaced);
            let interrupted = Interrupted { between: between(hourly), restart, stall, lag };
            let interval = given.and_then(|it| it.interval).map(Seconds::get).or(interrupted.best_interval());
            let under_repair =
                given.and_then(|it| it.repair).map(|repair| repair.get() / interrupted.between);
            let chosen = || under_repair.map_or(0, |mean| best_spares(mean, nodes));
            let spares = given.and_then(|it| it.spares).unwrap_or_else(chosen);
            let available = under_repair.map_or(1.0, |mean| enough_spares(mean, spares));
            let held = given.map_or(1.0, |it| held_back(it.slow_share, it.slow_factor, nodes));
            let slow = if replaced { 1.0 } else { held };
            let of = |run: Interrupted| {
                let work = interval.map_or(1.0, |interval| run.slowdown(interval));
                (work * slow / available).min(MOST_SLOWDOWN)
            };
            let range =
                range.map(|ends| ends.map(|end| Interrupted { between: between(end), ..interrupted }));
            let range = range.map(|runs| runs.map(|run| (run.between, of(run))));
            let replaced = slow_rate.filter(|_| replaced).map(|rate| rate / 3600.0);
            let run = TrainingInputs {
                interrupted,
                interval,
                checkpoint,
                range,
                under_repair,
                available,
                spares,
                slow,
                replaced,
            };
            (of(interrupted), run)
        };
        let (mut slowdown, mut run) = with(false);
        if slow_rate.is_some() {
            let other = with(true);
            if other.0 < slowdown {
                (slowdown, run) = other;
            }
        }
        let all = (nodes + f64::from(run.spares)) / nodes;
        Ok(Self {
            steps: tokens.map(|tokens| tokens / per_step),
            slowdown,
            evaluated: scenario.with_evaluations(global_batch as f64),
            compilation: if scenario.strategy.compiled {
                compilation(shape.layers, plan.implemented_by())
            } else {
                0.0
            },
            cost: scenario.hourly_cost().map(|cost| cost * all / 3600.0),
            run,
        })
    }

    /// The share of a run spent in steps that are kept, and its range, the least first.
    pub(super) fn goodput(&self) -> (f64, Option<[f64; 2]>) {
        (1.0 / self.slowdown, self.run.range.map(|[few, many]| [1.0 / many.1, 1.0 / few.1]))
    }

    /// Time and cost of training with steps of this length; of one step if the tokens are not known.
    pub(super) fn training(&self, step: f64) -> (f64, Option<f64>) {
        let time = match self.steps {
            Some(steps) => step * steps * self.evaluated * self.slowdown + self.compilation,
            None => step,
        };
        (time, self.cost.map(|cost| cost * time))
    }

    /// Whether training ends, if the tokens are known.
    pub(super) fn ends(&self) -> bool {
        self.steps.is_none() || self.slowdown * LEAST_GOODPUT <= 1.0
    }

    /// Whether at least half of the time is progress.
    pub(super) fn progresses(&self) -> bool {
        self.slowdown * PROGRESS <= 1.0
    }

    /// Why training never ends; `machines` is the number on which it would.
    pub(super) fn endless(&self, machines: Option<u64>) -> Option<EndlessTraining> {
        let TrainingInputs { interrupted, under_repair, available, spares, .. } = &self.run;
        (!self.ends()).then(|| EndlessTraining {
            between_interruptions: Seconds::new(interrupted.between),
            restart: Seconds::new(interrupted.restart),
            spares: *spares,
            enough_spares: under_repair
                .filter(|_| *available < PROGRESS)
                .map(|mean| spares_for(mean, SPARES_SUFFICE)),
            machines,
        })
    }

    /// All figures of training with steps of this length, whose interval is a factor e^±`half_width`; `of_price` is the range of
    /// prices.
    pub(super) fn report(
        &self,
        scenario: &Scenario,
        step: f64,
        half_width: f64,
        of_price: [f64; 2],
    ) -> Result<Option<Training>, Fault> {
        let Some(steps) = self.steps.filter(|_| self.ends()) else { return Ok(None) };
        let (time, cost) = self.training(step);
        let TrainingInputs {
            interrupted,
            interval,
            checkpoint,
            range,
            under_repair,
            available,
            spares,
            slow,
            replaced,
        } = &self.run;
        let interruptions = time / interrupted.between;
        let between = Some(interrupted.between).filter(|between| between.is_finite());
        let by = |formula: fn(f64, f64) -> f64| {
            between.map(|between| Seconds::new(formula(interrupted.stall, between)))
        };
        let checkpoints = interval.map(|interval| Checkpoints {
            size: Bytes::new(*checkpoint),
            interval: Seconds::new(interval),
            young: by(young),
            daly: by(daly),
            standstill: Seconds::new(interrupted.stall),
            writing: Seconds::new(interrupted.lag.max(interrupted.stall)),
        });
        let whole = step * steps * self.evaluated;
        // Independent causes, as logarithms.
        let ends = range.map_or([self.slowdown; 2], |ends| ends.map(|(_, slowdown)| slowdown));
        let widths = ends.map(|slowdown| (slowdown / self.slowdown).ln().hypot(half_width));
        let factors = [(-widths[0]).exp(), widths[1].exp()];
        let ranged = (widths[0] + widths[1] > 0.0).then_some(factors);
        Ok(Some(Training {
            steps: steps.ceil(),
            without_interruptions: Seconds::new(whole),
            time: Seconds::new(time),
            goodput: self.goodput().0,
            interruptions,
            interruptions_range: range.map(|ends| ends.map(|(between, slowdown)| whole * slowdown / between)),
            time_range: ranged.map(|factors| factors.map(|factor| Seconds::new(time * factor))),
            goodput_range: self.goodput().1,
            slow_machines: Some(*slow).filter(|slow| *slow > 1.0),
            slow_replaced: replaced.map(|rate| rate * time),
            between_interruptions: between.map(Seconds::new),
            restart: Seconds::new(interrupted.restart),
            checkpoints,
            spares: *spares,
            spares_suffice: under_repair.map(|_| *available),
            recommended_spares: under_repair.map(|mean| spares_for(mean, SPARES_SUFFICE)),
            cost,
            cost_range: cost.zip(ranged).map(|(cost, of_time)| of_product(cost, &[of_time, of_price])),
            energy: energy(scenario, time, ranged)?,
        }))
    }
}

/// Energy of all machines under load over a time, if the power of their devices is known: (supply · rated + host) · pue. Machines of
/// eight H100 drew 6.8 to 7.2 kW, of eight B200 9.6 to 10.0 kW (MLPerf power, mains side).
pub fn energy(
    scenario: &Scenario,
    time: f64,
    ranged: Option<[f64; 2]>,
) -> Result<Option<EnergyReport>, Fault> {
    let given = scenario.energy;
    let own = given.and_then(|it| it.power);
    let mut rated = 0.0;
    for group in &scenario.cluster.groups {
        let Some(power) = own.or(group.device.power) else { return Ok(None) };
        rated += power.get() * f64::from(group.count);
    }
    let assumed = Reliability::shipped()?;
    let machines = scenario.cluster.workers().div_ceil(u64::from(scenario.cluster.workers_per_node())) as f64;
    // A given power is the power of a worker with its share of the machine.
    let watts = |of: fn(&Assumed) -> f64| match own {
        Some(_) => rated,
        None => rated * of(&assumed.supply) + machines * of(&assumed.host_power),
    };
    let pue = given.and_then(|it| it.pue).unwrap_or(assumed.pue.value);
    let energy = |watts: f64| watts * pue * time / 3.6e6;
    let kwh = energy(watts(|figure| figure.value));
    let ends = [watts(|figure| figure.range[0]), watts(|figure| figure.range[1])].map(energy);
    let [low, high] = ranged.unwrap_or([1.0, 1.0]);
    let range = [ends[0] * low, ends[1] * high];
    Ok(Some(EnergyReport {
        kwh,
        kwh_range: Some(range).filter(|_| own.is_none() || ranged.is_some()),
        pue,
        carbon_kg: given.and_then(|it| it.carbon).map(|grams| kwh * grams / 1000.0),
    }))
}
