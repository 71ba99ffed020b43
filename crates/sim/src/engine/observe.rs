//! Observers of a run. The engine is compiled for each kind of observer, so one that ignores events takes no time.

/// A station that lanes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shared {
    Pool(u32),
    Port(u32),
    Tcp {
        /// To the server, or from it.
        up: bool,
    },
}

pub trait Observer {
    /// Whether to report loads and queues, which slows the engine down more than the rest.
    const LEVELS: bool = false;

    /// Whether to simulate every worker, even if another one behaves identically.
    const EVERY_WORKER: bool = false;

    /// From `at` on, `share` of a station's capacity is used, by this many customers.
    fn load(&mut self, _of: Shared, _at: f64, _share: f64, _customers: u32) {}

    /// From `at` on, this many operations wait in a lane, without the one being served.
    fn waiting(&mut self, _lane: u32, _at: f64, _operations: u32) {}

    fn chunk(&mut self, _worker: u32, _op: u32, _lane: u32, _since: f64, _until: f64) {}

    /// Workers negotiated what to send next.
    fn negotiated(&mut self, _since: f64, _until: f64) {}

    /// A worker ended a step, `stale` updates of others having been made since it began.
    fn step(&mut self, _worker: u32, _since: f64, _until: f64, _stale: u64) {}
}

impl<O: Observer> Observer for &mut O {
    const LEVELS: bool = O::LEVELS;
    const EVERY_WORKER: bool = O::EVERY_WORKER;

    fn load(&mut self, of: Shared, at: f64, share: f64, customers: u32) {
        (**self).load(of, at, share, customers);
    }

    fn waiting(&mut self, lane: u32, at: f64, operations: u32) {
        (**self).waiting(lane, at, operations);
    }

    fn chunk(&mut self, worker: u32, op: u32, lane: u32, since: f64, until: f64) {
        (**self).chunk(worker, op, lane, since, until);
    }

    fn negotiated(&mut self, since: f64, until: f64) {
        (**self).negotiated(since, until);
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        (**self).step(worker, since, until, stale);
    }
}

/// Ignores everything.
#[derive(Debug, Clone, Copy, Default)]
pub struct Blind;

impl Observer for Blind {}

/// One step of one worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepRecord {
    pub worker: u32,
    pub since: f64,
    pub until: f64,
    /// Updates that other workers made in between.
    pub stale: u64,
}

/// Keeps all steps, in the order in which they end.
#[derive(Debug, Clone, Default)]
pub struct Steps {
    pub records: Vec<StepRecord>,
}

impl Observer for Steps {
    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.records.push(StepRecord { worker, since, until, stale });
    }
}

/// One served chunk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkRecord {
    pub worker: u32,
    pub op: u32,
    pub lane: u32,
    pub since: f64,
    pub until: f64,
}

/// The load of a station from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadRecord {
    pub of: Shared,
    pub at: f64,
    /// Share of the capacity that is used.
    pub share: f64,
    pub customers: u32,
}

/// The length of a lane's queue from a moment on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QueueRecord {
    pub lane: u32,
    pub at: f64,
    pub operations: u32,
}

/// Keeps all steps, chunks and levels: a timeline.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    pub steps: Steps,
    pub chunks: Vec<ChunkRecord>,
    /// Loads, in order of time for each; of several at one moment the last holds.
    pub loads: Vec<LoadRecord>,
    /// Queues, likewise.
    pub queues: Vec<QueueRecord>,
}

impl Observer for Timeline {
    const LEVELS: bool = true;
    const EVERY_WORKER: bool = true;

    fn load(&mut self, of: Shared, at: f64, share: f64, customers: u32) {
        self.loads.push(LoadRecord { of, at, share, customers });
    }

    fn waiting(&mut self, lane: u32, at: f64, operations: u32) {
        self.queues.push(QueueRecord { lane, at, operations });
    }

    fn chunk(&mut self, worker: u32, op: u32, lane: u32, since: f64, until: f64) {
        self.chunks.push(ChunkRecord { worker, op, lane, since, until });
    }

    fn step(&mut self, worker: u32, since: f64, until: f64, stale: u64) {
        self.steps.step(worker, since, until, stale);
    }
}

/// The part of a run that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// From when, in simulated seconds.
    pub since: f64,
    pub until: f64,
}

impl Window {
    /// From when every worker has ended `warm_up` steps until the first worker has ended its last one (errata 3.3). None
    /// if there is no such time.
    pub fn after(records: &[StepRecord], workers: usize, warm_up: u64) -> Option<Self> {
        let mut ended = vec![0u64; workers];
        let mut warm = 0.0f64;
        let mut last = vec![0.0f64; workers];
        for record in records {
            let worker = record.worker as usize;
            ended[worker] += 1;
            last[worker] = record.until;
            if ended[worker] == warm_up {
                warm = warm.max(record.until);
            }
        }
        let until = last.into_iter().fold(f64::INFINITY, f64::min);
        let all_warm = ended.iter().all(|&steps| steps > warm_up);
        (all_warm && until > warm).then_some(Self { since: warm, until })
    }

    /// Steps per second within it; steps at its edges count by their share inside.
    pub fn steps_per_second(&self, records: &[StepRecord]) -> f64 {
        self.rate(records, |_| 1.0)
    }

    pub fn rate(&self, records: &[StepRecord], worth: impl Fn(&StepRecord) -> f64) -> f64 {
        let share = |record: &StepRecord| {
            let inside = record.until.min(self.until) - record.since.max(self.since);
            let length = record.until - record.since;
            if length > 0.0 { (inside / length).clamp(0.0, 1.0) } else { 0.0 }
        };
        let within = records.iter().map(|record| worth(record) * share(record));
        within.sum::<f64>() / (self.until - self.since)
    }

    /// Steps per second in each of `count` equal slices of it.
    pub fn series(
        &self,
        records: &[StepRecord],
        count: usize,
        worth: impl Fn(&StepRecord) -> f64,
    ) -> Vec<f64> {
        let length = (self.until - self.since) / count as f64;
        let mut series = vec![0.0; count];
        for record in records.iter().filter(|record| record.until > self.since && record.since < self.until) {
            let rate = worth(record) / (record.until - record.since);
            let place = |time: f64| ((time - self.since) / length).clamp(0.0, count as f64);
            let (since, until) = (place(record.since), place(record.until));
            let slices = since as usize..(until.ceil() as usize).min(count);
            for (slice, sum) in slices.clone().zip(&mut series[slices]) {
                *sum += rate * (until.min(slice as f64 + 1.0) - since.max(slice as f64)).max(0.0);
            }
        }
        series
    }

    pub fn ending<'a>(&'a self, records: &'a [StepRecord]) -> impl Iterator<Item = &'a StepRecord> {
        records.iter().filter(|record| record.until > self.since && record.until <= self.until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(worker: u32, ends: &[f64]) -> Vec<StepRecord> {
        let since = std::iter::once(0.0).chain(ends.iter().copied());
        since.zip(ends).map(|(since, &until)| StepRecord { worker, since, until, stale: 0 }).collect()
    }

    #[test]
    fn edges_count_by_their_share() {
        let records = steps(0, &[1.0, 2.0, 3.0, 4.0]);
        let window = Window { since: 0.5, until: 3.5 };
        assert!((window.steps_per_second(&records) - 1.0).abs() < 1e-12);
        assert_eq!(window.ending(&records).count(), 3);
    }

    #[test]
    fn slices_have_the_mean_of_the_whole() {
        let mut records = steps(0, &[1.0, 2.5, 3.0, 4.2, 6.0]);
        records.extend(steps(1, &[0.7, 2.0, 5.0, 5.5]));
        let window = Window { since: 0.5, until: 5.2 };
        let worth = |record: &StepRecord| f64::from(record.worker + 1);
        let series = window.series(&records, 7, worth);
        let mean = series.iter().sum::<f64>() / 7.0;
        assert!((mean - window.rate(&records, worth)).abs() < 1e-12, "{series:?}");
    }

    #[test]
    fn the_window_begins_when_all_are_warm_and_ends_with_the_first() {
        let mut records = steps(0, &[1.0, 2.0, 3.0]);
        records.extend(steps(1, &[1.5, 3.5, 5.0]));
        assert_eq!(Window::after(&records, 2, 1), Some(Window { since: 1.5, until: 3.0 }));
        assert_eq!(Window::after(&records, 2, 3), None);
    }
}
