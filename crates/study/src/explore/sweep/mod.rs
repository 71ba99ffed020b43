//! Sweeps: a prediction for every combination of values of any keys of a scenario.
//!
//! All points are predicted on all cores, in order. They are grouped into blocks; the blocks of a round run in parallel and are
//! delivered in the order of the points. The result therefore depends neither on the number of threads nor on the length of the
//! rounds. A run can stop within any prediction: the rows delivered until then are complete and without gaps.
//!
//! How long a sweep will take is estimated before it begins; points of small sweeps get intervals, which take dozens of
//! predictions each.

mod agreement;
mod axis;
mod output;
mod row;
mod variants;

pub use agreement::Agreement;
pub use axis::{Axis, Grid, Values};
pub use output::{Format, Output, Writer};
pub(crate) use row::nodes;
pub use row::{PointFigures, Refused, SweepRow, devices};
pub(crate) use variants::Setting;
pub use variants::{Variants, VaryError, Walker};

use crate::predict::budget;
use crate::predict::{MethodChoice, interval};
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};
use stepcast_core::method::CancelCheck;
use stepcast_core::quantity::SamplesPerSec;

/// Points per block if a prediction takes microseconds.
const BLOCK: u64 = 256;

/// Blocks per round and thread if a prediction takes microseconds.
const BLOCKS_PER_THREAD: usize = 16;

/// Approximate duration of a round of slow predictions. Threads wait for each other at the end of a round.
const SOON: Duration = Duration::from_secs(1);

/// Most points of a sweep whose rows all have intervals.
const MOST_WITH_INTERVALS: u128 = 4096;

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

/// Predicts every point of `points` until cancelled, and delivers the result of `each` for its row.
pub fn rows<T: Send>(
    variants: &Variants<'_>,
    agreement: &Agreement,
    points: Range<u64>,
    wanted: &CancelCheck<'_>,
    each: impl Fn(SweepRow) -> T + Sync,
    mut next: impl FnMut(Vec<T>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let asked = agreement.choice();
    let bounded = variants.grid().points() <= MOST_WITH_INTERVALS;
    let block = |walker: &mut Walker<'_>, range: Range<u64>| {
        let mut rows = Vec::new();
        for index in range {
            let mut digits = Vec::new();
            variants.grid().digits(index, &mut digits);
            match walker.figures(&digits, asked, wanted) {
                ControlFlow::Continue(mut answer) => {
                    if let (true, Ok(figures)) = (bounded, &mut answer) {
                        figures.interval = interval_at(walker, &digits, asked);
                    }
                    rows.push(each(SweepRow { index, digits, answer }));
                }
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

/// The 90 % interval of the throughput at a point; none without a prediction or measured runs that show its error, and for
/// simulations, which would run dozens of times.
pub(crate) fn interval_at(
    walker: &mut Walker<'_>,
    digits: &[u64],
    choice: MethodChoice,
) -> Option<[SamplesPerSec; 2]> {
    let found = walker.look(digits, |scenario| {
        let method = choice.method(scenario).ok().filter(|method| method.is_quick())?;
        let prediction = method.predict(scenario).ok()?;
        interval::of(scenario, method, &prediction).ok()?
    });
    found.ok().flatten().map(|interval| interval.throughput_samples_per_s)
}

const TRIED: (u64, Duration) = (64, Duration::from_millis(500));

/// Approximate time of this many points on the threads of this pool; none if that is certainly short. Tries points all over
/// the grid, until cancelled.
pub fn estimate(
    variants: &Variants<'_>,
    agreement: &Agreement,
    points: u128,
    wanted: &CancelCheck<'_>,
) -> Option<Duration> {
    let asked = agreement.choice();
    let each =
        asked.method(variants.first()).map_or(0, |method| budget::prediction(variants.first(), method));
    let resolved = variants.resolutions().min(points) as f64 * budget::resolution(variants.first()) as f64;
    if points as f64 * each as f64 + resolved <= budget::UNASKED as f64 {
        return None;
    }
    let numbered = u64::try_from(points).unwrap_or(u64::MAX);
    let (mut walker, mut digits) = (variants.walker(), Vec::new());
    let (since, mut tried) = (Instant::now(), 0_u64);
    while tried < TRIED.0.min(numbered) && (tried == 0 || since.elapsed() < TRIED.1) && wanted().is_continue()
    {
        // The bits of a counter, reversed, come evenly from all over the grid.
        let share = tried.reverse_bits() as f64 / 2.0_f64.powi(64);
        variants.grid().digits((share * numbered as f64) as u64, &mut digits);
        let _ = walker.figures(&digits, asked, wanted);
        tried += 1;
    }
    let threads = rayon::current_num_threads().max(1);
    let long = since.elapsed().as_secs_f64() / tried.max(1) as f64 * points as f64 / threads as f64;
    Some(Duration::try_from_secs_f64(long).unwrap_or(Duration::MAX))
}
