//! Asynchronous workers whose profile is worked out from published throughputs: of single workers, and of workers that saturate a server.

use super::zoo_model;
use crate::ValidationError;
use crate::recipe::PullingSpec;
use crate::records::Fields;
use serde_json::Value;
use stepcast_core::fault::Fault;
use stepcast_core::files::Files;
use stepcast_core::profile::{Operation, Profile, Resource, Step};
use stepcast_core::quantity::{BitsPerSec, Bytes, BytesPerSec, Seconds};
use stepcast_study::predict::interval::Case;

/// Bytes of a parameter.
const ELEMENT: f64 = 4.0;

/// Workers that pull, then compute. The time that a server spends on a step is modelled as the transfer of the pulled bytes through its
/// port, whatever it really consists of; the workers' own links are never a limit.
pub(super) struct Pulling<'a> {
    spec: &'a PullingSpec,
    parameters: u64,
    /// Time of a step on a server.
    serving: Seconds,
    /// Computing of a step, by kind of worker.
    computing: Vec<(&'a str, Seconds)>,
}

/// Number and kind of the workers of a run: "2 K80 + 1 V100".
fn machines(row: &Value) -> impl Iterator<Item = (u32, &str)> {
    let each = row.text("machines").split(" + ").filter_map(|own| own.split_once(' '));
    each.map(|(count, kind)| (count.parse().unwrap_or(0), kind.trim_end_matches('s')))
}

impl<'a> Pulling<'a> {
    /// From the throughputs in a column: of the run that saturates a server, and of every kind of worker alone.
    pub(super) fn new(
        spec: &'a PullingSpec,
        rate: &str,
        cases: &'a [Value],
    ) -> Result<Self, ValidationError> {
        let step = |row: &Value| Seconds::new(f64::from(spec.batch) / row.number(rate));
        let saturated = cases.iter().find(|row| row.text("given") == "server");
        let missing = || ValidationError::Data("no run saturates a server".to_owned());
        let serving = step(saturated.ok_or_else(missing)?);
        let alone = cases.iter().filter_map(|row| match machines(row).collect::<Vec<_>>().as_slice() {
            [(1, kind)] => Some((*kind, step(row) - serving)),
            _ => None,
        });
        Ok(Self {
            spec,
            parameters: zoo_model(&spec.model)?.parameters(),
            serving,
            computing: alone.collect(),
        })
    }

    fn pulled(&self) -> Bytes {
        Bytes::new(self.parameters as f64 * ELEMENT)
    }

    /// The rate at which a server would send the parameters in the time that it spends on a step.
    pub(super) fn port(&self) -> BitsPerSec {
        let port: BytesPerSec = self.pulled() / self.serving;
        port.to_bits_per_sec()
    }

    /// Computing of the first kind, which the speed of others refers to.
    fn first(&self) -> Seconds {
        self.computing.first().map_or(Seconds::new(f64::NAN), |(_, computing)| *computing)
    }

    /// The workers of a run, as tables of a scenario.
    pub(super) fn groups(&self, row: &Value) -> String {
        let table = |(count, kind): (u32, &str)| {
            let own = self.computing.iter().find(|(other, _)| *other == kind);
            let speed = own.map_or(f64::NAN, |(_, computing)| self.first() / *computing);
            format!("[[cluster.workers]]\ncount = {count}\nspeed = {speed:?}\n")
        };
        machines(row).map(table).collect()
    }

    /// The profile of a worker of the first kind beside the servers of a run.
    pub(super) fn profile(&self, row: &Value) -> impl Files + use<> {
        struct Made(Profile);
        impl Files for Made {
            fn profile(&self, _: &str) -> Result<Profile, Fault> {
                Ok(self.0.clone())
            }
        }
        let servers = row.small("servers").max(1);
        let part = (self.pulled().get() / f64::from(servers)) as u64;
        let operation =
            |name: String, resource, bytes, after, server| Operation { name, resource, bytes, after, server };
        let pull =
            |server: u32| operation(format!("pull {server}"), Resource::Downlink, part, Vec::new(), server);
        let mut operations: Vec<Operation> = (0..servers).map(pull).collect();
        operations.push(operation("compute".to_owned(), Resource::Worker, 0, (0..servers).collect(), 0));
        let mut end = vec![0.0; operations.len()];
        end[servers as usize] = self.first().get();
        let step = Step { start: vec![0.0; operations.len()], end, length: self.first().get() };
        Made(Profile::new("one worker", "published throughput", self.spec.batch, operations, vec![step]))
    }

    /// A run with what its profile does not tell.
    pub(super) fn case(&self, case: &Case) -> Case {
        let bandwidth = self.spec.is_network.then(|| self.port());
        Case { bandwidth, parameters: Some(self.parameters), ..case.clone() }
    }
}
