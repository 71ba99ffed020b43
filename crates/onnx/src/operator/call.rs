//! A call of an operator, and the result that its rule returns: shapes, small contents and work.

use crate::graph::Node;
use crate::proto::AttributeProto;
use crate::size::{Size, elements, spelled};
use crate::tensor::{MOST_DIMENSIONS, Number, Tensor};

/// A kind of work, one for each field of `stepcast_core::model::Cost`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    MultiplyAdd,
    Bias,
    Activation,
    Pooling,
    Normalisation,
    Elementwise,
}

/// Operations of one kind.
pub(crate) type Work = (Kind, Size);

/// The outputs and the work of an operator.
#[derive(Debug, Default)]
pub(crate) struct Made {
    pub(crate) shapes: Vec<Vec<Size>>,
    /// Of the first output.
    pub(crate) content: Option<Vec<Number>>,
    pub(crate) work: Vec<Work>,
}

impl Made {
    /// One output without work.
    pub(super) fn free(shape: Vec<Size>) -> Result<Self, Stop> {
        Ok(Self { shapes: vec![shape], ..Self::default() })
    }

    /// Refuses tensors of absurdly many dimensions.
    pub(crate) fn bounded(self) -> Result<Self, Stop> {
        match self.shapes.iter().find(|shape| shape.len() > MOST_DIMENSIONS) {
            Some(shape) => wrong(format!("it makes a tensor of {} dimensions", shape.len())),
            None => Ok(self),
        }
    }

    pub(super) fn with(mut self, kind: Kind, amount: Size) -> Self {
        self.work.push((kind, amount));
        self
    }
}

/// Why the outputs of an operator cannot be inferred.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Something about an input is not known.
    Unknown(String),
    /// Inputs and attributes do not fit together.
    Wrong(String),
}

pub(super) fn wrong<T>(reason: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Wrong(reason.into()))
}

pub(super) fn overflow() -> Stop {
    Stop::Wrong("its sizes are too large: a count does not fit into 63 bits".to_owned())
}

/// An operator with its inputs.
pub(crate) struct Call<'a> {
    pub(crate) node: &'a Node,
    pub(crate) inputs: Vec<Option<&'a Tensor>>,
    pub(crate) names: &'a [String],
    pub(crate) opset: i64,
}

/// The rule of an operator: its outputs and work.
pub(crate) type Rule = fn(&Call<'_>) -> Result<Made, Stop>;

impl Call<'_> {
    pub(crate) fn tensor(&self, index: usize) -> Result<&Tensor, Stop> {
        let tensor = self.inputs.get(index).copied().flatten();
        tensor.ok_or_else(|| Stop::Wrong(format!("its input {} is missing", index + 1)))
    }

    pub(super) fn has(&self, index: usize) -> bool {
        self.inputs.get(index).is_some_and(Option::is_some)
    }

    pub(super) fn name(&self, index: usize) -> &str {
        self.node.input(index).map_or("", |id| &self.names[id])
    }

    pub(crate) fn shape(&self, index: usize) -> Result<&[Size], Stop> {
        let shape = self.tensor(index)?.shape.as_deref();
        shape.ok_or_else(|| Stop::Unknown(format!("the shape of \"{}\" is not known", self.name(index))))
    }

    pub(super) fn elements(&self, index: usize) -> Result<Size, Stop> {
        elements(self.shape(index)?).ok_or_else(overflow)
    }

    pub(super) fn content(&self, index: usize) -> Result<&[Number], Stop> {
        let content = self.tensor(index)?.content.as_deref();
        content.ok_or_else(|| Stop::Unknown(format!("the content of \"{}\" is not known", self.name(index))))
    }

    /// The content of an input as sizes.
    pub(super) fn sizes(&self, index: usize) -> Result<Vec<Size>, Stop> {
        let whole = |number: &Number| match number {
            Number::Whole(size) => Ok(*size),
            Number::Real(real) => wrong(format!("\"{}\" holds {real}, not a whole number", self.name(index))),
        };
        self.content(index)?.iter().map(whole).collect()
    }

    /// The content of an input as numbers that do not depend on the batch.
    pub(super) fn wholes(&self, index: usize) -> Result<Vec<i64>, Stop> {
        let number = |size: Size| {
            let reason = || format!("\"{}\" depends on the batch", self.name(index));
            size.number().ok_or_else(|| Stop::Unknown(reason()))
        };
        self.sizes(index)?.into_iter().map(number).collect()
    }

    pub(super) fn attribute(&self, name: &str) -> Option<&AttributeProto> {
        self.node.attribute(name)
    }

    pub(crate) fn int(&self, name: &str, default: i64) -> i64 {
        self.attribute(name).map_or(default, |attribute| attribute.int)
    }

    pub(super) fn ints(&self, name: &str) -> Option<&[i64]> {
        self.attribute(name).map(|attribute| &attribute.ints[..])
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.attribute(name).and_then(|attribute| std::str::from_utf8(&attribute.text).ok())
    }

    /// Few whole numbers that older versions have as an attribute and newer ones as an input.
    pub(super) fn setting(&self, name: &str, index: usize) -> Result<Option<Vec<i64>>, Stop> {
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
pub(super) fn axis(value: i64, rank: usize) -> Result<usize, Stop> {
    let from_start = if value < 0 { value.checked_add(rank as i64) } else { Some(value) };
    from_start
        .and_then(|axis| usize::try_from(axis).ok())
        .filter(|axis| *axis < rank)
        .ok_or_else(|| Stop::Wrong(format!("there is no axis {value} among {rank} dimensions")))
}

/// `size` times a whole number.
pub(super) fn scaled(size: Size, by: u64) -> Result<Size, Stop> {
    Size::count(by).and_then(|by| size.times(by)).ok_or_else(overflow)
}

/// The product of sizes.
pub(super) fn product_of(sizes: &[Size]) -> Result<Size, Stop> {
    elements(sizes).ok_or_else(overflow)
}

/// The shape of element-wise results: dimensions of 1 are spread.
pub(crate) fn broadcast(a: &[Size], b: &[Size]) -> Result<Vec<Size>, Stop> {
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
