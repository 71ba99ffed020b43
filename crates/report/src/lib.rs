//! Plots of what was predicted: SVG text, written by hand.
//!
//! A plot stands by itself: it brings its styles for light and dark pages and for print, and needs no script and no
//! font. The same figures give the same bytes. No input or output: the caller writes the text.

mod colour;
mod condition_map;
mod heat_map;
mod svg;

pub use condition_map::condition_map;
