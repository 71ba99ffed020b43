//! When a worker that has ended a step may begin the next one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use stepcast_core::strategy::Synchronisation;

/// Whether step number `index` of a worker is without communication.
pub(crate) fn is_local(rule: Synchronisation, index: u64) -> bool {
    match rule {
        Synchronisation::LocalSgd(steps) => !(index + 1).is_multiple_of(u64::from(steps.max(1))),
        _ => false,
    }
}

/// How many steps every worker has ended, and which workers wait for others.
#[derive(Debug, Clone)]
pub(crate) struct Coordinator {
    rule: Synchronisation,
    done: Vec<u64>,
    slowest: u64,
    at_slowest: usize,
    blocked: Vec<u32>,
    /// Workers that may begin a step now, the lowest number first.
    released: BinaryHeap<Reverse<u32>>,
}

impl Coordinator {
    pub(crate) fn new(rule: Synchronisation, workers: usize) -> Self {
        Self {
            rule,
            done: vec![0; workers],
            slowest: 0,
            at_slowest: workers,
            blocked: Vec::with_capacity(workers),
            released: BinaryHeap::with_capacity(workers),
        }
    }

    pub(crate) fn done(&self, worker: u32) -> u64 {
        self.done[worker as usize]
    }

    pub(crate) fn steps(&self) -> &[u64] {
        &self.done
    }

    /// A worker that is not the slowest counts as having ended this many steps more.
    pub(crate) fn put_ahead(&mut self, worker: u32, steps: u64) {
        let done = &mut self.done[worker as usize];
        if *done > self.slowest || self.at_slowest > 1 {
            self.at_slowest -= usize::from(*done == self.slowest && steps > 0);
            *done += steps;
        }
    }

    /// Steps that the slowest worker has ended.
    pub(crate) fn slowest(&self) -> u64 {
        self.slowest
    }

    /// Workers that wait for others.
    pub(crate) fn blocked(&self) -> &[u32] {
        &self.blocked
    }

    fn may_go_on(&self, worker: u32) -> bool {
        let done = self.done(worker);
        match self.rule {
            Synchronisation::Async => true,
            Synchronisation::Bsp => done == self.slowest,
            Synchronisation::Ssp(bound) => done - self.slowest <= u64::from(bound),
            Synchronisation::LocalSgd(steps) => {
                !done.is_multiple_of(u64::from(steps.max(1))) || done == self.slowest
            }
        }
    }

    /// A worker has ended a step, which may release this worker and others.
    pub(crate) fn ended(&mut self, worker: u32) {
        let before = self.done[worker as usize];
        self.done[worker as usize] += 1;
        self.blocked.push(worker);
        let mut candidates = self.blocked.len() - 1..self.blocked.len();
        if before == self.slowest {
            self.at_slowest -= 1;
            if self.at_slowest == 0 {
                self.slowest = self.done.iter().copied().min().unwrap_or(0);
                self.at_slowest = self.done.iter().filter(|done| **done == self.slowest).count();
                candidates.start = 0;
            }
        }
        for position in candidates.rev() {
            if self.may_go_on(self.blocked[position]) {
                self.released.push(Reverse(self.blocked.swap_remove(position)));
            }
        }
    }

    /// The next worker that may begin a step; released workers come in ascending order of their numbers.
    pub(crate) fn next_released(&mut self) -> Option<u32> {
        self.released.pop().map(|Reverse(worker)| worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(coordinator: &mut Coordinator, worker: u32) -> Vec<u32> {
        coordinator.ended(worker);
        std::iter::from_fn(|| coordinator.next_released()).collect()
    }

    #[test]
    fn bulk_synchronous_workers_start_together() {
        let mut coordinator = Coordinator::new(Synchronisation::Bsp, 3);
        assert!(released(&mut coordinator, 2).is_empty());
        assert!(released(&mut coordinator, 0).is_empty());
        assert_eq!(released(&mut coordinator, 1), [0, 1, 2]);
    }

    #[test]
    fn a_bound_of_one_lets_the_fast_run_one_ahead() {
        let mut coordinator = Coordinator::new(Synchronisation::Ssp(1), 2);
        assert_eq!(released(&mut coordinator, 0), [0]);
        assert!(released(&mut coordinator, 0).is_empty());
        assert_eq!(released(&mut coordinator, 1), [0, 1]);
    }

    #[test]
    fn local_steps_do_not_wait() {
        let mut coordinator = Coordinator::new(Synchronisation::LocalSgd(2), 2);
        assert!(is_local(Synchronisation::LocalSgd(2), 0) && !is_local(Synchronisation::LocalSgd(2), 1));
        assert_eq!(released(&mut coordinator, 0), [0]);
        assert!(released(&mut coordinator, 0).is_empty());
        assert_eq!(released(&mut coordinator, 1), [1]);
        assert_eq!(released(&mut coordinator, 1), [0, 1]);
    }
}
