//! Text for people: answers, tables, paragraphs, errors.
//!
//! Tables are built in `stepcast_report::tables`; here they are put into sections and printed.

pub(crate) mod answers;
pub(crate) mod error;
mod screen;
pub(crate) mod table;

pub(crate) use screen::Screen;
