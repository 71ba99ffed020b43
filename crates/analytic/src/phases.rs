//! The four sequential, non-overlapping phases of an asynchronous step in the coarse models.

use crate::servers::Service;
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
    pub compute: Seconds,
    /// Pushing the gradients.
    pub up: Seconds,
    /// Applying them at the server.
    pub update: Seconds,
    /// Time of the server's software, which serves one worker at a time.
    pub software: Seconds,
}

impl Phases {
    /// From the mean step of a profile, with transfers at `rate`.
    pub fn from_profile(profile: &Profile, rate: BitsPerSec) -> Self {
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
            software: Seconds::ZERO,
        }
    }

    pub fn from_scenario(scenario: &Scenario) -> Self {
        let cluster = &scenario.cluster;
        let workers = cluster.workers() as f64;
        let copies = f64::from(cluster.servers.copies);
        let served = |pulled: Bytes, pushed: Bytes, tensors: f64| {
            let messages = tensors * (1.0 + copies);
            let time = |service: Service| service.time(pulled * copies + pushed, messages, workers);
            Service::from_scenario(scenario).map_or(Seconds::ZERO, time)
        };
        let mut mean = Self {
            down: Seconds::ZERO,
            compute: Seconds::ZERO,
            up: Seconds::ZERO,
            update: Seconds::ZERO,
            software: Seconds::ZERO,
        };
        for (index, group) in cluster.groups.iter().enumerate() {
            let share = f64::from(group.count) / workers;
            let transfer = |bytes: Bytes| {
                step::payload(cluster, group, bytes).total()
                    + cluster.network.latency
                    + cluster.network.startup
            };
            let phases = match scenario.profile() {
                Some(profile) => {
                    let phases = Self::from_profile(profile, cluster.network.bandwidth);
                    let (down, up) = (profile.bytes(Resource::Downlink), profile.bytes(Resource::Uplink));
                    let pushes = profile.operations.iter().filter(|op| op.resource == Resource::Uplink);
                    Self {
                        down: transfer(down * copies),
                        compute: phases.compute * scenario.slowness(index),
                        up: transfer(up),
                        update: phases.update,
                        software: served(down, up, pushes.count() as f64),
                    }
                }
                None => {
                    let speed = Speed::of_group(scenario, index);
                    let layers = scenario.workload.layers.iter();
                    let layers: Seconds =
                        layers.map(|layer| speed.forward(layer) + speed.backward(layer)).sum();
                    let compute = compute::host_to_device(scenario, index) + layers;
                    let bytes = scenario.sent_in_all(index);
                    let tensors = scenario.workload.layers.iter().map(|layer| layer.tensors.len());
                    Self {
                        down: transfer(bytes * copies),
                        compute,
                        up: transfer(bytes),
                        update: Seconds::ZERO,
                        software: served(bytes, bytes, tensors.sum::<usize>() as f64),
                    }
                }
            };
            mean.down += phases.down * share;
            mean.compute += phases.compute * share;
            mean.up += phases.up * share;
            mean.update += phases.update * share;
            mean.software += phases.software * share;
        }
        mean
    }
}
