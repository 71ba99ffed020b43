//! What was predicted, for people: plots as SVG, whole reports as HTML, and the words both use.
//!
//! A plot stands by itself: it brings its styles for light and dark pages and for print, and needs no script and no
//! font. The same figures give the same bytes. No input or output: the caller writes the text.
//!
//! [`plots`] take plain figures; [`of`] makes them of what studies answer. What plots are made of is in `draw`. [`page`]
//! sets a forecast in HTML, as a document of its own or as a part of one.

mod draw;
pub mod of;
pub mod page;
pub mod plots;
pub mod table;
pub mod tell;
pub mod words;

pub use draw::style::embedded as style;
pub use draw::unit::{Figure, Unit};
pub use plots::condition_map::condition_map;
