//! Reads back what [`chrome`](super::chrome) and [`perfetto`](super::perfetto) print: the steps of the first worker
//! become a profile. Only that worker's events are kept in memory.

mod events;
mod json;
mod packets;

use super::event::FORMAT;
use crate::content::Content;
use crate::imported::Imported;
use crate::options::Options;
use crate::source;
use std::io::BufReader;
use std::path::PathBuf;
use stepcast_core::fault::{Fault, Remedy, RequestOption};

/// Whether a file that begins like this is a timeline of ours.
pub(crate) fn recognises(head: &[u8]) -> bool {
    matches!(head.first(), Some(b'{' | 0x0a))
        && head.windows(FORMAT.len()).any(|bytes| bytes == FORMAT.as_bytes())
}

/// Imports one timeline.
pub(crate) fn import(paths: &[PathBuf], options: &Options<'_>) -> Result<Imported, Fault> {
    let path = source::only(paths, "timelines", "name one of them")?;
    let mut notes = Vec::new();
    let reading = options.reading(paths);
    let mut imported = source::first(path, &reading, recognises, &mut notes, |source| {
        let name = source.name().to_owned();
        let is_json = source.head().first() == Some(&b'{');
        let memory = source.memory();
        let read = match is_json {
            true => json::read(&mut *source, &memory),
            false => packets::read(BufReader::new(&mut *source), &memory),
        };
        source.check()?;
        let again = Remedy::option_to(RequestOption::Timeline, "to write it again");
        let events = read.map_err(|reason| Fault::in_file(name.clone(), reason, again))?;
        events.profile(&name, options.batch)
    })?;
    imported.notes.extend(notes);
    Ok(imported.map(Content::Profile))
}
