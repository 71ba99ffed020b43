//! Plots of what was predicted: SVG text, written by hand.
//!
//! A plot stands by itself: it brings its styles for light and dark pages and for print, and needs no script and no
//! font. The same figures give the same bytes. No input or output: the caller writes the text.
//!
//! [`plots`] take plain figures; [`of`] makes them of what studies answer. What plots are made of is in `draw`.

mod draw;
pub mod of;
pub mod plots;

pub use draw::unit::{Figure, Unit};
pub use plots::condition_map::condition_map;
