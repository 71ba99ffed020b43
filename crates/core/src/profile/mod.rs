//! Profiles: measured steps of one worker and one server, which can be replayed with other numbers of both.
//!
//! Operations and their dependencies are the same in every step; only the times differ. A transfer has a size, and
//! the times at which it was requested and had arrived; the simulator computes its duration on another network. All
//! other operations have a duration. The file format is JSON, see `docs/profile.md`.

mod check;

use crate::quantity::{Bytes, Seconds};
use serde::{Deserialize, Serialize};

/// The format that this version reads and writes.
pub const FORMAT: &str = "stepcast-profile/1";

/// Resource that an operation occupies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Resource {
    /// From the server to the worker.
    Downlink,
    /// The worker's computing unit.
    Worker,
    /// From the worker to the server.
    Uplink,
    /// The server's computing unit.
    Server,
}

impl Resource {
    /// Whether it carries bytes.
    pub fn is_transfer(self) -> bool {
        matches!(self, Self::Downlink | Self::Uplink)
    }
}

/// One operation of every step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Operation {
    /// Unique within the profile.
    pub name: String,
    /// The resource it occupies.
    pub resource: Resource,
    /// Payload of a transfer; zero otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
    /// Indices of the operations it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u32>,
    /// The server that it belongs to, for transfers and server operations.
    #[serde(default, skip_serializing_if = "is_first")]
    pub server: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_zero(bytes: &u64) -> bool {
    *bytes == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over references")]
fn is_first(server: &u32) -> bool {
    *server == 0
}

impl Operation {
    /// Payload as a quantity.
    pub fn size(&self) -> Bytes {
        Bytes::new(self.bytes as f64)
    }
}

/// One measured step; times in seconds since its start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Step {
    /// When each operation started, by index; for a transfer, when it was requested.
    pub start: Vec<f64>,
    /// When each operation ended; for a transfer, when it had arrived.
    pub end: Vec<f64>,
    /// From the start of this step to the start of the next one.
    pub length: f64,
}

impl Step {
    /// Time between start and end of an operation.
    pub fn duration(&self, operation: usize) -> Seconds {
        Seconds::new(self.end[operation] - self.start[operation])
    }
}

/// Measured steps of one worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Profile {
    /// [`FORMAT`].
    pub format: String,
    /// Name of the trained model.
    pub name: String,
    /// Where the profile comes from.
    pub source: String,
    /// Samples of one step.
    pub batch: u32,
    /// The operations of every step.
    pub operations: Vec<Operation>,
    /// The measured steps.
    pub steps: Vec<Step>,
}

impl Profile {
    /// Bytes that one step moves over `resource`.
    pub fn bytes(&self, resource: Resource) -> Bytes {
        self.operations.iter().filter(|op| op.resource == resource).map(Operation::size).sum()
    }

    /// The step whose operations all start and end at their mean times.
    pub fn mean(&self) -> Step {
        let count = self.steps.len() as f64;
        let mean = |of: fn(&Step) -> &[f64], op: usize| {
            self.steps.iter().map(|step| of(step)[op]).sum::<f64>() / count
        };
        let operations = 0..self.operations.len();
        Step {
            start: operations.clone().map(|op| mean(|step| &step.start, op)).collect(),
            end: operations.map(|op| mean(|step| &step.end, op)).collect(),
            length: self.mean_step().get(),
        }
    }

    /// Mean length of a step.
    pub fn mean_step(&self) -> Seconds {
        Seconds::new(self.steps.iter().map(|step| step.length).sum::<f64>() / self.steps.len() as f64)
    }
}
