//! Profiles of a few operations, made from published throughputs, and simulations of many such workers.

use crate::ValidationError;
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::keys::NameOr;
use stepcast_core::machine::{NetworkSection, ServerSoftware, ServersSection, WorkersSection};
use stepcast_core::method::Method;
use stepcast_core::prediction::Prediction;
use stepcast_core::profile::{FORMAT, Operation, Profile, Resource, Step};
use stepcast_core::quantity::{BitsPerSec, Bytes, BytesPerSec, Seconds};
use stepcast_core::scenario::{ClusterSection, ModelSection, ScenarioFile};
use stepcast_core::strategy::StrategySection;
use stepcast_core::strategy::Synchronisation;
use stepcast_study::predict::interval::Regime;
use stepcast_study::simulate::Simulate;

/// A step of one worker: pulling, then computing. The time that a server spends on a step is modelled as the transfer of
/// the pulled bytes through its port, whatever it really consists of; the workers' own links are never a limit.
pub(super) struct OneWorker {
    pub(super) pulled: Bytes,
    pub(super) computing: Seconds,
    pub(super) servers: u32,
    pub(super) batch: u32,
}

/// Rate of workers' links.
const WORKER_LINK: BitsPerSec = BitsPerSec::new(1e15);

impl OneWorker {
    fn profile(&self) -> Profile {
        let part = (self.pulled.get() / f64::from(self.servers)) as u64;
        let pull = |server: u32| Operation {
            name: format!("pull {server}"),
            resource: Resource::Downlink,
            bytes: part,
            after: Vec::new(),
            server,
        };
        let mut operations: Vec<Operation> = (0..self.servers).map(pull).collect();
        operations.push(Operation {
            name: "compute".to_owned(),
            resource: Resource::Worker,
            bytes: 0,
            after: (0..self.servers).collect(),
            server: 0,
        });
        let mut end = vec![0.0; operations.len()];
        end[self.servers as usize] = self.computing.get();
        let step = Step { start: vec![0.0; operations.len()], end, length: self.computing.get() };
        Profile {
            format: FORMAT.to_owned(),
            name: "one worker".to_owned(),
            source: "published throughput".to_owned(),
            batch: self.batch,
            operations,
            steps: vec![step],
        }
    }

    /// Asynchronous training by workers given as (number, speed), with servers whose ports have the rate `port`.
    pub(super) fn predict(
        &self,
        speeds: &[(u32, f64)],
        port: BytesPerSec,
    ) -> Result<(Prediction, Regime), ValidationError> {
        struct Made(Profile);
        impl Files for Made {
            fn profile(&self, _: &str) -> Result<Profile, Fault> {
                Ok(self.0.clone())
            }
        }
        let workers = |&(count, speed): &(u32, f64)| WorkersSection {
            count: Some(count),
            speed: Some(speed.into()),
            ..WorkersSection::default()
        };
        let network = NetworkSection { bandwidth: Some(WORKER_LINK.into()), ..NetworkSection::default() };
        let file = ScenarioFile {
            model: ModelSection { profile: Some("made".to_owned()), ..ModelSection::default() },
            cluster: ClusterSection {
                workers: Some(speeds.iter().filter(|(count, _)| *count > 0).map(workers).collect()),
                network: Some(NameOr::Table(Box::new(network))),
                servers: Some(ServersSection {
                    count: Some(self.servers),
                    bandwidth: Some(port.to_bits_per_sec().into()),
                    // The port stands for it.
                    software: Some(ServerSoftware::None),
                    ..ServersSection::default()
                }),
                ..ClusterSection::default()
            },
            strategy: StrategySection {
                synchronisation: Some(Synchronisation::Async),
                ..StrategySection::default()
            },
            ..ScenarioFile::default()
        };
        let scenario = file.resolve_with(&Made(self.profile()))?;
        let prediction = Simulate.predict(&scenario)?;
        let regime = Regime::of(&scenario, prediction.scaling_factor);
        Ok((prediction, regime))
    }
}
