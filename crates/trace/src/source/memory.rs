//! The memory that an import may hold.
//!
//! Importers count what they keep, generously: lists that grow hold old and new content for a moment. Once they have
//! counted more than the limit, every stream that they read from ends in an error.

use super::bounded::Excess;
use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;

/// Bytes that any import may hold.
const USUAL: u64 = 512 << 20;

/// Bytes that an import may hold for each byte of its files on the disk, if that is more.
const EACH: u64 = 8;

/// What an import holds, and the most that it may.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    limit: u64,
    held: Rc<Cell<u64>>,
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, held: Rc::default() }
    }

    /// As much as was given, or as is usual for files of that size.
    pub(crate) fn of(paths: &[PathBuf], given: Option<u64>) -> Self {
        let size = |path: &PathBuf| path.metadata().map_or(0, |about| about.len());
        let within = |path: &PathBuf| match path.is_dir() {
            true => super::files(path).unwrap_or_default().iter().map(size).sum(),
            false => size(path),
        };
        let proportional = paths.iter().map(within).sum::<u64>().saturating_mul(EACH);
        Self::new(given.unwrap_or(USUAL.max(proportional)))
    }

    /// Counts bytes that are kept from now on.
    pub(crate) fn hold(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_add(bytes as u64));
    }

    /// Counts bytes that are no longer kept.
    pub(crate) fn release(&self, bytes: usize) {
        self.held.set(self.held.get().saturating_sub(bytes as u64));
    }

    /// The most that may be held.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// What may still be held.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.held.get())
    }

    /// Whether more is held than may be.
    pub(crate) fn excess(&self) -> Option<Excess> {
        (self.held.get() > self.limit).then_some(Excess::Memory(self.limit))
    }
}
