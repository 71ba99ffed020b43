//! Times of matrix products: interpolated between measured ones (section 3.3.2), or predicted by a fitted model.
//!
//! The paper fits {mnk, mn, mk, nk, m, n, k, 1} to the eight corners of the cell that contains a size. With eight
//! unknowns and eight corners of a box the fit is exact and equals trilinear interpolation (errata 2.1), which is
//! used here.

use stepcast_core::fitted::gemm::{Coverage, GemmTime, Shape, Transposition, Variant};
use stepcast_core::quantity::Seconds;
use stepcast_core::scenario::{Products, SgemmTable};

/// Which matrix is transposed; this selects the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operands {
    /// Neither matrix.
    Plain,
    /// The first matrix.
    FirstTransposed,
    /// The second matrix.
    SecondTransposed,
}

/// An interpolated time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The time.
    pub time: Seconds,
    /// Whether the size is outside the table, so that the outermost cell was extrapolated.
    pub outside: bool,
}

/// The time of an m×n×k product.
pub fn product_time(products: &Products, operands: Operands, size: [f64; 3]) -> Estimate {
    let (model, precision) = match products {
        Products::Table(table) => return between(table, operands, size),
        Products::Fitted { model, precision, .. } => (model, *precision),
    };
    let transposition = match operands {
        Operands::Plain => Transposition::Nn,
        Operands::FirstTransposed => Transposition::Tn,
        Operands::SecondTransposed => Transposition::Nt,
    };
    let [m, n, k] = size.map(|side| side as u32);
    // Resolving the scenario has checked that the variant was fitted.
    let found = model.predict(Variant { precision, transposition }, Shape { m, n, k });
    let estimate =
        |GemmTime { time, coverage, .. }| Estimate { time, outside: coverage != Coverage::Measured };
    found.map_or(Estimate { time: Seconds::ZERO, outside: true }, estimate)
}

/// The time of a product, interpolated from the table.
fn between(table: &SgemmTable, operands: Operands, size: [f64; 3]) -> Estimate {
    let times = match operands {
        Operands::Plain => &table.nn,
        Operands::FirstTransposed => &table.tn,
        Operands::SecondTransposed => &table.nt,
    };
    let count = table.sizes.len();
    let low = size.map(|side| {
        let above = table.sizes.partition_point(|&size| f64::from(size) <= side);
        above.saturating_sub(1).min(count - 2)
    });
    let corners = [0, 1, 2, 3, 4, 5, 6, 7].map(|corner: usize| {
        let place = |axis: usize| low[axis] + bit(corner, axis);
        times[(place(0) * count + place(1)) * count + place(2)]
    });
    let at = |shift: usize| low.map(|place| f64::from(table.sizes[place + shift]));
    let (from, to) = (at(0), at(1));
    let time = trilinear(from, to, corners, size);
    let outside = (0..3).any(|axis| !(from[axis]..=to[axis]).contains(&size[axis]));
    // Extrapolation may go below zero; no product is faster than the fastest measured one.
    let floor = || times.iter().copied().reduce(Seconds::min).unwrap_or_default();
    Estimate { time: if outside { time.max(floor()) } else { time }, outside }
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
