//! The forecast of one scenario: the choice of a method, the prediction, its reasons and its uncertainty.

mod advice;
pub(crate) mod budget;
pub mod calibrate;
pub mod compare;
mod forecast;
pub mod interval;
pub mod layout;
pub mod methods;
mod round;
mod scaling;
mod slack;
pub(crate) mod training;

pub use advice::{Advice, Alone, Change, CriticalPath, Share, WhatIf, changes, explain};
pub use forecast::{Forecast, ForecastOptions, Observer, Training, forecast};
pub use methods::MethodChoice;
pub use round::round_timeline;
pub use scaling::{ScalingPoint, WORTH, enough_workers, usual_workers};
pub use stepcast_core::method::{CancelCheck, Progress, Stopped, Watch, never_cancelled, unwatched};
pub use training::fits;
