//! The memory that a message takes when it is decoded, found by walking over its bytes: a record of two bytes becomes one
//! of 150.

use prost::encoding::decode_varint;

/// A message of `proto` that contains others.
#[derive(Clone, Copy)]
enum Message {
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

impl Message {
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
pub(super) fn decoded(bytes: &[u8]) -> u64 {
    walk(Message::Run, bytes)
}

/// Messages nest as deep as `field` says.
fn walk(message: Message, mut bytes: &[u8]) -> u64 {
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

    #[test]
    fn small_messages_are_large_when_decoded() {
        // A device with a thousand empty records.
        let records = [0x12, 0].repeat(1000);
        let device = [&[0x0a, 0xd0, 0x0f][..], &records].concat();
        let stats = [&[0x0a, 0xd3, 0x0f][..], &device].concat();
        let cost = decoded(&stats);
        assert!((150_000..1_000_000).contains(&cost), "{cost}");
        assert_eq!(decoded(b""), 0);
        assert!(decoded(&stats[..100]) < cost);
        assert!(decoded(&[0xff; 100]) < 1000);
    }
}
