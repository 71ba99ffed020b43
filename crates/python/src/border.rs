//! Running Rust code for Python: without the interpreter's lock, on threads of this process, interruptible by Ctrl-C,
//! with panics caught.

use crate::problem::Problem;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use stepcast_study::explore::sweep::on_threads;

/// Interval between checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(50);

/// Runs `work` without the lock. A panic becomes an exception.
pub(crate) fn released<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Problem> + Send,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    Ok(done.unwrap_or_else(|panic| Err(Problem::panicked(&*panic)))?)
}

/// As [`released`], on a separate thread while this one checks for signals. When a signal raises an exception, that
/// is returned at once; `stop` is set for `work`, which ends at its next check, and its result is dropped.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Problem> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, waiting) = channel();
    let stopped = Arc::clone(&stop);
    let started = thread::Builder::new().spawn(move || {
        let result = catch_unwind(AssertUnwindSafe(|| work(&stopped)));
        // Nobody waits any more if there was a signal.
        let _ = done.send(result.unwrap_or_else(|panic| Err(Problem::panicked(&*panic))));
    });
    started.map_err(|error| Problem::internal(format!("no thread could be started: {error}")))?;
    let waiting = Mutex::new(waiting);
    loop {
        let back = py.detach(|| {
            let waiting = waiting.lock().map_err(|_| RecvTimeoutError::Disconnected)?;
            waiting.recv_timeout(LOOK)
        });
        match back {
            Ok(result) => return Ok(result?),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Problem::internal("the work ended without a result").into());
            }
            Err(RecvTimeoutError::Timeout) => {
                if let Err(signal) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    return Err(signal);
                }
            }
        }
    }
}

/// A value that tells work to go on until `stop` is set.
pub(crate) fn until(stop: &AtomicBool) -> ControlFlow<()> {
    if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The thread pool of this process: threads of a parent process do not exist in its forked child.
fn pool() -> Option<Arc<ThreadPool>> {
    let mut pool = POOL.lock().ok()?;
    let own = std::process::id();
    match &*pool {
        Some((owner, threads)) if *owner == own => Some(Arc::clone(threads)),
        _ => {
            let threads = Arc::new(ThreadPoolBuilder::new().build().ok()?);
            // Dropping the parent's pool would wait for threads that do not exist here.
            std::mem::forget(pool.replace((own, Arc::clone(&threads))));
            Some(threads)
        }
    }
}

/// Runs `work` on this many threads; on all cores if none is given.
pub(crate) fn on_pool<T: Send>(threads: Option<u16>, work: impl FnOnce() -> T + Send) -> T {
    match (threads, threads.is_none().then(pool).flatten()) {
        (None, Some(pool)) => pool.install(work),
        (threads, _) => on_threads(threads, work),
    }
}
