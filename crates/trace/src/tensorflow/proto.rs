//! The parts of TensorFlow's messages that are read, and the memory that they take when they are decoded; all other fields are skipped.
//!
//! `RunMetadata` holds what one `session.run` did: the records of every device, and the graphs as they were cut
//! into one partition per device.

use prost::encoding::decode_varint;
use std::collections::BTreeMap;

stepcast_onnx::messages! {
    /// The records of one step.
    RunMetadata {
        step_stats: Option<StepStats> => "1" (message, optional);
        partition_graphs: Vec<GraphDef> => "3" (message, repeated);
    }

    StepStats {
        devices: Vec<DeviceStepStats> => "1" (message, repeated);
    }

    /// Records of one device. A device may come twice: once with its operations, once with what it received.
    DeviceStepStats {
        device: String => "1" (string);
        records: Vec<NodeExecStats> => "2" (message, repeated);
    }

    /// One operation, or one received tensor. Those have no nanoseconds.
    NodeExecStats {
        /// The node, or "RecvTensor".
        node_name: String => "1" (string);
        all_start_micros: i64 => "2" (int64);
        op_end_rel_micros: i64 => "4" (int64);
        all_end_rel_micros: i64 => "5" (int64);
        output: Vec<NodeOutput> => "7" (message, repeated);
        /// Of a received tensor: "[sizeB] [rate] tensor from device to device".
        timeline_label: String => "8" (string);
        all_start_nanos: i64 => "13" (int64);
        all_end_rel_nanos: i64 => "16" (int64);
    }

    NodeOutput {
        slot: i32 => "1" (int32);
        tensor: Option<TensorDescription> => "3" (message, optional);
    }

    TensorDescription {
        dtype: i32 => "1" (int32);
        shape: Option<Shape> => "2" (message, optional);
        allocation: Option<AllocationDescription> => "4" (message, optional);
    }

    Shape {
        dimensions: Vec<Dimension> => "2" (message, repeated);
        unknown_rank: bool => "3" (bool);
    }

    Dimension {
        size: i64 => "1" (int64);
    }

    AllocationDescription {
        requested_bytes: i64 => "1" (int64);
    }

    GraphDef {
        nodes: Vec<NodeDef> => "1" (message, repeated);
    }

    NodeDef {
        name: String => "1" (string);
        op: String => "2" (string);
        /// "x", "x:1" for another output than the first, "^x" for a control dependency.
        inputs: Vec<String> => "3" (string, repeated);
        device: String => "4" (string);
        attributes: BTreeMap<String, AttrValue> => "5" (btree_map = "string, message");
    }
}

impl NodeDef {
    /// A text attribute, empty if there is none.
    pub(super) fn text(&self, attribute: &str) -> &str {
        self.attributes
            .get(attribute)
            .and_then(|value| std::str::from_utf8(&value.bytes).ok())
            .unwrap_or_default()
    }
}

stepcast_onnx::messages! {
    AttrValue {
        bytes: Vec<u8> => "2" (bytes = "vec");
    }
}

impl TensorDescription {
    /// Payload in bytes from shape and element type, where both are known and elements have a fixed size.
    pub(super) fn payload(&self) -> Option<u64> {
        let shape = self.shape.as_ref().filter(|shape| !shape.unknown_rank)?;
        let elements = shape
            .dimensions
            .iter()
            .try_fold(1_u64, |product, dimension| product.checked_mul(u64::try_from(dimension.size).ok()?))?;
        elements.checked_mul(element_size(self.dtype)?)
    }
}

/// Bytes of one element of TensorFlow's `DataType`; references to a type are 100 above it.
fn element_size(dtype: i32) -> Option<u64> {
    match dtype % 100 {
        4 | 6 | 10 | 11 | 12 => Some(1),
        5 | 14 | 15 | 16 | 17 | 19 => Some(2),
        1 | 3 | 13 | 22 => Some(4),
        2 | 8 | 9 | 23 => Some(8),
        18 => Some(16),
        _ => None,
    }
}

/// A message that contains others.
#[derive(Clone, Copy)]
enum MessageKind {
    Run,
    Stats,
    Device,
    Record,
    Output,
    Tensor,
    Shape,
    Graph,
    Node,
    /// Nothing but texts and numbers.
    Plain,
}

impl MessageKind {
    /// The message in a field, and the bytes that it takes in a list that grows; none for texts.
    fn field(self, number: u64) -> Option<(Self, u64)> {
        Some(match (self, number) {
            (Self::Run, 1) => (Self::Stats, 32),
            (Self::Run, 3) => (Self::Graph, 96),
            (Self::Stats, 1) => (Self::Device, 150),
            (Self::Device, 2) => (Self::Record, 480),
            (Self::Record, 7) => (Self::Output, 300),
            (Self::Output, 3) => (Self::Tensor, 32),
            (Self::Tensor, 2) => (Self::Shape, 32),
            (Self::Shape, 2) => (Self::Plain, 32),
            (Self::Graph, 1) => (Self::Node, 480),
            // A map has room for eleven from the first on.
            (Self::Node, 5) => (Self::Plain, 640),
            _ => return None,
        })
    }
}

/// Most bytes that a `RunMetadata` takes when it is decoded.
pub(super) fn decoded_size(bytes: &[u8]) -> u64 {
    walk(MessageKind::Run, bytes)
}

/// Messages nest as deep as `field` says.
fn walk(message: MessageKind, mut bytes: &[u8]) -> u64 {
    const TEXT: u64 = 96;
    let mut total = 0;
    while !bytes.is_empty() {
        let Ok(key) = decode_varint(&mut bytes) else { break };
        let length = match key & 7 {
            0 => decode_varint(&mut bytes).map(|_| 0),
            1 => Ok(8),
            2 => decode_varint(&mut bytes),
            _ => Ok(4),
        };
        let Some((content, rest)) = length
            .ok()
            .and_then(|length| usize::try_from(length).ok())
            .and_then(|length| bytes.split_at_checked(length))
        else {
            // It cannot be decoded.
            break;
        };
        bytes = rest;
        if key & 7 == 2 {
            total += match message.field(key >> 3) {
                Some((inner, own)) => own + walk(inner, content),
                None => TEXT + 2 * content.len() as u64,
            };
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(dtype: i32, sizes: &[i64]) -> TensorDescription {
        let dimensions = sizes.iter().map(|&size| Dimension { size }).collect();
        TensorDescription { dtype, shape: Some(Shape { dimensions, unknown_rank: false }), allocation: None }
    }

    #[test]
    fn payload_is_shape_times_element() {
        assert_eq!(description(1, &[5, 5, 3, 64]).payload(), Some(19_200));
        assert_eq!(description(101, &[64]).payload(), Some(256));
        assert_eq!(description(9, &[]).payload(), Some(8));
        assert_eq!(description(1, &[0]).payload(), Some(0));
        assert_eq!(description(7, &[2]).payload(), None, "strings have no fixed size");
        assert_eq!(description(1, &[-1, 2]).payload(), None);
        assert_eq!(description(1, &[i64::MAX, i64::MAX]).payload(), None);
        assert_eq!(TensorDescription { shape: None, ..description(1, &[]) }.payload(), None);
    }

    #[test]
    fn small_messages_are_large_when_decoded_size() {
        // A device with a thousand empty records.
        let records = [0x12, 0].repeat(1000);
        let device = [&[0x0a, 0xd0, 0x0f][..], &records].concat();
        let stats = [&[0x0a, 0xd3, 0x0f][..], &device].concat();
        let cost = decoded_size(&stats);
        assert!((150_000..1_000_000).contains(&cost), "{cost}");
        assert_eq!(decoded_size(b""), 0);
        assert!(decoded_size(&stats[..100]) < cost);
        assert!(decoded_size(&[0xff; 100]) < 1000);
    }
}
