//! Where something ran, from the names that TensorFlow gives to devices.

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
    pub(super) fn of_label(label: &str) -> Option<Self> {
        let mut rest = label.trim_start();
        while rest.starts_with('[') {
            rest = rest.split_once(']')?.1.trim_start();
        }
        let (rest, to) = rest.rsplit_once(" to ")?;
        let (tensor, from) = rest.rsplit_once(" from ")?;
        Some(Self { tensor: tensor.to_owned(), from: from.to_owned(), to: to.to_owned() })
    }

    /// Bytes of its names.
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
            Edge::of_label(&format!("[19200B] [714.4Mb/s] edge_18_conv0/kernel from {PS} to {WORKER}"))
                .unwrap();
        assert_eq!((edge.tensor.as_str(), edge.from.as_str()), ("edge_18_conv0/kernel", PS));
        assert_eq!(edge.places(), Some((Place::Server(1), Place::Worker(12))));
        assert!(Edge::of_label(&format!("edge_1 from {PS} to {PS}")).unwrap().places().is_none());
        for broken in ["", "[", "[4B] x", "x to y", "x from y", " to  from "] {
            assert!(Edge::of_label(broken).is_none(), "{broken}");
        }
    }
}
