//! Units become layers. A layer of the model's own operations is used where its inferred counts are those of the unit;
//! otherwise the counts are given. So no count depends on a pattern being recognised.

use super::LayerUnit;
use super::net::GraphView;
use crate::graph::{Node, TensorId};
use crate::operator::only_moves;
use std::collections::{HashMap, HashSet};
use stepcast_core::fault::Fault;
use stepcast_core::model::{Builder, Cost, LayerId, Model, Op, ShapeError};

const MOST_NAMES: usize = 3;

/// A model, and notes on omitted or guessed parts.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedModel {
    /// The model, its counts for one sample.
    pub model: Model,
    /// One sentence each, for people to read; those about work that is not counted start with "warning".
    pub notes: Vec<String>,
}

pub(super) fn model(
    net: &GraphView<'_>,
    units: &HashMap<TensorId, LayerUnit>,
    live: &HashSet<TensorId>,
    name: &str,
    source: &str,
    place: &str,
) -> Result<ImportedModel, Fault> {
    let mut build = ModelBuild {
        net,
        builder: Builder::new(name, source),
        layers: HashMap::new(),
        names: HashMap::new(),
        counted: HashSet::new(),
        notes: Vec::new(),
    };
    let wrong = |at: &str, error: ShapeError| {
        Fault::in_file(format!("{place}, {at}"), error.reason, "check the sizes that were given")
    };
    for (id, info) in net.graph.inputs.iter().filter(|(id, _)| live.contains(id)) {
        build.input(*id, &info.name).map_err(|error| wrong(&format!("input \"{}\"", info.name), error))?;
    }
    if build.layers.is_empty() {
        let reason = "its outputs do not depend on its inputs";
        return Err(Fault::in_file(place, reason, "export the whole model, from its inputs to its outputs"));
    }
    for node in &net.graph.nodes {
        for output in node.outputs.iter().flatten() {
            let Some(unit) = units.get(output).filter(|_| live.contains(output)) else { continue };
            if let Some(error) = net.facts.stopped.get(&unit.node) {
                return Err(error.clone());
            }
            build.add(unit).map_err(|error| wrong(&net.node(unit.node).place(), error))?;
        }
    }
    build.leftovers();
    let ModelBuild { builder, notes, .. } = build;
    let model = builder.finish().map_err(|error| wrong("all layers together", error))?;
    Ok(ImportedModel { model, notes })
}

struct ModelBuild<'a> {
    net: &'a GraphView<'a>,
    builder: Builder,
    layers: HashMap<TensorId, LayerId>,
    /// Names that are taken, and how often each was asked for.
    names: HashMap<String, u32>,
    /// Initialisers that belong to a layer already.
    counted: HashSet<usize>,
    notes: Vec<String>,
}

impl ModelBuild<'_> {
    fn input(&mut self, id: TensorId, name: &str) -> Result<(), ShapeError> {
        let dims = self.net.sample(id).unwrap_or_default();
        // Model files use this name for the first input.
        let name = self.unused(if self.layers.is_empty() { "input" } else { name });
        let layer = self.builder.input(&name, &dims)?;
        self.layers.insert(id, layer);
        Ok(())
    }

    fn add(&mut self, unit: &LayerUnit) -> Result<(), ShapeError> {
        let inputs: Vec<LayerId> = unit.inputs.iter().filter_map(|id| self.layers.get(id).copied()).collect();
        let expected = self.net.sample(unit.output);
        let layer = match (&expected, moves(self.net, unit), &inputs[..]) {
            (None, _, &[input, ..]) => input,
            (Some(dims), true, &[input]) => self.seen_as(unit, input, dims)?,
            _ => {
                let dims = expected.clone().unwrap_or_else(|| vec![1]);
                let layer = self.computed(unit, &inputs, &dims)?;
                self.seen_as(unit, layer, &dims)?
            }
        };
        self.layers.insert(unit.output, layer);
        Ok(())
    }

    /// A layer under other dimensions; the layer itself if it has them already.
    fn seen_as(&mut self, unit: &LayerUnit, layer: LayerId, dims: &[u64]) -> Result<LayerId, ShapeError> {
        let Some(shape) = self.builder.shape(layer).filter(|shape| shape.dims() != dims) else {
            return Ok(layer);
        };
        let flat = dims == [shape.elements()];
        let name = self.unused(&format!("{}.view", path(self.net.node(unit.node))));
        if flat {
            return self.builder.add(name, Op::Flatten, &[layer]);
        }
        self.builder.counted(&name, &[layer], dims, Cost::default())
    }

    fn computed(
        &mut self,
        unit: &LayerUnit,
        inputs: &[LayerId],
        dims: &[u64],
    ) -> Result<LayerId, ShapeError> {
        let mut cost = self.cost(unit);
        cost.weights = self.fresh(&unit.weights);
        cost.biases = self.fresh(&unit.biases);
        let name = self.unused(&self.named(unit));
        self.counted.extend(unit.weights.iter().chain(&unit.biases));
        let elements = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim));
        let tied = match unit.op {
            Some(Op::Linear { out, bias, .. }) => Some(Op::Linear { out, bias, tied: true }),
            _ => None,
        };
        for op in unit.op.into_iter().chain(tied) {
            let fits = self.builder.infer(&op, inputs).is_some_and(|(shape, inferred)| {
                Some(shape.elements()) == elements
                    && (inferred.multiply_add, inferred.activation) == (cost.multiply_add, cost.activation)
                    && (inferred.weights, inferred.biases) == (cost.weights, cost.biases)
            });
            if fits {
                return self.builder.add(name, op, inputs);
            }
        }
        self.builder.counted(&name, inputs, dims, cost)
    }

    fn cost(&mut self, unit: &LayerUnit) -> Cost {
        let mut cost = Cost::default();
        for (kind, amount) in &unit.work {
            if amount.power() > 1 {
                self.notes.push(format!(
                    "warning: the work of {} grows faster than the batch; it was counted for a batch of one",
                    self.net.node(unit.node).place()
                ));
            }
            let slot = cost.count_mut(*kind);
            *slot = slot.saturating_add(self.net.share(*amount));
        }
        cost
    }

    /// Elements of those initialisers that no layer has yet.
    fn fresh(&self, parameters: &[usize]) -> u64 {
        let new = parameters.iter().filter(|index| !self.counted.contains(*index));
        new.fold(0, |sum: u64, index| sum.saturating_add(self.net.stored_elements(*index)))
    }

    /// The name of a layer, from its parameters or its node.
    fn named(&self, unit: &LayerUnit) -> String {
        let stored = |index: &usize| self.net.graph.initialisers[*index].1.name.as_str();
        let new = unit.weights.iter().chain(&unit.biases).find(|index| !self.counted.contains(*index));
        // Names that exporters make up ("onnx::MatMul_12", "val_3") have no dots.
        match new.map(stored).and_then(|name| name.rsplit_once('.')) {
            Some((module, "weight" | "bias")) if !module.is_empty() => module.to_owned(),
            Some((module, last)) if !module.is_empty() => {
                let last = last.trim_end_matches("_weight").trim_end_matches("_bias");
                format!("{module}.{last}")
            }
            _ => path(self.net.node(unit.node)),
        }
    }

    /// `name`, or `name_2` and so on if it is taken.
    fn unused(&mut self, name: &str) -> String {
        let mut free = name.to_owned();
        while let Some(&times) = self.names.get(&free) {
            let times = self.names.get(name).map_or(times, |own| own.saturating_add(1));
            self.names.insert(name.to_owned(), times);
            free = format!("{name}_{times}");
        }
        self.names.insert(free.clone(), 1);
        free
    }

    /// Notes which initialisers are unused.
    fn leftovers(&mut self) {
        let net = self.net;
        let statistics: HashSet<usize> = net
            .graph
            .nodes
            .iter()
            .filter(|node| node.op == "BatchNormalization")
            .flat_map(|node| [node.input(3), node.input(4)])
            .flatten()
            .filter_map(|id| net.tensor(id).parameters())
            .flatten()
            .copied()
            .collect();
        let unused: Vec<usize> = (0..net.graph.initialisers.len())
            .filter(|index| {
                let (id, _) = &net.graph.initialisers[*index];
                net.tensor(*id).parameters().is_some()
                    && net.stored_elements(*index) > 1
                    && !self.counted.contains(index)
                    && !statistics.contains(index)
            })
            .collect();
        if unused.is_empty() {
            return;
        }
        let elements =
            unused.iter().fold(0_u64, |sum, index| sum.saturating_add(net.stored_elements(*index)));
        let names =
            unused.iter().take(MOST_NAMES).map(|index| net.graph.initialisers[*index].1.name.as_str());
        let more = if unused.len() > MOST_NAMES { " and others" } else { "" };
        let names = names.collect::<Vec<_>>().join(", ");
        self.notes.push(format!(
            "stored tensors that belong to no layer and were not counted: {}, with {elements} elements: {names}{more}",
            unused.len()
        ));
    }
}

/// A node's name as a path with dots: "/layer1/layer1.0/conv1/Conv" becomes "layer1.0.conv1".
fn path(node: &Node) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in node.name.split('/').filter(|part| !part.is_empty()) {
        // PyTorch repeats the name of a list in each of its members.
        if parts.last().is_some_and(|last| part.strip_prefix(last).is_some_and(|rest| rest.starts_with('.')))
        {
            parts.pop();
        }
        parts.push(part);
    }
    if parts.len() > 1 && parts.last().is_some_and(|last| last.starts_with(&node.op)) {
        parts.pop();
    }
    if parts.is_empty() { node.op.clone() } else { parts.join(".") }
}

/// Whether a unit computes nothing: its output holds elements of its input.
fn moves(net: &GraphView<'_>, unit: &LayerUnit) -> bool {
    let node = net.node(unit.node);
    // A window of one pixel takes that pixel.
    let one_pixel = matches!(node.op.as_str(), "AveragePool" | "MaxPool")
        && unit.inputs.first().is_some_and(|input| net.tensor(*input).shape == net.tensor(unit.output).shape)
        && node.attribute("kernel_shape").is_some_and(|kernel| kernel.ints.iter().all(|side| *side == 1));
    one_pixel
        || (unit.op.is_none() && only_moves(&node.op) && unit.weights.is_empty() && unit.inputs.len() == 1)
}
