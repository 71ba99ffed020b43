//! Builds a model layer by layer; every layer is checked and counted as it is added.

use super::cost::Cost;
use super::infer::infer;
use super::op::{Activation, Norm, Op};
use super::shape::{MOST_DIMENSIONS, Shape, ShapeError};
use super::{Adjustment, Layer, LayerId, Model, Published, Rows, kept};
use std::collections::HashSet;

/// A model under construction.
///
/// A layer can only read layers that were added earlier, so layers are added in topological order and cycles are
/// impossible.
#[derive(Debug, Clone)]
pub struct Builder {
    name: String,
    source: String,
    layers: Vec<Layer>,
    names: HashSet<String>,
    total: Cost,
    adjustments: Vec<Adjustment>,
    published: Published,
}

impl Builder {
    pub fn new(name: impl Into<String>, source: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            source: source.into(),
            layers: Vec::new(),
            names: HashSet::new(),
            total: Cost::default(),
            adjustments: Vec::new(),
            published: Published::default(),
        }
    }

    /// Adds an input tensor with its dimensions for one sample.
    pub fn input(&mut self, name: &str, dims: &[u64]) -> Result<LayerId, ShapeError> {
        let output = given(dims).map_err(|error| error.at(name))?;
        self.push(name, Op::Input, &[], output, Cost::default())
    }

    /// Adds a layer with given operation counts and output dimensions.
    pub fn counted(
        &mut self,
        name: &str,
        inputs: &[LayerId],
        dims: &[u64],
        cost: Cost,
    ) -> Result<LayerId, ShapeError> {
        let output = given(dims).map_err(|error| error.at(name))?;
        self.shapes(name, inputs)?;
        self.push(name, Op::Counted(cost), inputs, output, cost)
    }

    /// Adds a layer that reads `inputs` in this order.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        op: Op,
        inputs: &[LayerId],
    ) -> Result<LayerId, ShapeError> {
        let name = name.into();
        let shapes = self.shapes(&name, inputs)?;
        let (output, cost) = infer(&op, &shapes).map_err(|error| error.at(&name))?;
        self.check_table(&op).map_err(|error| error.at(&name))?;
        self.push(&name, op, inputs, output, cost)
    }

    /// The output shape and cost that a layer would have; none if it does not fit `inputs`.
    pub fn infer(&self, op: &Op, inputs: &[LayerId]) -> Option<(Shape, Cost)> {
        let shapes = inputs.iter().map(|&id| self.shape(id)).collect::<Option<Vec<_>>>()?;
        infer(op, &shapes).ok()
    }

    pub fn shape(&self, id: LayerId) -> Option<&Shape> {
        self.layers.get(id as usize).map(|layer| &layer.output)
    }

    /// Adds a deviation of the published counts from the layout.
    pub fn adjust(&mut self, adjustment: Adjustment) {
        self.adjustments.push(adjustment);
    }

    /// Sets published figures other than the layout.
    pub fn publish(&mut self, published: Published) {
        self.published = published;
    }

    pub fn finish(self) -> Result<Model, ShapeError> {
        let empty = || ShapeError::new("the model has no layers", "add layers").at(&self.name);
        let input = self.layers.iter().find(|layer| layer.op == Op::Input).ok_or_else(empty)?;
        let input = input.output.clone();
        let overflow = || ShapeError::overflow().at(&self.name);
        let inputs = self.layers.iter().filter(|layer| layer.op == Op::Input);
        let input_elements = inputs
            .map(|layer| layer.output.elements())
            .try_fold(0_u64, u64::checked_add)
            .ok_or_else(overflow)?;
        Ok(Model {
            input_elements,
            activation_bytes: kept(&self.layers).ok_or_else(overflow)?,
            input,
            name: self.name,
            source: self.source,
            layers: self.layers,
            total: self.total,
            adjustments: self.adjustments,
            published: self.published,
        })
    }

    /// Refuses a sparse gradient of a table that a product reads in full: it has a gradient in every row.
    fn check_table(&self, op: &Op) -> Result<(), ShapeError> {
        let Op::Linear { out, tied: true, .. } = *op else { return Ok(()) };
        let sparse = |rows: Rows| rows.count == out;
        match self.layers.iter().filter_map(Layer::rows).any(sparse) {
            true => Err(ShapeError::in_field(
                "tied",
                "it shares the table of a sparse embedding, but its own gradient is dense",
                "remove `sparse` from the embedding, or `tied` from this layer",
            )),
            false => Ok(()),
        }
    }

    fn shapes(&self, name: &str, inputs: &[LayerId]) -> Result<Vec<&Shape>, ShapeError> {
        inputs.iter().map(|&id| self.shape(id)).collect::<Option<_>>().ok_or_else(|| {
            ShapeError::in_inputs("it reads a layer that does not exist", "add the layers it reads before it")
                .at(name)
        })
    }

    fn push(
        &mut self,
        name: &str,
        op: Op,
        inputs: &[LayerId],
        output: Shape,
        cost: Cost,
    ) -> Result<LayerId, ShapeError> {
        let id = LayerId::try_from(self.layers.len()).map_err(|_| ShapeError::overflow().at(name))?;
        let total = self.total.checked_add(cost).ok_or_else(|| ShapeError::overflow().at(name))?;
        if !self.names.insert(name.to_owned()) {
            let reason = "there is another layer of this name";
            return Err(ShapeError::in_field("name", reason, "give every layer a name of its own").at(name));
        }
        self.total = total;
        self.layers.push(Layer { name: name.to_owned(), op, inputs: inputs.to_vec(), output, cost });
        Ok(id)
    }
}

fn given(dims: &[u64]) -> Result<Shape, ShapeError> {
    Shape::new(dims).ok_or_else(|| {
        let text = dims.iter().take(MOST_DIMENSIONS).map(u64::to_string).collect::<Vec<_>>().join(", ");
        let more = if dims.len() > MOST_DIMENSIONS { ", …" } else { "" };
        let reason = format!("[{text}{more}] is not the shape of a tensor");
        let remedy = "give 1 to 64 dimensions, each at least 1, their product below 2^64";
        ShapeError::in_field("shape", reason, remedy)
    })
}

/// Shorthand for common layers with one input.
impl Builder {
    pub fn linear(
        &mut self,
        name: impl Into<String>,
        out: u64,
        from: LayerId,
    ) -> Result<LayerId, ShapeError> {
        self.add(name, Op::Linear { out, bias: true, tied: false }, &[from])
    }

    pub fn activate(
        &mut self,
        name: impl Into<String>,
        activation: Activation,
        from: LayerId,
    ) -> Result<LayerId, ShapeError> {
        self.add(name, Op::Activate(activation), &[from])
    }

    /// Adds a layer normalisation with trained scale and shift.
    pub fn layer_norm(&mut self, name: impl Into<String>, from: LayerId) -> Result<LayerId, ShapeError> {
        self.add(name, Op::Normalise(Norm::Layer { affine: true }), &[from])
    }
}
