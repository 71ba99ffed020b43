//! Small graphs by hand: costs of operators, layers of patterns, and messages about unusable files.

mod operators;
mod patterns;
mod sturdy;

use crate::proto::{
    AttributeProto, Dimension, GraphProto, ModelProto, NodeProto, OperatorSet, TensorProto, TensorShape,
    TensorType, TypeProto, ValueInfo, element,
};
use crate::{ImportedModel, Options, read};
use prost::Message;
use stepcast_core::fault::Fault;

/// A graph in few words, divided by semicolons: `x: n 4` is an input whose words are open dimensions (`?` has no name),
/// `w[4 8]` a weight, `axes = 0 1` a constant, `y = Conv(x w / pads=1 1 / auto_pad=VALID)` a node with its attributes.
#[derive(Clone)]
struct Sketch {
    model: ModelProto,
}

impl Sketch {
    fn new(text: &str) -> Self {
        let opset = OperatorSet { domain: String::new(), version: 17 };
        let graph = Some(GraphProto::default());
        let model = ModelProto { ir_version: 8, opsets: vec![opset], graph, ..ModelProto::default() };
        Self { model }.add(text)
    }

    fn add(mut self, text: &str) -> Self {
        let graph = self.graph();
        for statement in text.split(';').map(str::trim) {
            if let Some((name, dims)) = statement.split_once(": ") {
                graph.inputs.push(value(name, dims));
            } else if let Some((outputs, made)) = statement.split_once(" = ") {
                match made.strip_suffix(')').and_then(|call| call.split_once('(')) {
                    Some((op, arguments)) => graph.nodes.push(node(outputs, op, arguments)),
                    None => graph.initializers.push(constant(outputs, made)),
                }
            } else if let Some((name, dims)) = statement.split_once('[') {
                let dims = wholes(dims.trim_end_matches(']')).unwrap();
                let name = name.to_owned();
                let weight = TensorProto { name, dims, data_type: element::FLOAT, ..TensorProto::default() };
                graph.initializers.push(weight);
            }
        }
        self
    }

    fn graph(&mut self) -> &mut GraphProto {
        self.model.graph.get_or_insert_default()
    }

    fn bytes(mut self, outputs: &str) -> Vec<u8> {
        let outputs = outputs.split_whitespace();
        self.graph().outputs = outputs.map(|name| ValueInfo { name: name.to_owned(), kind: None }).collect();
        self.model.encode_to_vec()
    }

    fn read(self, outputs: &str) -> Result<ImportedModel, Fault> {
        self.read_with(outputs, &[])
    }

    fn read_with(self, outputs: &str, sizes: &[(&str, u64)]) -> Result<ImportedModel, Fault> {
        let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        read(&self.bytes(outputs)[..], "m.onnx", &Options { sizes, ..Options::default() })
    }
}

fn wholes(text: &str) -> Option<Vec<i64>> {
    text.split_whitespace().map(|word| word.parse().ok()).collect()
}

fn constant(name: &str, text: &str) -> TensorProto {
    let name = name.to_owned();
    match wholes(text) {
        Some(longs) => {
            let dims = vec![longs.len() as i64];
            TensorProto { name, dims, data_type: element::INT64, longs, ..TensorProto::default() }
        }
        None => {
            let floats = vec![text.parse().unwrap()];
            TensorProto { name, data_type: element::FLOAT, floats, ..TensorProto::default() }
        }
    }
}

fn node(outputs: &str, op: &str, arguments: &str) -> NodeProto {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    let attribute = |text: &str| {
        let (name, value) = text.split_once('=').unwrap();
        let own = AttributeProto { name: name.to_owned(), ..AttributeProto::default() };
        match wholes(value) {
            Some(ints) => AttributeProto { int: ints.first().copied().unwrap_or(0), ints, ..own },
            None => AttributeProto { text: value.into(), ..own },
        }
    };
    let mut parts = arguments.split(" / ");
    NodeProto {
        inputs: words(parts.next().unwrap_or_default()),
        outputs: words(outputs),
        name: format!("/{outputs}/{op}"),
        op: op.to_owned(),
        attributes: parts.map(attribute).collect(),
        ..NodeProto::default()
    }
}

fn value(name: &str, dims: &str) -> ValueInfo {
    let dim = |text: &str| match text.parse() {
        Ok(value) => Dimension { value: Some(value), name: String::new() },
        Err(_) => Dimension { value: None, name: text.replace('?', "") },
    };
    let shape = TensorShape { dims: dims.split(' ').map(dim).collect() };
    let kind = TypeProto { tensor: Some(TensorType { shape: Some(shape) }) };
    ValueInfo { name: name.to_owned(), kind: Some(kind) }
}
