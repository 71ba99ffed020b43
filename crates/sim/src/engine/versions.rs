//! Versions of what workers share through a lane, such as weights behind a lock.
//!
//! An operation that publishes makes a new version when it ends. One that subscribes has work to do only if there is a
//! version that its worker has not seen.

use crate::graph::OpId;
use crate::program::Program;

/// Versions by lane; both tables are empty where no operation subscribes.
#[derive(Debug, Clone)]
pub(super) struct Versions {
    operations: usize,
    /// By lane: the latest version.
    latest: Vec<u64>,
    /// By worker and operation: the version that it has seen.
    seen: Vec<u64>,
}

impl Versions {
    pub(super) fn new(program: &Program) -> Self {
        let operations = program.graph.len();
        let (lanes, seen) = match program.graph.has_subscribers() {
            true => (program.lanes.len(), program.workers() * operations),
            false => (0, 0),
        };
        Self { operations, latest: vec![0; lanes], seen: vec![0; seen] }
    }

    /// An operation that publishes to a lane has ended.
    pub(super) fn publish(&mut self, lane: u32) {
        self.latest[lane as usize] += 1;
    }

    /// A worker's operation sees the latest version of a lane; whether it is new to it.
    pub(super) fn catch_up(&mut self, worker: u32, op: OpId, lane: u32) -> bool {
        let latest = self.latest[lane as usize];
        let seen = &mut self.seen[worker as usize * self.operations + op as usize];
        std::mem::replace(seen, latest) != latest
    }
}
