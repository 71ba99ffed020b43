//! The tables of every answer, one file for each answer.
//!
//! Each is built here once; text, HTML and notebooks print the same rows under the same titles.

pub mod advise;
pub mod catalog;
pub mod check;
pub mod comparison;
pub mod fit;
pub mod forecast;
pub mod fusion;
pub mod import;
pub mod map;
pub mod model;
pub mod plan;
pub mod replacement;
pub mod search;
mod simulation;
pub mod sweep;
pub mod transformer;
pub mod uncertainty;

pub use sweep::FirstRows;

/// At most `most` of many rows, spread evenly from the first to the last.
fn thinned<T>(all: &[T], most: usize) -> Vec<&T> {
    match all.len() {
        few if few <= most => all.iter().collect(),
        many => (0..most).map(|place| &all[place * (many - 1) / (most - 1)]).collect(),
    }
}

const BAR: usize = 24;
