//! Work on the other side of the border: without the interpreter's lock, on threads of this process, stopped by Ctrl-C,
//! its panics caught.

use crate::problem::Problem;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stepcast_study::explore::sweep::on_threads;

/// How often somebody looks whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);

/// Does `work` without the lock. A panic becomes an exception.
pub(crate) fn released<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Problem> + Send,
) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    Ok(done.unwrap_or_else(|panic| Err(Problem::panicked(&*panic)))?)
}

/// As [`released`], on a thread of its own while this one looks for signals. When one raises an exception, `work` is told
/// to stop, and its result is dropped.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Problem> + Send,
) -> PyResult<T> {
    let stop = AtomicBool::new(false);
    let (stop, mut raised) = (&stop, None);
    std::thread::scope(|scope| {
        let (done, waiting) = channel();
        scope.spawn(move || {
            let result = catch_unwind(AssertUnwindSafe(|| work(stop)));
            // Who waits is below and does not go away.
            let _ = done.send(result.unwrap_or_else(|panic| Err(Problem::panicked(&*panic))));
        });
        let waiting = Mutex::new(waiting);
        loop {
            let back = py.detach(|| {
                let waiting = waiting.lock().map_err(|_| RecvTimeoutError::Disconnected)?;
                waiting.recv_timeout(LOOK)
            });
            match back {
                Ok(result) => return raised.map_or_else(|| Ok(result?), Err),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Problem::internal("the work ended without a result").into());
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(signal) = py.check_signals() {
                        stop.store(true, Ordering::Relaxed);
                        raised.get_or_insert(signal);
                    }
                }
            }
        }
    })
}

static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// Threads of this process: those of a process that forked are not there in its child.
fn pool() -> Option<Arc<ThreadPool>> {
    let mut pool = POOL.lock().ok()?;
    let own = std::process::id();
    match &*pool {
        Some((owner, threads)) if *owner == own => Some(Arc::clone(threads)),
        _ => {
            let threads = Arc::new(ThreadPoolBuilder::new().build().ok()?);
            // Dropping the threads of the parent would wait for what is not there.
            std::mem::forget(pool.replace((own, Arc::clone(&threads))));
            Some(threads)
        }
    }
}

/// Does `work` on so many threads; on all cores if none are named.
pub(crate) fn on_pool<T: Send>(threads: Option<u16>, work: impl FnOnce() -> T + Send) -> T {
    match (threads, threads.is_none().then(pool).flatten()) {
        (None, Some(pool)) => pool.install(work),
        (threads, _) => on_threads(threads, work),
    }
}
