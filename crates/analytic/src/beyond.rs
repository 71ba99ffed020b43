//! Effects that answers model beyond the formulas of papers. A scenario as published has none of them.

use crate::contention::Contention;
use crate::servers::Service;
use stepcast_core::compute::SpeedSource;
use stepcast_core::machine::Transport;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::Scenario;

/// Speeds of devices that are not a share of the peak rate.
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

/// Losses of a network to framing and latency.
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

/// Losses of workers that run beside each other.
pub(crate) fn losses(scenario: &Scenario) -> Option<&'static str> {
    (Contention::from_scenario(scenario) != Contention::NONE).then_some("losses of several workers")
}

pub(crate) fn software(scenario: &Scenario) -> Option<&'static str> {
    Service::from_scenario(scenario).map(|_| "software of servers")
}
