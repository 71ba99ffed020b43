//! A made-up job: one worker, servers, and steps whose times are easy to follow.

use crate::tensorflow::proto::*;
use prost::Message;

pub(super) const WORKER: &str = "/job:worker/replica:0/task:0/device:CPU:0";

pub(super) fn server(task: u32) -> String {
    format!("/job:ps/replica:0/task:{task}/device:CPU:0")
}

/// When the first step starts, in microseconds.
const ORIGIN: i64 = 1_700_000_000_000_000;

pub(super) fn node(name: &str, op: &str, device: &str, inputs: &[&str]) -> NodeDef {
    NodeDef {
        name: name.to_owned(),
        op: op.to_owned(),
        inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
        device: device.to_owned(),
        attributes: Default::default(),
    }
}

pub(super) fn edge(op: &str, tensor: &str, from: &str, to: &str, inputs: &[&str]) -> NodeDef {
    let device = if op == "_Send" { from } else { to };
    let mut node = node(&format!("{tensor}{op}"), op, device, inputs);
    for (key, value) in [("tensor_name", tensor), ("send_device", from), ("recv_device", to)] {
        node.attributes.insert(key.to_owned(), AttrValue { bytes: value.as_bytes().to_vec() });
    }
    node
}

/// One step being written down; times in microseconds since its start.
#[derive(Clone)]
pub(super) struct StepBuilder {
    origin: i64,
    devices: Vec<DeviceStepStats>,
}

impl StepBuilder {
    /// A step that starts `at` microseconds after the first one.
    pub(super) fn at(at: i64) -> Self {
        Self { origin: ORIGIN + at, devices: Vec::new() }
    }

    fn push(mut self, device: &str, record: NodeExecStats) -> Self {
        match self.devices.iter_mut().find(|known| known.device == device) {
            Some(known) => known.records.push(record),
            None => self.devices.push(DeviceStepStats { device: device.to_owned(), records: vec![record] }),
        }
        self
    }

    /// A node that ran; it has one output of `elements` floats.
    pub(super) fn ran(self, device: &str, name: &str, start: i64, end: i64, elements: i64) -> Self {
        let shape = Shape { dimensions: vec![Dimension { size: elements }], unknown_rank: false };
        let tensor = TensorDescription { dtype: 1, shape: Some(shape), allocation: None };
        let record = NodeExecStats {
            node_name: name.to_owned(),
            all_start_micros: self.origin + start,
            all_end_rel_micros: end - start,
            all_start_nanos: (self.origin + start) * 1000,
            all_end_rel_nanos: (end - start) * 1000,
            output: vec![NodeOutput { slot: 0, tensor: Some(tensor) }],
            ..NodeExecStats::default()
        };
        self.push(device, record)
    }

    pub(super) fn got(self, tensor: &str, from: &str, to: &str, start: i64, end: i64, bytes: i64) -> Self {
        let allocation = Some(AllocationDescription { requested_bytes: bytes });
        let tensor_description = TensorDescription { allocation, ..TensorDescription::default() };
        let record = NodeExecStats {
            node_name: "RecvTensor".to_owned(),
            all_start_micros: self.origin + start,
            op_end_rel_micros: end - start,
            all_end_rel_micros: end - start,
            output: vec![NodeOutput { slot: 0, tensor: Some(tensor_description) }],
            timeline_label: format!("[{bytes}B] [1.0Mb/s] {tensor} from {from} to {to}"),
            ..NodeExecStats::default()
        };
        self.push(to, record)
    }

    /// Takes out all records of a node or tensor.
    pub(super) fn without(mut self, name: &str) -> Self {
        for device in &mut self.devices {
            device.records.retain(|record| {
                record.node_name != name && !record.timeline_label.contains(&format!(" {name} "))
            });
        }
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let step_stats = Some(StepStats { devices: self.devices.clone() });
        RunMetadata { step_stats, partition_graphs: Vec::new() }.encode_to_vec()
    }
}

pub(super) fn graphs(partitions: &[&[NodeDef]]) -> Vec<u8> {
    let partition_graphs = partitions.iter().map(|nodes| GraphDef { nodes: nodes.to_vec() }).collect();
    RunMetadata { step_stats: None, partition_graphs }.encode_to_vec()
}

/// A weight comes down, a gradient goes up:
/// `weight` → `weight/read` → (edge_1) → `forward` → `backward` → (edge_2) → `update`.
pub(super) fn small_graph() -> Vec<u8> {
    let ps = server(0);
    graphs(&[
        &[
            edge("_Recv", "edge_1", &ps, WORKER, &[]),
            node("forward", "MatMul", WORKER, &["edge_1_Recv"]),
            node("backward", "MatMul", WORKER, &["forward", "edge_1_Recv"]),
            edge("_Send", "edge_2", WORKER, &ps, &["backward"]),
        ],
        &[
            node("weight", "VariableV2", &ps, &[]),
            node("weight/read", "Identity", &ps, &["weight"]),
            edge("_Send", "edge_1", &ps, WORKER, &["weight/read"]),
            edge("_Recv", "edge_2", WORKER, &ps, &[]),
            node("update", "ApplyGradientDescent", &ps, &["weight", "edge_2_Recv"]),
        ],
    ])
}

/// A step of [`small_graph`]; computing takes `slow` microseconds longer than 100 + 200.
pub(super) fn small_step(at: i64, slow: i64) -> StepBuilder {
    let ps = server(0);
    StepBuilder::at(at)
        .ran(WORKER, "_SOURCE", 0, 2, 0)
        .ran(&ps, "weight", 10, 12, 1000)
        .ran(&ps, "weight/read", 13, 15, 1000)
        .got("edge_1", &ps, WORKER, 20, 60, 4000)
        .ran(WORKER, "forward", 70, 170, 500)
        .ran(WORKER, "backward", 170, 370 + slow, 1000)
        .got("edge_2", WORKER, &ps, 375 + slow, 425 + slow, 4000)
        .ran(&ps, "update", 430 + slow, 440 + slow, 1000)
}
