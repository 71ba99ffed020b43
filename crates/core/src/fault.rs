//! Bad input: what is wrong with it, where, and what to do about it. The one error of everything that reads keys,
//! files or flags.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One step into a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Into a table.
    Key(String),
    /// Into an array.
    Index(usize),
}

/// The place of a value in a document: `cluster.workers[1].count`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyPath(Vec<Step>);

impl KeyPath {
    /// The document itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// Reads "a.b.c" (no indices).
    pub fn of(dotted: &str) -> Self {
        Self(dotted.split('.').map(|key| Step::Key(key.to_owned())).collect())
    }

    /// One key deeper.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.0.push(Step::Key(key.to_owned()));
        self
    }

    /// One element deeper.
    #[must_use]
    pub fn index(mut self, index: usize) -> Self {
        self.0.push(Step::Index(index));
        self
    }

    /// This path below `parent`.
    #[must_use]
    pub fn below(self, mut parent: Self) -> Self {
        parent.0.extend(self.0);
        parent
    }

    /// The steps from the root.
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

/// Part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    /// The whole text.
    pub text: Arc<str>,
    /// Bytes of the part.
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

/// Where bad input was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A file, with the place in it where there is one ("steps.tar.xz, step_0003.pb", "profile.json:12:7"), or a setting
    /// such as "strategy.batch=64".
    pub origin: String,
    /// The part of the file's text that is wrong, where it can be shown.
    pub excerpt: Option<Excerpt>,
}

/// Bad input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The key of a scenario that it is about; the root where it is about none.
    pub key: KeyPath,
    /// Where it was found, where that is known.
    pub place: Option<Place>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl Fault {
    /// A fault of which neither key nor place is known.
    pub fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key: KeyPath::root(), place: None, reason: reason.into(), remedy: remedy.into() }
    }

    /// A fault of the value at `key`.
    pub fn in_key(key: impl Into<KeyPath>, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { key: key.into(), ..Self::new(reason, remedy) }
    }

    /// A fault of a file, or of what is set from outside.
    pub fn in_file(origin: impl Into<String>, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::new(reason, remedy).at(origin)
    }

    /// The same fault, found there.
    #[must_use]
    pub fn at(self, origin: impl Into<String>) -> Self {
        Self { place: Some(Place { origin: origin.into(), excerpt: None }), ..self }
    }

    /// The same fault, its key taken as relative to `parent`.
    #[must_use]
    pub fn below(self, parent: KeyPath) -> Self {
        Self { key: self.key.below(parent), ..self }
    }

    /// What is known of the place: the file or setting; empty where nothing is.
    pub fn origin(&self) -> &str {
        self.place.as_ref().map_or("", |place| &place.origin)
    }

    /// The part of a text that is wrong, where it can be shown.
    pub fn excerpt(&self) -> Option<&Excerpt> {
        self.place.as_ref()?.excerpt.as_ref()
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
