//! What people ask of the methods: a forecast with reasons, a sweep, a search, a fusion plan.

pub mod explore;
pub mod fit;
pub mod fuse;
pub mod predict;
pub mod replace;
pub mod request;
pub mod simulate;

pub use predict::{
    Advice, CriticalPath, Forecast, ScalingPoint, Share, Training, WORTH, WhatIf, usual_workers,
};
