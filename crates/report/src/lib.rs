//! Answers for people: tables, sentences, plots as SVG, and whole reports as HTML.
//!
//! The tables of an answer are built once, in [`tables`]; the command line prints them as text, [`table::section`] as HTML. A plot
//! stands by itself: it carries its styles for light and dark pages and for print, and needs no script and no font. The
//! same figures give the same bytes. No input or output: the caller writes the text.
//!
//! [`plots`] take plain figures, or make them from the answers of studies. `draw` has the parts that plots are composed
//! of. [`page`] sets a forecast in HTML, as a document of its own or as a part of one. [`format`](mod@format) writes
//! single numbers and names, [`sentences`] whole sentences.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod draw;
pub mod format;
pub mod json;
pub mod page;
pub mod plots;
pub mod sentences;
pub mod table;
pub mod tables;
pub mod words;

pub use draw::style::embedded as style;
pub use draw::{Figure, Unit};
pub use plots::heat_map::condition_map;
