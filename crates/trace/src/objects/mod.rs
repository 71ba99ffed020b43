//! Splits a list in a JSON file into its objects, one at a time, in bounded memory.
//!
//! Traces are truncated, lose brackets and contain bytes that are not UTF-8. An object that can be neither read nor
//! repaired is given up at its first brace, and reading continues at the next: an object nested in it may be returned
//! by itself, which lacks the keys that a reader needs.
//!
//! [`split`] passes on text, for readers that parse it themselves; [`each`] passes on whole objects.

#[cfg(test)]
mod tests;

use crate::import::tally;
use crate::source::Source;
use memchr::{memchr, memchr2, memmem};
use serde_json::{Deserializer, Map, Value};
use std::io;
use std::io::Read;
use stepcast_core::fault::Fault;

/// Bytes that are fetched at once.
const CHUNK: usize = 256 << 10;
/// Largest object; a larger one has lost a bracket, and so has a longer head without a list.
const LONGEST: usize = 4 << 20;
/// Depth beyond which a broken object has lost brackets; it also bounds how often a byte is read.
const DEEPEST: usize = 48;

/// The outcome of reading a list.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Course {
    pub(crate) spoilt: u64,
    /// Whether the list had an end; objects without a list need none.
    pub(crate) complete: bool,
}

pub(crate) enum Begin {
    /// An object of this many bytes, which was taken.
    Object(usize),
    /// An object whose end is missing.
    Unfinished,
    /// Something else.
    Broken,
}

pub(crate) trait Receive {
    /// Receives the text before the list.
    fn head(&mut self, _text: &[u8]) {}
    /// Takes the object at the beginning of a text.
    fn begin(&mut self, text: &[u8]) -> Begin;
    /// Takes an object that is broken, but has an end. False if it cannot be used: it may be several objects that have lost
    /// a bracket between them.
    fn broken(&mut self, text: &[u8]) -> bool;
}

/// Reads the list that is the value of one of the `keys` to its end, or to the first read error: then the error
/// is returned beside the outcome. Without keys, objects are expected from the beginning, in a list or one after the other.
/// None if there is no such list.
pub(crate) fn split(
    reader: &mut dyn Read,
    keys: &[&str],
    to: &mut dyn Receive,
) -> (Option<Course>, Option<io::Error>) {
    let mut splitter = Splitter::default();
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
    while !splitter.find_list(keys, to) {
        if splitter.buffer.len() > LONGEST || !fetch(&mut splitter.buffer) {
            return (None, failed);
        }
    }
    while !splitter.cut(to) && fetch(&mut splitter.buffer) {}
    splitter.rescue(to);
    (Some(splitter.course), failed)
}

#[derive(Default)]
struct Splitter {
    buffer: Vec<u8>,
    /// The next byte to read.
    at: usize,
    listed: bool,
    /// The end of the object that was given up, and how many lists are open in it.
    spoilt_until: usize,
    nested: usize,
    course: Course,
}

impl Splitter {
    /// Skips to the first object. False if it is not in the buffer yet.
    fn find_list(&mut self, keys: &[&str], to: &mut dyn Receive) -> bool {
        if keys.is_empty() {
            let Some(first) = memchr2(b'[', b'{', &self.buffer) else { return false };
            self.listed = self.buffer[first] == b'[';
            self.at = first + usize::from(self.listed);
            return true;
        }
        let Some((key, bracket)) = keys.iter().filter_map(|key| list_called(&self.buffer, key)).min() else {
            return false;
        };
        to.head(&self.buffer[..key]);
        self.listed = true;
        self.at = bracket + 1;
        true
    }

    /// Passes on all objects that are complete in the buffer, and removes them. True at the end of the list.
    fn cut(&mut self, to: &mut dyn Receive) -> bool {
        while let Some(&byte) = self.buffer.get(self.at) {
            match byte {
                b'{' if self.object(to) => continue,
                b'{' => break,
                b'[' => self.nested += 1,
                b']' if self.nested > 0 => self.nested -= 1,
                b']' if self.listed => {
                    self.course.complete = true;
                    return true;
                }
                _ => {}
            }
            self.at += 1;
        }
        self.buffer.drain(..self.at);
        self.spoilt_until = self.spoilt_until.saturating_sub(self.at);
        self.at = 0;
        false
    }

    /// Takes the next object, or gives it up. False if more of the file is needed to decide.
    fn object(&mut self, to: &mut dyn Receive) -> bool {
        let doubtful = self.at < self.spoilt_until;
        if !doubtful {
            self.nested = 0;
        }
        let text = &self.buffer[self.at..];
        // Where brackets are missing, looking for the end first is cheaper than parsing an object that has none.
        let before = doubtful.then(|| extent(text)).filter(|extent| !matches!(extent, Extent::Ends(_)));
        let extent = match before {
            Some(endless) => endless,
            None => match to.begin(text) {
                Begin::Object(length) => {
                    self.at += length;
                    return true;
                }
                Begin::Unfinished => Extent::Open,
                Begin::Broken => extent(text),
            },
        };
        match extent {
            Extent::Ends(length) if to.broken(&text[..length]) => self.at += length,
            Extent::Ends(length) | Extent::TooDeep(length) => self.give_up(length),
            Extent::Open if text.len() <= LONGEST => return false,
            Extent::Open => self.give_up(text.len()),
        }
        true
    }

    /// Skips from the first brace of the next object, of `length` bytes, to the next brace in it.
    fn give_up(&mut self, length: usize) {
        if self.at >= self.spoilt_until {
            self.course.spoilt += 1;
        }
        self.spoilt_until = self.spoilt_until.max(self.at + length);
        let inner = &self.buffer[self.at + 1..self.at + length];
        let skipped = memchr(b'{', inner).unwrap_or(inner.len());
        for byte in &inner[..skipped] {
            match byte {
                b'[' => self.nested += 1,
                b']' => self.nested = self.nested.saturating_sub(1),
                _ => {}
            }
        }
        self.at += 1 + skipped;
    }

    /// At the end of the file: gives up the object that has no end, for complete objects inside it.
    fn rescue(&mut self, to: &mut dyn Receive) {
        while !self.course.complete && self.at < self.buffer.len() {
            self.give_up(self.buffer.len() - self.at);
            self.cut(to);
        }
        self.course.complete |= !self.listed;
    }
}

/// The positions of a list's key and of its beginning.
fn list_called(text: &[u8], key: &str) -> Option<(usize, usize)> {
    let quoted = format!("\"{key}\"");
    memmem::find_iter(text, &quoted).find_map(|start| {
        let after = start + quoted.len();
        let next = text[after..].iter().position(|byte| !(byte.is_ascii_whitespace() || *byte == b':'))?;
        (text[after + next] == b'[').then_some((start, after + next))
    })
}

/// The extent of the object at the beginning of a text, by its braces, and the bytes that were read to find it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Ends(usize),
    TooDeep(usize),
    Open,
}

pub(crate) fn extent(text: &[u8]) -> Extent {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => match end_of_string(text, at + 1) {
                Some(end) => at = end,
                None => return Extent::Open,
            },
            b'{' if depth == DEEPEST => return Extent::TooDeep(at),
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Extent::Ends(at + 1),
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    Extent::Open
}

/// The position of the quotation mark that ends a string.
fn end_of_string(text: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let found = at + memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[found] == b'"' {
            return Some(found);
        }
        at = found + 2;
    }
}

pub(crate) type Object = Map<String, Value>;

/// Passes on the objects of the list that is the value of one of the keys in `lists`; without keys, the objects of the
/// whole file, in a list or one after the other. Losses are reported in `notes`. Only a file that unpacks to too much
/// or takes too much memory is an error. `take` returns the bytes that it keeps of an object.
pub(crate) fn each(
    source: &mut Source<'_>,
    lists: &[&str],
    notes: &mut Vec<String>,
    take: &mut dyn FnMut(Object) -> usize,
) -> Result<(), Fault> {
    let memory = source.memory();
    let (course, failed) =
        split(source, lists, &mut Objects { take: &mut |object| memory.hold(take(object)) });
    source.check()?;
    if let Some(error) = &failed
        && source.exceeded()
    {
        return Err(source.fault(error));
    }
    let course = course.unwrap_or_default();
    tally(notes, course.spoilt, "object", "ignored: unreadable");
    match failed {
        Some(error) => {
            notes.push(format!("the file cannot be unpacked to its end ({error}); the rest is lost"));
        }
        None if !course.complete => {
            notes.push("the file is truncated: the rest is lost".to_owned());
        }
        None => {}
    }
    Ok(())
}

pub(crate) fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
    .filter(|number| number.is_finite())
}

/// A whole number that is not negative; true is 1, and a text may hold one.
pub(crate) fn whole(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Bool(value) => Some(u64::from(*value)),
        Value::Number(value) if value.is_u64() => value.as_u64(),
        other => {
            number(Some(other)).filter(|number| (0.0..1e18).contains(number)).map(|number| number as u64)
        }
    }
}

pub(crate) fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}

struct Objects<'a> {
    take: &'a mut dyn FnMut(Object),
}

impl Receive for Objects<'_> {
    fn begin(&mut self, text: &[u8]) -> Begin {
        let mut objects = Deserializer::from_slice(text).into_iter();
        match objects.next() {
            Some(Ok(object)) => {
                (self.take)(object);
                Begin::Object(objects.byte_offset())
            }
            Some(Err(error)) if !error.is_eof() => Begin::Broken,
            Some(Err(_)) | None => Begin::Unfinished,
        }
    }

    fn broken(&mut self, text: &[u8]) -> bool {
        serde_json::from_str(&repair(text)).map(|object| (self.take)(object)).is_ok()
    }
}

/// The object as JSON: bytes that are no UTF-8 become replacement characters, control characters in strings spaces,
/// unknown escapes plain characters, and `nan`, `inf` and their like null.
pub(crate) fn repair(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut repaired = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut in_string = false;
    while let Some(character) = characters.next() {
        match character {
            '"' => {
                in_string = !in_string;
                repaired.push('"');
            }
            '\\' if in_string => match characters.peek().copied() {
                Some(next @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u')) => {
                    characters.next();
                    repaired.extend(['\\', next]);
                }
                _ => repaired.push_str("\\\\"),
            },
            _ if in_string && character.is_control() => repaired.push(' '),
            '-' if !in_string && characters.peek().is_some_and(char::is_ascii_alphabetic) => {}
            _ if !in_string && character.is_ascii_alphabetic() => {
                let mut word = String::from(character);
                while let Some(next) =
                    characters.next_if(|next| next.is_ascii_alphanumeric() || matches!(next, '.' | '+' | '-'))
                {
                    word.push(next);
                }
                let known = matches!(word.as_str(), "true" | "false" | "null");
                // The exponent of a number is no word.
                let exponent = repaired.ends_with(|before: char| before.is_ascii_digit() || before == '.');
                repaired.push_str(if known || exponent { &word } else { "null" });
            }
            _ => repaired.push(character),
        }
    }
    repaired
}
