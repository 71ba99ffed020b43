//! The part of a trace before its events (the job, its process groups, the devices), and how head and events are read: events one by
//! one, repaired where they are not quite JSON.

use super::event::Event;
use super::recording::Recording;
use crate::objects::{Begin, Extent, Receive, extent, repair};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The part of the file before the events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Head {
    #[serde(rename = "distributedInfo")]
    pub(super) distributed: Option<Distributed>,
    #[serde(rename = "deviceProperties")]
    pub(super) devices: Vec<Device>,
    #[serde(skip)]
    groups: Vec<Group>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Distributed {
    pub(super) rank: Option<u64>,
    pub(super) world_size: Option<u64>,
    pg_config: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Device {
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    /// Its description; if missing, its name.
    pub(super) name: String,
    pub(super) ranks: u32,
}

impl Head {
    /// Parses the head; empty if unreadable.
    pub(super) fn parse(text: &str) -> Self {
        let mut head: Self = serde_json::from_str(text).unwrap_or_default();
        let listed = head.distributed.as_mut().map(|own| own.pg_config.take());
        let listed = listed.as_ref().and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        head.groups = listed.iter().filter_map(group).collect();
        head
    }

    /// The process groups of the job; none if they are not recorded.
    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }
}

fn group(value: &Value) -> Option<Group> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let described = text("pg_desc").filter(|text| !text.is_empty() && *text != "undefined");
    let name = described.or_else(|| text("pg_name"))?.to_owned();
    let ranks = value.get("pg_size").and_then(Value::as_u64).and_then(|size| u32::try_from(size).ok());
    Some(Group { name, ranks: ranks.unwrap_or(0) })
}

/// Threads that run the collectives of a process group of gloo (PyTorch's default).
const POOL: usize = 2;

impl Recording {
    /// Attributes collectives whose group is not recorded: to the only group of the job; or, with gloo, by the threads that ran
    /// them. Threads of one group were started together, though ranks of the same host may have started others in between.
    pub(super) fn attribute_groups(&mut self) {
        let only = match self.head.groups() {
            [only] => Some((self.names.intern(&only.name).0, only.ranks)),
            _ => None,
        };
        let mut pools = BTreeMap::<u16, u32>::new();
        let mut threads: Vec<(u32, u16)> =
            self.pool_threads.iter().map(|(own, label)| (*label, *own)).collect();
        threads.sort_unstable();
        let world = self.head.distributed.as_ref().and_then(|own| own.world_size).unwrap_or(1);
        let mut rest = &threads[..];
        while let [(first, _), ..] = rest {
            let near =
                rest.iter().take(POOL).take_while(|(next, _)| u64::from(next - first) <= world).count();
            let (pool, others) = rest.split_at(near);
            rest = others;
            let name = match pool {
                [(only, _)] => format!("gloo {only}"),
                [(first, _), .., (last, _)] => format!("gloo {first}-{last}"),
                [] => continue,
            };
            let (name, _) = self.names.intern(&name);
            pools.extend(pool.iter().map(|(_, thread)| (*thread, name)));
        }
        for own in &mut self.collectives {
            if own.message.group.is_some() {
                continue;
            }
            own.message.group = only.map(|(name, _)| name).or_else(|| pools.get(&own.thread).copied());
            own.message.ranks = own.message.ranks.max(only.map_or(0, |(_, ranks)| ranks));
        }
    }
}

/// Bytes of an arrow between events: a longer one has lost a bracket.
const LONGEST_ARROW: usize = 1000;

impl Receive for Recording {
    fn head(&mut self, text: &[u8]) {
        let mut whole = repair(text);
        whole.truncate(whole.trim_end().trim_end_matches(',').len());
        whole.push('}');
        self.head = Head::parse(&whole);
    }

    fn begin(&mut self, text: &[u8]) -> Begin {
        if let Some(length) = length_of_arrow(text) {
            self.events += 1;
            return Begin::Object(length);
        }
        let mut events = serde_json::Deserializer::from_slice(text).into_iter::<Event<'_>>();
        match events.next() {
            Some(Ok(event)) => {
                self.events += 1;
                self.keep(&event);
                Begin::Object(events.byte_offset())
            }
            Some(Err(error)) if !error.is_eof() => Begin::Broken,
            Some(Err(_)) | None => Begin::Unfinished,
        }
    }

    fn broken(&mut self, text: &[u8]) -> bool {
        let repaired = repair(text);
        let Ok(event) = serde_json::from_str::<Event<'_>>(&repaired) else { return false };
        self.events += 1;
        self.losses.repaired += 1;
        self.keep(&event);
        true
    }
}

/// Bytes of the event that begins here, if it is an arrow from a call to a kernel: arrows hold no new information.
fn length_of_arrow(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"ph\"")?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    if !(rest.starts_with(b"\"s\"") || rest.starts_with(b"\"f\"")) {
        return None;
    }
    match extent(&text[..LONGEST_ARROW.min(text.len())]) {
        Extent::Ends(length) => Some(length),
        Extent::Open | Extent::TooDeep(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_the_job() {
        let text = r#"{"deviceProperties":[{"name":"H200"}],"distributedInfo":{"rank":1,"pg_config":[
            {"pg_name":"0","pg_desc":"default_pg","pg_size":4},{"pg_name":"3","pg_desc":"undefined","pg_size":2},7]}}"#;
        let head = Head::parse(text);
        let group = |name: &str, ranks| Group { name: name.to_owned(), ranks };
        assert_eq!(head.groups(), [group("default_pg", 4), group("3", 2)]);
        assert_eq!(head.devices[0].name, "H200");
        let odd = Head::parse(r#"{"distributedInfo":{"rank":1,"pg_config":"default"}}"#);
        assert_eq!(odd.distributed.as_ref().and_then(|own| own.rank), Some(1));
        assert!(odd.groups().is_empty());
    }
}
