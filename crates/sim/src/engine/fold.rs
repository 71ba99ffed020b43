//! Folding: of workers that begin the same step at the same moment, one is simulated and stands for all.
//!
//! Where workers meet only at stations that serve all alike ([`Program::is_foldable`]), such workers behave identically until
//! they end the step, so nothing is lost. Workers that begin together are collected until no
//! other event is due at that moment; each draws its step as it would alone.

use super::Engine;
use super::observe::Observer;
use crate::program::Program;

const NONE: u32 = u32::MAX;

/// Which workers stand for others.
#[derive(Debug, Clone)]
pub(super) struct Folds {
    /// Workers that are to begin a step at this moment.
    ready: Vec<u32>,
    drawn: Vec<Drawn>,
    /// By worker: the next worker that is simulated together with it.
    next: Vec<u32>,
}

/// The next step of a worker. Workers with equal steps are folded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Drawn {
    kind: usize,
    local: bool,
    index: usize,
    worker: u32,
}

impl Drawn {
    fn is_like(&self, other: &Self) -> bool {
        Self { worker: 0, ..*self } == Self { worker: 0, ..*other }
    }
}

impl Folds {
    pub(super) fn new(program: &Program) -> Self {
        let workers = program.workers();
        Self {
            ready: Vec::with_capacity(workers),
            drawn: Vec::with_capacity(workers),
            next: vec![NONE; workers],
        }
    }

    /// A worker is to begin a step at this moment.
    pub(super) fn ready(&mut self, worker: u32) {
        self.ready.push(worker);
    }

    /// Whether workers are to begin a step at this moment.
    #[inline]
    pub(super) fn any_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes the next worker that was simulated together with this one out of the fold.
    fn unfold(&mut self, worker: u32) -> Option<u32> {
        let next = std::mem::replace(&mut self.next[worker as usize], NONE);
        (next != NONE).then_some(next)
    }
}

impl<O: Observer> Engine<'_, O> {
    /// Begins the steps of all workers that are ready.
    pub(super) fn begin_together(&mut self) {
        let Some(folds) = &mut self.folds else { return };
        let ready = std::mem::take(&mut folds.ready);
        let mut drawn = std::mem::take(&mut folds.drawn);
        drawn.clear();
        for &worker in &ready {
            let (index, local) = self.draw(worker);
            drawn.push(Drawn { kind: self.program.kind[worker as usize], local, index, worker });
        }
        drawn.sort_unstable();
        let Some(folds) = &mut self.folds else { return };
        folds.ready = ready;
        folds.ready.clear();
        let mut simulated = 0;
        let mut since = 0;
        while let Some(&first) = drawn.get(since) {
            let alike = drawn[since..].partition_point(|other| other.is_like(&first));
            for pair in drawn[since..since + alike].windows(2) {
                folds.next[pair[0].worker as usize] = pair[1].worker;
            }
            for follower in &drawn[since + 1..since + alike] {
                self.workers.follow(follower.worker, self.now, follower.local);
            }
            self.workers.stand_for(first.worker, alike as u32);
            since += alike;
            drawn[simulated] = first;
            simulated += 1;
        }
        drawn.truncate(simulated);
        drawn.sort_unstable_by_key(|drawn| drawn.worker);
        for &Drawn { worker, index, local, .. } in &drawn {
            self.begin_step(worker, index, local);
        }
        if let Some(folds) = &mut self.folds {
            folds.drawn = drawn;
        }
        self.release_successors();
    }

    /// The next worker that ends its step together with this one.
    pub(super) fn unfold(&mut self, worker: u32) -> Option<u32> {
        self.folds.as_mut()?.unfold(worker)
    }
}
