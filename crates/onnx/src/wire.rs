//! Protobuf's wire format, read as a stream: the graph is kept, weights are skipped.
//!
//! A model of several gigabytes is mostly the content of its tensors. [`lean`] copies the messages without it, so that
//! memory is bounded by the graph. Fields that `proto` does not declare are left out as well.

use std::io::{self, Read};

/// Longest content of a tensor or text of an attribute that is kept: shapes and indices are shorter.
const SHORT: u64 = 8 << 10;
/// Most bytes of memory for a message, a field and a byte of it: a packed number of one byte becomes eight, and a dimension
/// without a size, two bytes within a declared shape, becomes 48.
const MESSAGE: u64 = 256;
const FIELD: u64 = 24;
const BYTE: u64 = 8;
const DECLARED_BYTE: u64 = 24;
const DEEPEST: u32 = 64;

/// Why a stream is not a model; the numbers are bytes from its start.
#[derive(Debug)]
pub(crate) enum WireError {
    Short(u64),
    Malformed(u64),
    TooLarge,
    System(io::Error),
}

/// A message of ONNX that contains others, or content to skip.
#[derive(Debug, Clone, Copy)]
enum Message {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    SparseTensor,
    Function,
    /// All of it is kept.
    Plain,
}

enum Treatment {
    Keep,
    KeepShort,
    Descend(Message),
    Leave,
}

impl Message {
    /// By the field numbers of onnx.proto (ONNX 1.20).
    fn field(self, number: u64) -> Treatment {
        use Treatment::{Descend, Keep, KeepShort, Leave};
        match (self, number) {
            (Self::Model, 1..=3) | (Self::Graph, 2) | (Self::Node, 1..=4 | 7) => Keep,
            (Self::Attribute, 1..=3 | 8 | 20 | 21) | (Self::Tensor, 1 | 2 | 8 | 14) => Keep,
            (Self::SparseTensor, 3) | (Self::Function, 1 | 4..=6 | 10) | (Self::Plain, _) => Keep,
            (Self::Attribute, 4 | 7 | 9) | (Self::Tensor, 4 | 5 | 7 | 9..=11) => KeepShort,
            (Self::Model, 8) | (Self::Graph, 11..=13) => Descend(Self::Plain),
            (Self::Model, 7) | (Self::Attribute, 6) => Descend(Self::Graph),
            (Self::Model, 25) => Descend(Self::Function),
            (Self::Graph, 1) | (Self::Function, 7) => Descend(Self::Node),
            (Self::Node, 5) | (Self::Function, 11) => Descend(Self::Attribute),
            (Self::Graph, 5) | (Self::Attribute, 5) | (Self::SparseTensor, 1) => Descend(Self::Tensor),
            (Self::Graph, 15) => Descend(Self::SparseTensor),
            _ => Leave,
        }
    }
}

/// The model in `reader` without the content of large tensors; `most` is the memory that its decoded form may take.
pub(crate) fn lean(reader: impl Read, most: u64) -> Result<Vec<u8>, WireError> {
    LeanReader { inner: reader, position: 0, kept: 0, most }.message(Message::Model, None, 0)
}

struct LeanReader<R> {
    inner: R,
    position: u64,
    kept: u64,
    most: u64,
}

impl<R: Read> LeanReader<R> {
    fn message(&mut self, kind: Message, end: Option<u64>, depth: u32) -> Result<Vec<u8>, WireError> {
        if depth > DEEPEST {
            return Err(WireError::Malformed(self.position));
        }
        let mut out = Vec::new();
        while end.is_none_or(|end| self.position < end) {
            let start = self.position;
            let Some(tag) = self.varint(end)? else { break };
            let (number, wire) = (tag >> 3, tag & 7);
            let treatment = kind.field(number);
            let length = match wire {
                0 => {
                    let value = self.varint(end)?.ok_or(WireError::Short(self.position))?;
                    if !matches!(treatment, Treatment::Leave) {
                        self.keep(FIELD)?;
                        put(&mut out, tag);
                        put(&mut out, value);
                    }
                    continue;
                }
                1 => 8,
                2 => self.varint(end)?.ok_or(WireError::Short(self.position))?,
                5 => 4,
                _ => return Err(WireError::Malformed(start)),
            };
            let after = self.position.checked_add(length).ok_or(WireError::Malformed(start))?;
            if end.is_some_and(|end| after > end) {
                return Err(WireError::Malformed(start));
            }
            match treatment {
                Treatment::Descend(inner) if wire == 2 => {
                    self.keep(MESSAGE)?;
                    let content = self.message(inner, Some(after), depth + 1)?;
                    put(&mut out, tag);
                    put(&mut out, content.len() as u64);
                    out.extend(content);
                }
                Treatment::Keep | Treatment::KeepShort
                    if length <= SHORT || matches!(treatment, Treatment::Keep) =>
                {
                    let each = if matches!(kind, Message::Plain) { DECLARED_BYTE } else { BYTE };
                    self.keep(length.saturating_mul(each).saturating_add(FIELD))?;
                    self.copy(&mut out, tag, wire, length)?;
                }
                _ => self.pass(length)?,
            }
        }
        Ok(out)
    }

    fn copy(&mut self, out: &mut Vec<u8>, tag: u64, wire: u64, length: u64) -> Result<(), WireError> {
        put(out, tag);
        if wire == 2 {
            put(out, length);
        }
        let copied = (&mut self.inner).take(length).read_to_end(out).map_err(WireError::System)?;
        self.advance(copied as u64, length)
    }

    fn pass(&mut self, length: u64) -> Result<(), WireError> {
        let passed =
            io::copy(&mut (&mut self.inner).take(length), &mut io::sink()).map_err(WireError::System)?;
        self.advance(passed, length)
    }

    fn advance(&mut self, by: u64, wanted: u64) -> Result<(), WireError> {
        self.position += by;
        if by < wanted { Err(WireError::Short(self.position)) } else { Ok(()) }
    }

    fn keep(&mut self, bytes: u64) -> Result<(), WireError> {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept > self.most { Err(WireError::TooLarge) } else { Ok(()) }
    }

    /// A varint; none at the end of the stream.
    fn varint(&mut self, end: Option<u64>) -> Result<Option<u64>, WireError> {
        let start = self.position;
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            if end.is_some_and(|end| self.position >= end) {
                return Err(WireError::Malformed(start));
            }
            let mut byte = [0];
            if let Err(error) = self.inner.read_exact(&mut byte) {
                return match error.kind() {
                    io::ErrorKind::UnexpectedEof if end.is_none() && shift == 0 => Ok(None),
                    io::ErrorKind::UnexpectedEof => Err(WireError::Short(self.position)),
                    _ => Err(WireError::System(error)),
                };
            }
            self.position += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(Some(value));
            }
        }
        Err(WireError::Malformed(start))
    }
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{GraphProto, ModelProto, TensorProto};
    use prost::Message as _;

    fn model(content: Vec<u8>) -> ModelProto {
        let tensor =
            TensorProto { name: "w".to_owned(), dims: vec![2], raw_data: content, ..TensorProto::default() };
        let graph = GraphProto { initializers: vec![tensor], ..GraphProto::default() };
        ModelProto { ir_version: 8, graph: Some(graph), ..ModelProto::default() }
    }

    fn lean(reader: impl Read) -> Result<Vec<u8>, WireError> {
        super::lean(reader, 1 << 30)
    }

    /// A model whose only tensor claims `length` bytes of content, as a stream that is made while it is read.
    fn streamed(length: u64) -> impl Read {
        let mut tensor = Vec::new();
        put(&mut tensor, 9 << 3 | 2);
        put(&mut tensor, length);
        let mut graph = Vec::new();
        put(&mut graph, 5 << 3 | 2);
        put(&mut graph, tensor.len() as u64 + length);
        graph.extend(tensor);
        let mut model = Vec::new();
        put(&mut model, 7 << 3 | 2);
        put(&mut model, graph.len() as u64 + length);
        model.extend(graph);
        io::Cursor::new(model).chain(Endless.take(length))
    }

    /// Bytes of whatever the buffer held: it costs nothing to make them.
    struct Endless;

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            Ok(buffer.len())
        }
    }

    #[test]
    fn short_content_stays_and_long_content_goes() {
        let short = model(vec![1; 100]);
        assert_eq!(ModelProto::decode(&lean(&short.encode_to_vec()[..]).unwrap()[..]).unwrap(), short);
        let long = model(vec![1; 100_000]).encode_to_vec();
        assert_eq!(ModelProto::decode(&lean(&long[..]).unwrap()[..]).unwrap(), model(Vec::new()));
    }

    #[test]
    fn three_gigabytes_of_weights_are_passed_over() {
        let kept = lean(streamed(3 << 30)).unwrap();
        assert!(kept.len() < 100 && kept.capacity() < 10_000);
    }

    #[test]
    fn what_is_cut_short_is_told_by_its_place() {
        let whole = model(vec![1; 100_000]).encode_to_vec();
        for length in [1, 3, 10, 50_000, whole.len() - 1] {
            let fault = lean(&whole[..length]).unwrap_err();
            assert!(matches!(fault, WireError::Short(at) if at <= length as u64), "{length}: {fault:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(matches!(
            lean(&b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"[..]),
            Err(WireError::Malformed(0))
        ));
        assert!(matches!(lean(&[0x0b][..]), Err(WireError::Malformed(0))), "a group");
        // a graph of 2 bytes whose node claims 100
        assert!(matches!(lean(&[0x3a, 2, 0x0a, 100][..]), Err(WireError::Malformed(2))));
        let deep = (0..200).fold(Vec::new(), |inner: Vec<u8>, level| {
            let mut outer = Vec::new();
            put(&mut outer, if level == 199 { 7 } else { [1, 6, 5][level % 3] } << 3 | 2);
            put(&mut outer, inner.len() as u64);
            outer.extend(inner);
            outer
        });
        assert!(matches!(lean(&deep[..]), Err(WireError::Malformed(_))));
    }
}
