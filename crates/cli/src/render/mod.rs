//! Answers and errors as text: one file for each.
//!
//! Tables are built in `stepcast_report::tables`; here they are put into sections and printed.

mod blocks;
pub(crate) mod check;
pub(crate) mod comparison;
pub(crate) mod error;
pub(crate) mod fit;
pub(crate) mod forecast;
pub(crate) mod fusion;
pub(crate) mod import;
pub(crate) mod map;
pub(crate) mod model;
pub(crate) mod plan;
pub(crate) mod replacement;
pub(crate) mod screen;
pub(crate) mod search;
pub(crate) mod sweep;
pub(crate) mod table;
pub(crate) mod validation;

pub(crate) use screen::Screen;
