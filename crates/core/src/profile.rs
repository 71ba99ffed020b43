//! Profiles: measured steps of one worker and one server, which can be replayed with other numbers of both.
//!
//! Operations and their dependencies are the same in every step; only the times differ. A transfer has a size, and
//! the times at which it was requested and had arrived; the simulator computes its duration on another network. All
//! other operations have a duration. The file format is JSON, see `docs/profile.md`.

use crate::fault::Fault;
use crate::quantity::{Bytes, Seconds};
use serde::{Deserialize, Serialize};

/// The format that this version reads and writes.
pub const FORMAT: &str = "stepcast-profile/1";

/// Longer times are taken for errors.
const MOST_SECONDS: f64 = 1e9;

/// Larger sizes are taken for errors.
const MOST_BYTES: u64 = 1_000_000_000_000_000;

fn is_plausible(time: f64) -> bool {
    time.abs() <= MOST_SECONDS
}

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Operation {
    /// Unique within the profile.
    pub name: String,
    pub resource: Resource,
    /// Payload of a transfer; zero otherwise.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes: u64,
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
    /// An operation, of the first server if it is a transfer or runs on a server.
    pub fn new(name: impl Into<String>, resource: Resource, bytes: u64, after: &[u32]) -> Self {
        Self { name: name.into(), resource, bytes, after: after.to_vec(), server: 0 }
    }

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

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Profile {
    /// [`FORMAT`].
    pub format: String,
    pub name: String,
    pub source: String,
    pub batch: u32,
    /// Rate at which transfers came over the link of the recording, in bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_rate: Option<f64>,
    pub operations: Vec<Operation>,
    pub steps: Vec<Step>,
}

impl Profile {
    /// A profile in the current format, of an unknown link.
    pub fn new(
        name: &str,
        source: impl Into<String>,
        batch: u32,
        operations: Vec<Operation>,
        steps: Vec<Step>,
    ) -> Self {
        let (format, name, source) = (FORMAT.to_owned(), name.to_owned(), source.into());
        Self { format, name, source, batch, link_rate: None, operations, steps }
    }

    pub fn has_servers(&self) -> bool {
        self.operations.iter().any(|operation| operation.resource == Resource::Server)
    }

    pub fn bytes(&self, resource: Resource) -> Bytes {
        self.operations.iter().filter(|op| op.resource == resource).map(Operation::size).sum()
    }

    /// `transfers` of one direction in the order in which their sending began in a recorded step. This is the order of their
    /// arrivals, except that a transfer of more than `window` bytes sends its first `window` bytes early and the rest at the
    /// end. If all were requested at once, gaps between arrivals show before which transfer such a first part was sent.
    pub fn sending_order(&self, step: &Step, mut transfers: Vec<usize>, window: f64) -> Vec<usize> {
        transfers.sort_by(|&a, &b| step.end[a].total_cmp(&step.end[b]));
        let size = |op: usize| self.operations[op].bytes as f64;
        let total: f64 = transfers.iter().map(|&op| size(op)).sum();
        let (Some(&first), Some(&last)) = (transfers.first(), transfers.last()) else { return transfers };
        let requested = step.start[first];
        let span = step.end[last] - requested;
        let at_once = transfers.iter().all(|&op| step.start[op].total_cmp(&requested).is_eq());
        if !(at_once && span > 0.0 && window > 0.0) || transfers.iter().all(|&op| size(op) <= window) {
            return transfers;
        }
        let (large, small): (Vec<usize>, Vec<usize>) = transfers.iter().partition(|&&op| size(op) > window);
        let (mut large, mut order, mut before) = (large.into_iter(), Vec::new(), requested);
        for op in small {
            let beside = (step.end[op] - before) / span * total - size(op);
            order.extend(large.by_ref().take((beside / window).round().max(0.0) as usize));
            order.push(op);
            before = step.end[op];
        }
        order.extend(large);
        order
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

    pub fn mean_step(&self) -> Seconds {
        Seconds::new(self.steps.iter().map(|step| step.length).sum::<f64>() / self.steps.len() as f64)
    }
}

impl Profile {
    pub fn check(&self) -> Result<(), Fault> {
        if self.format != FORMAT {
            let reason = format!("\"{}\" is not a format that this version reads", self.format);
            return Err(Fault::in_file("format", reason, format!("write \"{FORMAT}\"")));
        }
        if self.batch == 0 {
            return Err(Fault::in_file("batch", "a step has at least one sample", "give the batch size"));
        }
        if self.link_rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
            let reason = "a link has a positive rate";
            return Err(Fault::in_file("link-rate", reason, "give bytes per second, or leave it out"));
        }
        if self.operations.is_empty() || self.steps.is_empty() {
            let remedy = "record at least one step with at least one operation";
            return Err(Fault::in_file("profile", "it has no operations or no steps", remedy));
        }
        self.check_operations()?;
        self.check_cycles()?;
        self.check_steps()
    }

    fn check_operations(&self) -> Result<(), Fault> {
        let mut names: Vec<&str> = self.operations.iter().map(|op| op.name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let reason = format!("two operations are called \"{}\"", twice[0]);
            return Err(Fault::in_file("operations", reason, "give every operation its own name"));
        }
        for (index, operation) in self.operations.iter().enumerate() {
            let place = || format!("operations[{index}] (\"{}\")", operation.name);
            if let Some(missing) =
                operation.after.iter().find(|after| **after as usize >= self.operations.len())
            {
                let reason = format!("it waits for operation {missing}, which does not exist");
                return Err(Fault::in_file(place(), reason, "use indices of this profile's operations"));
            }
            if operation.bytes > MOST_BYTES {
                let remedy = "give the size in bytes";
                return Err(Fault::in_file(place(), "it is larger than a petabyte", remedy));
            }
            if !operation.resource.is_transfer() && operation.bytes > 0 {
                let remedy = "only downlink and uplink operations have a size";
                return Err(Fault::in_file(place(), "it computes and yet has bytes", remedy));
            }
        }
        Ok(())
    }

    /// Kahn's algorithm; the remaining operations form a cycle.
    fn check_cycles(&self) -> Result<(), Fault> {
        let mut waiting: Vec<usize> = self.operations.iter().map(|op| op.after.len()).collect();
        let mut followers: Vec<Vec<u32>> = vec![Vec::new(); self.operations.len()];
        for (index, operation) in self.operations.iter().enumerate() {
            for &before in &operation.after {
                followers[before as usize].push(index as u32);
            }
        }
        let mut ready: Vec<usize> = (0..waiting.len()).filter(|&index| waiting[index] == 0).collect();
        let mut done = 0;
        while let Some(index) = ready.pop() {
            done += 1;
            for &follower in &followers[index] {
                waiting[follower as usize] -= 1;
                if waiting[follower as usize] == 0 {
                    ready.push(follower as usize);
                }
            }
        }
        if done == self.operations.len() {
            return Ok(());
        }
        let stuck = self.operations.iter().zip(&waiting).filter(|(_, waiting)| **waiting > 0);
        let names: Vec<String> =
            stuck.take(5).map(|(operation, _)| format!("\"{}\"", operation.name)).collect();
        let reason = format!("operations wait for each other in a circle: {}", names.join(", "));
        Err(Fault::in_file("operations", reason, "remove one of the dependencies"))
    }

    fn check_steps(&self) -> Result<(), Fault> {
        for (index, step) in self.steps.iter().enumerate() {
            let wrong =
                |place: String, reason: &str, remedy: &str| Err(Fault::in_file(place, reason, remedy));
            let count = self.operations.len();
            if step.start.len() != count || step.end.len() != count {
                let remedy = "give a start and an end for every operation";
                return wrong(format!("steps[{index}]"), "it has not one time per operation", remedy);
            }
            for (operation, (start, end)) in step.start.iter().zip(&step.end).enumerate() {
                let place = || format!("steps[{index}], \"{}\"", self.operations[operation].name);
                if !is_plausible(*start) || !is_plausible(*end) {
                    return wrong(
                        place(),
                        "a time is not a number of seconds within 30 years",
                        "check the recording",
                    );
                }
                if end < start {
                    return wrong(place(), "it ends before it starts", "check the recording's clock");
                }
            }
            if !(is_plausible(step.length) && step.length > 0.0) {
                return wrong(
                    format!("steps[{index}].length"),
                    "must be positive",
                    "give the length of the step",
                );
            }
        }
        Ok(())
    }
}
