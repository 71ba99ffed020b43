//! Nodes that become one layer of the model.

use super::net::Net;
use crate::graph::{NodeId, TensorId};
use crate::operator::Work;
use stepcast_core::model::Op;

/// Several nodes, or one, that become one layer.
#[derive(Debug)]
pub(super) struct Unit {
    /// The node that gives the layer its name where parameters do not.
    pub(super) node: NodeId,
    /// The layer, if there is an operation for it; its counts have to be those below.
    pub(super) op: Option<Op>,
    /// Its inputs that depend on samples.
    pub(super) inputs: Vec<TensorId>,
    pub(super) output: TensorId,
    pub(super) work: Vec<Work>,
    /// Initialisers that multiply.
    pub(super) weights: Vec<usize>,
    /// Initialisers that are added.
    pub(super) biases: Vec<usize>,
}

impl Unit {
    /// A node as a layer of its own, without parameters.
    pub(super) fn new(net: &Net<'_>, node: NodeId, output: TensorId) -> Self {
        Self {
            node,
            op: None,
            inputs: net.data(net.node(node)),
            output,
            work: net.work(node).to_vec(),
            weights: Vec::new(),
            biases: Vec::new(),
        }
    }

    pub(super) fn with(mut self, op: Option<Op>) -> Self {
        self.op = op;
        self
    }

    /// With the initialisers that these tensors are made of.
    pub(super) fn parameters(
        mut self,
        net: &Net<'_>,
        weight: Option<TensorId>,
        bias: Option<TensorId>,
    ) -> Self {
        let of = |tensor: Option<TensorId>| {
            let parameters = tensor.and_then(|tensor| net.tensor(tensor).parameters());
            parameters.into_iter().flatten().copied().collect::<Vec<_>>()
        };
        self.weights.extend(of(weight));
        self.biases.extend(of(bias));
        self
    }
}
