//! The four sequential, non-overlapping phases of an asynchronous step in the coarse models.

use crate::step;
use stepcast_core::compute;
use stepcast_core::profile::{Profile, Resource};
use stepcast_core::quantity::{BitsPerSec, Bytes, Seconds};
use stepcast_core::scenario::Scenario;
use stepcast_core::speed::Speed;

/// Durations of the phases of one step of a single worker without contention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phases {
    /// Pulling the parameters.
    pub down: Seconds,
    /// Computing the gradients.
    pub compute: Seconds,
    /// Pushing the gradients.
    pub up: Seconds,
    /// Applying them at the server.
    pub update: Seconds,
}

impl Phases {
    /// From the mean step of a profile, with transfers at `rate`.
    pub fn of_profile(profile: &Profile, rate: BitsPerSec) -> Self {
        let steps = profile.steps.len() as f64;
        let busy = |resource: Resource| {
            let operations = profile.operations.iter().enumerate().filter(|(_, op)| op.resource == resource);
            let total: Seconds = operations
                .flat_map(|(index, _)| profile.steps.iter().map(move |step| step.duration(index)))
                .sum();
            total / steps
        };
        Self {
            down: profile.bytes(Resource::Downlink).to_bits() / rate,
            compute: busy(Resource::Worker),
            up: profile.bytes(Resource::Uplink).to_bits() / rate,
            update: busy(Resource::Server),
        }
    }

    /// The phases of the average worker of a scenario.
    pub fn of(scenario: &Scenario) -> Self {
        let cluster = &scenario.cluster;
        let workers = cluster.workers() as f64;
        let mut mean =
            Self { down: Seconds::ZERO, compute: Seconds::ZERO, up: Seconds::ZERO, update: Seconds::ZERO };
        for (index, group) in cluster.groups.iter().enumerate() {
            let share = f64::from(group.count) / workers;
            let transfer = |bytes: Bytes| {
                step::payload(cluster, group, bytes).total()
                    + cluster.network.latency
                    + cluster.network.startup
            };
            let (down, compute, up, update) = match scenario.profile() {
                Some(profile) => {
                    let phases = Self::of_profile(profile, cluster.network.bandwidth);
                    let (down, up) = (profile.bytes(Resource::Downlink), profile.bytes(Resource::Uplink));
                    (transfer(down), phases.compute * scenario.slowness(index), transfer(up), phases.update)
                }
                None => {
                    let speed = Speed::of(scenario, index);
                    let layers = scenario.workload.layers.iter();
                    let layers: Seconds =
                        layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
                    let compute = compute::host_to_device(scenario, index) + layers;
                    let once = transfer(scenario.workload.bytes());
                    (once, compute, once, Seconds::ZERO)
                }
            };
            mean.down += down * share;
            mean.compute += compute * share;
            mean.up += up * share;
            mean.update += update * share;
        }
        mean
    }
}
