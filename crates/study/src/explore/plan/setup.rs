//! Fixed values of a part of the search: machines, their number, and dimensions that `[plan]` lists.

use super::families::listed;
use super::{PlanQuestion, least_step};
use crate::request::launch::{adopted, adopted_precision};
use serde::{Deserialize, Serialize};
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::files::NoFiles;
use stepcast_core::keys::Given;
use stepcast_core::machine::WorkerGroup;
use stepcast_core::model::transformer::Transformer;
use stepcast_core::scenario::{AssumedPrice, MAX_WORKERS, Offer, Planning, Scenario};
use stepcast_core::strategy::{
    COMPARED_LISTED, Coded, DimensionNames, Framework, Plan, PlanChoice, PlanSection, Recompute,
    ScheduleKind, Sharding, Shares,
};

/// Most parts of one search.
const MOST_SETUPS: usize = 4096;

/// A part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setup {
    /// Place of the machines among the offers; none for the scenario's cluster.
    pub(super) offer: Option<usize>,
    /// Machines.
    pub(super) nodes: u64,
    /// The framework whose plans these are; none for any plan.
    pub(super) framework: Option<Framework>,
    /// Values of the dimensions that are tried as listed.
    pub(super) codes: [u64; COMPARED_LISTED],
}

/// The codes of the values that `[plan]` lists, for every dimension that is tried as listed.
fn lists(bounds: &Planning) -> impl Iterator<Item = Option<Vec<u64>>> {
    Planning::LISTS.iter().filter_map(|list| list.codes).map(|codes| codes(bounds))
}

/// Assumptions behind a guessed number of machines: the share of the peak rate that training reaches, and the share of memory
/// that weights, gradients and optimiser states may take.
const GUESSED_RATE: f64 = 0.4;
const GUESSED_MEMORY: f64 = 0.5;

/// Numbers of machines to try if none are given: the fewest, as a power of two, that hold weights, gradients and optimiser states
/// and, with tokens and a deadline, compute fast enough; then twice and four times as many.
fn usual_nodes(one: &Scenario, shape: &Transformer, base: &Plan, bounds: &Planning) -> Option<Vec<u64>> {
    let workers = one.cluster.workers() as f64;
    let (trained, all) = (shape.trained_parameters() as f64, shape.parameters() as f64);
    let states = trained * base.states.bytes().iter().sum::<u64>() as f64 + (all - trained).max(0.0) * 2.0;
    let by_memory = states / (workers * one.cluster.smallest_memory().get() * GUESSED_MEMORY);
    let by_time = bounds.tokens.zip(bounds.deadline).map_or(0.0, |(tokens, deadline)| {
        let sequences = tokens / shape.sequence as f64;
        sequences * least_step(one, shape, base, 1) / (GUESSED_RATE * deadline.get())
    });
    let fewest = by_memory.max(by_time).log2().ceil().max(0.0).exp2();
    let numbers = [1.0, 2.0, 4.0].map(|times| times * fewest);
    let possible = numbers.into_iter().filter(|number| number * workers <= MAX_WORKERS as f64);
    Some(possible.map(|number| number as u64).collect::<Vec<_>>()).filter(|numbers| !numbers.is_empty())
}

impl Setup {
    /// The part on another number of machines.
    pub(super) fn with_nodes(self, nodes: u64) -> Self {
        Self { nodes, ..self }
    }

    /// All parts of a search, in order.
    pub(super) fn all(scenario: &Scenario, shape: &Transformer, base: &Plan, bounds: &Planning) -> Vec<Self> {
        let node = u64::from(scenario.cluster.workers_per_node());
        let own = || vec![scenario.cluster.workers().div_ceil(node)];
        let machines: Vec<(Option<usize>, Vec<u64>)> = match &bounds.offers {
            None => vec![(None, bounds.nodes.clone().unwrap_or_else(own))],
            Some(offers) => {
                let open = own() == [1] && offers.len() > 1 && offers.iter().all(|it| it.nodes.is_none());
                let usual = |offer: &Offer| {
                    let one = scenario.offered(offer, 1).ok().filter(|_| open)?;
                    usual_nodes(&one, shape, base, bounds)
                };
                let nodes = |offer: &Offer| {
                    let given = offer.nodes.clone().or(bounds.nodes.clone());
                    given.or_else(|| usual(offer)).unwrap_or_else(own)
                };
                offers.iter().enumerate().map(|(place, offer)| (Some(place), nodes(offer))).collect()
            }
        };
        let mut all: Vec<Self> = Vec::new();
        let frameworks = match bounds.frameworks.as_deref() {
            None => vec![None],
            Some([]) => Framework::PRETRAINING.map(Some).to_vec(),
            Some(list) => list.iter().copied().map(Some).collect(),
        };
        for (offer, nodes) in machines {
            for nodes in nodes {
                let with = |framework: &Option<Framework>| Self {
                    offer,
                    nodes,
                    framework: *framework,
                    codes: [0; COMPARED_LISTED],
                };
                all.extend(frameworks.iter().map(with));
            }
        }
        for (place, (given, dimension)) in lists(bounds).zip(listed()).enumerate() {
            let usual = |setup: &Self| match dimension.listed {
                Some(_) if dimension.is(DimensionNames::ALL.shares) => setup.shares(scenario, bounds),
                Some(value) => vec![(value.code)(base)],
                None => vec![0],
            };
            let with = |setup: Self, code: u64| {
                let mut codes = setup.codes;
                codes[place] = code;
                Self { codes, ..setup }
            };
            let tried = |setup: &Self| given.clone().unwrap_or_else(|| usual(setup));
            all = all
                .iter()
                .flat_map(|setup| tried(setup).into_iter().map(|code| with(*setup, code)))
                .collect();
        }
        all
    }

    /// Shares of the batch to try: both where two kinds of workers differ and no framework has to run the plans.
    fn shares(&self, scenario: &Scenario, bounds: &Planning) -> Vec<u64> {
        let offers = bounds.offers.as_deref().unwrap_or_default();
        let together = match (self.offer.and_then(|place| offers.get(place)), &scenario.cluster.groups[..]) {
            (Some(offer), _) => {
                let beside = offers.iter().find(|other| offer.beside.as_deref() == Some(other.label()));
                beside.is_some_and(|other| other.machine != offer.machine)
            }
            (None, [one, other]) => *one != WorkerGroup { count: one.count, ..other.clone() },
            (None, _) => false,
        };
        let tried: &[Option<Shares>] = match together && self.framework.is_none() {
            true => &[Some(Shares::Equal), Some(Shares::Proportional)],
            false => &[None],
        };
        tried.iter().map(|shares| shares.code()).collect()
    }
}

impl PlanQuestion<'_> {
    /// The scenario on the machines of a part, in the number format of its framework.
    pub(super) fn on(&self, setup: &Setup) -> Result<Scenario, Fault> {
        let mut scenario = self.on_machines(setup)?;
        if let Some(framework) = setup.framework {
            let precision = &mut scenario.strategy.precision;
            *precision = adopted_precision(framework, *precision);
        }
        Ok(scenario)
    }

    fn on_machines(&self, setup: &Setup) -> Result<Scenario, Fault> {
        if let (Some(place), Some(offer)) = (setup.offer, self.offer(setup)) {
            let machines = u32::try_from(setup.nodes).unwrap_or(u32::MAX);
            let at = KeyPath::of("plan.offers").index(place);
            return self.scenario.offered(offer, machines).map_err(|fault| fault.below(at));
        }
        let node = u64::from(self.scenario.cluster.workers_per_node());
        Ok(match &self.bounds.nodes {
            None => self.scenario.clone(),
            Some(_) => {
                let workers = u32::try_from(setup.nodes * node).unwrap_or(u32::MAX);
                self.scenario.on(self.scenario.cluster.resized(workers))
            }
        })
    }

    /// The offer whose machines a part has.
    pub(super) fn offer(&self, setup: &Setup) -> Option<&Offer> {
        self.bounds.offers.as_ref()?.get(setup.offer?)
    }

    /// The offer whose machines work beside those of another.
    pub(super) fn beside(&self, offer: &Offer) -> Option<&Offer> {
        let name = offer.beside.as_deref()?;
        self.bounds.offers.iter().flatten().find(|other| other.label() == name)
    }

    /// Assumed prices of offers.
    pub(super) fn assumed_prices(&self) -> Vec<AssumedPrice> {
        let offers = self.bounds.offers.iter().flatten();
        offers.filter_map(|offer| offer.assumed_price(self.scenario)).collect()
    }

    /// The plan whose fully tried dimensions a part of the search varies.
    pub(super) fn base(&self, setup: &Setup) -> Plan {
        let mut plan = match setup.framework {
            Some(framework) => adopted(framework, &self.base, self.scenario.strategy.precision),
            None => self.base.clone(),
        };
        for ((dimension, given), code) in listed().zip(lists(&self.bounds)).zip(setup.codes) {
            if let Some(value) = dimension.listed
                && (given.is_some() || code != (value.code)(&self.base))
            {
                (value.set)(&mut plan, code);
            }
        }
        plan
    }

    /// "2 machines", "2 × dgx-h100".
    pub(super) fn machines(&self, setup: &Setup) -> String {
        let offer = self.offer(setup);
        let counted = |offer: &Offer| match &offer.beside {
            None => format!("{} × {}", setup.nodes, offer.label()),
            Some(other) => format!("{} × {} + {} × {other}", setup.nodes, offer.machine, offer.beside_nodes),
        };
        offer.map_or_else(|| machines(setup.nodes), counted)
    }

    pub(super) fn check_setups(&self) -> Result<(), Fault> {
        let wrong = |key: &str, reason: String, remedy: &str| Err(Fault::in_key(key, reason, remedy));
        let empty = |what: &str| format!("the list has no {what}");
        if self.bounds.offers.as_ref().is_some_and(Vec::is_empty) {
            return wrong("plan.offers", empty("machines"), "add one, or remove the list");
        }
        for (dimension, listed) in listed().zip(lists(&self.bounds)) {
            if listed.is_some_and(|codes: Vec<u64>| codes.is_empty()) {
                let key = format!("plan.{}", dimension.key());
                return wrong(&key, empty("values"), "add one, or remove the list");
            }
        }
        let offers = self.bounds.offers.iter().flatten();
        for (place, offer) in offers.clone().enumerate() {
            if offers.clone().take(place).any(|other| other.label() == offer.label()) {
                let key = KeyPath::of("plan.offers").index(place).key("name");
                let reason = format!("another offer is called \"{}\", too", offer.label());
                return Err(Fault::in_key(key, reason, "give each a `name` of its own"));
            }
        }
        if self.setups.is_empty() {
            let reason = "no number of machines is given".to_owned();
            return wrong("plan.nodes", reason, "give some, such as [8, 16, 32]");
        }
        if self.setups.len() > MOST_SETUPS {
            let reason = format!("{} numbers of machines are too many", self.setups.len());
            return wrong("plan.nodes", reason, "give fewer, such as [8, 16, 32]");
        }
        for setup in &self.setups {
            let base = self.base(setup);
            listed().filter_map(|dimension| dimension.listed).try_for_each(|value| {
                (value.check)(&base).map_err(|fault| fault.below(KeyPath::of("plan")))
            })?;
            if setup.nodes == 0 {
                let reason = "there are no plans for 0 machines".to_owned();
                return wrong("plan.nodes", reason, "use 1 or more");
            }
            let one = self.on(&Setup { nodes: 1, ..*setup })?;
            let node = u64::from(one.cluster.workers_per_node());
            if setup.nodes.saturating_mul(node) > MAX_WORKERS {
                let nodes = setup.nodes;
                let reason =
                    format!("{nodes} machines of {node} workers are more than {MAX_WORKERS} workers");
                return wrong("plan.nodes", reason, "use fewer machines");
            }
        }
        Ok(())
    }
}

/// "1 machine", "2 machines".
pub(super) fn machines(nodes: u64) -> String {
    if nodes == 1 { "1 machine".to_owned() } else { format!("{nodes} machines") }
}

/// A plan in few words: how it divides the model.
pub(super) fn words(setup: &Setup, base: &Plan, choice: &PlanChoice) -> String {
    let mut words = Vec::new();
    for (name, count) in [
        ("tensor", choice.tensor),
        ("context", choice.context),
        ("pipeline", choice.pipeline),
        ("chunks", choice.virtual_stages),
        ("expert", choice.expert),
        ("data", choice.data),
    ] {
        words.extend((count > 1).then(|| format!("{name} {count}")));
    }
    if choice.pipeline > 1 && !matches!(choice.schedule, ScheduleKind::OneFOneB | ScheduleKind::Interleaved) {
        words.push(choice.schedule.to_string());
    }
    match (choice.sharding, choice.sharding_group) {
        (Sharding::None, _) => {}
        (sharding, Some(group)) => words.push(format!("{sharding} of {group}")),
        (sharding, None) => words.push(sharding.to_string()),
    }
    words.push(format!("micro-batch {}", choice.micro_batch));
    words.extend(choice.sequence_parallel.then(|| "sequence parallel".to_owned()));
    match (choice.recompute.what, choice.recompute.layers) {
        (what, _) if what == Recompute::None => {}
        (what, Some(layers)) => words.push(format!("recomputing {layers} {what}s of a chunk")),
        (what, None) => words.push(format!("recomputing {what}")),
    }
    for (dimension, code) in listed().zip(setup.codes).filter(|(dimension, code)| *code != dimension.neutral)
    {
        words.extend(dimension.listed.map(|value| dimension.phrase(code, &(value.written)(base))));
    }
    words.join(", ")
}

/// `[strategy.plan]` with all keys that differ from their defaults.
pub(super) fn section(plan: &Plan) -> Result<String, Fault> {
    let written = |plan: &Plan| {
        toml::Table::try_from(plan.section())
            .map_err(|error| Fault::new(error.to_string(), "report this: a plan cannot be written"))
    };
    let usual = written(&PlanSection::default().resolve(&NoFiles)?)?;
    let mut own = written(plan)?;
    own.retain(|key, value| usual.get(key) != Some(value));
    let keys = toml::to_string(&own)
        .map_err(|error| Fault::new(error.to_string(), "report this: a plan cannot be written"))?;
    Ok(format!("[strategy.plan]\n{keys}"))
}
