//! Shapes of one sample's tensors, and errors for layers that do not fit their inputs.

use std::fmt;

/// Dimensions that a tensor may have, as in PyTorch: every layer keeps those of its output.
pub(super) const MOST_DIMENSIONS: usize = 64;

/// Dimensions of a tensor for one sample: `[channels, height, width]`, `[tokens, width]` or `[features]`.
///
/// There are at most 64 of them, none is zero, and the number of elements fits into 64 bits, so
/// [`elements`](Self::elements) is exact.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape(Vec<u64>);

impl Shape {
    /// A shape with these dimensions; none if it has no dimensions, too many, a zero dimension, or too many elements.
    pub fn new(dims: impl Into<Vec<u64>>) -> Option<Self> {
        let dims = dims.into();
        if dims.len() > MOST_DIMENSIONS {
            return None;
        }
        let elements = dims.iter().try_fold(1_u64, |product, &dim| product.checked_mul(dim))?;
        (!dims.is_empty() && elements > 0).then_some(Self(dims))
    }

    /// The dimensions, slowest-varying first.
    pub fn dims(&self) -> &[u64] {
        &self.0
    }

    pub fn elements(&self) -> u64 {
        self.0.iter().product()
    }

    /// Channels, height and width, if this is an image.
    pub fn image(&self) -> Option<(u64, u64, u64)> {
        match self.0[..] {
            [channels, height, width] => Some((channels, height, width)),
            _ => None,
        }
    }

    pub fn sequence(&self) -> Option<(u64, u64)> {
        match self.0[..] {
            [tokens, width] => Some((tokens, width)),
            _ => None,
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, dim) in self.0.iter().enumerate() {
            if position > 0 {
                f.write_str("×")?;
            }
            write!(f, "{dim}")?;
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("layer \"{layer}\": {reason}")]
pub struct ShapeError {
    /// Name of the layer; empty where it is not known yet.
    pub layer: String,
    /// The property of the layer that is at fault, if any.
    pub field: Option<&'static str>,
    /// What is wrong, including the sizes.
    pub reason: String,
    pub remedy: String,
}

impl ShapeError {
    /// A fault of the layer as a whole.
    pub(super) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { layer: String::new(), field: None, reason: reason.into(), remedy: remedy.into() }
    }

    pub(super) fn in_field(
        field: &'static str,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { field: Some(field), ..Self::new(reason, remedy) }
    }

    pub(super) fn in_inputs(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::in_field("inputs", reason, remedy)
    }

    /// A count that does not fit into 64 bits.
    pub(super) fn overflow() -> Self {
        let reason = "it is too large: a count does not fit into 64 bits";
        Self::new(reason, "check the sizes for a slip of the keyboard")
    }

    pub(super) fn at(self, layer: &str) -> Self {
        Self { layer: layer.to_owned(), ..self }
    }
}
