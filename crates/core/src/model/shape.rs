//! Shapes of one sample's tensors, sliding windows of convolution and pooling (how many fit into an image), and errors for
//! layers that do not fit their inputs.

use super::op::Padding;
use std::fmt;

/// Most dimensions of a tensor, as in PyTorch; every layer stores the dimensions of its output.
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

/// A sliding window along both axes of an image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) kernel: (u64, u64),
    pub(super) stride: (u64, u64),
    pub(super) padding: Padding,
    pub(super) dilation: (u64, u64),
    pub(super) ceil: bool,
}

impl Window {
    /// Height and width of the output over an image of `size`.
    pub(super) fn output(&self, size: (u64, u64)) -> Result<(u64, u64), ShapeError> {
        for (field, (height, width)) in
            [("kernel", self.kernel), ("stride", self.stride), ("dilation", self.dilation)]
        {
            if height == 0 || width == 0 {
                return Err(ShapeError::in_field(
                    field,
                    format!("a {field} of {height}×{width} makes no window"),
                    "use sizes of at least 1",
                ));
            }
        }
        let (vertical, horizontal) = match self.padding {
            Padding::Same => (None, None),
            Padding::Valid => (Some((0, 0)), Some((0, 0))),
            Padding::Explicit { top, bottom, left, right } => (Some((top, bottom)), Some((left, right))),
        };
        let (kernel, stride, dilation) = (self.kernel, self.stride, self.dilation);
        let rows = self.along(size.0, (kernel.0, stride.0, dilation.0), vertical);
        let columns = self.along(size.1, (kernel.1, stride.1, dilation.1), horizontal);
        match (rows, columns) {
            (Some(height), Some(width)) => Ok((height, width)),
            _ => Err(self.does_not_fit(size)),
        }
    }

    fn does_not_fit(&self, (height, width): (u64, u64)) -> ShapeError {
        let padding = match self.padding {
            Padding::Valid => "padding 0".to_owned(),
            Padding::Same => "\"same\" padding".to_owned(),
            Padding::Explicit { top, bottom, left, right }
                if top == bottom && left == right && top == left =>
            {
                format!("padding {top}")
            }
            Padding::Explicit { top, bottom, left, right } if top == bottom && left == right => {
                format!("padding {top}×{left}")
            }
            Padding::Explicit { top, bottom, left, right } => {
                format!("padding {top}, {bottom}, {left}, {right}")
            }
        };
        let dilation = match self.dilation {
            (1, 1) => String::new(),
            (rows, columns) => format!(" and dilation {rows}×{columns}"),
        };
        let (kernel_height, kernel_width) = self.kernel;
        ShapeError::in_field(
            "kernel",
            format!(
                "kernel {kernel_height}×{kernel_width} does not fit into {height}×{width} with {padding}{dilation}"
            ),
            "use a smaller kernel, more padding, or fewer and smaller strides before it",
        )
    }
    /// Number of windows along an axis of `size`; none if not even one fits.
    fn along(
        &self,
        size: u64,
        (kernel, stride, dilation): (u64, u64, u64),
        padding: Option<(u64, u64)>,
    ) -> Option<u64> {
        let Some((before, after)) = padding else { return Some(size.div_ceil(stride)) };
        let reach = dilation.checked_mul(kernel - 1)?.checked_add(1)?;
        let padded = size.checked_add(before)?.checked_add(after)?;
        let room = padded.checked_sub(reach)?;
        if !self.ceil {
            return Some(room / stride + 1);
        }
        let windows = room.div_ceil(stride) + 1;
        // A last window that would start beyond the image and its leading padding is dropped (PyTorch).
        let beyond = (windows - 1).checked_mul(stride).is_none_or(|start| start >= size + before);
        Some(if beyond { (windows - 1).max(1) } else { windows })
    }
}
