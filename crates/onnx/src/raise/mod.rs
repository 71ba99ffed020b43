//! From operators to layers: layers that exporters split are recognised, and the model is built.
//!
//! Every tensor that depends on samples is made by one [`LayerUnit`]. Patterns of several nodes come first; a node that is in
//! none is a unit by itself. Only units that the outputs depend on become layers, so masks and shape arithmetic vanish.

mod attention;
mod build;
mod net;
mod pattern;
mod single;

pub use build::ImportedModel;

use crate::evaluate::GraphFacts;
use crate::graph::{Graph, NodeId, TensorId};
use crate::operator::Work;
use net::GraphView;
use std::collections::{HashMap, HashSet};
use stepcast_core::fault::Fault;
use stepcast_core::model::Op;

/// The model of a graph, which came from `place`.
pub(crate) fn model(
    graph: &Graph,
    facts: GraphFacts,
    name: &str,
    source: &str,
    place: &str,
) -> Result<ImportedModel, Fault> {
    let net = GraphView::new(graph, &facts);
    let units = units(&net);
    let live = live(&net, &units);
    let mut built = build::model(&net, &units, &live, name, source, place)?;
    built.notes.splice(0..0, facts.notes.iter().cloned());
    Ok(built)
}

fn units(net: &GraphView<'_>) -> HashMap<TensorId, LayerUnit> {
    let mut units = HashMap::new();
    let mut within: HashSet<NodeId> = HashSet::new();
    // From the end: the longest chain that ends at a node is found before its parts.
    for id in (0..net.graph.nodes.len()).rev() {
        if within.contains(&id) {
            continue;
        }
        let found = attention::unit(net, id)
            .or_else(|| pattern::layer_norm(net, id))
            .or_else(|| pattern::linear(net, id))
            .or_else(|| single::table(net, id));
        if let Some(unit) = found {
            units.insert(unit.output, unit);
            continue;
        }
        if let Some((unit, chain)) = pattern::activation(net, id) {
            within.extend(chain);
            units.insert(unit.output, unit);
            continue;
        }
        for &output in net.node(id).outputs.iter().flatten().filter(|output| net.tensor(**output).is_data()) {
            units.entry(output).or_insert_with(|| single::unit(net, id, output));
        }
    }
    units
}

fn live(net: &GraphView<'_>, units: &HashMap<TensorId, LayerUnit>) -> HashSet<TensorId> {
    let mut live = HashSet::new();
    let mut waiting: Vec<TensorId> = net.graph.outputs.clone();
    while let Some(tensor) = waiting.pop() {
        if net.tensor(tensor).is_data()
            && live.insert(tensor)
            && let Some(unit) = units.get(&tensor)
        {
            waiting.extend(&unit.inputs);
        }
    }
    live
}

/// Several nodes, or one, that become one layer.
#[derive(Debug)]
struct LayerUnit {
    /// The node that gives the layer its name where parameters do not.
    node: NodeId,
    /// The layer, if there is an operation for it; its counts have to be those below.
    op: Option<Op>,
    inputs: Vec<TensorId>,
    output: TensorId,
    work: Vec<Work>,
    /// Initialisers that multiply.
    weights: Vec<usize>,
    /// Initialisers that are added.
    biases: Vec<usize>,
}

impl LayerUnit {
    fn new(net: &GraphView<'_>, node: NodeId, output: TensorId) -> Self {
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

    fn with(mut self, op: Option<Op>) -> Self {
        self.op = op;
        self
    }

    fn parameters(mut self, net: &GraphView<'_>, weight: Option<TensorId>, bias: Option<TensorId>) -> Self {
        let of = |tensor: Option<TensorId>| {
            let parameters = tensor.and_then(|tensor| net.tensor(tensor).parameters());
            parameters.into_iter().flatten().copied().collect::<Vec<_>>()
        };
        self.weights.extend(of(weight));
        self.biases.extend(of(bias));
        self
    }
}
