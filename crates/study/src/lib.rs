//! What people ask: a forecast with reasons, a sweep, a search, a fusion plan. This is the programming interface of
//! Stepcast; the crates below it are internal and change without notice.
//!
//! ```
//! use stepcast_study::{ForecastOptions, Observer, Request, forecast};
//! use stepcast_core::scenario::Edit;
//!
//! let request = Request::quick_start(vec![Edit::parse("strategy.batch=64")?]);
//! let forecast = forecast(&request, &ForecastOptions::default(), &Observer::none())?;
//! assert!(forecast.prediction.throughput.get() > 10.0);
//! println!("a step takes {}", forecast.prediction.iteration.human());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`request`] reads a scenario with all files that it names; [`predict`](mod@predict) answers it; [`explore`] varies
//! it; [`advise`] says what to measure before a choice; [`check`] compares a running job with its forecast, and
//! [`contract`] with agreed terms; [`fuse`](mod@fuse) and [`replace`](mod@replace) change the training itself.

#![warn(missing_docs)]

pub mod advise;
pub mod check;
pub mod contract;
pub mod explore;
pub mod fuse;
pub mod predict;
pub mod replace;
pub mod request;
pub mod simulate;

pub use predict::{
    Advice, Alone, CancelCheck, CriticalPath, Forecast, ForecastOptions, MethodChoice, Observer, Progress,
    ScalingPoint, Share, Stopped, Training, WORTH, Watch, WhatIf, forecast, never_cancelled, unwatched,
    usual_workers,
};
pub use request::Request;
pub use simulate::round_timeline;
