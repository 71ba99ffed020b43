//! Ctrl-C: the first asks long commands to stop cleanly, the second ends the program.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// From now on Ctrl-C asks. Where that cannot be had, Ctrl-C ends the program as it always does.
pub(super) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.swap(true, Ordering::Relaxed) {
            process::exit(130);
        }
    });
}

/// Whether the user wants an end.
pub(super) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}
