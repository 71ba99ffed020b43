//! Predicts all points on all cores, in order.
//!
//! Points are grouped into blocks; the blocks of a round run in parallel and are delivered in the order of the
//! points. The result therefore depends neither on the number of threads nor on the length of the rounds. A run can
//! stop within any prediction: what was delivered until then is complete and without gaps.

use super::agreement::Agreement;
use super::row::SweepRow;
use super::variants::{Variants, Walker};
use crate::predict::MethodChoice;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};
use stepcast_core::method::CancelCheck;

/// Points per block if a prediction takes microseconds.
const BLOCK: u64 = 256;

/// Blocks per round and thread if a prediction takes microseconds.
const BLOCKS_PER_THREAD: usize = 16;

/// Approximate duration of a round of slow predictions. Threads wait for each other at the end of a round.
const SOON: Duration = Duration::from_secs(1);

/// Runs `work` on this many threads; on all cores if none is given or the thread pool cannot be created.
pub fn on_threads<T: Send>(threads: Option<u16>, work: impl FnOnce() -> T + Send) -> T {
    let pool = threads.map(|threads| ThreadPoolBuilder::new().num_threads(threads.into()).build());
    match pool {
        Some(Ok(pool)) => pool.install(work),
        Some(Err(_)) | None => work(),
    }
}

/// Whether predictions take microseconds at all points for which `asked` selects the same method as at the first one.
pub(crate) fn is_quick(variants: &Variants<'_>, asked: MethodChoice) -> bool {
    asked.method(variants.first()).is_ok_and(|method| method.is_quick())
}

/// Maps `block` over blocks of `points` and passes the results to `next`, in order, until it breaks.
pub(crate) fn blocks<T: Send>(
    variants: &Variants<'_>,
    quick: bool,
    points: Range<u64>,
    block: impl Fn(&mut Walker<'_>, Range<u64>) -> T + Sync,
    mut next: impl FnMut(Range<u64>, T) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let threads = rayon::current_num_threads();
    let (size, mut blocks) = if quick { (BLOCK, BLOCKS_PER_THREAD * threads) } else { (1, threads) };
    let mut since = points.start;
    while since < points.end {
        let began = Instant::now();
        let round: Vec<Range<u64>> = (0..blocks as u64)
            .map(|number| since.saturating_add(number * size))
            .take_while(|from| *from < points.end)
            .map(|from| from..from.saturating_add(size).min(points.end))
            .collect();
        since = round.last().map_or(points.end, |last| last.end);
        let made: Vec<T> =
            round.par_iter().map(|range| block(&mut variants.walker(), range.clone())).collect();
        for (range, made) in round.into_iter().zip(made) {
            next(range, made)?;
        }
        if !quick {
            blocks = if began.elapsed() < SOON { blocks * 2 } else { (blocks / 2).max(threads) };
        }
    }
    ControlFlow::Continue(())
}

/// Predicts every point of `points`, as long as they are wanted, and delivers what `each` makes of its row.
pub fn rows<T: Send>(
    variants: &Variants<'_>,
    agreement: &Agreement,
    points: Range<u64>,
    wanted: &CancelCheck<'_>,
    each: impl Fn(SweepRow) -> T + Sync,
    mut next: impl FnMut(Vec<T>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let asked = agreement.choice();
    let block = |walker: &mut Walker<'_>, range: Range<u64>| {
        let mut rows = Vec::new();
        for index in range {
            let mut digits = Vec::new();
            variants.grid().digits(index, &mut digits);
            match walker.figures(&digits, asked, wanted) {
                ControlFlow::Continue(answer) => rows.push(each(SweepRow { index, digits, answer })),
                ControlFlow::Break(()) => return (rows, ControlFlow::Break(())),
            }
        }
        (rows, ControlFlow::Continue(()))
    };
    blocks(variants, is_quick(variants, asked), points, block, |_, (rows, flow)| {
        next(rows)?;
        flow
    })
}
