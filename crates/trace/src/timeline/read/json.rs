//! From the Trace Event Format, event by event.

use super::events::{Events, Span};
use crate::source::Memory;
use crate::timeline::chrome::FIRST;
use crate::timeline::event::About;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    ph: Cow<'a, str>,
    #[serde(default)]
    pid: u32,
    #[serde(default)]
    tid: u32,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
}

pub(super) fn read(reader: impl Read, memory: &Memory) -> Result<Events, String> {
    let unread = Unread(Rc::default());
    let bounded = Bounded { inner: reader, unread: unread.clone(), memory };
    let mut deserializer = serde_json::Deserializer::from_reader(BufReader::new(bounded));
    let events = deserializer.deserialize_map(Whole(memory, unread)).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(events)
}

/// Bytes since the last thing that was taken in.
#[derive(Clone)]
struct Unread(Rc<Cell<u64>>);

/// Bytes of memory for each byte of something that is not taken in yet.
const EXPANSION: u64 = 8;

/// Ends in an error where a single text or list takes more memory than there is.
struct Bounded<'m, R> {
    inner: R,
    unread: Unread,
    memory: &'m Memory,
}

impl<R: Read> Read for Bounded<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let unread = self.unread.0.get().saturating_add(count as u64);
        self.unread.0.set(unread);
        if unread.saturating_mul(EXPANSION) > self.memory.left() {
            return Err(io::Error::other("a part of it takes too much memory"));
        }
        Ok(count)
    }
}

struct Whole<'m>(&'m Memory, Unread);

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = Events;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timeline")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Events, A::Error> {
        let mut events = None;
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), &mut events) {
                ("stepcast", None) => {
                    events = Some(Events::new(map.next_value::<About>()?, self.0).map_err(A::Error::custom)?);
                }
                ("traceEvents", Some(events)) => map.next_value_seed(Kept(events, &self.1))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
            self.1.0.set(0);
        }
        events.ok_or_else(|| A::Error::custom("it does not describe the job"))
    }
}

/// Keeps the events of the first worker.
struct Kept<'e>(&'e mut Events, &'e Unread);

impl<'de> DeserializeSeed<'de> for Kept<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Kept<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(event) = list.next_element::<Event<'_>>()? {
            self.1.0.set(0);
            if event.ph != "X" || event.pid != FIRST {
                continue;
            }
            let nanoseconds = |time: f64| (time * 1e3).round() as u64;
            let since = nanoseconds(event.ts);
            let span = Span { since, until: since.saturating_add(nanoseconds(event.dur)) };
            match event.tid {
                FIRST => self.0.step(span),
                _ => self.0.chunk(&event.name, span),
            }
        }
        Ok(())
    }
}
