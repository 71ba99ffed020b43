//! Sizes that may hold the batch: a whole number times a power of it.
//!
//! This is enough for what exporters write (`batch`, `12·batch`, `batch·sequence` once the sequence has a length), and
//! unlike one example batch it shows which work grows with the batch, and which dimension is it.

use std::fmt;

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

    /// The factor beside the batch.
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

    /// Zero is zero whatever the batch.
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
