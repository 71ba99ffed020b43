//! What answers have beyond the formulas of papers: each is nothing in a scenario as published.

use crate::contention::Contention;
use crate::servers::Service;
use stepcast_core::compute::SpeedSource;
use stepcast_core::machine::Transport;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

/// Speeds of devices other than a share of their peak rate.
pub(crate) fn speed(scenario: &Scenario) -> Option<&'static str> {
    let counted = |group| matches!(SpeedSource::new(scenario, group), SpeedSource::Share(_));
    let published = scenario.profile().is_some() || scenario.as_published;
    let counted = scenario.cluster.groups.iter().all(counted);
    match (published, counted) {
        (true, _) => None,
        (false, true) => Some("work on weights"),
        (false, false) => Some("speeds of devices as measured or assumed"),
    }
}

/// What framing and latency take of a network.
pub(crate) fn framing(scenario: &Scenario) -> Option<&'static str> {
    let network = &scenario.cluster.network;
    (network.efficiency < 1.0 || network.latency > Seconds::ZERO)
        .then_some("framing and latency of the network")
}

/// Rates of all-reduces below the nominal ones.
pub(crate) fn reached(scenario: &Scenario) -> Option<&'static str> {
    let given = scenario.strategy.exchange.curve.is_some();
    (!given && scenario.cluster.network.transport != Transport::Ideal)
        .then_some("rates that the network reaches")
}

/// What workers lose beside each other.
pub(crate) fn losses(scenario: &Scenario) -> Option<&'static str> {
    (Contention::from_scenario(scenario) != Contention::NONE).then_some("losses of several workers")
}

pub(crate) fn software(scenario: &Scenario) -> Option<&'static str> {
    Service::from_scenario(scenario).map(|_| "software of servers")
}
