//! Sweeps: a prediction for every combination of values of any keys of a scenario.

mod agreement;
mod axis;
mod output;
mod row;
mod run;
mod table;
mod variants;

pub use agreement::Agreement;
pub use axis::{Axis, Grid, Values};
pub use output::{Output, Writer};
pub use row::{PointFigures, Refused, SweepRow, devices};
pub use run::{estimate, on_threads, rows};
pub use table::Format;
pub use variants::{Variants, VaryError, Walker};

pub(crate) use row::nodes;
pub(crate) use run::{blocks, interval_at, is_quick};
pub(crate) use variants::Setting;
