//! The tables of every answer, one file for each answer.
//!
//! Each is built here once; text, HTML and notebooks print the same rows under the same titles.

pub mod catalog;
pub mod check;
pub mod comparison;
mod first_rows;
pub mod fit;
pub mod forecast;
pub mod fusion;
pub mod import;
pub mod layout;
pub mod map;
pub mod model;
pub mod operation;
pub mod plan;
pub mod replacement;
pub mod search;
mod simulation;
pub mod step;
pub mod sweep;
pub mod transformer;
pub mod uncertainty;
mod updates;

pub use first_rows::FirstRows;

/// Characters of the longest bar.
const BAR: usize = 24;
