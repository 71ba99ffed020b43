//! Perfetto's own format, printed and read back: a protobuf of packets, each a description of a track or an event on one.
//!
//! Only the messages and fields that are written or read are declared; numbers are those of perfetto_trace.proto.

use super::{About, Event, Events, Flow, Span, Timeline, nanoseconds};
use crate::source::Memory;
use prost::Message;
use std::collections::{HashMap, HashSet};
use std::io;
use std::io::{BufRead, Read, Write};

stepcast_onnx::messages! {
    Packet {
        timestamp: Option<u64> => "8" (uint64, optional);
        sequence: u32 => "10" (uint32);
        event: Option<TrackEvent> => "11" (message, optional);
        interned: Option<Interned> => "12" (message, optional);
        /// 1: interned names begin anew; 2: they are needed.
        flags: Option<u32> => "13" (uint32, optional);
        track: Option<Track> => "60" (message, optional);
    }

    TrackEvent {
        notes: Vec<Note> => "4" (message, repeated);
        kind: i32 => "9" (enumeration = "TrackEventKind");
        name: Option<u64> => "10" (uint64, optional);
        track: u64 => "11" (uint64);
        categories: Vec<String> => "22" (string, repeated);
        level: Option<f64> => "44" (double, optional);
        flows: Vec<u64> => "47" (fixed64, repeated);
        ending_flows: Vec<u64> => "48" (fixed64, repeated);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum TrackEventKind {
    Unspecified = 0,
    Begin = 1,
    End = 2,
    Instant = 3,
    Level = 4,
}

stepcast_onnx::messages! {
    Note {
        number: Option<u64> => "3" (uint64, optional);
        text: Option<String> => "6" (string, optional);
        name: String => "10" (string);
    }

    Interned {
        names: Vec<Name> => "2" (message, repeated);
    }

    Name {
        id: u64 => "1" (uint64);
        name: String => "2" (string);
    }

    Track {
        id: u64 => "1" (uint64);
        name: Option<String> => "2" (string, optional);
        process: Option<ProcessTrack> => "3" (message, optional);
        parent: Option<u64> => "5" (uint64, optional);
        counter: Option<CounterTrack> => "8" (message, optional);
        /// 3: by rank.
        ordering: Option<i32> => "11" (int32, optional);
        rank: Option<i32> => "12" (int32, optional);
    }

    ProcessTrack {
        pid: i32 => "1" (int32);
        name: String => "6" (string);
    }

    CounterTrack {
        unit: String => "6" (string);
    }
}

/// A trace is its packets, each as field 1.
const PACKET: u8 = 1 << 3 | 2;

const SEQUENCE: u32 = 1;

/// The note that holds the job.
const ABOUT: &str = "stepcast";

/// Numbers of tracks: processes, each followed by its lanes and levels.
struct Tracks {
    /// By process: the numbers of its own track, of its first lane and of its first level.
    first: Vec<[u64; 3]>,
}

impl Tracks {
    fn new(timeline: &Timeline<'_>) -> Self {
        let mut next = 1;
        let mut first = Vec::with_capacity(timeline.processes.len());
        for process in &timeline.processes {
            let lanes = next + 1;
            let levels = lanes + process.lanes.len() as u64;
            first.push([next, lanes, levels]);
            next = levels + process.levels.len() as u64;
        }
        Self { first }
    }

    fn lane(&self, event: &Event<'_>) -> u64 {
        self.first[event.process as usize][1] + u64::from(event.lane)
    }
}

pub fn print(timeline: &Timeline<'_>, out: &mut impl Write) -> io::Result<()> {
    let tracks = Tracks::new(timeline);
    let mut packets = Packets { out, scratch: Vec::new() };
    describe(timeline, &tracks, &mut packets)?;
    let mut names: HashMap<&str, u64> = HashMap::new();
    for event in &timeline.events {
        let next = names.len() as u64 + 1;
        let id = *names.entry(&event.name).or_insert(next);
        let interned =
            (id == next).then(|| Interned { names: vec![Name { id, name: event.name.to_string() }] });
        let (flows, ending_flows) = match event.flow {
            Flow::None => (vec![], vec![]),
            Flow::Begins(id) => (vec![id], vec![]),
            Flow::Ends(id) => (vec![], vec![id]),
        };
        let note =
            |(name, number): (&str, u64)| Note { number: Some(number), text: None, name: name.to_owned() };
        let begin = TrackEvent {
            notes: event.figure.map(note).into_iter().collect(),
            kind: TrackEventKind::Begin as i32,
            name: Some(id),
            categories: event.kind.map(str::to_owned).into_iter().collect(),
            track: tracks.lane(event),
            flows,
            ending_flows,
            ..TrackEvent::default()
        };
        let end =
            TrackEvent { kind: TrackEventKind::End as i32, track: begin.track, ..TrackEvent::default() };
        let (since, until) = (nanoseconds(event.since), nanoseconds(event.until));
        packets.print(Packet {
            timestamp: Some(since),
            event: Some(begin),
            interned,
            ..Packet::default()
        })?;
        packets.print(Packet { timestamp: Some(until.max(since)), event: Some(end), ..Packet::default() })?;
    }
    for level in &timeline.levels {
        let track = tracks.first[level.process as usize][2] + u64::from(level.level);
        let event = TrackEvent {
            kind: TrackEventKind::Level as i32,
            track,
            level: Some(level.value),
            ..TrackEvent::default()
        };
        let timestamp = Some(nanoseconds(level.at));
        packets.print(Packet { timestamp, event: Some(event), ..Packet::default() })?;
    }
    Ok(())
}

/// Describes all tracks and the job.
fn describe<W: Write>(
    timeline: &Timeline<'_>,
    tracks: &Tracks,
    packets: &mut Packets<'_, W>,
) -> io::Result<()> {
    let mut flags = Some(1);
    let mut print = |track: Track, about: Option<TrackEvent>| {
        let timestamp = about.is_some().then_some(0);
        let track = (track.id > 0).then_some(track);
        packets.print(Packet { timestamp, track, event: about, flags: flags.take(), ..Packet::default() })
    };
    for (pid, (process, [own, lanes, levels])) in (1..).zip(timeline.processes.iter().zip(&tracks.first)) {
        let track = Some(ProcessTrack { pid, name: process.name.clone() });
        print(Track { id: *own, process: track, ordering: Some(3), ..Track::default() }, None)?;
        let child = |id: u64, name: &str| Track {
            id,
            name: Some(name.to_owned()),
            parent: Some(*own),
            rank: i32::try_from(id - own).ok(),
            ..Track::default()
        };
        for (id, lane) in (*lanes..).zip(&process.lanes) {
            print(child(id, lane), None)?;
        }
        for (id, (level, unit)) in (*levels..).zip(&process.levels) {
            let counter = Some(CounterTrack { unit: (*unit).to_owned() });
            print(Track { counter, ..child(id, level) }, None)?;
        }
        // Early, so that the format can be recognised from the beginning of the file.
        if pid == 1 {
            let text = Some(serde_json::to_string(&timeline.about)?);
            let notes = vec![Note { number: None, text, name: ABOUT.to_owned() }];
            let kind = TrackEventKind::Instant as i32;
            print(
                Track::default(),
                Some(TrackEvent { notes, kind, track: *lanes, ..TrackEvent::default() }),
            )?;
        }
    }
    Ok(())
}

struct Packets<'w, W> {
    out: &'w mut W,
    scratch: Vec<u8>,
}

impl<W: Write> Packets<'_, W> {
    fn print(&mut self, packet: Packet) -> io::Result<()> {
        let flags = packet.flags.or(packet.event.is_some().then_some(2));
        let packet = Packet { sequence: SEQUENCE, flags, ..packet };
        self.scratch.clear();
        self.scratch.push(PACKET);
        prost::encoding::encode_varint(packet.encoded_len() as u64, &mut self.scratch);
        packet.encode(&mut self.scratch).map_err(io::Error::other)?;
        self.out.write_all(&self.scratch)
    }
}

/// No packet of ours is longer.
const MOST_BYTES: u64 = 64 << 20;

/// Bytes of a name or a track, and of an open event.
const NAME: usize = 160;
const OPEN: usize = 100;

/// Tracks of the first worker: its own, and the track of its steps.
const PROCESS: u64 = 1;
const STEPS: u64 = 2;

pub(super) fn read_packets(mut reader: impl BufRead, memory: &Memory) -> Result<Events, String> {
    let mut events = None;
    let mut names: HashMap<u64, String> = HashMap::new();
    let mut own = HashSet::new();
    // Open events of each track, innermost last.
    let mut open: HashMap<u64, Vec<(Option<u64>, u64)>> = HashMap::new();
    while let Some(packet) = next_packet(&mut reader, memory)? {
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
        match TrackEventKind::try_from(event.kind) {
            Ok(TrackEventKind::Begin) => {
                memory.hold(OPEN);
                open.entry(event.track).or_default().push((event.name, time));
            }
            Ok(TrackEventKind::End) => {
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

fn next_packet(reader: &mut impl BufRead, memory: &Memory) -> Result<Option<Packet>, String> {
    let failed = |error: io::Error| format!("it cannot be read: {error}");
    if reader.fill_buf().map_err(failed)?.is_empty() {
        return Ok(None);
    }
    let mut byte = || {
        let mut byte = [0];
        reader.read_exact(&mut byte).map(|()| byte[0])
    };
    let cut_short = |_: io::Error| "it is cut short".to_owned();
    if byte().map_err(cut_short)? != PACKET {
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
