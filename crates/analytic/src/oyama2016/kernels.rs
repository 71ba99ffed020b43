//! The parts of a gradient: memory-bound CUDA kernels (eq. 5) and matrix products (Table 2, eq. 6).

use super::structure::Structure;
use stepcast_core::fitted::gemm::{Coverage, GemmTime, Shape, Transposition, Variant};
use stepcast_core::prediction::GradientKernel;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{CudaKernel, KernelTimes, Products, SgemmTable};

/// A matrix product of Table 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SgemmKernel {
    /// Forward pass of convolutions.
    Convolution,
    /// Forward pass of fully connected layers.
    FullyConnected,
    WeightGradient,
    /// Gradient of the biases. The last layer is missing in the table (errata 2.5, item 3), and therefore here.
    BiasGradient,
    InputGradientFullyConnected,
    InputGradientConvolution,
}

// Their names in the paper.
stepcast_core::variant_names!(SgemmKernel {
    Convolution = "convolution",
    FullyConnected = "fc",
    WeightGradient = "dedw",
    BiasGradient = "dedb",
    InputGradientFullyConnected = "dedx-fc",
    InputGradientConvolution = "dedx-conv",
});

impl SgemmKernel {
    /// Which matrix is transposed (errata 2.1; the paper measures each case without saying which kernel uses which).
    pub fn transposition(self) -> Transposition {
        match self {
            Self::Convolution | Self::FullyConnected | Self::BiasGradient => Transposition::Nn,
            Self::WeightGradient => Transposition::Tn,
            Self::InputGradientFullyConnected | Self::InputGradientConvolution => Transposition::Nt,
        }
    }
}

/// A product of an m×k and a k×n matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Product {
    pub kernel: SgemmKernel,
    /// Layer l, counted from 1.
    pub layer: usize,
    /// [m, n, k], whole numbers.
    pub size: [f64; 3],
}

impl Structure {
    /// Table 2 for `batch` samples, layer by layer.
    pub fn products(&self, batch: u32) -> Vec<Product> {
        use SgemmKernel as Kernel;
        let batch = f64::from(batch);
        let square = |side: u64| (side * side) as f64;
        let layers = self.layers();
        let mut products = Vec::with_capacity(4 * layers.len());
        for (index, layer) in layers.iter().enumerate() {
            let number = index + 1;
            let maps = layer.maps as f64;
            let area = square(layer.unpooled) * batch;
            let patch = square(layer.window) * self.maps_before(index) as f64;
            let mut add = |kernel, size| products.push(Product { kernel, layer: number, size });
            if number <= self.convolutions() {
                add(Kernel::Convolution, [area, maps, patch]);
            } else {
                add(Kernel::FullyConnected, [batch, maps, patch]);
            }
            add(Kernel::WeightGradient, [patch, maps, area]);
            let Some(next) = layers.get(number) else { continue };
            add(Kernel::BiasGradient, [1.0, maps, area]);
            if number >= self.convolutions() {
                // The fully connected layer reads the pooled maps (errata 2.5, item 2).
                let inputs = square(layer.side) * maps;
                add(Kernel::InputGradientFullyConnected, [batch, inputs, next.maps as f64]);
            } else {
                let (area, patch) = (square(next.unpooled) * batch, square(next.window) * maps);
                add(Kernel::InputGradientConvolution, [area, patch, next.maps as f64]);
            }
        }
        products
    }

    /// The memory-bound kernels, with the number of elements that each touches for `batch` samples.
    pub fn cuda_kernels(&self, batch: u32) -> Vec<(CudaKernel, f64)> {
        use CudaKernel as Kernel;
        let batch = f64::from(batch);
        let mut kernels = Vec::with_capacity(6 * self.layers().len());
        for (index, layer) in self.layers().iter().enumerate() {
            let area = (layer.unpooled * layer.unpooled) as f64 * batch;
            let outputs = area * layer.maps as f64;
            if index < self.convolutions() {
                let patch = (layer.window * layer.window * self.maps_before(index)) as f64;
                kernels.push((Kernel::Im2col, area * patch));
                if index > 0 {
                    kernels.push((Kernel::Col2im, area * patch));
                }
            }
            kernels.extend([(Kernel::Activation, outputs), (Kernel::ActivationGradient, outputs)]);
            if layer.side < layer.unpooled {
                kernels.extend([(Kernel::Pool, outputs), (Kernel::PoolGradient, outputs)]);
            }
        }
        let classes = self.layers().last().map_or(0, |layer| layer.maps);
        kernels.push((Kernel::Softmax, classes as f64 * batch));
        kernels
    }
}

/// How much of a gradient's time is extrapolated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outside {
    /// Kernels on fewer or more elements than in the fit.
    pub kernels: usize,
    pub products: usize,
}

/// Eq. 4: a gradient, kernel by kernel.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GradientTime {
    /// Every kernel that takes time, over all layers.
    pub kernels: Vec<GradientKernel>,
    pub outside: Outside,
}

impl GradientTime {
    pub fn time(&self) -> Seconds {
        self.kernels.iter().map(|kernel| kernel.time).sum()
    }

    fn add(&mut self, kernel: &'static str, time: Seconds) {
        match self.kernels.iter_mut().find(|known| known.kernel == kernel) {
            Some(known) => known.time += time,
            None if time > Seconds::ZERO => self.kernels.push(GradientKernel { kernel, time }),
            None => {}
        }
    }
}

/// Eq. 4: the gradient of `batch` samples.
pub fn gradient_time(structure: &Structure, times: &KernelTimes, batch: u32) -> GradientTime {
    let mut gradient = GradientTime::default();
    for (kernel, elements) in structure.cuda_kernels(batch) {
        let (time, stretched) = times.kernel(kernel).time(elements);
        gradient.outside.kernels += usize::from(stretched);
        gradient.add(kernel.name(), time);
    }
    for product in structure.products(batch) {
        let estimate = product_time(&times.products, product.kernel.transposition(), product.size);
        gradient.outside.products += usize::from(estimate.outside);
        gradient.add(product.kernel.name(), estimate.time);
    }
    gradient
}

// Times of matrix products: interpolated between measured ones (section 3.3.2), or predicted by a fitted model.
//
// The paper fits {mnk, mn, mk, nk, m, n, k, 1} to the eight corners of the cell that contains a size. With eight
// unknowns and eight corners of a box the fit is exact and equals trilinear interpolation (errata 2.1), which is
// used here.

/// An interpolated time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub time: Seconds,
    /// Whether the size is outside the table, so that the outermost cell was extrapolated.
    pub outside: bool,
}

/// The time of an m×n×k product.
pub fn product_time(products: &Products, transposition: Transposition, size: [f64; 3]) -> Estimate {
    let (model, precision) = match products {
        Products::Table(table) => return between(table, transposition, size),
        Products::Fitted { model, precision, .. } => (model, *precision),
    };
    let [m, n, k] = size.map(|side| side as u32);
    // Resolving the scenario has checked that the variant was fitted.
    let found = model.predict(Variant { precision, transposition }, Shape { m, n, k });
    let estimate =
        |GemmTime { time, coverage, .. }| Estimate { time, outside: coverage != Coverage::Measured };
    found.map_or(Estimate { time: Seconds::ZERO, outside: true }, estimate)
}

/// The time of a product, interpolated from the table.
fn between(table: &SgemmTable, transposition: Transposition, size: [f64; 3]) -> Estimate {
    let times = match transposition {
        // No kernel transposes both.
        Transposition::Nn | Transposition::Tt => &table.nn,
        Transposition::Tn => &table.tn,
        Transposition::Nt => &table.nt,
    };
    let Estimate { time, outside } = on_grid([&table.sizes; 3], |place| times[place], size);
    // Extrapolation may go below zero; no product is faster than the fastest measured one.
    let floor = || times.iter().copied().reduce(Seconds::min).unwrap_or_default();
    Estimate { time: if outside { time.max(floor()) } else { time }, outside }
}

/// Eq. 6 on a grid with these sizes along each axis, ascending: interpolated in the cell of `size`, or extrapolated from
/// the nearest one. The grid's times have the last axis varying fastest. With one size along an axis nothing is known
/// about any other.
pub fn on_grid(axes: [&[u32]; 3], time: impl Fn(usize) -> Seconds, size: [f64; 3]) -> Estimate {
    let mut places = [[0; 2]; 3];
    let [mut from, mut to] = [[0.0; 3]; 2];
    for (axis, sizes) in axes.into_iter().enumerate() {
        let at = |place: usize| f64::from(sizes[place]);
        let Some(last) = sizes.len().checked_sub(2) else {
            if (at(0) - size[axis]).abs() > 0.0 {
                return Estimate { time: Seconds::new(f64::NAN), outside: true };
            }
            (from[axis], to[axis]) = (at(0), at(0) + 1.0);
            continue;
        };
        let above = sizes.partition_point(|value| f64::from(*value) <= size[axis]);
        let low = above.saturating_sub(1).min(last);
        places[axis] = [low, low + 1];
        (from[axis], to[axis]) = (at(low), at(low + 1));
    }
    let corners = std::array::from_fn(|corner| {
        let place = |axis: usize| places[axis][bit(corner, axis)];
        time((place(0) * axes[1].len() + place(1)) * axes[2].len() + place(2))
    });
    let outside = (0..3).any(|axis| !(from[axis]..=to[axis]).contains(&size[axis]));
    Estimate { time: trilinear(from, to, corners, size), outside }
}

/// Eq. 6 on one cell: the time at `size`, interpolated from the times at the corners, with the last axis varying
/// fastest.
pub fn trilinear(from: [f64; 3], to: [f64; 3], corners: [Seconds; 8], size: [f64; 3]) -> Seconds {
    let share = |axis: usize| (size[axis] - from[axis]) / (to[axis] - from[axis]);
    let shares = [share(0), share(1), share(2)];
    let part = |(corner, time): (usize, Seconds)| {
        let weight = |axis: usize| if bit(corner, axis) == 1 { shares[axis] } else { 1.0 - shares[axis] };
        time * (weight(0) * weight(1) * weight(2))
    };
    corners.into_iter().enumerate().map(part).sum()
}

/// 1 if a corner is at the upper end of an axis, else 0.
fn bit(corner: usize, axis: usize) -> usize {
    corner >> (2 - axis) & 1
}
