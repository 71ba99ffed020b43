//! The inputs of a model: which dimension is the batch, and the sizes of the others.

use crate::Options;
use crate::graph::{Graph, TensorId};
use crate::proto::{Dimension, ValueInfo};
use crate::tensor::{MOST_DIMENSIONS, Size, elements};
use std::collections::BTreeMap;
use stepcast_core::fault::Fault;

/// How many samples one pass of the graph takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchSize {
    Open,
    Fixed(i64),
}

/// The sizes of dimensions that the file leaves open.
pub(crate) struct InputShapes {
    pub(crate) samples: BatchSize,
    pub(crate) shapes: Vec<(TensorId, Vec<Size>)>,
    /// Name of the batch in the file; empty if it has none.
    batch: Option<String>,
    sizes: BTreeMap<String, u64>,
}

impl InputShapes {
    /// The shape that the file declares for a tensor in between, as far as its names have sizes.
    pub(crate) fn declared(&self, info: &ValueInfo) -> Option<Vec<Size>> {
        dims(info)?.iter().map(|dim| self.size(dim)).collect()
    }

    fn size(&self, dim: &Dimension) -> Option<Size> {
        match dim.value {
            Some(value) if value > 0 => Some(Size::fixed(value)),
            _ if dim.name.is_empty() => None,
            _ => match self.sizes.get(&dim.name) {
                Some(&size) => Size::count(size),
                None => (self.batch.as_ref() == Some(&dim.name)).then_some(Size::BATCH),
            },
        }
    }
}

fn dims(info: &ValueInfo) -> Option<&[Dimension]> {
    info.kind.as_ref()?.tensor.as_ref()?.shape.as_ref().map(|shape| &shape.dims[..])
}

/// Finds the batch dimension, and takes the sizes of the others from the file or from `options`.
///
/// The batch is the dimension with such a name, since some networks have the sequence first; otherwise the first dimension
/// of the first input.
pub(crate) fn bind(
    graph: &Graph,
    options: &Options,
    place: &str,
    notes: &mut Vec<String>,
) -> Result<InputShapes, Fault> {
    let at = |info: &ValueInfo| format!("{place}, input \"{}\"", info.name);
    let all = || graph.inputs.iter().filter_map(|(_, info)| dims(info));
    let first = all().flatten().find(|dim| says_batch(dim)).or_else(|| all().find_map(<[_]>::first));
    let mut binding = InputShapes {
        samples: BatchSize::Open,
        shapes: Vec::new(),
        batch: first.filter(|dim| !is_fixed(dim)).map(|dim| dim.name.clone()),
        sizes: options.sizes.clone(),
    };
    if let Some(size) = first.and_then(|dim| binding.size(dim)).and_then(Size::number) {
        binding.samples = BatchSize::Fixed(size);
        if size > 1 {
            notes.push(format!("one pass of the file takes {size} samples; counts were divided by {size}"));
        }
    }
    for (id, info) in &graph.inputs {
        let Some(dims) = dims(info) else {
            let remedy = "export the model with shapes of its inputs";
            return Err(Fault::in_file(at(info), "its shape is not given", remedy));
        };
        let mut shape = Vec::with_capacity(dims.len());
        for (axis, dim) in dims.iter().enumerate() {
            let key = format!("{}.{axis}", info.name);
            let given = options.sizes.get(&key).copied().and_then(Size::count);
            let nameless_batch = axis == 0 && dim.name.is_empty() && binding.samples == BatchSize::Open;
            let size = given.or_else(|| binding.size(dim)).or_else(|| nameless_batch.then_some(Size::BATCH));
            let Some(size) = size else {
                let name = if dim.name.is_empty() { key } else { dim.name.clone() };
                let reason = format!("dimension {} is \"{name}\", which has no size", axis + 1);
                let remedy = format!("give it one: sizes = {{ \"{name}\" = 128 }}");
                return Err(Fault::in_file(at(info), reason, remedy));
            };
            shape.push(size);
        }
        if shape.len() > MOST_DIMENSIONS {
            return Err(Fault::in_file(at(info), "it has too many dimensions", "export the model again"));
        }
        if elements(&shape).is_none_or(|count| count == Size::fixed(0)) {
            let reason = "it has no elements, or too many to count";
            return Err(Fault::in_file(at(info), reason, "check the sizes that were given"));
        }
        binding.shapes.push((*id, shape));
    }
    let known = |name: &str| {
        graph.inputs.iter().any(|(_, info)| {
            let dims = dims(info).unwrap_or_default();
            (0..dims.len()).any(|axis| dims[axis].name == name || format!("{}.{axis}", info.name) == name)
        })
    };
    if let Some(name) = options.sizes.keys().find(|name| !known(name)) {
        let reason = format!("no dimension of an input is called \"{name}\"");
        return Err(Fault::in_file(place, reason, format!("the open dimensions are {}", open(graph))));
    }
    Ok(binding)
}

fn says_batch(dim: &Dimension) -> bool {
    let name = dim.name.to_lowercase();
    name.contains("batch") || name == "n" || name == "b"
}

fn is_fixed(dim: &Dimension) -> bool {
    dim.value.is_some_and(|value| value > 0)
}

/// Dimensions that a file leaves open, for people.
fn open(graph: &Graph) -> String {
    let mut names: Vec<&str> = Vec::new();
    for dim in graph.inputs.iter().filter_map(|(_, info)| dims(info)).flatten() {
        if !dim.name.is_empty() && !names.contains(&dim.name.as_str()) {
            names.push(&dim.name);
        }
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
