//! The records of one step: where and when each operation ran and each tensor moved.

use super::proto::{NodeExecStats, NodeOutput, StepStats};
use crate::import::tally;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// A node of the graph that ran somewhere.
    Node(Place, String),
    Tensor(Edge),
}

impl Key {
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Node(_, name) => name.len(),
            Self::Tensor(edge) => edge.length(),
        }
    }
}

/// The time of a record; nanoseconds since the clock's origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: i128,
    pub(super) end: i128,
    /// Size of a tensor.
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct RecordedStep {
    pub(super) name: String,
    pub(super) records: HashMap<Key, Interval>,
    /// First start and last end of everything that was recorded.
    pub(super) first: i128,
    pub(super) last: i128,
}

/// Data of all steps together, except their times.
#[derive(Debug, Default)]
pub(super) struct JobRecords {
    /// Payload of each output of each node, if a step records it.
    pub(super) outputs: HashMap<(Place, String), Vec<(i32, u64)>>,
    /// Records of the same thing in the same step, beyond the first.
    pub(super) repeated: usize,
    /// Records that end before they start.
    pub(super) reversed: usize,
    pub(super) undated: usize,
    /// RecvTensor records whose label could not be read.
    pub(super) unlabelled: usize,
    pub(super) ignored_devices: BTreeSet<String>,
    pub(super) places: BTreeSet<Place>,
}

/// Collects the records of one step; none if it has no usable ones.
pub(super) fn collect(name: &str, stats: &StepStats, job: &mut JobRecords) -> Option<RecordedStep> {
    let mut found =
        RecordedStep { name: name.to_owned(), records: HashMap::new(), first: i128::MAX, last: i128::MIN };
    for device in &stats.devices {
        let place = Place::from_device(&device.device).filter(|_| !is_kernel_stream(&device.device));
        let Some(place) = place else {
            job.ignored_devices.insert(device.device.clone());
            continue;
        };
        for record in &device.records {
            if let Some((key, interval)) = read(place, record, job) {
                found.insert(key, interval, job);
            }
        }
    }
    (!found.records.is_empty()).then_some(found)
}

/// The one record; none if it cannot be used.
fn read(place: Place, record: &NodeExecStats, job: &mut JobRecords) -> Option<(Key, Interval)> {
    let (start, length) = if record.all_start_nanos > 0 {
        (i128::from(record.all_start_nanos), i128::from(record.all_end_rel_nanos))
    } else {
        let length =
            if record.all_end_rel_micros == 0 { record.op_end_rel_micros } else { record.all_end_rel_micros };
        (i128::from(record.all_start_micros) * 1000, i128::from(length) * 1000)
    };
    if start <= 0 {
        job.undated += 1;
        return None;
    }
    if length < 0 {
        job.reversed += 1;
    }
    let end = start + length.max(0);
    if record.node_name == "RecvTensor" {
        let Some(edge) = Edge::from_label(&record.timeline_label) else {
            job.unlabelled += 1;
            return None;
        };
        return Some((Key::Tensor(edge), Interval { start, end, bytes: requested(&record.output) }));
    }
    job.places.insert(place);
    let outputs = job.outputs.entry((place, record.node_name.clone())).or_default();
    for output in &record.output {
        let payload = output.tensor.as_ref().and_then(|tensor| tensor.payload());
        if let (Some(bytes), false) = (payload, outputs.iter().any(|(slot, _)| *slot == output.slot)) {
            outputs.push((output.slot, bytes));
        }
    }
    Some((Key::Node(place, record.node_name.clone()), Interval { start, end, bytes: 0 }))
}

/// The payload that a RecvTensor record states.
fn requested(outputs: &[NodeOutput]) -> u64 {
    let stated = outputs.iter().filter_map(|output| output.tensor.as_ref()?.allocation.as_ref());
    stated.map(|allocation| u64::try_from(allocation.requested_bytes).unwrap_or(0)).max().unwrap_or(0)
}

impl RecordedStep {
    /// Adds a record. A second record of a tensor widens the first: requested once, arrived with the last
    /// part. A second record of a node (a loop) lengthens the first: it was busy that much longer.
    fn insert(&mut self, key: Key, interval: Interval, job: &mut JobRecords) {
        self.first = self.first.min(interval.start);
        self.last = self.last.max(interval.end);
        let is_tensor = matches!(key, Key::Tensor(_));
        match self.records.entry(key) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(interval);
            }
            std::collections::hash_map::Entry::Occupied(mut entry) => {
                job.repeated += 1;
                let known = entry.get_mut();
                if *known == interval {
                    return;
                }
                let busy = (known.end - known.start) + (interval.end - interval.start);
                known.start = known.start.min(interval.start);
                known.end = if is_tensor { known.end.max(interval.end) } else { known.start + busy };
                known.bytes = known.bytes.max(interval.bytes);
            }
        }
    }
}

impl JobRecords {
    pub(super) fn report(&self, notes: &mut Vec<String>) {
        tally(notes, self.repeated, "record", "joined with another of the same operation and step");
        tally(notes, self.reversed, "record", "taken as instantaneous: end before start");
        tally(notes, self.undated, "record", "ignored: no start");
        tally(notes, self.unlabelled, "RecvTensor record", "ignored: unreadable label");
        for device in &self.ignored_devices {
            let why = if is_kernel_stream(device) {
                "its operations have the times at which the host launched them, not those of the kernels"
            } else {
                "it belongs neither to /job:worker nor to /job:ps"
            };
            notes.push(format!("records of {device} were not used: {why}"));
        }
    }
}

/// How often each thing was recorded, in a fixed order.
pub(super) fn frequencies<'a>(steps: impl Iterator<Item = &'a RecordedStep>) -> BTreeMap<&'a Key, usize> {
    let mut counts = BTreeMap::new();
    for key in steps.flat_map(|step| step.records.keys()) {
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}

/// One process of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Place {
    /// `/job:worker/…/task:N`
    Worker(u32),
    /// `/job:ps/…/task:N`
    Server(u32),
}

impl Place {
    /// The process that a device such as `/job:ps/replica:0/task:0/device:CPU:0` belongs to.
    pub(super) fn from_device(device: &str) -> Option<Self> {
        let part = |key: &str| device.split('/').find_map(|part| part.strip_prefix(key)?.strip_prefix(':'));
        let task = part("task").unwrap_or("0").parse().ok()?;
        match part("job")? {
            "worker" => Some(Self::Worker(task)),
            "ps" => Some(Self::Server(task)),
            _ => None,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Worker(task) => write!(formatter, "worker {task}"),
            Self::Server(task) => write!(formatter, "ps {task}"),
        }
    }
}

/// Whether a device's records repeat operations of another device: the kernels and copies of a GPU.
pub(super) fn is_kernel_stream(device: &str) -> bool {
    device.contains("/stream:") || device.contains("/memcpy")
}

/// A tensor that moves: its name and its two devices, as the graph and the records both write them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Edge {
    pub(super) tensor: String,
    pub(super) from: String,
    pub(super) to: String,
}

impl Edge {
    /// Reads the label of a RecvTensor record: `[19200B] [714.4Mb/s] tensor from device to device`.
    pub(super) fn from_label(label: &str) -> Option<Self> {
        let mut rest = label.trim_start();
        while rest.starts_with('[') {
            rest = rest.split_once(']')?.1.trim_start();
        }
        let (rest, to) = rest.rsplit_once(" to ")?;
        let (tensor, from) = rest.rsplit_once(" from ")?;
        Some(Self { tensor: tensor.to_owned(), from: from.to_owned(), to: to.to_owned() })
    }

    pub(super) fn length(&self) -> usize {
        self.tensor.len() + self.from.len() + self.to.len()
    }

    /// The two processes, if it goes from one to another.
    pub(super) fn places(&self) -> Option<(Place, Place)> {
        let (from, to) = (Place::from_device(&self.from)?, Place::from_device(&self.to)?);
        (from != to).then_some((from, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PS: &str = "/job:ps/replica:0/task:1/device:CPU:0";
    const WORKER: &str = "/job:worker/replica:0/task:12/device:GPU:0";

    #[test]
    fn devices_belong_to_processes() {
        assert_eq!(Place::from_device(PS), Some(Place::Server(1)));
        assert_eq!(Place::from_device(WORKER), Some(Place::Worker(12)));
        assert_eq!(Place::from_device("/job:worker/device:CPU:0"), Some(Place::Worker(0)));
        for other in
            ["", "/device:CPU:0", "/job:localhost/replica:0/task:0", "/job:ps/task:x", "/jobs:ps/task:1"]
        {
            assert_eq!(Place::from_device(other), None, "{other}");
        }
    }

    #[test]
    fn labels_name_tensor_and_devices() {
        let edge =
            Edge::from_label(&format!("[19200B] [714.4Mb/s] edge_18_conv0/kernel from {PS} to {WORKER}"))
                .unwrap();
        assert_eq!((edge.tensor.as_str(), edge.from.as_str()), ("edge_18_conv0/kernel", PS));
        assert_eq!(edge.places(), Some((Place::Server(1), Place::Worker(12))));
        assert!(Edge::from_label(&format!("edge_1 from {PS} to {PS}")).unwrap().places().is_none());
        for broken in ["", "[", "[4B] x", "x to y", "x from y", " to  from "] {
            assert!(Edge::from_label(broken).is_none(), "{broken}");
        }
    }
}
