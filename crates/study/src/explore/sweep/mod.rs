//! Sweeps: a prediction for every combination of values of any keys of a scenario.

mod agreement;
mod axis;
mod certainty;
mod fingerprint;
mod grid;
mod output;
mod row;
mod run;
mod setting;
mod table;
mod trial;
mod variants;

pub use agreement::Agreement;
pub use axis::{Axis, Values};
pub use certainty::intervals;
pub use fingerprint::fingerprint;
pub use grid::Grid;
pub use output::{Output, Writer};
pub use row::{PointFigures, Refused, SweepRow, devices};
pub use run::{on_threads, rows};
pub use table::Format;
pub use trial::estimate;
pub use variants::{Variants, VaryError, Walker};

pub(crate) use row::nodes;
pub(crate) use run::{blocks, is_quick};
pub(crate) use setting::Setting;
