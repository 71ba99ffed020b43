//! The parts of a gradient: memory-bound CUDA kernels (eq. 5) and matrix products (Table 2, eq. 6).

use super::sgemm::{Operands, product_time};
use super::structure::Structure;
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{KernelTime, KernelTimes};

/// A matrix product of Table 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SgemmKernel {
    /// Forward pass of convolutions.
    Convolution,
    /// Forward pass of fully connected layers.
    FullyConnected,
    /// Gradient of the weights.
    WeightGradient,
    /// Gradient of the biases. The last layer is missing in the table (errata 2.5, item 3), and therefore here.
    BiasGradient,
    /// Gradient of the input of a fully connected layer.
    InputGradientFullyConnected,
    /// Gradient of the input of a convolution.
    InputGradientConvolution,
}

impl SgemmKernel {
    /// Its name in the paper.
    pub fn name(self) -> &'static str {
        match self {
            Self::Convolution => "convolution",
            Self::FullyConnected => "fc",
            Self::WeightGradient => "dedw",
            Self::BiasGradient => "dedb",
            Self::InputGradientFullyConnected => "dedx-fc",
            Self::InputGradientConvolution => "dedx-conv",
        }
    }

    /// Which matrix is transposed (errata 2.1; the paper measures each case without saying which kernel uses which).
    pub fn operands(self) -> Operands {
        match self {
            Self::Convolution | Self::FullyConnected | Self::BiasGradient => Operands::Plain,
            Self::WeightGradient => Operands::FirstTransposed,
            Self::InputGradientFullyConnected | Self::InputGradientConvolution => Operands::SecondTransposed,
        }
    }
}

/// A product of an m×k and a k×n matrix.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Product {
    /// Purpose of the product.
    pub kernel: SgemmKernel,
    /// Layer l, counted from 1.
    pub layer: usize,
    /// [m, n, k], whole numbers.
    pub size: [f64; 3],
}

/// A memory-bound kernel. The paper mentions only `im2col` and the existence of `softmax`; the others are the usual
/// ones in the same form (errata 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CudaKernel {
    /// Unfolds patches of the input into a matrix.
    Im2col,
    /// The reverse of `im2col`, for the gradient of a convolution's input.
    Col2im,
    /// Non-linearity.
    Activation,
    /// Derivative of the non-linearity.
    ActivationGradient,
    /// Max-pooling, if the layer has any.
    Pool,
    /// Gradient of max-pooling.
    PoolGradient,
    /// Softmax and loss.
    Softmax,
}

impl CudaKernel {
    fn time(self, times: &KernelTimes) -> KernelTime {
        match self {
            Self::Im2col => times.im2col,
            Self::Col2im => times.col2im,
            Self::Activation => times.activation,
            Self::ActivationGradient => times.activation_gradient,
            Self::Pool => times.pool,
            Self::PoolGradient => times.pool_gradient,
            Self::Softmax => times.softmax,
        }
    }
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
    /// Matrix products outside the measured table.
    pub products: usize,
}

/// Eq. 4: time of the gradient of `batch` samples, and how much of it is extrapolated.
pub fn gradient_time(structure: &Structure, times: &KernelTimes, batch: u32) -> (Seconds, Outside) {
    let mut outside = Outside::default();
    let cuda = structure.cuda_kernels(batch).into_iter().map(|(kernel, elements)| {
        let (time, stretched) = kernel.time(times).time(elements);
        outside.kernels += usize::from(stretched);
        time
    });
    let cuda: Seconds = cuda.sum();
    let products = structure.products(batch).into_iter().map(|product| {
        let estimate = product_time(&times.products, product.kernel.operands(), product.size);
        outside.products += usize::from(estimate.outside);
        estimate.time
    });
    let products: Seconds = products.sum();
    (cuda + products, outside)
}
