//! The rules of operators: shapes, small contents and work of their outputs. One file for each family.
//!
//! Work is counted as in `stepcast_core::model`: a multiply-add is two operations; what is not a product or a
//! convolution is counted by kind, for each element as `Activation::operations` and `Norm::operations` have it.

mod attention;
mod constant;
mod convolution;
mod elementwise;
mod movement;
mod product;
mod recurrent;
mod reduction;
mod resize;

pub(crate) use attention::{AttentionSizes, heads as attention_heads};
pub(crate) use convolution::Windows;
pub(crate) use reduction::axes as reduced_axes;

use crate::graph::Node;
use crate::proto::AttributeProto;
use crate::tensor::{MOST_DIMENSIONS, Number, Size, Tensor, elements, spelled};
use stepcast_core::model::CostKind;

/// The rule of a standard operator; none for operators that are not known.
pub(crate) fn rule(op: &str) -> Option<Rule> {
    constant::rule(op)
        .or_else(|| movement::rule(op))
        .or_else(|| elementwise::rule(op))
        .or_else(|| product::rule(op))
        .or_else(|| convolution::rule(op))
        .or_else(|| reduction::rule(op))
        .or_else(|| resize::rule(op))
        .or_else(|| recurrent::rule(op))
        .or_else(|| attention::rule(op))
}

/// Whether the output holds elements of the first input, in any order, and nothing is computed.
pub(crate) fn only_moves(op: &str) -> bool {
    movement::rule(op).is_some()
}

pub(crate) type Work = (CostKind, Size);

/// The outputs and the work of an operator.
#[derive(Debug, Default)]
pub(crate) struct Inferred {
    pub(crate) shapes: Vec<Vec<Size>>,
    /// Content of the first output.
    pub(crate) content: Option<Vec<Number>>,
    pub(crate) work: Vec<Work>,
}

impl Inferred {
    /// One output without work.
    fn free(shape: Vec<Size>) -> Result<Self, InferenceError> {
        Ok(Self { shapes: vec![shape], ..Self::default() })
    }

    /// Refuses tensors of absurdly many dimensions.
    pub(crate) fn bounded(self) -> Result<Self, InferenceError> {
        match self.shapes.iter().find(|shape| shape.len() > MOST_DIMENSIONS) {
            Some(shape) => wrong(format!("it makes a tensor of {} dimensions", shape.len())),
            None => Ok(self),
        }
    }

    fn with(mut self, kind: CostKind, amount: Size) -> Self {
        self.work.push((kind, amount));
        self
    }
}

/// Why the outputs of an operator cannot be inferred.
#[derive(Debug)]
pub(crate) enum InferenceError {
    /// Something about an input is not known.
    Unknown(String),
    /// Inputs and attributes do not fit together.
    Wrong(String),
}

fn wrong<T>(reason: impl Into<String>) -> Result<T, InferenceError> {
    Err(InferenceError::Wrong(reason.into()))
}

fn overflow() -> InferenceError {
    InferenceError::Wrong("its sizes are too large: a count does not fit into 63 bits".to_owned())
}

pub(crate) struct OperatorCall<'a> {
    pub(crate) node: &'a Node,
    pub(crate) inputs: Vec<Option<&'a Tensor>>,
    pub(crate) names: &'a [String],
    pub(crate) opset: i64,
}

pub(crate) type Rule = fn(&OperatorCall<'_>) -> Result<Inferred, InferenceError>;

impl OperatorCall<'_> {
    pub(crate) fn tensor(&self, index: usize) -> Result<&Tensor, InferenceError> {
        let tensor = self.inputs.get(index).copied().flatten();
        tensor.ok_or_else(|| InferenceError::Wrong(format!("its input {} is missing", index + 1)))
    }

    fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(Option::is_some)
    }

    fn name(&self, index: usize) -> &str {
        self.node.input(index).map_or("", |id| &self.names[id])
    }

    pub(crate) fn shape(&self, index: usize) -> Result<&[Size], InferenceError> {
        let shape = self.tensor(index)?.shape.as_deref();
        shape.ok_or_else(|| {
            InferenceError::Unknown(format!("the shape of \"{}\" is not known", self.name(index)))
        })
    }

    fn elements(&self, index: usize) -> Result<Size, InferenceError> {
        elements(self.shape(index)?).ok_or_else(overflow)
    }

    fn content(&self, index: usize) -> Result<&[Number], InferenceError> {
        let content = self.tensor(index)?.content.as_deref();
        content.ok_or_else(|| {
            InferenceError::Unknown(format!("the content of \"{}\" is not known", self.name(index)))
        })
    }

    fn sizes(&self, index: usize) -> Result<Vec<Size>, InferenceError> {
        let whole = |number: &Number| match number {
            Number::Whole(size) => Ok(*size),
            Number::Real(real) => wrong(format!("\"{}\" holds {real}, not a whole number", self.name(index))),
        };
        self.content(index)?.iter().map(whole).collect()
    }

    /// The content of an input as numbers that do not depend on the batch.
    fn wholes(&self, index: usize) -> Result<Vec<i64>, InferenceError> {
        let number = |size: Size| {
            let reason = || format!("\"{}\" depends on the batch", self.name(index));
            size.number().ok_or_else(|| InferenceError::Unknown(reason()))
        };
        self.sizes(index)?.into_iter().map(number).collect()
    }

    fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute(name)
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.int)
    }

    fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|attribute| &attribute.ints[..])
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.attribute(name).and_then(|attribute| std::str::from_utf8(&attribute.text).ok())
    }

    /// A short list of whole numbers, which is an attribute in older versions and an input in newer ones.
    fn setting(&self, name: &str, index: usize) -> Result<Option<Vec<i64>>, InferenceError> {
        match self.ints(name) {
            Some(ints) if ints.len() > 2 * MOST_DIMENSIONS => {
                wrong(format!("{} numbers are its {name}", ints.len()))
            }
            Some(ints) => Ok(Some(ints.to_vec())),
            None if self.has(index) => self.wholes(index).map(Some),
            None => Ok(None),
        }
    }
}

/// A place among `rank` dimensions; negative ones count from the end.
fn axis(value: i64, rank: usize) -> Result<usize, InferenceError> {
    let from_start = if value < 0 { value.checked_add(rank as i64) } else { Some(value) };
    from_start
        .and_then(|axis| usize::try_from(axis).ok())
        .filter(|axis| *axis < rank)
        .ok_or_else(|| InferenceError::Wrong(format!("there is no axis {value} among {rank} dimensions")))
}

/// `size` times a whole number.
fn scaled(size: Size, by: u64) -> Result<Size, InferenceError> {
    Size::count(by).and_then(|by| size.times(by)).ok_or_else(overflow)
}

fn product_of(sizes: &[Size]) -> Result<Size, InferenceError> {
    elements(sizes).ok_or_else(overflow)
}

/// The shape of element-wise results: dimensions of 1 are spread.
pub(crate) fn broadcast(a: &[Size], b: &[Size]) -> Result<Vec<Size>, InferenceError> {
    let rank = a.len().max(b.len());
    let (shape_a, shape_b) = (a.to_vec(), b.to_vec());
    let dim = |dims: &[Size], place: usize| {
        (place + dims.len()).checked_sub(rank).and_then(|place| dims.get(place)).copied().unwrap_or(Size::ONE)
    };
    (0..rank)
        .map(|place| match (dim(a, place), dim(b, place)) {
            (a, b) if a == b || b == Size::ONE => Ok(a),
            (a, b) if a == Size::ONE => Ok(b),
            _ => wrong(format!("{} and {} do not go together", spelled(&shape_a), spelled(&shape_b))),
        })
        .collect()
}
