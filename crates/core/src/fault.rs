//! Bad input: the reason, the place and the remedy. This is the only error type of all code that reads keys, files or
//! flags.

mod remedy;

pub(crate) use remedy::names;
pub use remedy::{Measurement, NameList, Remedies, Remedy, RequestOption};

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Most characters of a foreign text in a message.
const SHOWN: usize = 120;

/// A text for a message, cut if it is long.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// One component of a path into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// The place of a value in a document: `cluster.workers[1].count`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPath(Vec<Step>);

impl KeyPath {
    /// The path of the document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Parses "a.b.c" (no indices).
    pub fn of(dotted: &str) -> Self {
        Self(dotted.split('.').map(|key| Step::Key(key.to_owned())).collect())
    }

    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.0.push(Step::Key(key.to_owned()));
        self
    }

    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Step::Index(index));
        self
    }

    #[must_use]
    pub fn below(self, mut parent: Self) -> Self {
        parent.0.extend(self.0);
        parent
    }

    /// Whether it is `parent`, or stands below it.
    pub fn is_within(&self, parent: &str) -> bool {
        self.0.starts_with(&Self::of(parent).0)
    }

    pub fn steps(&self) -> &[Step] {
        &self.0
    }
}

impl From<&str> for KeyPath {
    fn from(dotted: &str) -> Self {
        Self::of(dotted)
    }
}

impl PartialEq<&str> for KeyPath {
    fn eq(&self, dotted: &&str) -> bool {
        let written = self.to_string();
        written == *dotted
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if position == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub text: Arc<str>,
    /// Byte range of the part.
    pub span: Range<usize>,
}

impl Excerpt {
    /// Line and column at which it begins, counted from 1.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        let before = self.text.get(..self.span.start)?;
        let line = 1 + before.matches('\n').count();
        Some((line, 1 + before.rsplit('\n').next().unwrap_or_default().chars().count()))
    }
}

/// Longest origin, in bytes, that is shown in full: paths may be long, settings may hold anything.
const LONGEST_ORIGIN: usize = 4096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A file, with the place in it if there is one ("steps.tar.xz, step_0003.pb", "profile.json:12:7"), or a setting
    /// such as "strategy.batch=64".
    pub origin: String,
    /// The faulty part of the file's text, if it can be shown.
    pub excerpt: Option<Excerpt>,
}

/// Longest text of a fault, in bytes; longer ones are cut here, so callers may quote any value.
const LONGEST_TEXT: usize = 2000;

fn shortened(mut text: String) -> String {
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text.push('…');
    }
    text
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The scenario key at fault; the root if no key is.
    pub key: KeyPath,
    pub place: Option<Place>,
    /// What is wrong.
    pub reason: String,
    pub remedy: Remedies,
}

impl Fault {
    /// A fault without a key or a place.
    pub fn new(reason: impl Into<String>, remedy: impl Into<Remedies>) -> Self {
        let (reason, remedy) = (shortened(reason.into()), remedy.into().shortened(shortened));
        Self { key: KeyPath::root(), place: None, reason, remedy }
    }

    pub fn in_key(key: impl Into<KeyPath>, reason: impl Into<String>, remedy: impl Into<Remedies>) -> Self {
        Self { key: key.into(), ..Self::new(reason, remedy) }
    }

    pub fn in_file(
        origin: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<Remedies>,
    ) -> Self {
        Self::new(reason, remedy).at(origin)
    }

    #[must_use]
    pub fn at(self, origin: impl Into<String>) -> Self {
        let mut origin = origin.into();
        if origin.len() > LONGEST_ORIGIN {
            origin = shown(&origin);
        }
        Self { place: Some(Place { origin, excerpt: None }), ..self }
    }

    #[must_use]
    pub fn below(self, parent: KeyPath) -> Self {
        Self { key: self.key.below(parent), ..self }
    }

    /// The file or setting in which it was found; empty if unknown.
    pub fn origin(&self) -> &str {
        self.place.as_ref().map_or("", |place| &place.origin)
    }

    /// The faulty part of a text, if it can be shown.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        self.place.as_ref()?.excerpt.as_ref()
    }
}

/// Information about valid input: an assumption, or a part that was ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The note; with a remedy, without its full stop.
    pub text: String,
    /// How to get something else.
    pub remedy: Remedies,
}

impl From<String> for Note {
    fn from(text: String) -> Self {
        Self { text, remedy: Remedies::default() }
    }
}

impl Note {
    /// The whole note, with the remedy in the words of a front end.
    pub fn worded(&self, word: impl Fn(&Remedy) -> Option<String>) -> String {
        match self.remedy.is_empty() {
            true => self.text.clone(),
            false => format!("{}; {}.", self.text, self.remedy.worded(word)),
        }
    }
}

impl std::error::Error for Fault {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for place in [self.origin(), &self.key.to_string()].into_iter().filter(|place| !place.is_empty()) {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}", self.reason)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}
