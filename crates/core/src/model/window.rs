//! Sliding windows of convolution and pooling: how many fit into an image.

use super::op::Padding;
use super::shape::ShapeError;

/// A sliding window along both axes of an image.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) kernel: (u64, u64),
    pub(super) stride: (u64, u64),
    pub(super) padding: Padding,
    pub(super) dilation: (u64, u64),
    pub(super) ceil: bool,
}

/// The window along one axis.
#[derive(Debug, Clone, Copy)]
struct Axis {
    kernel: u64,
    stride: u64,
    dilation: u64,
    padding: Option<(u64, u64)>,
    ceil: bool,
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
        let (kernel, stride, dilation, ceil) = (self.kernel, self.stride, self.dilation, self.ceil);
        let rows = Axis { kernel: kernel.0, stride: stride.0, dilation: dilation.0, padding: vertical, ceil };
        let columns =
            Axis { kernel: kernel.1, stride: stride.1, dilation: dilation.1, padding: horizontal, ceil };
        match (rows.output(size.0), columns.output(size.1)) {
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
}

impl Axis {
    /// Number of windows along `size`; none if not even one fits.
    fn output(&self, size: u64) -> Option<u64> {
        let Some((before, after)) = self.padding else {
            return Some(size.div_ceil(self.stride));
        };
        let reach = self.dilation.checked_mul(self.kernel - 1)?.checked_add(1)?;
        let padded = size.checked_add(before)?.checked_add(after)?;
        let room = padded.checked_sub(reach)?;
        if !self.ceil {
            return Some(room / self.stride + 1);
        }
        let windows = room.div_ceil(self.stride) + 1;
        // A last window that would start beyond the image and its leading padding is dropped (PyTorch).
        let beyond = (windows - 1).checked_mul(self.stride).is_none_or(|start| start >= size + before);
        Some(if beyond { (windows - 1).max(1) } else { windows })
    }
}
