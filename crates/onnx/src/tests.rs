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

#[derive(Clone)]
struct Sketch {
    model: ModelProto,
}

impl Sketch {
    /// A graph with one input "x" of these dimensions; words are names of open ones.
    fn new(dims: &[&str]) -> Self {
        let opset = OperatorSet { domain: String::new(), version: 17 };
        let graph = GraphProto { inputs: vec![value("x", dims)], ..GraphProto::default() };
        Self {
            model: ModelProto {
                ir_version: 8,
                opsets: vec![opset],
                graph: Some(graph),
                ..ModelProto::default()
            },
        }
    }

    fn graph(&mut self) -> &mut GraphProto {
        self.model.graph.get_or_insert_default()
    }

    fn input(mut self, name: &str, dims: &[&str]) -> Self {
        self.graph().inputs.push(value(name, dims));
        self
    }

    fn weight(mut self, name: &str, dims: &[i64]) -> Self {
        let tensor = TensorProto {
            name: name.to_owned(),
            dims: dims.to_vec(),
            data_type: element::FLOAT,
            ..TensorProto::default()
        };
        self.graph().initializers.push(tensor);
        self
    }

    fn wholes(mut self, name: &str, values: &[i64]) -> Self {
        let tensor = TensorProto {
            name: name.to_owned(),
            dims: vec![values.len() as i64],
            data_type: element::INT64,
            longs: values.to_vec(),
            ..TensorProto::default()
        };
        self.graph().initializers.push(tensor);
        self
    }

    fn real(mut self, name: &str, value: f32) -> Self {
        let tensor = TensorProto {
            name: name.to_owned(),
            data_type: element::FLOAT,
            floats: vec![value],
            ..TensorProto::default()
        };
        self.graph().initializers.push(tensor);
        self
    }

    /// A node: `out` = `op`(`inputs`), words divided by spaces.
    fn node(self, out: &str, op: &str, inputs: &str) -> Self {
        self.node_with(out, op, inputs, &[])
    }

    /// A node with attributes of whole numbers; a list of one stands for a number too.
    fn node_with(mut self, out: &str, op: &str, inputs: &str, attributes: &[(&str, &[i64])]) -> Self {
        let attribute = |(name, values): &(&str, &[i64])| AttributeProto {
            name: (*name).to_owned(),
            int: values.first().copied().unwrap_or(0),
            ints: values.to_vec(),
            ..AttributeProto::default()
        };
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let node = NodeProto {
            inputs: words(inputs),
            outputs: words(out),
            name: format!("/{out}/{op}"),
            op: op.to_owned(),
            attributes: attributes.iter().map(attribute).collect(),
            ..NodeProto::default()
        };
        self.graph().nodes.push(node);
        self
    }

    fn text(mut self, name: &str, text: &str) -> Self {
        let attribute =
            AttributeProto { name: name.to_owned(), text: text.into(), ..AttributeProto::default() };
        if let Some(node) = self.graph().nodes.last_mut() {
            node.attributes.push(attribute);
        }
        self
    }

    fn bytes(mut self, outputs: &str) -> Vec<u8> {
        let outputs = outputs.split_whitespace();
        self.graph().outputs = outputs.map(|name| ValueInfo { name: name.to_owned(), kind: None }).collect();
        self.model.encode_to_vec()
    }

    fn read(self, outputs: &str) -> Result<ImportedModel, Fault> {
        read(&self.bytes(outputs)[..], "m.onnx", &Options::default())
    }

    fn read_with(self, outputs: &str, sizes: &[(&str, u64)]) -> Result<ImportedModel, Fault> {
        let sizes = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
        read(&self.bytes(outputs)[..], "m.onnx", &Options { sizes, ..Options::default() })
    }
}

fn value(name: &str, dims: &[&str]) -> ValueInfo {
    let dim = |text: &&str| match text.parse() {
        Ok(value) => Dimension { value: Some(value), name: String::new() },
        Err(_) => Dimension { value: None, name: (*text).to_owned() },
    };
    let shape = TensorShape { dims: dims.iter().map(dim).collect() };
    let kind = TypeProto { tensor: Some(TensorType { shape: Some(shape) }) };
    ValueInfo { name: name.to_owned(), kind: Some(kind) }
}
