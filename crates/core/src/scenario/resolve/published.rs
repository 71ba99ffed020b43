//! A scenario as papers see it: links carry their nominal rates, share them fairly and cost nothing else, servers have no
//! software, and devices compute what is counted at their peak rates (or the given share of them).

use crate::machine::{Network, ServerSoftware, Transport};
use crate::quantity::Seconds;
use crate::scenario::{Scenario, SharingRule};
use crate::strategy::{BufferReading, FusionRule, StrategySection};

/// The scenario without all that is assumed or known beyond the formulas of papers. Start-ups and rates of hosts stay: they
/// are inputs of formulas, and no network of the catalog has them.
pub(super) fn stripped(mut scenario: Scenario) -> Scenario {
    nominal(&mut scenario.cluster.network);
    if let Some(nodes) = &mut scenario.cluster.nodes {
        nominal(&mut nodes.network);
    }
    scenario.cluster.servers.software = Some(ServerSoftware::None);
    scenario.methods.simulate.transport = SharingRule::Fair;
    scenario
}

/// Buffers of gradients wait as eq. 15 of Liu 2022 prints it, unless the scenario says otherwise.
pub(super) fn read_as_printed(strategy: &mut StrategySection) {
    let buffer = strategy.fusion.as_mut().filter(|fusion| fusion.rule == Some(FusionRule::Buffer));
    if let Some(fusion) = buffer {
        fusion.reading.get_or_insert(BufferReading::Serial);
    }
}

fn nominal(network: &mut Network) {
    network.transport = Transport::Ideal;
    network.efficiency = 1.0;
    network.latency = Seconds::ZERO;
    network.reached = None;
}
