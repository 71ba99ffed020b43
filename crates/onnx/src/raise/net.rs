//! A graph with its inferred shapes, and the producer and readers of every tensor.

use crate::evaluate::GraphFacts;
use crate::graph::{Graph, Node, NodeId, TensorId};
use crate::inputs::BatchSize;
use crate::operator::{OperatorCall, Work, only_moves};
use crate::tensor::{Origin, Size, Tensor};

/// Most nodes that only move a tensor between two layers.
pub(super) const LONGEST_WAY: usize = 32;

pub(super) struct GraphView<'a> {
    pub(super) graph: &'a Graph,
    pub(super) facts: &'a GraphFacts,
    maker: Vec<Option<NodeId>>,
    readers: Vec<Vec<NodeId>>,
    is_output: Vec<bool>,
}

impl<'a> GraphView<'a> {
    pub(super) fn new(graph: &'a Graph, facts: &'a GraphFacts) -> Self {
        let count = graph.names.len();
        let mut net = Self {
            graph,
            facts,
            maker: vec![None; count],
            readers: vec![Vec::new(); count],
            is_output: vec![false; count],
        };
        for (id, node) in graph.nodes.iter().enumerate() {
            for &output in node.outputs.iter().flatten() {
                net.maker[output] = Some(id);
            }
            // A node that needs only the shape does not read the tensor.
            let reads = !matches!(node.op.as_str(), "Shape" | "Size");
            for &input in node.inputs.iter().flatten().filter(|_| reads) {
                if net.readers[input].last() != Some(&id) {
                    net.readers[input].push(id);
                }
            }
        }
        for &output in &graph.outputs {
            net.is_output[output] = true;
        }
        net
    }

    pub(super) fn node(&self, id: NodeId) -> &'a Node {
        &self.graph.nodes[id]
    }

    pub(super) fn work(&self, id: NodeId) -> &'a [Work] {
        &self.facts.work[id]
    }

    pub(super) fn tensor(&self, id: TensorId) -> &'a Tensor {
        &self.facts.tensors[id]
    }

    pub(super) fn maker(&self, tensor: TensorId) -> Option<NodeId> {
        self.maker[tensor]
    }

    pub(super) fn made_by(&self, tensor: TensorId, op: &str) -> Option<NodeId> {
        self.maker(tensor).filter(|id| self.node(*id).op == op)
    }

    /// Whether nothing reads a tensor but `readers`.
    pub(super) fn read_within(&self, tensor: TensorId, readers: &[NodeId]) -> bool {
        !self.is_output[tensor] && self.readers[tensor].iter().all(|reader| readers.contains(reader))
    }

    pub(super) fn only_reader(&self, tensor: TensorId) -> Option<NodeId> {
        match self.readers[tensor][..] {
            [reader] if !self.is_output[tensor] => Some(reader),
            _ => None,
        }
    }

    /// The node with its inputs, as its rule sees them.
    pub(super) fn call(&self, node: &'a Node) -> OperatorCall<'a> {
        let inputs = node.inputs.iter().map(|id| id.map(|id| self.tensor(id))).collect();
        OperatorCall { node, inputs, names: &self.graph.names, opset: self.graph.opset.unwrap_or(i64::MAX) }
    }

    /// Inputs that depend on samples.
    pub(super) fn data(&self, node: &Node) -> Vec<TensorId> {
        node.inputs.iter().flatten().copied().filter(|id| self.tensor(*id).is_data()).collect()
    }

    /// The operands of a binary node that depend on samples and on initialisers.
    pub(super) fn with_parameter(&self, node: &Node) -> Option<(TensorId, TensorId)> {
        let (a, b) = (node.input(0)?, node.input(1)?);
        match (&self.tensor(a).origin, &self.tensor(b).origin) {
            (Origin::Data, Origin::Parameters(_)) => Some((a, b)),
            (Origin::Parameters(_), Origin::Data) => Some((b, a)),
            _ => None,
        }
    }

    /// The operand of a binary node that depends on samples, if the other is a single constant.
    pub(super) fn with_constant(&self, node: &Node) -> Option<TensorId> {
        let (a, b) = (node.input(0)?, node.input(1)?);
        let constant = |id: TensorId| {
            let tensor = self.tensor(id);
            !tensor.is_data()
                && tensor.shape.as_deref().is_some_and(|dims| dims.iter().all(|dim| *dim == Size::ONE))
        };
        match (self.tensor(a).is_data(), self.tensor(b).is_data()) {
            (true, false) if constant(b) => Some(a),
            (false, true) if constant(a) => Some(b),
            _ => None,
        }
    }

    /// Elements of a stored tensor; `u64::MAX` if there are more.
    pub(super) fn stored_elements(&self, index: usize) -> u64 {
        let dims = &self.graph.initialisers[index].1.dims;
        let product =
            dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(u64::try_from(dim).ok()?));
        product.unwrap_or(u64::MAX)
    }

    /// Dimensions of a tensor for one sample.
    pub(super) fn sample(&self, tensor: TensorId) -> Option<Vec<u64>> {
        sample(self.tensor(tensor).shape.as_deref()?, self.facts.samples)
    }

    /// The position of a tensor's axis among the dimensions for one sample; none if it is the batch.
    pub(super) fn sample_axis(&self, tensor: TensorId, axis: i64) -> Option<usize> {
        let dims = self.tensor(tensor).shape.as_deref()?;
        let axis =
            usize::try_from(if axis < 0 { axis.checked_add(dims.len() as i64)? } else { axis }).ok()?;
        match batch_axis(dims, self.facts.samples) {
            Some(batch) if batch == axis => None,
            Some(batch) => Some(axis - usize::from(batch < axis)),
            None => Some(axis),
        }
    }

    /// One sample's share of something that is counted for all.
    pub(super) fn share(&self, amount: Size) -> u64 {
        let count = u64::try_from(amount.factor()).unwrap_or(0);
        match self.facts.samples {
            BatchSize::Open => count,
            BatchSize::Fixed(samples) => count.div_ceil(u64::try_from(samples).unwrap_or(1).max(1)),
        }
    }

    /// The tensor that a moved, cast or scaled tensor comes from.
    pub(super) fn root(&self, tensor: TensorId) -> TensorId {
        let mut at = tensor;
        for _ in 0..LONGEST_WAY {
            let Some(id) = self.maker(at) else { break };
            let node = self.node(id);
            let before = match node.op.as_str() {
                "Mul" | "Div" => self.with_constant(node),
                op if only_moves(op) && node.domain.is_empty() => match self.data(node)[..] {
                    [only] => Some(only),
                    _ => None,
                },
                _ => None,
            };
            match before {
                Some(before) => at = before,
                None => break,
            }
        }
        at
    }
}

/// The dimension that counts samples and nothing else.
fn batch_axis(dims: &[Size], samples: BatchSize) -> Option<usize> {
    match samples {
        BatchSize::Open => dims.iter().position(|dim| *dim == Size::BATCH),
        // Some exporters put the sequence first.
        BatchSize::Fixed(samples) => dims.iter().take(2).position(|dim| dim.number() == Some(samples)),
    }
}

/// Dimensions for one sample: without the batch.
fn sample(dims: &[Size], samples: BatchSize) -> Option<Vec<u64>> {
    let mut own: Vec<u64> =
        dims.iter().map(|size| u64::try_from(size.factor()).ok()).collect::<Option<_>>()?;
    match (batch_axis(dims, samples), samples) {
        (Some(batch), _) => {
            own.remove(batch);
        }
        (None, BatchSize::Fixed(samples)) => {
            let samples = u64::try_from(samples).ok().filter(|samples| *samples > 0)?;
            if let Some(first) = own.first_mut().filter(|first| first.is_multiple_of(samples)) {
                *first /= samples;
            }
        }
        (None, BatchSize::Open) => {}
    }
    if own.is_empty() {
        own.push(1);
    }
    Some(own)
}
