//! Facts about a tensor without computing it: sizes that may hold the batch, origin, small contents.
//!
//! A size is a whole number times a power of the batch. This is enough for what exporters write (`batch`, `12·batch`,
//! `batch·sequence` once the sequence has a length), and unlike one example batch it shows which work grows with the
//! batch, and which dimension is it.

use crate::proto::{TensorProto, element};
use std::collections::BTreeSet;
use std::fmt;

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

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The samples.
    Data,
    /// These initialisers, and no sample.
    Parameters(BTreeSet<usize>),
    /// Only shapes and constants.
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

#[derive(Debug, Clone)]
pub(crate) struct Tensor {
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
    pub(crate) fn new(shape: Option<Vec<Size>>, origin: Origin) -> Self {
        Self { shape, origin, content: None, places: false, causal: false }
    }

    pub(crate) fn is_data(&self) -> bool {
        self.origin == Origin::Data
    }

    pub(crate) fn scalar(&self) -> Option<f64> {
        match self.content.as_deref() {
            Some([number]) => number.real(),
            _ => None,
        }
    }

    /// The initialisers that it is made of; none if it depends on samples.
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

/// `factor · batch^power`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    factor: i64,
    power: u32,
}

impl Size {
    pub(crate) const ONE: Self = Self::fixed(1);
    /// One for each sample.
    pub(crate) const BATCH: Self = Self { factor: 1, power: 1 };

    pub(crate) const fn fixed(value: i64) -> Self {
        Self { factor: value, power: 0 }
    }

    /// A count that fits into 63 bits.
    pub(crate) fn count(value: u64) -> Option<Self> {
        i64::try_from(value).ok().map(Self::fixed)
    }

    /// The number, if the batch has no part in it.
    pub(crate) fn number(self) -> Option<i64> {
        (self.power == 0).then_some(self.factor)
    }

    pub(crate) fn factor(self) -> i64 {
        self.factor
    }

    /// How often the batch is a factor.
    pub(crate) fn power(self) -> u32 {
        self.power
    }

    pub(crate) fn times(self, other: Self) -> Option<Self> {
        Some(Self::reduced(self.factor.checked_mul(other.factor)?, self.power.checked_add(other.power)?))
    }

    /// The sum, if it is of this form.
    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        match (self.factor, other.factor) {
            (0, _) => Some(other),
            (_, 0) => Some(self),
            _ if self.power == other.power => {
                Some(Self::reduced(self.factor.checked_add(other.factor)?, self.power))
            }
            _ => None,
        }
    }

    pub(crate) fn negated(self) -> Option<Self> {
        Some(Self { factor: self.factor.checked_neg()?, ..self })
    }

    /// The quotient, rounded towards zero where both are numbers; otherwise only if it is whole.
    pub(crate) fn over(self, other: Self) -> Option<Self> {
        let power = self.power.checked_sub(other.power)?;
        let exact = self.factor.checked_rem(other.factor)? == 0;
        if !exact && (self.power > 0 || other.power > 0) {
            return None;
        }
        Some(Self::reduced(self.factor.checked_div(other.factor)?, power))
    }

    /// Zero is zero for any batch.
    fn reduced(factor: i64, power: u32) -> Self {
        Self { factor, power: if factor == 0 { 0 } else { power } }
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.factor, self.power) {
            (factor, 0) => write!(f, "{factor}"),
            (1, 1) => f.write_str("batch"),
            (factor, 1) => write!(f, "{factor}·batch"),
            (factor, power) => write!(f, "{factor}·batch^{power}"),
        }
    }
}

/// The product of dimensions, if it fits.
pub(crate) fn elements(dims: &[Size]) -> Option<Size> {
    dims.iter().try_fold(Size::ONE, |product, &dim| product.times(dim))
}

/// Dimensions for people: "batch×3×224×224".
pub(crate) fn spelled(dims: &[Size]) -> String {
    if dims.is_empty() {
        return "a single number".to_owned();
    }
    dims.iter().map(Size::to_string).collect::<Vec<_>>().join("×")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_is_carried_through_arithmetic() {
        let heads = Size::BATCH.times(Size::fixed(12)).unwrap();
        assert_eq!(heads.to_string(), "12·batch");
        assert_eq!(heads.over(Size::BATCH), Some(Size::fixed(12)));
        assert_eq!(heads.over(Size::fixed(5)), None);
        assert_eq!(heads.plus(Size::BATCH).map(Size::factor), Some(13));
        assert_eq!(heads.plus(Size::ONE), None, "not a number times a power of the batch");
        assert_eq!(Size::fixed(7).over(Size::fixed(2)), Some(Size::fixed(3)));
        assert_eq!(Size::fixed(7).over(Size::fixed(0)), None);
        assert_eq!(heads.times(Size::fixed(0)), Some(Size::fixed(0)));
        assert_eq!(Size::fixed(i64::MAX).times(Size::fixed(2)), None);
        assert_eq!(Size::fixed(i64::MIN).over(Size::fixed(-1)), None);
    }
}
