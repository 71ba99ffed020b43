//! A progress bar for large recordings.

use indicatif::{ProgressBar, ProgressStyle};
use std::cell::Cell;
use std::path::PathBuf;
use stepcast_trace::Progress;

/// Bytes of smaller files are read before one would see a bar.
const LARGE: u64 = 20_000_000;

/// How far an import is, on standard error if that is a terminal.
pub(super) struct Bar {
    bar: ProgressBar,
    /// Bytes of all files.
    size: u64,
    /// Bytes of files that have been read, and the last news of the one being read.
    done: Cell<u64>,
    last: Cell<u64>,
}

impl Bar {
    pub(super) fn new(files: &[PathBuf]) -> Self {
        let size: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum();
        let bar = if size < LARGE { ProgressBar::hidden() } else { ProgressBar::new(size) };
        if let Ok(style) = ProgressStyle::with_template("  {bar:40} {bytes} of {total_bytes}, {eta} left") {
            bar.set_style(style);
        }
        Self { bar, size, done: Cell::new(0), last: Cell::new(0) }
    }

    pub(super) fn show(&self, progress: Progress) {
        if progress.read < self.last.get() {
            self.done.set(self.done.get() + self.last.get());
        }
        self.last.set(progress.read);
        let position = self.done.get() + progress.read;
        if position > self.size {
            // Large recordings are read twice.
            self.bar.set_length(2 * self.size);
        }
        self.bar.set_position(position);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
