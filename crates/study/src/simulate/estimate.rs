//! The throughput in steady state, from runs that begin in another one.
//!
//! Workers that wait for each other start afresh whenever all have met: the times in between are nearly independent, and
//! nothing has to be left out. All other runs are cut into slices; untypical slices at the beginning are left out
//! ([`warm_up`]).

use super::measure::{Measurement, Recorder};
use stepcast_core::prediction::Warning;
use stepcast_core::scenario;
use stepcast_core::strategy::Synchronisation;
use stepcast_sim::{Program, StepRecord, Window};
use stepcast_stats::{SeriesMean, warm_up};

/// The warning about a throughput that still changed when runs ended.
pub(crate) const NOT_STEADY: &str = "not-steady";

/// Slices of a run in which the beginning of the steady state is looked for.
const SLICES: usize = 40;

/// Batches of the steady state for the batch-means interval.
const BATCHES: usize = 10;

/// Share of a step by which the ends of a run may distort its rate.
const EDGE: f64 = 0.1;

/// Share of the throughput that rounding may cost.
const ROUNDING: f64 = 1e-6;

/// Half-width of a throughput from a single observation, as a share of it: its variation is unknown.
const SEEN_ONCE: f64 = 0.5;

/// Least number of cycles with which the first one, which may be shorter, is left out.
const CYCLES: usize = 4;

/// Estimated throughput of a system.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Estimate {
    /// Samples per second.
    pub(super) throughput: f64,
    /// Half-width of its 90 % interval.
    pub(super) half_width: f64,
    /// Samples per second of each run.
    pub(super) rates: Vec<f64>,
    /// The part of each run that counts.
    pub(super) windows: Vec<Window>,
    /// Whether the throughput no longer changes with time.
    pub(super) is_steady: bool,
    /// Requested half-width, as a share of the throughput.
    precision: f64,
}

impl Estimate {
    /// Whether the interval is as narrow as requested.
    pub(super) fn is_precise(&self) -> bool {
        self.is_steady && self.half_width <= self.precision * self.throughput
    }

    /// Ends of the 90 % interval.
    pub(super) fn interval(&self) -> [f64; 2] {
        [(self.throughput - self.half_width).max(0.0), self.throughput + self.half_width]
    }

    /// A warning about a throughput that still changed when runs ended.
    pub(super) fn warning(&self) -> Option<Warning> {
        let message = format!(
            "the budget was spent before the throughput was steady (±{:.0} %): use a larger `methods.simulate.budget`",
            100.0 * self.half_width / self.throughput
        );
        (!self.is_steady).then_some(Warning { code: NOT_STEADY, message })
    }

    /// Why runs ended that could have gone on.
    pub(super) fn reason(&self) -> String {
        let width = 100.0 * self.half_width / self.throughput;
        match (self.is_precise(), self.is_steady) {
            (true, _) => format!("the 90 % interval is within {} %", 100.0 * self.precision),
            (false, true) => format!("the budget was spent: the 90 % interval is ±{width:.1} %"),
            (false, false) => "the budget was spent before a steady state was reached".to_owned(),
        }
    }
}

pub(super) struct Estimator<'a> {
    workers: usize,
    batches: &'a [f64],
    /// Steps from one meeting of all workers to the next; none where they do not meet.
    period: Option<u64>,
    /// Whether the others follow the pace of the slowest worker.
    follow_slowest: bool,
    warm_up: Option<u64>,
    precision: f64,
}

impl<'a> Estimator<'a> {
    pub(super) fn new(program: &Program, batches: &'a [f64], options: &scenario::Simulate) -> Self {
        let period = match program.coordination {
            Synchronisation::LocalSgd(steps) => Some(u64::from(steps.max(1))),
            _ if program.meets() => Some(1),
            _ => None,
        };
        Self {
            workers: program.workers(),
            batches,
            period,
            follow_slowest: matches!(program.coordination, Synchronisation::Ssp(1..)),
            warm_up: options.warm_up.map(u64::from),
            precision: options.precision,
        }
    }

    /// The estimate of the throughput from `runs`.
    pub(super) fn estimate<O: Recorder>(&self, runs: &[Measurement<'_, O>]) -> Estimate {
        let parts: Vec<Part> = runs.iter().map(|run| self.part(run)).collect();
        let series: Vec<Vec<f64>> = parts.iter().map(|part| part.series.clone()).collect();
        let rates: Vec<f64> = parts.iter().map(|part| part.rate).collect();
        let whole: f64 = parts.iter().map(|part| part.window.until - part.window.since).sum();
        let weighed = parts.iter().map(|part| part.rate * (part.window.until - part.window.since));
        let throughput = weighed.sum::<f64>() / whole;
        let mean = SeriesMean::from_series(&series);
        let steps = parts.iter().map(|part| part.steps).sum::<f64>().max(1.0);
        let drift = (mean.drift / mean.mean).abs();
        let sampled = Some(mean.half_width / mean.mean).filter(|share| share.is_finite());
        let is_steady = sampled.is_some()
            && parts.iter().all(|part| part.is_typical)
            && !(mean.drifts && drift > self.precision);
        let wide = if is_steady { 0.0 } else { drift };
        let half_width = sampled.unwrap_or(SEEN_ONCE).max(wide) + EDGE / steps + ROUNDING;
        Estimate {
            throughput,
            half_width: throughput * half_width,
            rates,
            windows: parts.into_iter().map(|part| part.window).collect(),
            is_steady,
            precision: self.precision,
        }
    }

    fn part<O: Recorder>(&self, run: &Measurement<'_, O>) -> Part {
        let records = run.run.observer().records();
        let whole =
            Window { since: run.since, until: last_of_all(records, self.workers).unwrap_or(run.run.time()) };
        self.period
            .and_then(|period| self.cycles(records, period))
            .or_else(|| self.slices(records, whole))
            .unwrap_or_else(|| Part::whole_run(whole, records, self.batches))
    }

    /// The part of a run between meetings of all workers; none if they have not met twice.
    fn cycles(&self, records: &[StepRecord], period: u64) -> Option<Part> {
        let mut meetings: Vec<(f64, usize)> = Vec::new();
        let mut done = vec![0u64; self.workers];
        for record in records {
            let done = &mut done[record.worker as usize];
            *done += 1;
            if done.is_multiple_of(period) {
                let cycle = (*done / period) as usize;
                if meetings.len() < cycle {
                    meetings.push((0.0, 0));
                }
                let (time, workers) = &mut meetings[cycle - 1];
                (*time, *workers) = (record.until.max(*time), *workers + 1);
            }
        }
        meetings.retain(|(_, workers)| *workers == self.workers);
        let mut times: Vec<f64> =
            std::iter::once(0.0).chain(meetings.iter().map(|(time, _)| *time)).collect();
        let left_out = match self.warm_up {
            Some(steps) => steps.div_ceil(period) as usize,
            None => usize::from(times.len() > CYCLES),
        };
        times.drain(..left_out.min(times.len().saturating_sub(2)));
        let window = Window { since: *times.first()?, until: *times.last()? };
        (times.len() > 1).then(|| Part {
            // Times between meetings are as good as rates for the width, and do not favour short ones.
            series: times.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            rate: self.batches.iter().sum::<f64>() * period as f64 * (times.len() - 1) as f64
                / (window.until - window.since),
            steps: f64::INFINITY,
            is_typical: true,
            window,
        })
    }

    /// The part of a run after its beginning; none if some worker has not ended a step.
    fn slices(&self, records: &[StepRecord], whole: Window) -> Option<Part> {
        if whole.until <= whole.since || records.len() < self.workers {
            return None;
        }
        let worth = |record: &StepRecord| self.batches[record.worker as usize];
        let length = (whole.until - whole.since) / SLICES as f64;
        let cut = match self.warm_up {
            Some(_) => 0,
            None => warm_up(&whole.series(records, SLICES, worth)),
        };
        let after = self.warm_up.and_then(|steps| Window::after(records, self.workers, steps));
        let window = after.unwrap_or(Window { since: whole.since + cut as f64 * length, ..whole });
        let window = match self.follow_slowest {
            true => self.whole_steps(records, window).unwrap_or(window),
            false => window,
        };
        let mine = window.ending(records).count() as f64 / self.workers as f64;
        Some(Part {
            series: window.series(records, BATCHES, worth),
            rate: window.rate(records, worth),
            steps: mine,
            // A throughput that changes until the middle may change after it.
            is_typical: mine >= 1.0 && cut < SLICES / 2,
            window,
        })
    }
}

impl Estimator<'_> {
    /// The part of a window from one end of a step of the slowest worker to another: the others do what they may at the
    /// beginning of its steps. None if there are no two ends.
    fn whole_steps(&self, records: &[StepRecord], window: Window) -> Option<Window> {
        let mut done = vec![0u64; self.workers];
        for record in records {
            done[record.worker as usize] += 1;
        }
        let slowest = (0..self.workers).min_by_key(|&worker| done[worker])? as u32;
        let ends = records.iter().filter(|record| record.worker == slowest).map(|record| record.until);
        let mut inside = ends.filter(|&end| end >= window.since && end <= window.until);
        let since = inside.next()?;
        Some(Window { since, until: inside.next_back()? })
    }
}

/// When the first worker ends its last step; none if one has not ended any.
fn last_of_all(records: &[StepRecord], workers: usize) -> Option<f64> {
    let mut last = vec![f64::NEG_INFINITY; workers];
    for record in records {
        last[record.worker as usize] = record.until;
    }
    last.into_iter().reduce(f64::min).filter(|time| time.is_finite())
}

struct Part {
    window: Window,
    /// Samples per second.
    rate: f64,
    /// Series from which the width is estimated.
    series: Vec<f64>,
    /// Steps of a worker whose part inside the window is only known on average.
    steps: f64,
    is_typical: bool,
}

impl Part {
    /// A run too short for anything but its mean.
    fn whole_run(window: Window, records: &[StepRecord], batches: &[f64]) -> Self {
        let rate = window.rate(records, |record| batches[record.worker as usize]);
        Self { window, rate, series: vec![rate], steps: 1.0, is_typical: false }
    }
}
