//! What is wrong with an input, where, and what to do about it.

use std::fmt;

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

/// An input that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Invalid {
    /// Where it is.
    pub path: KeyPath,
    /// What is wrong with it.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl Invalid {
    /// An error at `path`.
    pub fn new(path: KeyPath, reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path, reason: reason.into(), remedy: remedy.into() }
    }

    /// The same error, its path taken as relative to `parent`.
    #[must_use]
    pub fn below(self, parent: KeyPath) -> Self {
        Self { path: self.path.below(parent), ..self }
    }
}
