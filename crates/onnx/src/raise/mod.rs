//! From operators to layers: layers that exporters split are recognised, and the model is built.
//!
//! Every tensor that depends on samples is made by one [`Unit`]. Patterns of several nodes come first; a node that is in
//! none is a unit by itself. Only units that the outputs depend on become layers, so masks and shape arithmetic vanish.

mod attention;
mod build;
mod chain;
mod layer_norm;
mod linear;
mod net;
mod single;
mod table;
mod unit;

pub use build::ImportedModel;

use crate::evaluate::Facts;
use crate::graph::{Graph, NodeId, TensorId};
use net::Net;
use std::collections::{HashMap, HashSet};
use stepcast_core::fault::Fault;
use unit::Unit;

/// The model of a graph, which came from `place`.
pub(crate) fn model(
    graph: &Graph,
    facts: Facts,
    name: &str,
    source: &str,
    place: &str,
) -> Result<ImportedModel, Fault> {
    let net = Net::new(graph, &facts);
    let units = units(&net);
    let live = live(&net, &units);
    let mut built = build::model(&net, &units, &live, name, source, place)?;
    built.notes.splice(0..0, facts.notes.iter().cloned());
    Ok(built)
}

/// All units, by the tensor they make.
fn units(net: &Net<'_>) -> HashMap<TensorId, Unit> {
    let mut units = HashMap::new();
    let mut within: HashSet<NodeId> = HashSet::new();
    // From the end: the longest chain that ends at a node is found before its parts.
    for id in (0..net.graph.nodes.len()).rev() {
        if within.contains(&id) {
            continue;
        }
        let found = attention::unit(net, id)
            .or_else(|| layer_norm::unit(net, id))
            .or_else(|| linear::unit(net, id))
            .or_else(|| table::unit(net, id));
        if let Some(unit) = found {
            units.insert(unit.output, unit);
            continue;
        }
        if let Some((unit, chain)) = chain::unit(net, id) {
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

/// The tensors that the outputs depend on.
fn live(net: &Net<'_>, units: &HashMap<TensorId, Unit>) -> HashSet<TensorId> {
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
