//! One scenario answered: by which method, with what reasons, and how sure.

mod advice;
pub mod compare;
mod forecast;
pub mod interval;
pub(crate) mod memory;
pub mod methods;
mod scaling;
mod slack;

pub use advice::{Advice, CriticalPath, Share, WhatIf};
pub use forecast::{Forecast, Training};
pub use scaling::{ScalingPoint, WORTH, usual_workers};
