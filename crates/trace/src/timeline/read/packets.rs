//! From Perfetto's format, packet by packet.

use super::events::{Events, Span};
use crate::source::Memory;
use crate::timeline::event::About;
use crate::timeline::perfetto::{ABOUT, Kind, Packet, TrackEvent};
use prost::Message;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufRead, Read};

/// No packet of ours is longer.
const MOST_BYTES: u64 = 64 << 20;

/// Bytes of a name or a track, and of something that has begun.
const NAME: usize = 160;
const OPEN: usize = 100;

/// Tracks of the first worker: its own, and that of its steps.
const PROCESS: u64 = 1;
const STEPS: u64 = 2;

pub(super) fn read(mut reader: impl BufRead, memory: &Memory) -> Result<Events, String> {
    let mut events = None;
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut own = HashSet::new();
    // What began on a track and has not ended, innermost last.
    let mut open: HashMap<u64, Vec<(Option<u64>, u64)>> = HashMap::new();
    while let Some(packet) = next(&mut reader, memory)? {
        for name in packet.interned.into_iter().flat_map(|interned| interned.names) {
            memory.hold(NAME + 2 * name.name.len());
            names.insert(name.id, name.name);
        }
        if let Some(track) = packet.track.filter(|track| track.parent == Some(PROCESS)) {
            memory.hold(NAME);
            own.insert(track.id);
        }
        let Some(event) = packet.event else { continue };
        if let Some(text) = about(&event) {
            let about: About = serde_json::from_str(text).map_err(|error| error.to_string())?;
            events = Some(Events::new(about, memory)?);
        }
        let time = packet.timestamp.unwrap_or(0);
        if !own.contains(&event.track) {
            continue;
        }
        match Kind::try_from(event.kind) {
            Ok(Kind::Begin) => {
                memory.hold(OPEN);
                open.entry(event.track).or_default().push((event.name, time));
            }
            Ok(Kind::End) => {
                let Some((name, since)) = open.get_mut(&event.track).and_then(Vec::pop) else {
                    return Err("something ends that never began".to_owned());
                };
                memory.release(OPEN);
                let Some(events) = &mut events else { return Err("it does not describe the job".to_owned()) };
                let span = Span { since, until: time.max(since) };
                match (event.track, name.and_then(|name| names.get(&name))) {
                    (STEPS, _) => events.step(span),
                    (_, Some(name)) => events.chunk(name, span),
                    (_, None) => return Err("an event has no name".to_owned()),
                }
            }
            _ => {}
        }
    }
    events.ok_or_else(|| "it does not describe the job".to_owned())
}

fn about(event: &TrackEvent) -> Option<&str> {
    event.notes.iter().find(|note| note.name == ABOUT)?.text.as_deref()
}

/// The next packet, if there is one.
fn next(reader: &mut impl BufRead, memory: &Memory) -> Result<Option<Packet>, String> {
    let failed = |error: io::Error| format!("it cannot be read: {error}");
    if reader.fill_buf().map_err(failed)?.is_empty() {
        return Ok(None);
    }
    let mut byte = || {
        let mut byte = [0];
        reader.read_exact(&mut byte).map(|()| byte[0])
    };
    let cut_short = |_: io::Error| "it is cut short".to_owned();
    if byte().map_err(cut_short)? != super::super::perfetto::PACKET {
        return Err("it holds bytes that are not a packet".to_owned());
    }
    let mut length = 0_u64;
    for shift in (0..).step_by(7).take(5) {
        let part = byte().map_err(cut_short)?;
        length |= u64::from(part & 0x7f) << shift;
        if part < 0x80 {
            break;
        }
    }
    // A name of two bytes becomes one of 60.
    if length > MOST_BYTES || length.saturating_mul(60) > memory.left() {
        return Err(format!("a packet of {length} bytes is too large"));
    }
    let mut bytes = Vec::new();
    reader.take(length).read_to_end(&mut bytes).map_err(failed)?;
    if (bytes.len() as u64) < length {
        return Err("it is cut short".to_owned());
    }
    Packet::decode(&bytes[..]).map(Some).map_err(|error| error.to_string())
}
