//! Products of matrices: tiles over multiprocessors.

use super::Parts;
use stepcast_core::quantity::{Bytes, Flops, Seconds};

/// Tiles of the result that kernels of cuBLAS compute at once, rows × columns.
const TILES: [[f64; 2]; 6] =
    [[128.0, 256.0], [256.0, 128.0], [128.0, 128.0], [64.0, 128.0], [128.0, 64.0], [64.0, 64.0]];

/// Parts of the depth that multiprocessors may share where there are fewer tiles than multiprocessors.
const PARTS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

/// Least depth of such a part.
const LEAST_DEPTH: f64 = 512.0;

/// Bytes that a part of the depth writes and reads again for each number of the result, in 32 bits.
const PART_BYTES: f64 = 8.0;

/// `count` equal products of rows × depth and depth × columns in one kernel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Product {
    /// Rows of the result; tokens.
    pub rows: f64,
    /// Columns of the result; width of the output.
    pub columns: f64,
    /// Length of the sums; width of the input.
    pub depth: f64,
    /// Number of products.
    pub count: f64,
}

impl Product {
    /// One product.
    pub const fn new(rows: f64, columns: f64, depth: f64) -> Self {
        Self { rows, columns, depth, count: 1.0 }
    }

    /// None, to fill a list.
    pub(super) const NONE: Self = Self { rows: 0.0, columns: 0.0, depth: 0.0, count: 0.0 };

    /// The gradient of its input.
    pub(super) const fn of_input(self) -> Self {
        Self { columns: self.depth, depth: self.columns, ..self }
    }

    /// The gradient of its weight.
    pub(super) const fn of_weight(self) -> Self {
        Self { rows: self.columns, columns: self.depth, depth: self.rows, count: self.count }
    }

    /// Numbers of its weights.
    pub(super) const fn weights(&self) -> f64 {
        self.columns * self.depth * self.count
    }
}

impl Parts {
    /// Time of a product, without the start of its kernel: the fastest tile,
    ///
    /// ```text
    /// waves · 2·rows·columns of the tile · (depth + depth₀) · multiprocessors / rate
    /// ```
    ///
    /// with waves = tiles / multiprocessors, at least 1 and partly rounded up; depth₀ is what filling and emptying a tile
    /// costs. Small tiles load more bytes for each operation and are slower by that much. Where tiles are few, parts of
    /// the depth are summed apart. No product is faster than memory delivers its operands.
    pub fn product(&self, product: &Product) -> Seconds {
        let Product { rows, columns, depth, count } = *product;
        let own = &self.constants;
        let processors = self.multiprocessors;
        let loaded = |[rows, columns]: [f64; 2]| 1.0 / rows + 1.0 / columns;
        let mut best = Seconds::new(f64::INFINITY);
        for tile in TILES {
            let tiles = (rows / tile[0]).ceil() * (columns / tile[1]).ceil() * count;
            let slower = 1.0 + own.tile * (loaded(tile) / loaded(TILES[0]) - 1.0);
            for parts in PARTS {
                if parts > 1.0 && (tiles * parts / 2.0 >= processors || depth / parts < LEAST_DEPTH) {
                    break;
                }
                let each = tiles * parts / processors;
                let waves = (own.wave * each.ceil() + (1.0 - own.wave) * each).max(1.0);
                let operations = waves * 2.0 * tile[0] * tile[1] * (depth / parts + own.depth) * processors;
                let mut time = Flops::new(operations * slower) / self.product;
                if parts > 1.0 {
                    time += self.streaming(PART_BYTES * parts * rows * columns * count);
                }
                best = best.min(time);
            }
        }
        let operands = (rows * depth + depth * columns + rows * columns) * count;
        best.max(Bytes::new(self.width() * operands) / self.stream)
    }
}
