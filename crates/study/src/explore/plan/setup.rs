//! What a part of the search holds fixed: the machines, how many there are, what their hosts keep in memory,
//! the size of buckets, and whether weights are gathered ahead.

use super::Question;
use serde::{Deserialize, Serialize};
use stepcast_core::fault::{Fault, KeyPath};
use stepcast_core::quantity::Bytes;
use stepcast_core::scenario::{MAX_WORKERS, Offer, Planning, Scenario};
use stepcast_core::strategy::{Offloaded, Plan};

/// Most parts of one search.
const MOST_SETUPS: usize = 4096;

/// A part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Setup {
    /// Place of the machines among the offers; none for those of the scenario's cluster.
    pub(super) offer: Option<usize>,
    /// Machines.
    pub(super) nodes: u64,
    /// What is kept in the memory of hosts.
    pub(super) offloaded: Offloaded,
    /// Parameters of a bucket.
    pub(super) bucket: Option<u64>,
    /// Whether sharded weights are gathered ahead; as the base says if not given.
    pub(super) prefetch: Option<bool>,
}

/// What a setup is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Naming<'a> {
    /// The offer, if there are any.
    pub(super) machine: Option<&'a str>,
    /// Workers of a machine.
    pub(super) node: u64,
}

impl Setup {
    /// All parts of a search, in order.
    pub(super) fn all(scenario: &Scenario, base: &Plan, bounds: &Planning) -> Vec<Self> {
        let node = u64::from(scenario.cluster.workers_per_node());
        let own = || vec![scenario.cluster.workers().div_ceil(node)];
        let machines: Vec<(Option<usize>, Vec<u64>)> = match &bounds.offers {
            None => vec![(None, bounds.nodes.clone().unwrap_or_else(own))],
            Some(offers) => {
                let nodes = |offer: &Offer| offer.nodes.clone().or(bounds.nodes.clone()).unwrap_or_else(own);
                offers.iter().enumerate().map(|(place, offer)| (Some(place), nodes(offer))).collect()
            }
        };
        let offloaded: Vec<Offloaded> = match &bounds.offload {
            None => vec![base.offloaded()],
            Some(lists) => lists.iter().map(|list| Offloaded::of(list)).collect(),
        };
        let buckets = or_else(&bounds.bucket, base.bucket);
        let prefetches = or_else(&bounds.overlap_prefetch, base.overlap_prefetch);
        let mut all = Vec::new();
        for (offer, nodes) in &machines {
            for &nodes in nodes {
                for &offloaded in &offloaded {
                    for &bucket in &buckets {
                        let setup = |&prefetch| Self { offer: *offer, nodes, offloaded, bucket, prefetch };
                        all.extend(prefetches.iter().map(setup));
                    }
                }
            }
        }
        all
    }
}

/// The values to try, or the only one.
fn or_else<T: Copy>(listed: &Option<Vec<T>>, only: Option<T>) -> Vec<Option<T>> {
    listed.as_ref().map_or_else(|| vec![only], |listed| listed.iter().copied().map(Some).collect())
}

impl Question<'_> {
    /// The scenario on the machines of a part.
    pub(super) fn on(&self, setup: &Setup) -> Result<Scenario, Fault> {
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

    /// What the search does not vary.
    pub(super) fn base(&self, setup: &Setup) -> Plan {
        Plan {
            offload: setup.offloaded.list(),
            bucket: setup.bucket,
            overlap_prefetch: setup.prefetch,
            ..self.base.clone()
        }
    }

    /// What a setup on these machines is called.
    pub(super) fn naming(&self, setup: &Setup, scenario: &Scenario) -> Naming<'_> {
        let node = u64::from(scenario.cluster.workers_per_node());
        Naming { machine: self.offer(setup).map(Offer::label), node }
    }

    /// "2 machines", "2 × dgx-h100".
    pub(super) fn machines(&self, setup: &Setup) -> String {
        match (self.offer(setup), setup.nodes) {
            (Some(offer), nodes) => format!("{nodes} × {}", offer.label()),
            (None, 1) => "1 machine".to_owned(),
            (None, nodes) => format!("{nodes} machines"),
        }
    }

    pub(super) fn check_setups(&self) -> Result<(), Fault> {
        let wrong = |key: &str, reason: String, remedy: &str| Err(Fault::in_key(key, reason, remedy));
        for (key, empty, such) in [
            ("plan.offers", self.bounds.offers.as_ref().is_some_and(Vec::is_empty), "machines"),
            ("plan.offload", self.bounds.offload.as_ref().is_some_and(Vec::is_empty), "ways to offload"),
            ("plan.bucket", self.bounds.bucket.as_ref().is_some_and(Vec::is_empty), "sizes"),
            (
                "plan.overlap-prefetch",
                self.bounds.overlap_prefetch.as_ref().is_some_and(Vec::is_empty),
                "values",
            ),
        ] {
            if empty {
                return wrong(key, format!("the list has no {such}"), "add one, or remove the list");
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
        if self.bounds.bucket.iter().flatten().any(|&bucket| bucket == 0) {
            let reason = "a bucket of 0 parameters sends nothing".to_owned();
            return wrong("plan.bucket", reason, "use numbers such as [10000000, 40000000]");
        }
        for setup in &self.setups {
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

/// Memory of the smallest device.
pub(super) fn capacity(scenario: &Scenario) -> Bytes {
    let memory = scenario.cluster.groups.iter().map(|group| group.device.memory);
    memory.reduce(Bytes::min).unwrap_or(Bytes::ZERO)
}
