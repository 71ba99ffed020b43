//! Ctrl-C: the first lets a long command end cleanly, the second ends the program at once.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Handles Ctrl-C from now on. Where no handler can be set, Ctrl-C ends the program as usual.
pub(super) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    });
}

/// Whether Ctrl-C was pressed.
pub(super) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}
