//! What people ask of the methods: a forecast with reasons, a scaling curve, a validation.

mod advice;
pub mod compare;
mod exchange;
pub mod fit;
mod forecast;
pub mod fuse;
pub mod interval;
pub mod map;
mod memory;
pub mod methods;
pub mod question;
pub mod replace;
mod scaling;
pub mod search;
pub mod simulate;
mod slack;
pub mod sweep;
pub mod validate;

pub use advice::{Advice, CriticalPath, Share, WhatIf};
pub use forecast::{Forecast, Training};
pub use scaling::{ScalingPoint, WORTH, usual_workers};
