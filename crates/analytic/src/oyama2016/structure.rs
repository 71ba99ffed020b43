//! The shape of a network that SPRINT trains: convolutions with square windows, each optionally followed by pooling,
//! then fully connected layers (section 3.2).

use std::fmt;
use stepcast_core::model::{Model, Op};
use stepcast_core::quantity::Bytes;

/// Larger numbers of maps and larger sides are taken for typing errors; up to this limit, areas do not overflow.
const MAX_SIZE: u64 = 1_000_000;

/// Bytes of a number: SPRINT computes in single precision.
const NUMBER: f64 = 4.0;

/// One layer l.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layer {
    /// Number of maps m_l, or of outputs of a fully connected layer.
    pub maps: u64,
    /// Side κ_l of the window: that of the filter in a convolution; the whole input, x_{l−1}, in a fully connected
    /// layer (errata 2.5, item 1).
    pub window: u64,
    /// Side x'_l before pooling.
    pub unpooled: u64,
    /// Side x_l after pooling.
    pub side: u64,
}

/// L layers, the first L_c of which are convolutions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    input_maps: u64,
    layers: Vec<Layer>,
    convolutions: usize,
}

/// Why a network does not have this shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StructureError(String);

impl fmt::Display for StructureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StructureError {}

fn wrong<T>(reason: String) -> Result<T, StructureError> {
    Err(StructureError(reason))
}

impl Structure {
    /// Eq. 2: convolutions of width `filter` without padding, each given as number of maps and pooling; then fully
    /// connected layers.
    ///
    /// Pooling has to divide the side exactly, because the paper states no rounding (errata 2.1).
    pub fn new(
        (input_maps, input_side): (u64, u64),
        filter: u64,
        convolutions: &[(u64, u64)],
        fully_connected: &[u64],
    ) -> Result<Self, StructureError> {
        let mut side = input_side;
        let mut layers = Vec::with_capacity(convolutions.len() + fully_connected.len());
        for (index, &(maps, pooling)) in convolutions.iter().enumerate() {
            let number = index + 1;
            if filter == 0 || side < filter {
                return wrong(format!(
                    "layer {number} reads a side of {side}, less than the filter's {filter}"
                ));
            }
            let unpooled = side - filter + 1;
            if pooling == 0 || !unpooled.is_multiple_of(pooling) {
                return wrong(format!(
                    "the side of {unpooled} in layer {number} cannot be pooled by {pooling}"
                ));
            }
            side = unpooled / pooling;
            layers.push(Layer { maps, window: filter, unpooled, side });
        }
        for &maps in fully_connected {
            layers.push(Layer { maps, window: side, unpooled: 1, side: 1 });
            side = 1;
        }
        Self::checked(input_maps, layers, convolutions.len())
    }

    /// The shape of a model whose layers form a chain. Sides are taken from the model, so padding and strides are
    /// included (an extension: the paper's convolutions have neither).
    pub fn from_model(model: &Model) -> Result<Self, StructureError> {
        let not_square = |name: &str| wrong(format!("layer \"{name}\" is not square"));
        let Some((input_maps, height, width)) = model.input().image() else {
            return wrong("the model's input is no image".to_owned());
        };
        if height != width {
            return wrong("the model's input is not square".to_owned());
        }
        let mut side = height;
        let mut layers: Vec<Layer> = Vec::new();
        let mut convolutions = 0;
        for (index, layer) in model.layers().iter().enumerate().skip(1) {
            if layer.inputs.iter().any(|&input| input as usize + 1 != index) {
                return wrong(format!("layer \"{}\" does not read the one before it", layer.name));
            }
            match layer.op {
                Op::Conv2d(conv) => {
                    let Some((maps, height, width)) = layer.output.image() else {
                        return not_square(&layer.name);
                    };
                    if height != width || conv.kernel.0 != conv.kernel.1 {
                        return not_square(&layer.name);
                    }
                    if conv.groups != 1 || convolutions != layers.len() {
                        return wrong(format!(
                            "layer \"{}\" is no plain convolution before the fully connected layers",
                            layer.name
                        ));
                    }
                    side = height;
                    convolutions += 1;
                    layers.push(Layer { maps, window: conv.kernel.0, unpooled: side, side });
                }
                Op::Pool { .. } | Op::AdaptivePool { .. } => {
                    let Some((_, height, width)) = layer.output.image() else {
                        return not_square(&layer.name);
                    };
                    let Some(last) = layers.last_mut().filter(|_| height == width) else {
                        return wrong(format!("layer \"{}\" does not pool a convolution", layer.name));
                    };
                    side = height;
                    last.side = side;
                }
                Op::Linear { out, .. } => {
                    layers.push(Layer { maps: out, window: side, unpooled: 1, side: 1 });
                    side = 1;
                }
                Op::Activate(_) | Op::Flatten | Op::Dropout | Op::Normalise(_) => {}
                _ => return wrong(format!("layer \"{}\" is none that SPRINT has", layer.name)),
            }
        }
        Self::checked(input_maps, layers, convolutions)
    }

    fn checked(input_maps: u64, layers: Vec<Layer>, convolutions: usize) -> Result<Self, StructureError> {
        if convolutions == 0 {
            return wrong("there is no convolution".to_owned());
        }
        let sizes = layers.iter().flat_map(|layer| [layer.maps, layer.unpooled, layer.side, layer.window]);
        if !std::iter::once(input_maps).chain(sizes).all(|size| (1..=MAX_SIZE).contains(&size)) {
            return wrong(format!("maps and sides are outside 1 to {MAX_SIZE}"));
        }
        Ok(Self { input_maps, layers, convolutions })
    }

    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// L_c.
    pub fn convolutions(&self) -> usize {
        self.convolutions
    }

    /// m_{l−1} of the layer at `index`.
    pub fn maps_before(&self, index: usize) -> u64 {
        if index == 0 { self.input_maps } else { self.layers[index - 1].maps }
    }

    /// Memory of a GPU thread: weights and gradient, and for each sample the outputs of all layers, before and after pooling,
    /// with their gradients, and the patches of all convolutions, which the products of the backward pass read again.
    pub fn memory(&self, batch: u32) -> Bytes {
        let square = |side: u64| (side * side) as f64;
        let numbers = |(index, layer): (usize, &Layer)| {
            let pooled = if layer.side < layer.unpooled { square(layer.side) } else { 0.0 };
            let outputs = 2.0 * layer.maps as f64 * (square(layer.unpooled) + pooled);
            match index < self.convolutions {
                true => {
                    outputs + square(layer.unpooled) * square(layer.window) * self.maps_before(index) as f64
                }
                false => outputs,
            }
        };
        let of_sample: f64 = self.layers.iter().enumerate().map(numbers).sum();
        Bytes::new(NUMBER * (2.0 * self.parameters() as f64 + of_sample * f64::from(batch)))
    }

    /// Eq. 3: N_Param, biases included.
    pub fn parameters(&self) -> u64 {
        let of = |(index, layer): (usize, &Layer)| {
            let inputs = (layer.window * layer.window).saturating_mul(self.maps_before(index));
            layer.maps.saturating_mul(inputs.saturating_add(1))
        };
        self.layers.iter().enumerate().map(of).fold(0, u64::saturating_add)
    }
}
