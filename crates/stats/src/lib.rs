//! Means, spreads, quantiles and confidence intervals: each statistic is written once, here.
//!
//! Plain numbers in, plain numbers out; depends on nothing. Units are the business of callers.
//!
//! Internal to Stepcast: `stepcast-study` is the programming interface.

mod interval;
mod normal;
mod quantile;
mod spread;
mod steady;
mod student_t;

pub use interval::mean_and_half_width;
pub use normal::{NORMAL_95, expected_maximum};
pub use quantile::{quantile, quantile_of_sorted};
pub use spread::{deviation, mean, spread_of_logarithms};
pub use steady::{SeriesMean, warm_up};
pub use student_t::{student_t_95, student_t_975};
