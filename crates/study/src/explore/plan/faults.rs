//! Questions without an answer: what contradicts what, and what is missing most.

use super::search::Found;
use super::{MAX_WORKERS, MOST_NODES, PLAN, Question, words};
use crate::cost;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, Seconds};
use stepcast_core::scenario::Planning;

/// A list of `[plan]`: its key, and how to do without it.
type List = (&'static str, fn(&Planning) -> bool, fn(&mut Planning));

const LISTS: [List; 11] = [
    ("tensor", |it| it.tensor.is_some(), |it| it.tensor = None),
    ("sequence-parallel", |it| it.sequence_parallel.is_some(), |it| it.sequence_parallel = None),
    ("context", |it| it.context.is_some(), |it| it.context = None),
    ("pipeline", |it| it.pipeline.is_some(), |it| it.pipeline = None),
    ("virtual-stages", |it| it.virtual_stages.is_some(), |it| it.virtual_stages = None),
    ("schedule", |it| it.schedule.is_some(), |it| it.schedule = None),
    ("expert", |it| it.expert.is_some(), |it| it.expert = None),
    ("sharding", |it| it.sharding.is_some(), |it| it.sharding = None),
    ("sharding-group", |it| it.sharding_group.is_some(), |it| it.sharding_group = None),
    ("micro-batch", |it| it.micro_batch.is_some(), |it| it.micro_batch = None),
    ("recompute", |it| it.recompute.is_some(), |it| it.recompute = None),
];

impl Question<'_> {
    /// Refuses what no plan can satisfy before anything is tried.
    pub(super) fn check(&self) -> Result<(), Fault> {
        self.check_nodes()?;
        let needs = |key: &str, what: &str, remedy: &str| {
            Err(Fault::in_key(format!("plan.{key}").as_str(), format!("it needs {what}"), remedy))
        };
        let rates = self.rates(self.scenario)?;
        if self.bounds.deadline.is_some() && rates.steps.is_none() {
            return needs("deadline", "the tokens to train on", "add `tokens = 300e9` to `[plan]`");
        }
        if self.bounds.budget.is_some() && rates.steps.is_none() {
            return needs("budget", "the tokens to train on", "add `tokens = 300e9` to `[plan]`");
        }
        let priced = rates.cost.is_some();
        if self.bounds.budget.is_some() && !priced {
            return needs("budget", "prices", "add `[price]` with `worker-hour`");
        }
        if self.aim == super::Aim::Cost && !priced {
            let remedy = "add `[price]` with `worker-hour`";
            return Err(Fault::in_key("price", "costs cannot be compared without prices", remedy));
        }
        if self.nodes.iter().all(|&nodes| self.is_empty(nodes, &self.bounds)) {
            return Err(self.contradiction());
        }
        Ok(())
    }

    /// Refuses more plans than a study may cost; how many there are is counted, which takes far less than to judge them.
    pub(super) fn check_number(&self) -> Result<(), Fault> {
        let most = cost::UNASKED / PLAN;
        let mut plans = 0;
        for &nodes in &self.nodes {
            let scenario = self.on(nodes);
            plans += self.space(&scenario).count(most - plans);
            if plans >= most {
                let reason =
                    format!("there are more than {most} plans to judge on these numbers of machines");
                let remedy = "name fewer numbers of machines, such as [8, 16, 32], or restrict `[plan]`: `tensor`, \
                              `pipeline`, `micro-batch`, `sharding`";
                return Err(Fault::in_key("plan", reason, remedy));
            }
        }
        Ok(())
    }

    fn check_nodes(&self) -> Result<(), Fault> {
        let wrong = |reason: String, remedy: &str| Err(Fault::in_key("plan.nodes", reason, remedy));
        let node = u64::from(self.scenario.cluster.workers_per_node());
        if self.nodes.is_empty() {
            return wrong("no number of machines is given".to_owned(), "give some, such as [8, 16, 32]");
        }
        if self.nodes.len() > MOST_NODES {
            let reason = format!("{} numbers of machines are too many", self.nodes.len());
            return wrong(reason, "give fewer, such as [8, 16, 32]");
        }
        for &nodes in &self.nodes {
            if nodes == 0 {
                return wrong("there are no plans for 0 machines".to_owned(), "use 1 or more");
            }
            if nodes.saturating_mul(node) > MAX_WORKERS {
                let reason =
                    format!("{nodes} machines of {node} workers are more than {MAX_WORKERS} workers");
                return wrong(reason, "use fewer machines");
            }
        }
        Ok(())
    }

    fn is_empty(&self, nodes: u64, bounds: &Planning) -> bool {
        let scenario = self.on(nodes);
        super::Space { bounds, ..self.space(&scenario) }.is_empty()
    }

    /// Why there is no valid plan at all.
    fn contradiction(&self) -> Fault {
        let scenario = self.on(self.nodes[0]);
        let workers = scenario.cluster.workers();
        let open = super::Space { global_batch: 0, ..self.space(&scenario) };
        let replicas: Vec<u64> = open.ranks().into_iter().map(|[t, c, p]| workers / t / c / p).collect();
        let divides = |replicas: &u64| self.global_batch.is_multiple_of(*replicas);
        if let Some(fewest) = replicas.iter().min()
            && !replicas.iter().any(divides)
        {
            let reason = format!(
                "{workers} workers leave at least {fewest} replicas, and no possible number of replicas divides {} sequences",
                self.global_batch
            );
            let below = self.global_batch / fewest * fewest;
            let near = if below > 0 { below } else { *fewest };
            let remedy = format!("use a multiple of {fewest}, such as {near}, or other machines");
            return Fault::in_key("plan.global-batch", reason, remedy);
        }
        for (key, given, lift) in LISTS {
            if !given(&self.bounds) {
                continue;
            }
            let mut bounds = self.bounds.clone();
            lift(&mut bounds);
            if self.nodes.iter().any(|&nodes| !self.is_empty(nodes, &bounds)) {
                let reason =
                    format!("no plan with one of these values of `{key}` divides model, workers and batch");
                let remedy = format!("give other values, or leave `{key}` out");
                return Fault::in_key(format!("plan.{key}").as_str(), reason, remedy);
            }
        }
        let reason =
            format!("the lists of `[plan]` contradict each other: no plan divides {workers} workers");
        Fault::in_key("plan", reason, "leave some of them out")
    }

    /// Why no valid plan is admissible, and which comes nearest.
    pub(super) fn nothing(&self, found: Found, interrupted: bool) -> Fault {
        if interrupted {
            return Fault::new("the search was stopped before a plan was found", "let it run longer");
        }
        let counts = found.counts;
        let capacity = self.capacity();
        if counts.too_large == counts.plans {
            let Some((memory, nodes, choice)) = found.families.least() else {
                return Fault::in_key("plan", "there is no plan", "allow more");
            };
            let most = Bytes::new(memory);
            let reason = format!(
                "none of {} plans fits: the nearest ({}, {}) needs {} of {} on its fullest device",
                counts.plans,
                machines(nodes),
                words(&choice),
                most.human(),
                capacity.human()
            );
            let remedy = match self.bounds.may_fit {
                false => "use more machines or devices with more memory, or allow `may-fit = true`",
                true => "use more machines, or devices with more memory",
            };
            return Fault::in_key("plan", reason, remedy);
        }
        if let Some(both) = self.both() {
            return both;
        }
        // The fastest and the cheapest without these constraints say how far they are off.
        let free = Planning { deadline: None, budget: None, ..self.bounds.clone() };
        let (key, aim) = match (self.bounds.deadline, counts.too_slow) {
            (Some(_), 1..) => ("deadline", super::Aim::Time),
            _ => ("budget", super::Aim::Cost),
        };
        let best = self.with(free, aim);
        let words = match &best {
            Ok(best) => {
                let time = best.training.unwrap_or(Seconds::ZERO);
                let days = time.get() / 86_400.0;
                let cost = best.cost.map_or(String::new(), |cost| {
                    format!(" and costs {cost:.0} {}", self.scenario.currency())
                });
                format!("the nearest ({}, {}) takes {days:.1} days{cost}", machines(best.nodes), best.words)
            }
            Err(fault) => fault.reason.clone(),
        };
        let reason = format!("no plan that fits keeps it: {words}");
        Fault::in_key(format!("plan.{key}").as_str(), reason, "relax it, or allow other numbers of machines")
    }

    /// What a deadline and a budget leave that can each be kept, but not both.
    fn both(&self) -> Option<Fault> {
        let (_, budget) = (self.bounds.deadline?, self.bounds.budget?);
        let fastest = self.with(Planning { deadline: None, ..self.bounds.clone() }, super::Aim::Time).ok()?;
        let cheapest = self.with(Planning { budget: None, ..self.bounds.clone() }, super::Aim::Cost).ok()?;
        let days = fastest.training?.get() / 86_400.0;
        let reason = format!(
            "no plan that fits keeps both it and the budget: the fastest within {budget:.0} {currency} takes {days:.1} days, and \
             the cheapest within the deadline costs {:.0} {currency}",
            cheapest.cost?,
            currency = self.scenario.currency(),
        );
        Some(Fault::in_key("plan.deadline", reason, "relax one of them, or allow other numbers of machines"))
    }

    /// The best plan under other bounds.
    fn with(&self, bounds: Planning, aim: super::Aim) -> Result<super::Entry, Fault> {
        let (scenario, shape, base) = (self.scenario, self.shape, self.base.clone());
        let (global_batch, nodes) = (self.global_batch, self.nodes.clone());
        let open = Question { scenario, shape, base, bounds, global_batch, nodes, aim };
        open.answer(true, &mut |_| std::ops::ControlFlow::Continue(())).map(|report| report.best)
    }
}

fn machines(count: u64) -> String {
    format!("{count} machine{}", if count == 1 { "" } else { "s" })
}
