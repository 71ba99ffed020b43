//! The result of an import with its side findings.

use crate::content::Content;
use crate::summary::Summary;
use std::fmt::Display;

/// What a recording contains, and what had to be done to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported<T = Content> {
    /// The profile or the model.
    pub content: T,
    /// Figures of the recording that the profile or model does not hold.
    pub summary: Summary,
    /// What was repaired, left out or looks odd: one sentence each, for people to read.
    pub notes: Vec<String>,
}

impl<T> Imported<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Imported<U> {
        Imported { content: change(self.content), summary: self.summary, notes: self.notes }
    }
}

/// Notes how many of `what` there were, if any.
pub(crate) fn tally<N: Display + Default + PartialEq>(notes: &mut Vec<String>, count: N, what: &str) {
    if count != N::default() {
        notes.push(format!("{what}: {count}"));
    }
}
