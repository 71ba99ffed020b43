//! The forecast of one scenario: the choice of a method, the prediction, its reasons and its uncertainty.

mod advice;
pub mod compare;
mod forecast;
pub mod interval;
pub(crate) mod memory;
pub mod methods;
mod prepared;
mod scaling;
mod slack;

pub use advice::{Advice, CriticalPath, Share, WhatIf};
pub use forecast::{Forecast, Training};
pub use methods::MethodChoice;
pub use prepared::{Extent, Prepared, Stopped, Watch, predict, unwatched};
pub use scaling::{ScalingPoint, WORTH, usual_workers};
