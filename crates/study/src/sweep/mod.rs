//! Any keys of a scenario, varied against each other: a prediction for every combination of their values.

mod axis;
mod grid;
mod knob;
mod row;
mod run;
mod variants;

pub use axis::{Axis, Values};
pub use grid::Grid;
pub use row::{Asked, Figures, Refused, Row};
pub use run::rows;
pub use variants::{Variants, VaryError, Walker};

pub(crate) use knob::{Groups, Setting};
pub(crate) use row::nodes;
pub(crate) use run::{blocks, is_quick};
