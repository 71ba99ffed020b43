//! Tests of the public interface, linked as one program.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod gemm;
mod measured;
mod solvers;

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use stepcast_core::method::CancelCheck;

/// A file of this name with this text.
fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// A fit ends at the first check of its cancellation that says so, whichever check that is.
#[track_caller]
fn ends_when_unwanted<T: Debug, E: PartialEq + Debug>(
    fit: impl Fn(&CancelCheck<'_>) -> Result<T, E>,
    cancelled: &E,
) {
    let until = |last: u32| {
        let asked = AtomicU32::new(0);
        let end = fit(&|| match asked.fetch_add(1, Ordering::Relaxed) < last {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        });
        (end, asked.into_inner())
    };
    let (whole, all) = until(u32::MAX);
    assert!(whole.is_ok() && all > 0, "{whole:?} after {all}");
    for last in [0, all / 2, all - 1] {
        let (stopped, asked) = until(last);
        assert_eq!((&stopped.unwrap_err(), asked), (cancelled, last + 1), "of {all}");
    }
}
