//! Reading: events are parsed one by one, and repaired where they are not quite JSON.

use super::event::Event;
use super::head::Head;
use super::recording::Recording;
use crate::objects::{Begin, Extent, Receive, extent, repair};

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
