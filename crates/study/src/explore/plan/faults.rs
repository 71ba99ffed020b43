//! Searches without an answer: contradictions, and the constraint that is missed by least.

use super::PlanQuestion;
use super::search::{PartResult, Pruning};
use super::setup::Setup;
use super::setup::words;
use crate::predict::budget;
use stepcast_core::fault::Fault;
use stepcast_core::quantity::{Bytes, Seconds, count};
use stepcast_core::scenario::Planning;

/// Cost of counting a plan, in the units of `cost`.
const COUNT: u64 = 20;

impl PlanQuestion<'_> {
    /// Refuses unsatisfiable constraints before trying any plan.
    pub(super) fn check(&self) -> Result<(), Fault> {
        self.check_setups()?;
        let needs = |key: &str, what: &str, remedy: &str| {
            Err(Fault::in_key(format!("plan.{key}").as_str(), format!("it needs {what}"), remedy))
        };
        let rates = self.setups.iter().map(|setup| self.rates(&self.on(setup)?));
        let rates = rates.collect::<Result<Vec<_>, _>>()?;
        let (has_steps, priced) =
            (rates.iter().all(|it| it.steps.is_some()), rates.iter().all(|it| it.cost.is_some()));
        if self.bounds.deadline.is_some() && !has_steps {
            return needs("deadline", "the tokens to train on", "add `tokens = 300e9` to `[plan]`");
        }
        if self.bounds.budget.is_some() && !has_steps {
            return needs("budget", "the tokens to train on", "add `tokens = 300e9` to `[plan]`");
        }
        if self.bounds.budget.is_some() && !priced {
            return needs("budget", "prices", "add `[price]` with `worker-hour`");
        }
        if self.aim == super::Aim::Cost && !priced {
            let remedy = "add `[price]` with `worker-hour`";
            return Err(Fault::in_key("price", "costs cannot be compared without prices", remedy));
        }
        for setup in &self.setups {
            if !self.is_empty(setup, &self.bounds)? {
                return Ok(());
            }
        }
        Err(self.contradiction()?)
    }

    /// Refuses replicas that exchange outer gradients: the interval of exchanges affects the number of steps, which is not predicted.
    pub(super) fn check_replicas(&self) -> Result<(), Fault> {
        if self.base.outer_replicas == 1 {
            return Ok(());
        }
        let reason = "plans with outer gradients train differently, and are not compared by time";
        let remedy = "search the plan of one replica: `synchronisation = \"bsp\"` on its machines, without `outer-replicas`";
        Err(Fault::in_key("strategy.plan.outer-replicas", reason, remedy))
    }

    /// Refuses more plans than a study may cost. Counting plans is far cheaper than judging them.
    pub(super) fn check_number(&self) -> Result<(), Fault> {
        self.check_replicas()?;
        let most = budget::UNASKED / COUNT;
        let mut plans = 0;
        for setup in &self.setups {
            let (scenario, base) = (self.on(setup)?, self.base(setup));
            plans += self.space(&scenario, &base, setup.framework).count(most - plans);
            if plans >= most {
                let reason = format!("there are more than {most} plans to judge on these machines");
                let remedy = "name fewer numbers of machines, such as [8, 16, 32], or restrict `[plan]`: `tensor`, \
                              `pipeline`, `micro-batch`, `sharding`";
                return Err(Fault::in_key("plan", reason, remedy));
            }
        }
        Ok(())
    }

    fn is_empty(&self, setup: &Setup, bounds: &Planning) -> Result<bool, Fault> {
        let base = self.base(setup);
        Ok(super::PlanSpace { bounds, ..self.space(&self.on(setup)?, &base, setup.framework) }.is_empty())
    }

    /// Why there is no valid plan at all.
    fn contradiction(&self) -> Result<Fault, Fault> {
        let first = &self.setups[0];
        let (scenario, base) = (self.on(first)?, self.base(first));
        let workers = scenario.cluster.workers();
        let open = super::PlanSpace { global_batch: 0, ..self.space(&scenario, &base, None) };
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
            return Ok(Fault::in_key("plan.global-batch", reason, remedy));
        }
        let full = Planning::LISTS.iter().filter(|list| list.codes.is_none() && (list.given)(&self.bounds));
        for list in full {
            let key = list.key();
            let mut bounds = self.bounds.clone();
            (list.remove)(&mut bounds);
            let lifted = |setup: &Setup| self.is_empty(setup, &bounds).is_ok_and(|empty| !empty);
            if self.setups.iter().any(lifted) {
                let reason =
                    format!("no plan with one of these values of `{key}` divides model, workers and batch");
                let remedy = format!("give other values, or leave `{key}` out");
                return Ok(Fault::in_key(format!("plan.{key}").as_str(), reason, remedy));
            }
        }
        if let Some(framework) = first.framework {
            let any = self.space(&scenario, &base, None);
            let mut refused = None;
            for ranks in any.ranks() {
                any.each(ranks, |alike| {
                    let fault = alike.first().and_then(|own| any.proposal(own).refused(framework));
                    refused = refused.take().or(fault);
                });
            }
            if let Some(refused) = refused {
                return Ok(refused);
            }
        }
        let reason =
            format!("the lists of `[plan]` contradict each other: no plan divides {workers} workers");
        Ok(Fault::in_key("plan", reason, "leave some of them out"))
    }

    /// Why no valid plan is admissible, and the nearest plan.
    pub(super) fn nothing(&self, found: PartResult, interrupted: bool) -> Fault {
        if interrupted {
            return Fault::new("the search was stopped before a plan was found", "let it run longer");
        }
        let counts = found.counts;
        if counts.too_large == counts.plans {
            let Some((memory, setup, choice)) = found.families.least() else {
                return Fault::in_key("plan", "there is no plan", "allow more");
            };
            let most = Bytes::new(memory);
            let capacity = self.on(&setup).map_or(Bytes::ZERO, |scenario| scenario.cluster.smallest_memory());
            let reason = format!(
                "none of {} plans fits: the nearest ({}, {}) needs {} of {} on its fullest device",
                counts.plans,
                self.machines(&setup),
                words(&setup, &self.base(&setup), &choice),
                most.human(),
                capacity.human()
            );
            let remedy = match self.bounds.may_fit {
                false => {
                    "try more machines, such as `nodes = [8, 16, 32]`, or devices with more memory, offload, or allow \
                     `may-fit = true`"
                }
                true => {
                    "try more machines, such as `nodes = [8, 16, 32]`, or devices with more memory, or offload"
                }
            };
            return Fault::in_key("plan.nodes", reason, remedy);
        }
        if let Some(both) = self.both() {
            return both;
        }
        // The fastest and the cheapest plan without these constraints show how far they are missed.
        let free = Planning { deadline: None, budget: None, ..self.bounds.clone() };
        let (key, aim) = match (self.bounds.deadline, counts.too_slow) {
            (Some(_), 1..) => ("deadline", super::Aim::Time),
            _ => ("budget", super::Aim::Cost),
        };
        let best = self.with(free, aim);
        let words = match &best {
            Ok(best) => {
                let takes = best.training.map_or("never ends".to_owned(), |time: Seconds| {
                    format!("takes {:.1} days", time.get() / 86_400.0)
                });
                let cost = best.cost.map_or(String::new(), |cost| {
                    format!(" and costs {} {}", count(cost.round() as u64), self.scenario.currency())
                });
                format!("the nearest ({}, {}) {takes}{cost}", best.machines, best.words)
            }
            Err(fault) => fault.reason.clone(),
        };
        let reason = format!("no plan that fits keeps it: {words}");
        let times = self.bounds.deadline.zip(best.as_ref().ok().and_then(|best| best.training));
        let remedy = match (key, &best, times) {
            ("deadline", Ok(best), Some((deadline, time))) => {
                let fewest = (best.nodes as f64 * (time / deadline)).ceil();
                format!("relax it, or allow more machines: at least {fewest:.0} of these")
            }
            _ => "relax it, or allow other numbers of machines".to_owned(),
        };
        Fault::in_key(format!("plan.{key}").as_str(), reason, remedy)
    }

    /// The fault of a deadline and a budget that can each be kept, but not both.
    fn both(&self) -> Option<Fault> {
        let (_, budget) = (self.bounds.deadline?, self.bounds.budget?);
        let fastest = self.with(Planning { deadline: None, ..self.bounds.clone() }, super::Aim::Time).ok()?;
        let cheapest = self.with(Planning { budget: None, ..self.bounds.clone() }, super::Aim::Cost).ok()?;
        let days = fastest.training?.get() / 86_400.0;
        let reason = format!(
            "no plan that fits keeps both it and the budget: the fastest within {} {currency} takes {days:.1} days, and \
             the cheapest within the deadline costs {} {currency}",
            count(budget.round() as u64),
            count(cheapest.cost?.round() as u64),
            currency = self.scenario.currency(),
        );
        Some(Fault::in_key("plan.deadline", reason, "relax one of them, or allow other numbers of machines"))
    }

    /// The best plan under other bounds.
    fn with(&self, bounds: Planning, aim: super::Aim) -> Result<super::Entry, Fault> {
        let open = PlanQuestion { bounds, aim, ..self.clone() };
        open.answer(Pruning::Beaten, &mut |_| std::ops::ControlFlow::Continue(())).map(|report| report.best)
    }
}
