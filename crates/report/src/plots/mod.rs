//! One file for each plot: its plain figures, and how they are drawn.

pub mod fusion;
pub mod gantt;
pub(crate) mod heat_map;
pub mod lines;
pub mod pareto;
pub mod predicted_measured;
pub mod rank_grid;
pub mod scaling_curve;
pub mod stacked;
pub mod staleness;
pub mod varied;

#[cfg(test)]
mod tests;
