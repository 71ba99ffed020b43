//! Properties of a tensor that are known without computing it.

use crate::proto::{TensorProto, element};
use crate::size::Size;
use std::collections::BTreeSet;

/// Most dimensions of a tensor.
pub(crate) const MOST_DIMENSIONS: usize = 64;
/// Most elements of a tensor whose content is followed: shapes are not longer.
pub(crate) const MOST_CONTENT: usize = MOST_DIMENSIONS;

/// One element of a tensor whose content is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    Whole(Size),
    Real(f64),
}

impl Number {
    /// The number, if the batch has no part in it.
    pub(crate) fn real(self) -> Option<f64> {
        match self {
            Self::Whole(size) => size.number().map(|number| number as f64),
            Self::Real(real) => Some(real),
        }
    }
}

/// What a tensor depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The samples.
    Data,
    /// These initialisers, and no sample.
    Parameters(BTreeSet<usize>),
    /// Shapes and constants alone.
    Static,
}

impl Origin {
    /// The origin of a tensor that is computed from both.
    pub(crate) fn with(self, other: &Self) -> Self {
        match (self, other) {
            (Self::Data, _) | (_, Self::Data) => Self::Data,
            (Self::Parameters(mut own), Self::Parameters(more)) => {
                own.extend(more);
                Self::Parameters(own)
            }
            (Self::Parameters(own), Self::Static) => Self::Parameters(own),
            (Self::Static, other) => other.clone(),
        }
    }
}

/// Known properties of a tensor.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    /// Its dimensions, if they are known.
    pub(crate) shape: Option<Vec<Size>>,
    pub(crate) origin: Origin,
    /// Its elements, if they are few and do not depend on samples.
    pub(crate) content: Option<Vec<Number>>,
    /// Whether its elements are positions: 0, 1, 2 and so on.
    pub(crate) places: bool,
    /// Whether it distinguishes positions from later ones: the mask of a causal attention.
    pub(crate) causal: bool,
}

impl Tensor {
    /// Something that depends on `origin`, of which no more is known than its shape.
    pub(crate) fn new(shape: Option<Vec<Size>>, origin: Origin) -> Self {
        Self { shape, origin, content: None, places: false, causal: false }
    }

    pub(crate) fn is_data(&self) -> bool {
        self.origin == Origin::Data
    }

    /// Its only element.
    pub(crate) fn scalar(&self) -> Option<f64> {
        match self.content.as_deref() {
            Some([number]) => number.real(),
            _ => None,
        }
    }

    /// The initialisers it is made of; none for what depends on samples.
    pub(crate) fn parameters(&self) -> Option<&BTreeSet<usize>> {
        match &self.origin {
            Origin::Parameters(parameters) => Some(parameters),
            _ => None,
        }
    }
}

/// The dimensions of a stored tensor; none if one is negative, or if they are too many.
pub(crate) fn stored_shape(tensor: &TensorProto) -> Option<Vec<Size>> {
    let count = tensor.dims.len() <= MOST_DIMENSIONS;
    tensor.dims.iter().map(|&dim| (count && dim >= 0).then_some(Size::fixed(dim))).collect()
}

/// The elements of a stored tensor, if they are in the file and few.
pub(crate) fn stored_content(tensor: &TensorProto) -> Option<Vec<Number>> {
    let count = tensor.dims.iter().try_fold(1_i64, |product, &dim| product.checked_mul(dim))?;
    let count = usize::try_from(count).ok().filter(|count| *count <= MOST_CONTENT)?;
    let whole = |value: i64| Number::Whole(Size::fixed(value));
    let mut numbers: Vec<Number> = Vec::with_capacity(count);
    numbers.extend(tensor.longs.iter().map(|&value| whole(value)));
    match tensor.data_type {
        element::FLOAT16 | element::BFLOAT16 => {}
        _ => numbers.extend(tensor.ints.iter().map(|&value| whole(i64::from(value)))),
    }
    numbers.extend(tensor.floats.iter().map(|&value| Number::Real(f64::from(value))));
    numbers.extend(tensor.doubles.iter().map(|&value| Number::Real(value)));
    if numbers.is_empty() {
        numbers = raw(tensor)?;
    }
    (numbers.len() == count).then_some(numbers)
}

fn raw(tensor: &TensorProto) -> Option<Vec<Number>> {
    let bytes = &tensor.raw_data[..];
    let whole = |value: i64| Number::Whole(Size::fixed(value));
    Some(match tensor.data_type {
        element::INT64 => bytes.as_chunks().0.iter().map(|bytes| whole(i64::from_le_bytes(*bytes))).collect(),
        element::INT32 => {
            bytes.as_chunks().0.iter().map(|bytes| whole(i64::from(i32::from_le_bytes(*bytes)))).collect()
        }
        element::FLOAT => {
            let real = |bytes: &[u8; 4]| Number::Real(f64::from(f32::from_le_bytes(*bytes)));
            bytes.as_chunks().0.iter().map(real).collect()
        }
        element::DOUBLE => {
            bytes.as_chunks().0.iter().map(|bytes| Number::Real(f64::from_le_bytes(*bytes))).collect()
        }
        element::BOOL | element::UINT8 => bytes.iter().map(|&byte| whole(i64::from(byte))).collect(),
        _ => return None,
    })
}
