//! The part of a run that counts, and the rate of steps in it.

use crate::engine::observe::StepRecord;

/// The part of a run that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// From when, in simulated seconds.
    pub since: f64,
    /// Until when.
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

    /// Steps per second within it, those at its edges counted by the share that lies inside.
    pub fn steps_per_second(&self, records: &[StepRecord]) -> f64 {
        self.rate(records, |_| 1.0)
    }

    /// The same for what each step is worth.
    pub fn rate(&self, records: &[StepRecord], worth: impl Fn(&StepRecord) -> f64) -> f64 {
        let share = |record: &StepRecord| {
            let inside = record.until.min(self.until) - record.since.max(self.since);
            let length = record.until - record.since;
            if length > 0.0 { (inside / length).clamp(0.0, 1.0) } else { 0.0 }
        };
        let within = records.iter().map(|record| worth(record) * share(record));
        within.sum::<f64>() / (self.until - self.since)
    }

    /// The same in each of `count` equal slices of it.
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

    /// The steps that end within it.
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
