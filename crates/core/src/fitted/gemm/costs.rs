//! Cost of a matrix product on a device: that of the cheapest kernel of the library. For a fixed choice of kernels,
//! times are linear in the coefficients; fits use [`Product::features`].
//!
//! A kernel has a tile and a split. It divides C into tiles and k into `split` parts. Every tile of a part is a
//! block, and the blocks run on the multiprocessors in waves:
//!
//! ```text
//! waves  = ⌈⌈m/tile_m⌉ ⌈n/tile_n⌉ split / multiprocessors⌉
//! steps  = k/split, rounded up to whole loop steps
//! kernel = max(waves · 2 tile_m tile_n steps / rate(tile),  (mk + kn)/read)
//!          + mn/write + start + steps · step + [split > 1] (split_start + split · mn/merge)
//! ```
//!
//! Libraries choose kernels by their own measurements, so the model takes the cheapest one. For queued calls,
//! launching overlaps computing and the longer of the two dominates; for the first call of a queue there is no
//! overlap:
//!
//! ```text
//! queued = (host⁴ + kernel⁴)^(1/4)        host = launch + [two kernels] second
//! time   = queued + (alone + kernel − queued) / calls
//! ```

use super::{Alignment, Shape, Variant};
use crate::precision::Precision;
use crate::quantity::{Bytes, Seconds};

/// Rows and columns of C that one block computes, as powers of two (assumed).
const TILE_POWERS: [(u32, u32); 9] = [(5, 5), (6, 5), (5, 6), (6, 6), (7, 6), (6, 7), (7, 7), (8, 7), (7, 8)];
pub const TILE_NAMES: [&str; TILES] =
    ["32x32", "64x32", "32x64", "64x64", "128x64", "64x128", "128x128", "256x128", "128x256"];
pub const TILES: usize = TILE_POWERS.len();
/// Parts into which a kernel may split k (assumed).
const SPLITS: [u32; 10] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32];
/// Elements of k in one step of a kernel's loop (assumed).
const LOOP_STEP: u32 = 8;
/// Partial sums are 32-bit numbers, whatever the operands are.
const PARTIAL_BYTES: f64 = 4.0;
/// Sharpness of the transition between launch-bound and compute-bound calls, chosen on held-out `fit` rows of
/// `validation/gemm/h200.csv.gz` (docs/methods/gemm.md).
const CORNER: i32 = 4;

/// Host time per call in a queue.
pub const LAUNCH: usize = 0;
/// Host time for a second kernel of the same call.
pub const SECOND: usize = 1;
/// Cost of the first call of a queue in addition to its kernel.
pub const ALONE: usize = 2;
/// Fixed cost of a kernel.
pub const START: usize = 3;
/// Latency per element of k in the loop of a block.
pub const STEP: usize = 4;
/// Time to read a byte of A or B.
pub const READ: usize = 5;
/// Time to write a byte of C.
pub const WRITE: usize = 6;
/// Fixed cost of adding partial sums.
pub const SPLIT: usize = 7;
/// Time to add a byte of partial sums.
pub const MERGE: usize = 8;
/// Time of an operation on one multiprocessor, for the first tile; the other tiles follow.
pub const TILE: usize = 9;
pub const COUNT: usize = TILE + TILES;
/// Coefficients of the host, which scale together with its speed.
const OF_HOST: [usize; 3] = [LAUNCH, SECOND, ALONE];

/// The coefficients, indexed by the constants above: seconds, or seconds per byte, per loop element or per operation
/// of one multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs(pub [f64; COUNT]);

/// Factors of the coefficients for one product; its time is linear in them.
pub type Features = [f64; COUNT];

impl Costs {
    /// The device with a host that is slower by the factor `ratio`.
    pub fn with_host(mut self, ratio: f64) -> Self {
        OF_HOST.iter().for_each(|place| self.0[*place] *= ratio);
        self
    }

    /// The host with a device that is slower by the factor `ratio`.
    pub fn with_device(mut self, ratio: f64) -> Self {
        (START..COUNT).for_each(|place| self.0[place] *= ratio);
        self
    }
}

/// The chosen kernel and its time.
#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Time including the fixed cost.
    pub time: Seconds,
    tile: usize,
    split: u32,
    steps: f64,
    /// Operations of the busiest multiprocessor.
    work: f64,
    computes_longer_than_it_reads: bool,
}

/// A matrix product on a device.
#[derive(Debug, Clone, Copy)]
pub struct Product {
    /// Number of tiles of each kind that cover C.
    tiles: [f64; TILES],
    /// Elements of C.
    elements: f64,
    k: u32,
    read: f64,
    written: f64,
    multiprocessors: f64,
    /// One divided by the number of calls in a queue.
    first_share: f64,
    /// Host time relative to its usual speed.
    host: f64,
    /// Whether a second kernel is launched even if k is not split.
    always_second: bool,
}

impl Product {
    /// Creates a product; `first_share` is one divided by the number of calls in a queue.
    pub fn new(shape: Shape, variant: Variant, multiprocessors: u32, first_share: f64) -> Self {
        let [m, n, k] = shape.sizes();
        let element = bytes_per_element(variant.precision);
        let alignment = Alignment::of_rows(variant, shape);
        let along = |size: u32, power: u32| f64::from(size.div_ceil(1 << power));
        Self {
            tiles: TILE_POWERS.map(|(rows, columns)| along(shape.m, rows) * along(shape.n, columns)),
            elements: m * n,
            k: shape.k,
            read: (m * k + k * n) * element,
            written: m * n * element,
            multiprocessors: f64::from(multiprocessors),
            first_share,
            host: 1.0,
            always_second: alignment.always_second(variant.precision, m * n),
        }
    }

    /// The product with a host that is slower by the factor `ratio`.
    pub fn with_host(self, ratio: f64) -> Self {
        Self { host: ratio, ..self }
    }

    pub fn bytes(&self) -> Bytes {
        Bytes::new(self.read + self.written)
    }

    pub fn kernel(&self, Costs(costs): &Costs) -> Kernel {
        let common = costs[START] + self.written * costs[WRITE];
        let reading = self.read * costs[READ];
        let mut best = Kernel {
            time: Seconds::new(f64::INFINITY),
            tile: 0,
            split: 1,
            steps: 0.0,
            work: 0.0,
            computes_longer_than_it_reads: true,
        };
        for split in SPLITS {
            let steps = f64::from(self.k.div_ceil(split * LOOP_STEP)) * f64::from(LOOP_STEP);
            let merging = if split > 1 { costs[SPLIT] + self.partial(split) * costs[MERGE] } else { 0.0 };
            let fixed = common + merging + steps * costs[STEP];
            for (tile, (rows, columns)) in TILE_POWERS.iter().enumerate() {
                let blocks = self.tiles[tile] * f64::from(split);
                let waves = ceil(blocks / self.multiprocessors);
                let work = 2.0 * waves * f64::from(1u32 << (rows + columns)) * steps;
                let computing = work * costs[TILE + tile];
                let time = Seconds::new(fixed + computing.max(reading));
                if time < best.time {
                    let computes_longer_than_it_reads = computing >= reading;
                    best = Kernel { time, tile, split, steps, work, computes_longer_than_it_reads };
                }
            }
        }
        best
    }

    pub fn time(&self, Costs(costs): &Costs, kernel: &Kernel) -> Seconds {
        let own = kernel.time.get();
        let queued = soft_max(self.launch(costs, kernel), own);
        Seconds::new(queued + (costs[ALONE] * self.host + own - queued) * self.first_share)
    }

    pub fn device_time(&self, Costs(costs): &Costs, kernel: &Kernel) -> Seconds {
        (kernel.time - Seconds::new(costs[START])).max(Seconds::ZERO)
    }

    pub fn kernel_share(&self, costs: &Costs, kernel: &Kernel) -> f64 {
        let queued = soft_max(self.launch(&costs.0, kernel), kernel.time.get());
        kernel.time * self.slope(kernel.time.get(), queued) / self.time(costs, kernel)
    }

    /// Derivatives of the call's time with respect to the coefficients. The time is homogeneous of degree one, so the
    /// sum of coefficients times derivatives is the time itself.
    pub fn features(&self, Costs(costs): &Costs, kernel: &Kernel) -> Features {
        let mut features = [0.0; COUNT];
        features[START] = 1.0;
        features[STEP] = kernel.steps;
        features[WRITE] = self.written;
        if kernel.split > 1 {
            features[SPLIT] = 1.0;
            features[MERGE] = self.partial(kernel.split);
        }
        if kernel.computes_longer_than_it_reads {
            features[TILE + kernel.tile] = kernel.work;
        } else {
            features[READ] = self.read;
        }
        let launch = self.launch(costs, kernel);
        let queued = soft_max(launch, kernel.time.get());
        let of_kernel = self.slope(kernel.time.get(), queued);
        features.iter_mut().for_each(|feature| *feature *= of_kernel);
        let of_host = self.host * (1.0 - self.first_share) * (launch / queued).powi(CORNER - 1);
        features[LAUNCH] = of_host;
        features[SECOND] = if self.has_second(kernel) { of_host } else { 0.0 };
        features[ALONE] = self.host * self.first_share;
        features
    }

    /// Derivative of the call's time with respect to the kernel's time.
    fn slope(&self, kernel: f64, queued: f64) -> f64 {
        self.first_share + (1.0 - self.first_share) * (kernel / queued).powi(CORNER - 1)
    }

    fn launch(&self, costs: &[f64; COUNT], kernel: &Kernel) -> f64 {
        let second = if self.has_second(kernel) { costs[SECOND] } else { 0.0 };
        (costs[LAUNCH] + second) * self.host
    }

    /// Whether a second kernel adds partial sums or prepares the first one.
    fn has_second(&self, kernel: &Kernel) -> bool {
        kernel.split > 1 || self.always_second
    }

    fn partial(&self, split: u32) -> f64 {
        self.elements * f64::from(split) * PARTIAL_BYTES
    }
}

/// Rounds a positive number up; on processors without a rounding instruction, `f64::ceil` is a function call.
fn ceil(value: f64) -> f64 {
    let whole = value as u64 as f64;
    if whole < value { whole + 1.0 } else { whole }
}

fn soft_max(one: f64, other: f64) -> f64 {
    (one.powi(CORNER) + other.powi(CORNER)).sqrt().sqrt()
}

fn bytes_per_element(precision: Precision) -> f64 {
    f64::from(precision.width())
}
