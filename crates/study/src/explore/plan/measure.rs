//! What to measure before taking one of several offers: the best plan on each, and experiments on their machines.

use super::families::BestPlan;
use super::setup::{Setup, words};
use super::{Aim, Method, PlanQuestion};
use crate::advise::{
    Candidate, DecisionOption, Experiment, ExperimentKind, Lateness, MeasurementAdvice, UncertainFigure,
};
use stepcast_core::fault::{Fault, Measurement, Remedy};
use stepcast_core::prior::Group;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{Planning, Scenario};

/// Offers that cost more than this factor times the best are not considered.
const FAR: f64 = 2.0;
/// Most offers considered.
const MOST: usize = 12;

const HOUR: f64 = 3600.0;
/// Times for which machines are rented.
const ONE_GPU: f64 = HOUR;
const TWO_MACHINES: f64 = HOUR / 6.0;
const EIGHTH: f64 = HOUR / 2.0;

/// Groups of priors that times of collectives determine.
pub const COLLECTIVES: [&str; 5] = [
    "rate of collectives",
    "start of collectives",
    "rate of the network",
    "rate inside the machine",
    "start-ups",
];

/// An offer under consideration.
struct Weighed {
    plan: BestPlan,
    scenario: Scenario,
    candidate: Candidate,
}

/// Whether the kit on one GPU measures a group of priors.
pub fn is_of_gpu(group: &Group) -> bool {
    group.remedy.all().iter().any(|remedy| matches!(remedy, Remedy::Measure { what: Measurement::Gpu }))
}

fn is_of_collectives(group: &Group) -> bool {
    COLLECTIVES.contains(&group.name.as_str())
}

impl PlanQuestion<'_> {
    /// Advice on what to measure before comparing the offers with these plans by cost; none without a choice or a price.
    pub(super) fn advice(&self, plans: &[BestPlan]) -> Result<Option<MeasurementAdvice>, Fault> {
        if self.aim != Aim::Cost {
            return Ok(None);
        }
        let mut weighed: Vec<Weighed> = Vec::new();
        for plan in self.alternatives(plans) {
            let scenario = self.planned(&plan)?;
            let rates = self.rates(&scenario)?;
            let (Some(price), Some(_)) = (rates.cost, rates.steps) else { return Ok(None) };
            let option = DecisionOption { time: rates.training(plan.step).0, price };
            let figure = UncertainFigure::step(&scenario, &Method)?;
            weighed.push(Weighed {
                candidate: Candidate { machines: self.machines(&plan.setup), figure, option },
                plan,
                scenario,
            });
        }
        if weighed.len() < 2 {
            return Ok(None);
        }
        let mut experiments = Vec::new();
        for (place, offer) in weighed.iter().enumerate() {
            let is_same =
                |other: &&Weighed| self.machine(&other.plan.setup) == self.machine(&offer.plan.setup);
            let mut same = weighed.iter().filter(is_same);
            if weighed[..place].iter().any(|other| is_same(&other)) {
                continue;
            }
            let most = same.clone().map(|own| own.plan.setup.nodes).max().unwrap_or(1);
            let hourly = same.try_fold(f64::INFINITY, |least, own| {
                let one = self.on(&own.plan.setup.with_nodes(1))?;
                Ok::<_, Fault>(one.hourly_cost().map_or(least, |cost| least.min(cost)))
            })?;
            experiments.extend(self.experiments(offer, most, hourly)?);
        }
        let late = self.bounds.late_day.zip(self.bounds.deadline);
        let late =
            late.map(|(day, deadline)| Lateness { deadline: deadline.get(), price: day / 24.0 / HOUR });
        let candidates: Vec<Candidate> = weighed.into_iter().map(|offer| offer.candidate).collect();
        Ok(MeasurementAdvice::new(&candidates, &experiments, late, self.scenario.currency()))
    }

    /// The best plans on each kind and number of machines, the best first.
    fn alternatives(&self, plans: &[BestPlan]) -> Vec<BestPlan> {
        let mut sorted = plans.to_vec();
        sorted.sort_by(|a, b| a.value.total_cmp(&b.value));
        let mut found: Vec<BestPlan> = Vec::new();
        for plan in sorted {
            let key = |plan: &BestPlan| (plan.setup.offer, plan.setup.nodes);
            let is_near = found.first().is_none_or(|best| plan.value <= FAR * best.value);
            if is_near && found.len() < MOST && !found.iter().any(|known| key(known) == key(&plan)) {
                found.push(plan);
            }
        }
        found
    }

    fn planned(&self, plan: &BestPlan) -> Result<Scenario, Fault> {
        let mut scenario = self.on(&plan.setup)?;
        scenario.strategy.plan = Some(plan.choice.plan(&self.base(&plan.setup)));
        Ok(scenario)
    }

    /// Identity of the machines in measurements: offers of the same machines share it.
    fn machine(&self, setup: &Setup) -> Option<(&str, Option<&str>)> {
        self.offer(setup).map(|offer| (offer.machine.as_str(), offer.network.as_deref()))
    }

    /// Experiments on at most this many machines of an offer. `hourly` is the price of one machine.
    fn experiments(&self, offer: &Weighed, most: u64, hourly: f64) -> Result<Vec<Experiment>, Fault> {
        let Weighed { plan, scenario, candidate } = offer;
        let setup = plan.setup;
        let each = u64::from(scenario.cluster.workers_per_node()).max(1);
        let groups = |is: fn(&Group) -> bool| -> Vec<UncertainFigure> {
            let own = scenario.priors.groups.iter().enumerate();
            own.filter(|(index, group)| is(group) && candidate.figure.depends_on(*index))
                .map(|(index, _)| candidate.figure.of_group(scenario, index))
                .collect()
        };
        let experiment = |kind, nodes, time: f64, readings, command| Experiment {
            kind,
            machines: self.machines(&setup.with_nodes(nodes)),
            time: Seconds::new(time),
            price: hourly * nodes as f64 * time / HOUR,
            readings,
            command,
        };
        let started = |nodes: u64| {
            format!("torchrun --nnodes {nodes} --node-rank RANK --master-addr HOST --nproc-per-node {each}")
        };
        let gpu = experiment(
            ExperimentKind::Gpu,
            1,
            ONE_GPU,
            groups(is_of_gpu),
            "python3 kit/machine.py -o machine.jsonl".to_owned(),
        );
        let gpu = Experiment {
            price: gpu.price / each as f64,
            machines: format!(
                "1 GPU of {}",
                self.offer(&setup).map_or("the machines", |offer| offer.label())
            ),
            ..gpu
        };
        let mut all = vec![gpu];
        if setup.nodes > 1 {
            let command = started(2) + " kit/machine.py --only collectives -o collectives.jsonl";
            let readings = groups(is_of_collectives);
            all.push(experiment(ExperimentKind::Collectives, 2, TWO_MACHINES, readings, command));
        }
        let runs =
            [(ExperimentKind::TwoMachines, 2, TWO_MACHINES), (ExperimentKind::Eighth, most / 8, EIGHTH)];
        for (kind, nodes, time) in runs {
            if nodes < 2 || nodes >= most || kind == ExperimentKind::Eighth && nodes == 2 {
                continue;
            }
            if let Some((figure, words)) = self.small_run(&setup.with_nodes(nodes))? {
                let command = format!("{} TRAIN.py # {words}", started(nodes));
                all.push(experiment(kind, nodes, time, vec![figure], command));
            }
        }
        all.retain(|experiment| !experiment.readings.is_empty());
        Ok(all)
    }

    /// The step of the best plan on fewer machines, regardless of its training time; none if nothing fits on them.
    fn small_run(&self, setup: &Setup) -> Result<Option<(UncertainFigure, String)>, Fault> {
        let bounds = Planning { deadline: None, budget: None, ..self.bounds.clone() };
        let open = PlanQuestion { bounds, aim: Aim::Time, ..self.clone() };
        let Some(best) = open.best_on(setup)? else { return Ok(None) };
        let words = words(setup, &open.base(setup), &best.choice);
        Ok(Some((UncertainFigure::step(&open.planned(&best)?, &Method)?, words)))
    }
}
