//! Timelines for trace viewers: what happened where and when, how loaded links were, what led to what.
//!
//! [`chrome`] and [`perfetto`] print a [`Timeline`], and an import reads it back. Viewers draw events of a lane inside each other, so events of one
//! lane either nest or do not meet: [`Timeline::untangle`] gives those that would overlap lanes of their own.

pub mod chrome;
mod event;
pub mod perfetto;
mod read;

pub use event::{About, Event, FORMAT, Flow, Level, Process, Timeline};
pub(crate) use read::{import, recognises};

use crate::write::write_whole;
use std::path::Path;
use stepcast_core::fault::Fault;

/// Whether a file of that name is in Perfetto's own format.
pub fn is_perfetto(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "pftrace" || ending == "perfetto-trace")
}

/// Writes a timeline to `path`, whole or not at all: in Perfetto's format if the name says so (`.pftrace`,
/// `.perfetto-trace`), as JSON otherwise.
pub fn write_timeline(path: &Path, timeline: &Timeline<'_>) -> Result<(), Fault> {
    write_whole(path, |mut file| match is_perfetto(path) {
        true => perfetto::print(timeline, &mut file),
        false => chrome::print(timeline, &mut file),
    })
}

#[cfg(test)]
mod tests;
