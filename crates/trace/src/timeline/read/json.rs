//! From the Trace Event Format, event by event.

use super::events::{Events, Span};
use crate::timeline::chrome::FIRST;
use crate::timeline::event::About;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::io::Read;

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

pub(super) fn read(reader: impl Read) -> Result<Events, String> {
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let events = deserializer.deserialize_map(Whole).map_err(|error| error.to_string())?;
    deserializer.end().map_err(|error| error.to_string())?;
    Ok(events)
}

struct Whole;

impl<'de> Visitor<'de> for Whole {
    type Value = Events;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a timeline")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Events, A::Error> {
        let mut events = None;
        while let Some(key) = map.next_key::<String>()? {
            match (key.as_str(), &mut events) {
                ("stepcast", None) => {
                    events = Some(Events::new(map.next_value::<About>()?).map_err(A::Error::custom)?);
                }
                ("traceEvents", Some(events)) => map.next_value_seed(Kept(events))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        events.ok_or_else(|| A::Error::custom("it does not describe the job"))
    }
}

/// Keeps the events of the first worker.
struct Kept<'e>(&'e mut Events);

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
            if event.ph != "X" || event.pid != FIRST {
                continue;
            }
            let nanoseconds = |time: f64| (time * 1e3).round() as u64;
            let since = nanoseconds(event.ts);
            let span = Span { since, until: since.saturating_add(nanoseconds(event.dur)) };
            match event.tid {
                FIRST => self.0.steps.push(span),
                _ => self.0.chunk(&event.name, span),
            }
        }
        Ok(())
    }
}
