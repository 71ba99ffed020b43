//! Cuts a trace into its events, in bounded memory. Where one is broken, its end is found by the depth of its braces.

use memchr::{memchr2, memmem};
use std::io::{self, Read};

/// Bytes that are fetched at once.
const CHUNK: usize = 256 << 10;
/// An event beyond this size has lost a bracket; so has a head that goes on without events.
const LONGEST: usize = 4 << 20;
/// Bytes of an arrow.
const LONGEST_ARROW: usize = 1000;
/// What the list of events is called.
const LIST: &[u8] = b"\"traceEvents\"";
/// A key that every event has.
const PHASE: &[u8] = b"\"ph\"";

/// What happened on the way through a file.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Course {
    /// Bytes that belong to no event because one before them has lost a bracket or is cut off.
    pub(super) lost: u64,
    /// Events that join others and say nothing new.
    pub(super) arrows: u64,
    /// Whether the list of events had an end.
    pub(super) complete: bool,
}

/// What a text begins with.
pub(super) enum Begin {
    /// An event of so many bytes, which was taken.
    Event(usize),
    /// An event whose end is missing.
    Unfinished,
    /// Something else.
    Broken,
}

/// What is told about a file.
pub(super) trait Receive {
    /// All that stands before the list of events.
    fn head(&mut self, text: &[u8]);
    /// Takes the event that a text begins with.
    fn begin(&mut self, text: &[u8]) -> Begin;
    /// One event that is broken. False if it could not be used: then it may be several that have lost a bracket between
    /// them.
    fn event(&mut self, text: &[u8]) -> bool;
}

/// Reads a trace to its end, or to where it cannot be read any more: then the error comes beside what was found.
/// None if it has no list of events.
pub(super) fn split(reader: &mut dyn Read, to: &mut dyn Receive) -> (Option<Course>, Option<io::Error>) {
    let mut splitter = Splitter { buffer: Vec::with_capacity(2 * CHUNK), at: 0, course: Course::default() };
    let mut failed = None;
    let mut fetch = |buffer: &mut Vec<u8>| -> bool {
        let before = buffer.len();
        let mut filled = before;
        buffer.resize(before + CHUNK, 0);
        while failed.is_none() && filled < buffer.len() {
            match reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => failed = Some(error),
            }
        }
        buffer.truncate(filled);
        filled > before
    };
    if !splitter.find_list(&mut fetch, to) {
        return (None, failed);
    }
    while !splitter.cut(to) && fetch(&mut splitter.buffer) {}
    if !splitter.course.complete {
        splitter.rescue(to);
    }
    (Some(splitter.course), failed)
}

struct Splitter {
    buffer: Vec<u8>,
    /// Where to go on.
    at: usize,
    course: Course,
}

impl Splitter {
    /// Goes to the first event.
    fn find_list(&mut self, fetch: &mut dyn FnMut(&mut Vec<u8>) -> bool, to: &mut dyn Receive) -> bool {
        loop {
            if let Some(name) = memmem::find(&self.buffer, LIST) {
                let after = name + LIST.len();
                if let Some(bracket) = self.buffer[after..].iter().position(|byte| *byte == b'[') {
                    to.head(&self.buffer[..name]);
                    self.at = after + bracket + 1;
                    return true;
                }
            }
            if self.buffer.len() > LONGEST || !fetch(&mut self.buffer) {
                return false;
            }
        }
    }

    /// Hands over all events that are complete in the buffer, and drops them. True at the end of the list.
    fn cut(&mut self, to: &mut dyn Receive) -> bool {
        loop {
            match self.buffer[self.at..].iter().position(|byte| matches!(byte, b'{' | b']')) {
                None => self.at = self.buffer.len(),
                Some(found) if self.buffer[self.at + found] == b']' => {
                    self.course.complete = true;
                    return true;
                }
                Some(found) => {
                    self.at += found;
                    if let Some(length) = length_of_arrow(&self.buffer[self.at..]) {
                        self.at += length;
                        self.course.arrows += 1;
                        continue;
                    }
                    match to.begin(&self.buffer[self.at..]) {
                        Begin::Event(length) => {
                            self.at += length;
                            continue;
                        }
                        Begin::Unfinished if self.buffer.len() - self.at <= LONGEST => {}
                        Begin::Unfinished => {
                            self.skip_to_next_event();
                            continue;
                        }
                        Begin::Broken => match extent(&self.buffer[self.at..]) {
                            Some(length) => {
                                self.hand_over(length, to);
                                continue;
                            }
                            None if self.buffer.len() - self.at <= LONGEST => {}
                            None => {
                                self.skip_to_next_event();
                                continue;
                            }
                        },
                    }
                }
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            return false;
        }
    }

    /// The object of `length` bytes at hand: an event, or several.
    fn hand_over(&mut self, length: usize, to: &mut dyn Receive) {
        let object = &self.buffer[self.at..self.at + length];
        if to.event(object) || next_event(object).is_none() {
            self.at += length;
        } else {
            self.skip_to_next_event();
        }
    }

    /// Gives up the object at hand up to where another event seems to begin in it.
    fn skip_to_next_event(&mut self) {
        let skipped = next_event(&self.buffer[self.at..]).unwrap_or(self.buffer.len() - self.at);
        self.course.lost += skipped as u64;
        self.at += skipped;
    }

    /// At the end of a file that is cut off: what is left may hold events after one that has lost a bracket.
    fn rescue(&mut self, to: &mut dyn Receive) {
        while self.at < self.buffer.len() {
            self.skip_to_next_event();
            if self.cut(to) {
                return;
            }
        }
    }
}

/// Bytes of the object that begins here, by its braces; none if its end is missing.
fn extent(text: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => {
                at += 1;
                loop {
                    match memchr2(b'"', b'\\', &text[at..]) {
                        None => return None,
                        Some(found) if text[at + found] == b'"' => {
                            at += found;
                            break;
                        }
                        Some(found) => at += found + 2,
                    }
                    if at >= text.len() {
                        return None;
                    }
                }
            }
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Bytes of the event that begins here if it is an arrow from a call to a kernel; it says so at once.
fn length_of_arrow(text: &[u8]) -> Option<usize> {
    let rest = text.strip_prefix(b"{")?.trim_ascii_start().strip_prefix(PHASE)?;
    let rest = rest.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let is_arrow = rest.starts_with(b"\"s\"") || rest.starts_with(b"\"f\"");
    // An arrow is short: what goes on for longer has lost a bracket.
    let text = text.get(..LONGEST_ARROW.min(text.len()))?;
    is_arrow.then(|| extent(text)).flatten()
}

/// Where a second event seems to begin in an object: at the brace before its second phase.
fn next_event(object: &[u8]) -> Option<usize> {
    let mut phases = memmem::find_iter(object, PHASE);
    let first = phases.next()?;
    let brace = |phase: usize| object[..phase].iter().rposition(|byte| *byte == b'{');
    // The first phase may be that of a nested object if the outer one has lost its own.
    std::iter::once(first).chain(phases).filter_map(brace).find(|start| *start > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Kept {
        head: String,
        events: Vec<String>,
    }

    impl Receive for Kept {
        fn head(&mut self, text: &[u8]) {
            self.head = String::from_utf8_lossy(text).into_owned();
        }

        fn begin(&mut self, text: &[u8]) -> Begin {
            let mut values = serde_json::Deserializer::from_slice(text).into_iter::<serde_json::Value>();
            match values.next() {
                Some(Ok(_)) => {
                    let length = values.byte_offset();
                    self.events.push(String::from_utf8_lossy(&text[..length]).into_owned());
                    Begin::Event(length)
                }
                Some(Err(error)) if !error.is_eof() => Begin::Broken,
                _ => Begin::Unfinished,
            }
        }

        fn event(&mut self, text: &[u8]) -> bool {
            if serde_json::from_slice::<serde_json::Value>(text).is_err() {
                return false;
            }
            self.events.push(String::from_utf8_lossy(text).into_owned());
            true
        }
    }

    fn kept(text: &str) -> (Kept, Option<Course>) {
        let mut kept = Kept::default();
        let (course, failed) = split(&mut text.as_bytes(), &mut kept);
        assert!(failed.is_none());
        (kept, course)
    }

    #[test]
    fn events_are_cut_whatever_is_in_their_strings() {
        let events =
            [r#"{"ph":"X","name":"a } \" { ] b\\"}"#, r#"{"ph":"M","args":{"x":{"y":[1,{}]}}}"#, "{}"];
        let text = format!(
            "{{\"a\": 1, \"traceEvents\" : [\n{},{} , {}], \"b\": {{}}}}",
            events[0], events[1], events[2]
        );
        let (found, course) = kept(&text);
        assert_eq!(found.events, events);
        assert_eq!(found.head, "{\"a\": 1, ");
        assert_eq!(course, Some(Course { lost: 0, arrows: 0, complete: true }));
        assert_eq!(kept("{\"a\": []}").1, None);
        assert_eq!(kept("").1, None);
    }

    #[test]
    fn chunks_do_not_show() {
        let event = |index: usize| format!("{{\"ph\":\"X\",\"name\":\"{}\"}}", "}{\\\"".repeat(index % 977));
        let events: Vec<String> = (0..3000).map(event).collect();
        let text = format!("{{\"traceEvents\":[{}]}}", events.join(",\n"));
        assert!(text.len() > 4 * CHUNK);
        let (found, course) = kept(&text);
        assert!(found.events == events && course.unwrap().complete);
    }

    #[test]
    fn a_lost_bracket_costs_one_event() {
        let text = r#"{"traceEvents":[{"ph":"X","n":1},{"ph":"X","n":2,"args":{"a":1},{"ph":"X","n":3},{"ph":"X","n":4}]}"#;
        let (found, course) = kept(text);
        assert_eq!(found.events, [r#"{"ph":"X","n":1}"#, r#"{"ph":"X","n":3}"#, r#"{"ph":"X","n":4}"#]);
        assert!(course.unwrap().lost > 0);
    }

    #[test]
    fn what_is_cut_off_keeps_its_whole_events() {
        let whole = r#"{"traceEvents":[{"ph":"X","n":1},{"ph":"X","n":2}]}"#;
        for end in 16..whole.len() {
            let (found, course) = kept(&whole[..end]);
            let course = course.unwrap();
            assert_eq!(course.complete, end >= whole.len() - 1, "{}", &whole[..end]);
            assert_eq!(
                found.events.len(),
                usize::from(end >= 32) + usize::from(end >= 49),
                "{}",
                &whole[..end]
            );
        }
    }
}
