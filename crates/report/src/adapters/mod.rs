//! From the answers of studies to the figures of plots: one file for each kind of answer.

mod forecast;
mod fusion;
mod layout;
mod recording;
mod search;
mod sweep;

pub use forecast::{breakdown, scaling_curve, staleness};
pub use fusion::fusion;
pub use layout::{pipeline, rank_grid, role_name, stage_memory};
pub use recording::gantt;
pub use search::{choice, pareto};
pub use sweep::{MOST_ACROSS, MOST_CELLS, Point, Swept};
