//! Chakra's protobuf files: length-delimited messages; the first describes the trace, the others are nodes.
//! Only the fields that are read are declared (et_def.proto, package ChakraProtoMsg).

use super::nodes::{Node, NodeKind, Nodes};
use crate::import::tally;
use crate::source::Source;
use prost::Message;
use prost::encoding::decode_varint;
use std::io;
use std::io::{BufRead, BufReader, Read};
use stepcast_core::fault::Fault;

/// Bytes of the largest message.
const LONGEST: u64 = 64 << 20;

stepcast_onnx::messages! {
    NodeMessage {
        id: u64 => "1" (uint64);
        name: Vec<u8> => "2" (bytes = "vec");
        /// `NodeType`.
        kind: u64 => "3" (uint64);
        ctrl_deps: Vec<u64> => "4" (uint64, repeated);
        data_deps: Vec<u64> => "5" (uint64, repeated);
        duration_micros: u64 => "7" (uint64);
        attributes: Vec<Attribute> => "10" (message, repeated);
    }

    Attribute {
        name: Vec<u8> => "1" (bytes = "vec");
        int32: Option<i64> => "7" (int64, optional);
        int64: Option<i64> => "9" (int64, optional);
        uint32: Option<u64> => "11" (uint64, optional);
        uint64: Option<u64> => "13" (uint64, optional);
        boolean: Option<bool> => "27" (bool, optional);
        text: Option<Vec<u8>> => "29" (bytes = "vec", optional);
    }
}

impl Attribute {
    fn whole(&self) -> Option<u64> {
        let signed = self.int64.or(self.int32).and_then(|value| u64::try_from(value).ok());
        signed.or(self.uint64).or(self.uint32).or(self.boolean.map(u64::from))
    }
}

/// Whether these bytes are a message about a trace, followed by a node, if any: a number, a name, a kind.
pub(super) fn recognises(head: &[u8]) -> bool {
    let mut rest = head;
    let Ok(length) = decode_varint(&mut rest) else { return false };
    let Some(after) = usize::try_from(length).ok().and_then(|length| rest.get(length..)) else {
        return false;
    };
    let metadata = &rest[..rest.len() - after.len()];
    if !metadata.is_empty() && !matches!(metadata[0], 0x0a | 0x12) {
        return false;
    }
    let mut rest = after;
    let Ok(length) = decode_varint(&mut rest) else { return false };
    let node = &rest[..rest.len().min(usize::try_from(length).unwrap_or(usize::MAX))];
    starts_as_node(node) && (2..=LONGEST).contains(&length)
}

/// Number, name of text, kind from 1 to 7: in this order, as protobuf writes them. Zero is not written.
fn starts_as_node(mut bytes: &[u8]) -> bool {
    let mut field = |key: u8| -> Option<u64> {
        let mut rest = bytes.strip_prefix(&[key])?;
        let value = decode_varint(&mut rest).ok()?;
        bytes = rest;
        Some(value)
    };
    field(0x08);
    let Some(length) = field(0x12).and_then(|length| usize::try_from(length).ok()) else { return false };
    let Some((name, mut rest)) = bytes.split_at_checked(length) else { return false };
    let text = std::str::from_utf8(name).is_ok_and(|name| !name.chars().any(char::is_control));
    let kind = rest.strip_prefix(&[0x18]).and_then(|after| {
        rest = after;
        decode_varint(&mut rest).ok()
    });
    text && kind.is_none_or(|kind| (1..=7).contains(&kind))
}

pub(super) fn read(source: &mut Source<'_>, notes: &mut Vec<String>) -> Result<Nodes, Fault> {
    let mut nodes = Nodes::default();
    let mut spoilt = 0_usize;
    let memory = source.memory();
    let mut reader = BufReader::new(source);
    let mut is_first = true;
    let failed = loop {
        let message = match next(&mut reader) {
            Ok(None) => break None,
            Ok(Some(message)) => message,
            Err(error) => break Some(error),
        };
        if std::mem::take(&mut is_first) {
            continue;
        }
        if cost(&message) > memory.left() {
            memory.hold(usize::MAX);
            break None;
        }
        match NodeMessage::decode(&message[..]) {
            Ok(node) => memory.hold(take(&node, &mut nodes)),
            Err(_) => spoilt += 1,
        }
    };
    let source = reader.into_inner();
    source.check()?;
    if let Some(error) = failed {
        if source.exceeded() {
            return Err(source.fault(&error));
        }
        notes.push(format!("the file ends in the middle of a node ({error}); the rest is lost"));
    }
    tally(notes, spoilt, "node", "ignored: unreadable");
    Ok(nodes)
}

fn next(reader: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut length = 0_u64;
    for shift in (0..64).step_by(7) {
        let mut byte = [0];
        match reader.read(&mut byte)? {
            0 if shift == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => length |= u64::from(byte[0] & 0x7f) << shift,
        }
        if byte[0] < 0x80 {
            break;
        }
    }
    if length > LONGEST {
        return Err(io::Error::other("a node of more than 64 MiB"));
    }
    let mut message = Vec::new();
    reader.take(length).read_to_end(&mut message)?;
    if message.len() as u64 == length { Ok(Some(message)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Most bytes of a decoded message: a number of one byte becomes eight, an attribute of two bytes 160, and a growing list
/// holds its old content for a moment.
fn cost(message: &[u8]) -> u64 {
    message.len() as u64 * 240
}

fn take(message: &NodeMessage, nodes: &mut Nodes) -> usize {
    let attribute =
        |name: &str| message.attributes.iter().find(|attribute| attribute.name == name.as_bytes());
    let whole = |name: &str| attribute(name).and_then(Attribute::whole);
    if let Some(group) = attribute("pg_name").and_then(|group| group.text.as_ref()) {
        nodes.group(&String::from_utf8_lossy(group));
    }
    nodes.push(Node {
        id: message.id,
        data: message.data_deps.clone(),
        control: message.ctrl_deps.clone(),
        kind: NodeKind::from_numbers(message.kind, whole("comm_type")),
        micros: message.duration_micros as f64,
        host: whole("is_cpu_op") == Some(1),
        lane: whole("tid").or(whole("stream")).unwrap_or(0),
        bytes: whole("comm_size").unwrap_or(0),
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Number, name, kind, microseconds, what it waits for, and attributes.
    pub(in super::super) type TestNode<'a> = (u64, &'a str, u64, u64, &'a [u64], &'a [(&'a str, u64)]);

    pub(in super::super) fn trace(nodes: &[TestNode<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        // Version "x" in the message about the trace.
        bytes.extend([3, 0x0a, 1, b'x']);
        for &(id, name, kind, duration_micros, after, attributes) in nodes {
            let attribute = |&(name, value): &(&str, u64)| Attribute {
                name: name.into(),
                uint64: Some(value),
                ..Attribute::default()
            };
            let node = NodeMessage {
                id,
                name: name.into(),
                kind,
                data_deps: after.to_vec(),
                duration_micros,
                attributes: attributes.iter().map(attribute).collect(),
                ..NodeMessage::default()
            };
            bytes.extend(node.encode_length_delimited_to_vec());
        }
        bytes
    }

    #[test]
    fn files_are_told_from_others() {
        let bytes = trace(&[(1, "a", 4, 5, &[], &[])]);
        assert!(recognises(&bytes));
        assert!(!recognises(&bytes[..4]), "a trace has nodes");
        for other in
            [&b""[..], b"\n", b"[{\"ph\"", b"layer,forward", &[0; 100], &[0xff; 100], b"\x0a\x04node"]
        {
            assert!(!recognises(other), "{other:?}");
        }
    }
}
