//! Answers and errors as text.
//!
//! Tables are built in `stepcast_report::tables`; here they are put into sections and printed.

pub(crate) mod answers;
pub(crate) mod error;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod validation;

pub(crate) use screen::Screen;
