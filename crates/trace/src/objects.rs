//! Cuts a list in a JSON file into its objects, one at a time, in bounded memory.
//!
//! Traces are cut off, lose brackets and hold bytes that are no text. An object that cannot be read is given up at its
//! first brace, and reading goes on behind it: what was nested in it may come out as an object of its own, which lacks the
//! keys that a reader looks for.

use crate::TraceError;
use crate::source::Source;
use serde_json::{Map, Value};
use std::io::{self, Read};

/// Bytes that are fetched at once.
const CHUNK: usize = 128 << 10;
/// Bytes beyond which an object has lost a bracket.
const LONGEST: usize = 4 << 20;
/// Depth beyond which an object has lost brackets; it also bounds how often a byte is looked at.
const DEEPEST: usize = 48;

/// One entry of the list.
pub(crate) type Object = Map<String, Value>;

/// Hands over the objects of the list that is the value of one of the keys in `lists`; without keys, those of the whole
/// file, in a list or one after the other. What is lost on the way is said in `notes`. Only a file that unpacks to too much
/// is an error.
pub(crate) fn each(
    source: &mut Source<'_>,
    lists: &[&str],
    notes: &mut Vec<String>,
    take: &mut dyn FnMut(Object),
) -> Result<(), TraceError> {
    let mut scanner = Scanner::new(lists);
    let mut chunk = vec![0; CHUNK];
    let mut failed: Option<io::Error> = None;
    while !scanner.complete {
        match source.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => scanner.feed(&chunk[..count], take),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if source.exceeded() => return Err(source.complaint(&error)),
            Err(error) => {
                failed = Some(error);
                break;
            }
        }
    }
    scanner.rescue(take);
    if scanner.spoilt > 0 {
        notes.push(format!("{} entries could not be read and were left out", scanner.spoilt));
    }
    match failed {
        Some(error) => {
            notes.push(format!("the file cannot be unpacked to its end ({error}); the rest is lost"));
        }
        None if !scanner.complete && scanner.is_list => {
            notes.push("the file has no end: what came after is lost".to_owned());
        }
        None => {}
    }
    Ok(())
}

/// A number, or a text that is one.
pub(crate) fn number(value: Option<&Value>) -> Option<f64> {
    match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Bool(_) | Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
    .filter(|number| number.is_finite())
}

/// A text.
pub(crate) fn text(value: Option<&Value>) -> Option<&str> {
    value.and_then(Value::as_str)
}

struct Scanner<'a> {
    lists: &'a [&'a str],
    buffer: Vec<u8>,
    /// How far the buffer has been looked at.
    at: usize,
    /// Where the open object begins, and how deep and whether in a string the scan is.
    open: Option<usize>,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The last text before the list: its key.
    word: Vec<u8>,
    /// Whether objects are expected, whether they stand in a list, and whether it has ended.
    inside: bool,
    is_list: bool,
    complete: bool,
    /// Entries given up, and how far the last of them reached.
    spoilt: usize,
    spoilt_until: usize,
}

impl<'a> Scanner<'a> {
    fn new(lists: &'a [&'a str]) -> Self {
        Self {
            lists,
            buffer: Vec::new(),
            at: 0,
            open: None,
            depth: 0,
            in_string: false,
            escaped: false,
            word: Vec::new(),
            inside: lists.is_empty(),
            is_list: false,
            complete: false,
            spoilt: 0,
            spoilt_until: 0,
        }
    }

    fn feed(&mut self, bytes: &[u8], take: &mut dyn FnMut(Object)) {
        let done = self.open.unwrap_or(self.at);
        self.buffer.drain(..done);
        self.at -= done;
        self.spoilt_until = self.spoilt_until.saturating_sub(done);
        self.open = self.open.map(|_| 0);
        self.buffer.extend_from_slice(bytes);
        self.scan(take);
    }

    /// At the end of the file: gives up the object that has no end, for those that it may have swallowed.
    fn rescue(&mut self, take: &mut dyn FnMut(Object)) {
        while let Some(start) = self.open.filter(|_| !self.complete) {
            self.give_up(start, self.buffer.len());
            self.scan(take);
        }
    }

    fn scan(&mut self, take: &mut dyn FnMut(Object)) {
        while self.at < self.buffer.len() && !self.complete {
            let byte = self.buffer[self.at];
            self.at += 1;
            if self.in_string {
                self.in_text(byte);
            } else if byte == b'"' {
                self.in_string = true;
                self.word.clear();
            } else if !self.inside {
                self.before_list(byte);
            } else {
                self.in_list(byte, take);
            }
            if let Some(start) = self.open
                && (self.at - start > LONGEST || self.depth > DEEPEST)
            {
                self.give_up(start, self.at);
            }
        }
    }

    fn in_text(&mut self, byte: u8) {
        if std::mem::take(&mut self.escaped) {
            return;
        }
        match byte {
            b'"' => self.in_string = false,
            b'\\' => self.escaped = true,
            _ if !self.inside && self.word.len() < 64 => self.word.push(byte),
            _ => {}
        }
    }

    fn before_list(&mut self, byte: u8) {
        if byte == b'[' {
            self.inside = self.lists.iter().any(|list| list.as_bytes() == self.word);
            self.is_list = self.inside;
        } else if !matches!(byte, b':' | b' ' | b'\t' | b'\r' | b'\n') {
            self.word.clear();
        }
    }

    fn in_list(&mut self, byte: u8, take: &mut dyn FnMut(Object)) {
        match (byte, self.open) {
            (b'{', None) => (self.open, self.depth) = (Some(self.at - 1), 1),
            (b'{', Some(_)) => self.depth += 1,
            (b'}', Some(start)) if self.depth == 1 => match parse(&self.buffer[start..self.at]) {
                Some(object) => {
                    self.open = None;
                    take(object);
                }
                None => self.give_up(start, self.at),
            },
            (b'}', Some(_)) => self.depth -= 1,
            (b'[', None) => self.is_list = true,
            (b']', None) if self.is_list => self.complete = true,
            _ => {}
        }
    }

    /// Goes on behind the first brace of an object.
    fn give_up(&mut self, start: usize, end: usize) {
        if start >= self.spoilt_until {
            self.spoilt += 1;
        }
        self.spoilt_until = self.spoilt_until.max(end);
        // Not the end of a list within it.
        let next = self.buffer[start + 1..end].iter().position(|byte| *byte == b'{');
        self.at = next.map_or(end, |next| start + 1 + next);
        (self.open, self.in_string, self.escaped) = (None, false, false);
    }
}

fn parse(bytes: &[u8]) -> Option<Object> {
    serde_json::from_slice(bytes).or_else(|_| serde_json::from_str(&String::from_utf8_lossy(bytes))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &[u8], piece: usize) -> (Vec<String>, usize, bool) {
        let named = text.windows(6).any(|bytes| bytes == b"\"list\"");
        let mut scanner = Scanner::new(if named { &["list"] } else { &[] });
        let mut found = Vec::new();
        let mut take = |object: Object| {
            if let Some(value) = object.get("n") {
                found.push(value.to_string());
            }
        };
        for bytes in text.chunks(piece) {
            scanner.feed(bytes, &mut take);
        }
        scanner.rescue(&mut take);
        (found, scanner.spoilt, scanner.complete)
    }

    #[test]
    fn objects_come_out_however_the_file_is_read() {
        let cases = [
            (
                r#"[{"n":1},{"n":"} ] \" {","a":{"b":[{}]}} , {"n":3}]"#,
                vec!["1", r#""} ] \" {""#, "3"],
                0,
                true,
            ),
            (r#" {"x":[{"n":0}],"list" : [ {"n":1}, {"n":2} ], "y":[{"n":9}]}"#, vec!["1", "2"], 0, true),
            (r#"{"n":[{"n":1}],"list":{}}"#, vec![], 0, false),
            (r#"{"n":1} {"n":2}"#, vec!["1", "2"], 0, false),
            (r#"[{"n":1},{"n":2},{"n":3"#, vec!["1", "2"], 1, false),
            (r#"[{"n":1},{"n":2,"a":{"b":1},{"n":3},{"n":4}]"#, vec!["1", "3", "4"], 1, true),
            (r#"[{"n":1},{"n":NaN,"a":{"b":1}},{"n":3}]"#, vec!["1", "3"], 1, true),
            (r#"[{"n":1,"n":2},{"n":"3}"#, vec!["2"], 1, false),
            ("", vec![], 0, false),
            ("[", vec![], 0, false),
        ];
        for (text, expected, spoilt, complete) in cases {
            for piece in [1, 2, 7, 1000] {
                let (found, lost, ended) = cut(text.as_bytes(), piece);
                assert_eq!(found, expected, "{text}");
                assert_eq!((lost, ended), (spoilt, complete), "{text}");
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        let (found, lost, _) = cut(b"[{\"n\":\"a\xff\"}]", 3);
        assert_eq!((found, lost), (vec!["\"a\u{fffd}\"".to_owned()], 0));
    }

    #[test]
    fn braces_without_end_take_no_more_than_linear_time() {
        let mut text = b"[".to_vec();
        text.extend(b"{\"a\":".repeat(200_000));
        text.extend(b"{\"n\":1}");
        let (found, ..) = cut(&text, CHUNK);
        assert_eq!(found, ["1"]);
    }

    #[test]
    fn numbers_may_be_texts() {
        let value: Value = serde_json::from_str(r#"[1, " 2.5", "x", null, "inf"]"#).unwrap();
        let numbers: Vec<_> = (0..5).map(|index| number(value.get(index))).collect();
        assert_eq!(numbers, [Some(1.0), Some(2.5), None, None, None]);
    }
}
