//! Calls of PyTorch's operators, with the tensors that flow between them.

use crate::objects::whole;
use serde_json::Value;
use std::collections::HashMap;

/// A tensor, by its number and that of its memory: traces reuse both.
pub(super) type Tensor = (u64, u64);

/// The producer of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Maker {
    /// The operator at this index.
    Layer(usize),
    /// An operator that is no layer.
    Other(String),
}

/// A call of an operator.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Operator {
    /// Without "aten::" and the "_" of one that works in place.
    pub(super) name: String,
    pub(super) arguments: Vec<Argument>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Argument {
    /// A tensor with its shape, and its producer at the time of the call.
    Tensor(Tensor, Vec<u64>, Option<Maker>),
    /// Several.
    Tensors(Vec<Argument>),
    Numbers(Vec<u64>),
    Flag(bool),
    Other,
}

impl Argument {
    /// About how many bytes it takes.
    pub(super) fn held(&self) -> usize {
        let within = match self {
            Self::Tensor(_, shape, _) => shape.capacity() * size_of::<u64>(),
            Self::Tensors(list) => list.iter().map(Self::held).sum(),
            Self::Numbers(numbers) => numbers.capacity() * size_of::<u64>(),
            Self::Flag(_) | Self::Other => 0,
        };
        2 * size_of::<Self>() + within
    }

    pub(super) fn parse(value: &Value, shape: &Value, kind: &str) -> Self {
        if kind.starts_with("Tensor") {
            let shape = numbers(shape).unwrap_or_default();
            return tensor(value).map_or(Self::Other, |tensor| Self::Tensor(tensor, shape, None));
        }
        if kind.starts_with("GenericList[Tensor") {
            let (Some(values), Some(shapes)) = (value.as_array(), shape.as_array()) else {
                return Self::Other;
            };
            return Self::Tensors(
                values.iter().zip(shapes).map(|(value, shape)| Self::parse(value, shape, "Tensor")).collect(),
            );
        }
        match value {
            Value::Bool(flag) => Self::Flag(*flag),
            Value::Number(_) => whole(Some(value)).map_or(Self::Other, |number| Self::Numbers(vec![number])),
            Value::Array(_) => numbers(value).map_or(Self::Other, Self::Numbers),
            Value::Null | Value::String(_) | Value::Object(_) => Self::Other,
        }
    }

    /// Fills in the producers of tensors.
    pub(super) fn resolve(&mut self, makers: &HashMap<Tensor, Maker>) {
        match self {
            Self::Tensor(tensor, _, maker) => *maker = makers.get(tensor).cloned(),
            Self::Tensors(list) => list.iter_mut().for_each(|each| each.resolve(makers)),
            Self::Numbers(_) | Self::Flag(_) | Self::Other => {}
        }
    }

    /// Whether it can be a batch of samples.
    pub(super) fn has_samples(&self) -> bool {
        match self {
            Self::Tensor(_, shape, _) => shape.len() > 1,
            Self::Tensors(list) => !list.is_empty(),
            Self::Numbers(_) | Self::Flag(_) | Self::Other => false,
        }
    }
}

/// `[number, memory, offset, elements, size of one, device]`.
pub(super) fn tensor(value: &Value) -> Option<Tensor> {
    let list = value.as_array().filter(|list| list.len() >= 5)?;
    Some((whole(list.first())?, whole(list.get(1))?))
}

fn numbers(value: &Value) -> Option<Vec<u64>> {
    value.as_array()?.iter().map(|number| whole(Some(number))).collect()
}
