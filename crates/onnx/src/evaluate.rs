//! Follows a graph from its inputs to its outputs: shapes and origins of all tensors, and the work of every node.

use crate::Options;
use crate::graph::{Graph, Node, NodeId, TensorId, is_standard};
use crate::inputs::{self, BatchSize};
use crate::operator::{InferenceError, Inferred, OperatorCall, Work, only_moves, rule};
use crate::proto::{TensorProto, element};
use crate::tensor::{Origin, Size, Tensor, stored_content, stored_shape};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use stepcast_core::fault::Fault;

/// Newest version of the standard operators whose rules are those of `operator`.
const NEWEST_OPSET: i64 = 28;
/// Oldest version that broadcasts like later ones.
const OLDEST_OPSET: i64 = 7;

pub(crate) struct GraphFacts {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) work: Vec<Vec<Work>>,
    /// Nodes whose shapes could not be inferred, and why. They matter only if the outputs depend on them.
    pub(crate) stopped: HashMap<NodeId, Fault>,
    pub(crate) samples: BatchSize,
    pub(crate) notes: Vec<String>,
}

struct Inference<'a> {
    graph: &'a Graph,
    place: &'a str,
    tensors: Vec<Option<Tensor>>,
    /// Operators without a rule, and their numbers of nodes.
    unknown: BTreeMap<String, usize>,
    /// Where a shape was first lost, and why.
    lost: Option<(String, String)>,
    stopped: HashMap<NodeId, Fault>,
    samples: inputs::InputShapes,
    opset: i64,
}

pub(crate) fn evaluate(graph: &Graph, options: &Options, place: &str) -> Result<GraphFacts, Fault> {
    let mut notes = Vec::new();
    let binding = inputs::bind(graph, options, place, &mut notes)?;
    match graph.opset {
        Some(opset) if (OLDEST_OPSET..=NEWEST_OPSET).contains(&opset) => {}
        Some(opset) => notes.push(format!(
            "the file uses version {opset} of the standard operators; it was read by the rules of versions \
             {OLDEST_OPSET} to {NEWEST_OPSET}"
        )),
        None => {
            notes.push("the file does not say which version of the standard operators it uses".to_owned())
        }
    }
    let mut walk = Inference {
        graph,
        place,
        tensors: vec![None; graph.names.len()],
        unknown: BTreeMap::new(),
        lost: None,
        stopped: HashMap::new(),
        samples: binding,
        opset: graph.opset.unwrap_or(NEWEST_OPSET),
    };
    for (index, (id, stored)) in graph.initialisers.iter().enumerate() {
        walk.tensors[*id] = Some(walk.initialiser(index, stored)?);
    }
    for (id, shape) in walk.samples.shapes.clone() {
        walk.tensors[id] = Some(Tensor::new(Some(shape), Origin::Data));
    }
    let work = graph.nodes.iter().enumerate().map(|(id, node)| walk.step(id, node)).collect();
    for (op, count) in &walk.unknown {
        let nodes = if *count == 1 { "node" } else { "nodes" };
        notes.push(format!(
            "warning: the operator {op} is not known; the work of its {count} {nodes} was counted as zero"
        ));
    }
    let missing = || Tensor::new(None, Origin::Static);
    let tensors = walk.tensors.into_iter().map(|tensor| tensor.unwrap_or_else(missing)).collect();
    Ok(GraphFacts { tensors, work, stopped: walk.stopped, samples: walk.samples.samples, notes })
}

impl Inference<'_> {
    fn initialiser(&self, index: usize, stored: &TensorProto) -> Result<Tensor, Fault> {
        let Some(shape) = stored_shape(stored) else {
            let at = format!("{}, initialiser \"{}\"", self.place, stored.name);
            return Err(Fault::in_file(
                at,
                "a dimension is negative, or they are too many",
                "export the model again",
            ));
        };
        let is_parameter = element::is_real(stored.data_type) && !shape.is_empty();
        let origin = if is_parameter { Origin::Parameters(BTreeSet::from([index])) } else { Origin::Static };
        // Older exporters store the mask of a causal attention as a square of truth values.
        let truth = matches!(stored.data_type, element::BOOL | element::UINT8);
        let square = matches!(shape[..], [.., a, b] if a == b && a != Size::ONE);
        let content = stored_content(stored);
        Ok(Tensor { content, causal: truth && square, ..Tensor::new(Some(shape), origin) })
    }

    /// The work of one node; its outputs are remembered.
    fn step(&mut self, id: NodeId, node: &Node) -> Vec<Work> {
        let made = {
            let inputs = node.inputs.iter().map(|id| id.and_then(|id| self.tensors[id].as_ref())).collect();
            let call = OperatorCall { node, inputs, names: &self.graph.names, opset: self.opset };
            let known = is_standard(&node.domain) && !node.has_bodies();
            known.then(|| rule(&node.op)).flatten().map(|rule| rule(&call).and_then(Inferred::bounded))
        };
        let origin = self.origin(node);
        let made = match made {
            Some(Ok(made)) => made,
            Some(Err(stop)) => {
                let error = self.stop(node, &stop, &origin);
                self.stopped.extend(error.map(|error| (id, error)));
                Inferred::default()
            }
            None => self.unfamiliar(node, &origin),
        };
        self.remember(node, &made, &origin);
        if origin == Origin::Static { Vec::new() } else { made.work }
    }

    fn origin(&self, node: &Node) -> Origin {
        let read = |id: &TensorId| self.tensors[*id].as_ref().map(|tensor| &tensor.origin);
        let mut origins = node.inputs.iter().flatten().filter_map(read);
        match node.op.as_str() {
            "Shape" | "Size" | "RandomNormalLike" | "RandomUniformLike" | "EyeLike" => Origin::Static,
            // The second input only determines the type.
            "CastLike" => origins.next().cloned().unwrap_or(Origin::Static),
            _ => origins.fold(Origin::Static, Origin::with),
        }
    }

    /// The fault of a node whose rule failed; none if the node has no work.
    fn stop(&mut self, node: &Node, stop: &InferenceError, origin: &Origin) -> Option<Fault> {
        let reason = match stop {
            InferenceError::Unknown(reason) | InferenceError::Wrong(reason) => reason.clone(),
        };
        let harmless = *origin == Origin::Static || only_moves(&node.op);
        if harmless && (matches!(stop, InferenceError::Unknown(_)) || *origin == Origin::Static) {
            self.lost.get_or_insert_with(|| (node.place(), reason));
            return None;
        }
        let cause = match &self.lost {
            Some((at, why)) if matches!(stop, InferenceError::Unknown(_)) => {
                format!("{reason}, since at {at} {why}")
            }
            _ => reason,
        };
        let at = format!("{}, {}", self.place, node.place());
        let remedy = match (stop, self.samples.samples) {
            (InferenceError::Unknown(_), _) => {
                "run onnx.shape_inference on the file, or export it with fixed sizes"
            }
            (InferenceError::Wrong(_), BatchSize::Open) => {
                "check the sizes that were given; if the file was exported for one batch, export it with an open one"
            }
            (InferenceError::Wrong(_), BatchSize::Fixed(_)) => {
                "check the sizes that were given, or export the model again"
            }
        };
        Some(Fault::in_file(at, cause, remedy))
    }

    /// Handles an operator without a rule: counts it, and takes its outputs as the file declares them.
    fn unfamiliar(&mut self, node: &Node, origin: &Origin) -> Inferred {
        if *origin != Origin::Static || node.inputs.is_empty() {
            let name =
                if node.domain.is_empty() { node.op.clone() } else { format!("{}.{}", node.domain, node.op) };
            *self.unknown.entry(name).or_default() += 1;
        }
        self.lost.get_or_insert_with(|| (node.place(), "the operator is not known".to_owned()));
        Inferred::default()
    }

    fn remember(&mut self, node: &Node, made: &Inferred, origin: &Origin) {
        let (places, causal) = self.pattern(node, origin);
        for (index, id) in node.outputs.iter().enumerate() {
            let Some(id) = *id else { continue };
            let shape = made.shapes.get(index).cloned().or_else(|| {
                let declared = self.graph.declared.get(&id)?;
                self.samples.declared(declared)
            });
            let content = made.content.clone().filter(|_| index == 0 && *origin != Origin::Data);
            self.tensors[id] = Some(Tensor { shape, origin: origin.clone(), content, places, causal });
        }
    }

    /// Whether the outputs are positions, and whether they distinguish earlier positions from later ones.
    fn pattern(&self, node: &Node, origin: &Origin) -> (bool, bool) {
        let mut inputs = node.inputs.iter().flatten().filter_map(|id| self.tensors[*id].as_ref());
        let inherits = only_moves(&node.op)
            || matches!(
                node.op.as_str(),
                "Add" | "Sub" | "Mul" | "And" | "Or" | "Not" | "Where" | "Max" | "Min"
            );
        match node.op.as_str() {
            "Range" => (true, false),
            "Trilu" => (false, true),
            "Less" | "LessOrEqual" | "Greater" | "GreaterOrEqual" => {
                (false, inputs.all(|input| input.places))
            }
            _ if inherits => {
                let (mut places, mut causal) = (false, false);
                for input in inputs {
                    places |= input.places;
                    causal |= input.causal;
                }
                (places && *origin == Origin::Static, causal)
            }
            _ => (false, false),
        }
    }
}
