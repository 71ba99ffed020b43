//! Long commands: a spinner, and Ctrl-C: the first ends a command cleanly, the second ends the program.

use crate::answer::{Answer, End};
use indicatif::ProgressBar;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Time for a command to end cleanly; what it computes then is abandoned.
const PATIENCE: Duration = Duration::from_millis(800);

/// Exit code that shells expect of a program that Ctrl-C has ended.
const INTERRUPTED_CODE: i32 = 130;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);
static WRITING: Mutex<()> = Mutex::new(());

/// Handles Ctrl-C from now on; `farewell` is printed if the command does not end in time. Where no handler can be
/// set, Ctrl-C ends the program as usual.
pub(crate) fn listen(farewell: &'static str) {
    let _ = ctrlc::set_handler(move || {
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            process::exit(INTERRUPTED_CODE);
        }
        thread::sleep(PATIENCE);
        let _nothing_is_half_written = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        // If standard error is closed, nobody can be told.
        let _ = writeln!(io::stderr(), "{farewell}");
        process::exit(INTERRUPTED_CODE);
    });
}

pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Cancels work once Ctrl-C is pressed.
pub(crate) fn check() -> ControlFlow<()> {
    if interrupted() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// The end of a command that Ctrl-C has left without an answer.
pub(crate) fn stopped(farewell: &str) -> Answer {
    // If standard error is closed, nobody can be told.
    let _ = writeln!(io::stderr(), "{farewell}");
    Answer { text: String::new(), end: End::Interrupted }
}

/// Runs a write that Ctrl-C must not interrupt.
pub(crate) fn whole<T>(write: impl FnOnce() -> T) -> T {
    let _held = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    write()
}

/// Result of `work`, with a spinner on the terminal until it is done.
pub(crate) fn busy<T>(message: &'static str, work: impl FnOnce() -> T) -> T {
    let line = ProgressBar::new_spinner().with_message(message);
    line.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    line.finish_and_clear();
    result
}
