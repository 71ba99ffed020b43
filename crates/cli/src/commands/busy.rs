//! A line on the terminal while a command works that cannot say how far it is.

use indicatif::ProgressBar;
use std::time::Duration;

/// Result of `work`, with a spinner on the terminal until it is there.
pub(super) fn busy<T>(message: &'static str, work: impl FnOnce() -> T) -> T {
    let line = ProgressBar::new_spinner().with_message(message);
    line.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    line.finish_and_clear();
    result
}
