//! All points, on all cores, in order.
//!
//! Points go in blocks; blocks of one round go in parallel and are handed on in the order of the points. So the result
//! depends neither on the number of threads nor on the length of rounds, and between rounds one may stop: what was
//! handed on is complete up to there.

use super::row::{Refused, SweepRow};
use super::variants::{Variants, Walker};
use crate::predict::MethodChoice;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};
use stepcast_core::fault::Fault;

/// Points of a block where a prediction takes microseconds.
const BLOCK: u64 = 256;

/// Blocks of a round, for every thread, where a prediction takes microseconds.
const BLOCKS_PER_THREAD: usize = 16;

/// Slow predictions are handed on about so often: at the end of a round threads wait for each other.
const SOON: Duration = Duration::from_secs(1);

/// Does `work` on so many threads; on all cores if none are named, or if so many cannot be had.
pub fn on_threads<T: Send>(threads: Option<u16>, work: impl FnOnce() -> T + Send) -> T {
    let pool = threads.map(|threads| ThreadPoolBuilder::new().num_threads(threads.into()).build());
    match pool {
        Some(Ok(pool)) => pool.install(work),
        Some(Err(_)) | None => work(),
    }
}

/// Whether predictions take microseconds at all points that `asked` answers like the first one.
pub(crate) fn is_quick(variants: &Variants<'_>, asked: MethodChoice) -> bool {
    asked.method(variants.first()).is_ok_and(|method| method.is_quick())
}

/// Goes through `points` and hands what `block` makes of each block of them to `next`, in order, until that breaks.
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

/// Predicts every point of `points` and hands on what `each` makes of its row.
pub fn rows<T: Send>(
    variants: &Variants<'_>,
    asked: MethodChoice,
    points: Range<u64>,
    each: impl Fn(SweepRow) -> T + Sync,
    mut next: impl FnMut(Vec<T>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let block = |walker: &mut Walker<'_>, range: Range<u64>| {
        range.map(|index| each(row(variants, asked, walker, index))).collect()
    };
    blocks(variants, is_quick(variants, asked), points, block, |_, rows| next(rows))
}

fn row(variants: &Variants<'_>, asked: MethodChoice, walker: &mut Walker<'_>, index: u64) -> SweepRow {
    let mut digits = Vec::new();
    variants.grid().digits(index, &mut digits);
    let answer = walker.look(&digits, |scenario| asked.figures(scenario));
    let answer = answer.map_err(|fault: Fault| Refused::from(fault)).and_then(|answer| answer);
    SweepRow { index, digits, answer }
}
