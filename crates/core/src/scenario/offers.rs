//! Machines on offer, from which a search over plans chooses.

use super::sections::ClusterSection;
use super::{Failures, FailuresSection, Price, PriceSection, Scenario, resolve};
use crate::fault::{Fault, KeyPath};
use crate::files::{Files, NoFiles};
use crate::keys::{Check, Given, NameOr, keys, section_of, unordered};
use crate::machine::{BesideSection, catalog};
use crate::quantity::BitsPerSec;
use schemars::JsonSchema;
use serde::Serialize;

keys! {
    /// Machines of one kind, with their price.
    #[derive(Debug, Clone, PartialEq)]
    struct Offer;
    /// `[[plan.offers]]`: machines on offer.
    section OfferSection, missing |key| Fault::new(format!("the offer has no `{key}`"), format!("add `{key}`"));
    keys {
        /// The machine: a name from `stepcast machines`.
        machine: String => String, required, Check::Any, Resolved;
        /// The name in answers.
        name: String => String, optional("that of the machine"), Check::Any, Resolved;
        /// The network between them: a name from `stepcast networks`, or a rate such as `"100 Gbit/s"`.
        network: String => String, optional("that of the machine"), Check::Any, Resolved;
        /// Numbers of machines to try.
        nodes: Vec<u64> => Vec<u64>, optional("`plan.nodes`"), Check::Any, Resolved;
        /// The name of another offer whose machines work in the same job; the slower links of both count.
        beside: String => String, optional("–"), Check::Any, Resolved;
        /// Number of machines of the other offer.
        beside_nodes: u32 => u32, default(1_u32), Check::Between(1, 100_000, "a number such as 8"), Resolved;
        /// Rate of the link between both kinds of machines, such as a link between zones.
        link: BitsPerSec => BitsPerSec, optional("the network's"), Check::Positive("a rate such as \"400 Gbit/s\""), Resolved;
        /// Whether the machines are spot instances: `stepcast machines` has the price and the rate of such machines.
        spot: bool => bool, default(false), Check::Any, Resolved;
        /// One worker for one hour.
        worker_hour: f64 => f64, optional("as `[price]` says"), Check::NotNegative("a price such as 2.5"), Resolved;
        /// One machine with all its workers for one hour, beyond the price of its workers.
        node_hour: f64 => f64, optional("as `[price]` says, otherwise what the catalog assumes"), Check::NotNegative("a price such as 20.0"), Resolved;
        /// How often a machine is taken back in an hour, for spot instances.
        node_rate: f64 => f64, optional("as `[failures]` says"), Check::NotNegative("a rate such as 0.01"), Resolved;
    }
}

section_of!(Offer, OfferSection);
unordered!(Vec<Offer>);

impl Given<Vec<Offer>> for Vec<OfferSection> {
    fn written() -> String {
        "array of tables".to_owned()
    }

    fn resolve(self, files: &dyn Files) -> Result<Vec<Offer>, Fault> {
        let resolved = |(index, section): (usize, OfferSection)| {
            section.resolve(files).map_err(|fault| fault.below(KeyPath::default().index(index)))
        };
        self.into_iter().enumerate().map(resolved).collect()
    }

    fn write(value: &Vec<Offer>) -> Self {
        value.iter().map(Offer::section).collect()
    }
}

/// The assumed price of an offer without a price.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AssumedPrice {
    /// The name of the offer.
    pub offer: String,
    /// One machine for one hour.
    pub node_hour: f64,
    /// Range of prices on the market.
    pub range: [f64; 2],
    /// Date of the price: a year and a month.
    pub date: String,
    /// Where it is from.
    pub source: String,
}

impl AssumedPrice {
    /// Range of prices on the market, relative to it.
    pub fn factors(&self) -> [f64; 2] {
        self.range.map(|end| end / self.node_hour)
    }
}

impl Offer {
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.machine)
    }

    /// The price that is assumed because neither the offer nor `[price]` of the scenario gives one.
    pub fn assumed_price(&self, scenario: &Scenario) -> Option<AssumedPrice> {
        if self.worker_hour.is_some() || self.node_hour.is_some() || scenario.price.is_some() {
            return None;
        }
        let price = catalog::machine(&self.machine).ok()?.price?;
        let (node_hour, range) = match price.spot.filter(|_| self.spot) {
            Some(spot) => (spot.hour, spot.range),
            None => (price.hour, price.range),
        };
        let (date, source) = (price.date, price.source);
        Some(AssumedPrice { offer: self.label().to_owned(), node_hour, range, date, source })
    }

    /// Hourly price of one of its workers with its share of the machine, if given or assumed.
    fn hourly(&self, scenario: &Scenario, workers: u32) -> Option<f64> {
        let node_hour = self.node_hour.or_else(|| self.assumed_price(scenario).map(|price| price.node_hour));
        let shared = node_hour.map(|hour| hour / f64::from(workers));
        self.worker_hour.map(|hour| hour + shared.unwrap_or(0.0)).or(shared)
    }

    /// How often a machine is taken back in an hour, if given or assumed.
    fn taken_back(&self) -> Result<Option<f64>, Fault> {
        if self.node_rate.is_some() || !self.spot {
            return Ok(self.node_rate);
        }
        let spot = catalog::machine(&self.machine)?.price.and_then(|price| price.spot);
        let unknown = || {
            let reason = format!("no spot price of {} is known", self.machine);
            Fault::in_key("spot", reason, "give `node-hour` and `node-rate` instead")
        };
        spot.map(|spot| Some(spot.node_rate)).ok_or_else(unknown)
    }
}

impl Scenario {
    /// The scenario on this many machines of an offer, at its prices. Keys of faults are relative to the offer.
    pub fn offered(&self, offer: &Offer, machines: u32) -> Result<Self, Fault> {
        let other = offer.beside.as_deref().map(|name| self.other_offer(name)).transpose()?;
        let section = ClusterSection {
            machine: Some(offer.machine.clone()),
            machines: Some(machines),
            beside: other.map(|other| BesideSection {
                machine: Some(other.machine.clone()),
                machines: Some(offer.beside_nodes),
                link: offer.link,
            }),
            network: offer.network.as_deref().map(NameOr::from),
            ..ClusterSection::default()
        };
        let mut offered = self.on(resolve::cluster(section, resolve::Layout::Apart, &NoFiles)?);
        let node_hour = offer.node_hour.or_else(|| offer.assumed_price(self).map(|price| price.node_hour));
        if offer.worker_hour.is_some() || node_hour.is_some() {
            let usual = PriceSection::default().fill(self.price.as_ref(), &NoFiles)?;
            offered.price = Some(Price { worker_hour: offer.worker_hour.unwrap_or(0.0), node_hour, ..usual });
        }
        let mut node_rate = offer.taken_back()?;
        if let Some(other) = other {
            let workers = offered.cluster.workers_per_node();
            for (group, own) in offered.cluster.groups.iter_mut().zip([offer, other]) {
                group.price = own.hourly(self, workers);
            }
            offered.price = offered.price.map(|price| Price { node_hour: None, ..price });
            let rates = [node_rate, other.taken_back()?].map(|rate| rate.unwrap_or(0.0));
            let [own, beside] = [machines, offer.beside_nodes].map(f64::from);
            node_rate = Some((rates[0] * own + rates[1] * beside) / (own + beside));
        }
        if let Some(node_rate) = node_rate {
            let usual = FailuresSection::default().fill(self.failures.as_ref(), &NoFiles)?;
            offered.failures = Some(Failures { node_rate, ..usual });
        }
        Ok(offered)
    }

    /// The offer of this name.
    fn other_offer(&self, name: &str) -> Result<&Offer, Fault> {
        let all = self.planning.iter().flat_map(|bounds| bounds.offers.iter().flatten());
        let mut found = all.filter(|other| other.beside.is_none());
        found.find(|other| other.label() == name).ok_or_else(|| {
            let reason = format!("there is no offer \"{name}\" of one kind of machines");
            Fault::in_key("beside", reason, "name another of `[[plan.offers]]`")
        })
    }
}
