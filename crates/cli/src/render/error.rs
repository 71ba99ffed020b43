//! One error: the reason, the place with a caret, the remedy.

use super::Screen;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use std::fmt;
use std::ops::Range;
use stepcast_core::invalid::Invalid;
use stepcast_core::scenario::DocumentError;
use stepcast_trace::TraceError;

/// Longer texts are cut: a name of a megabyte helps nobody.
const LONGEST: usize = 600;

/// Bad input, as it is told to its author.
#[derive(Debug)]
pub(crate) struct Complaint {
    reason: String,
    /// File or flag.
    origin: Option<String>,
    /// The file's text and the place in it.
    place: Option<(String, Range<usize>)>,
    remedy: String,
}

impl Complaint {
    pub(crate) fn new(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { reason: reason.into(), origin: None, place: None, remedy: remedy.into() }
    }

    /// The same, told to be in this file or flag unless a place is known.
    #[must_use]
    pub(crate) fn at(mut self, origin: impl Into<String>) -> Self {
        self.origin.get_or_insert(origin.into());
        self
    }

    /// What is wrong with a scenario, or with one of the values set by `--set`.
    pub(crate) fn in_document(error: DocumentError, overrides: &[String]) -> Self {
        let key = error.path.to_string();
        let reason = match error.place {
            None if !key.is_empty() => format!("{key}: {}", error.reason),
            _ => error.reason,
        };
        let flag = error.place.is_none() && overrides.contains(&error.origin);
        let origin = if flag { format!("--set {}", error.origin) } else { error.origin };
        Self { reason, origin: Some(origin), place: error.place, remedy: error.remedy }
    }

    /// What is wrong with a recording, a profile or a file to write.
    pub(crate) fn in_trace(error: TraceError) -> Self {
        Self::new(error.reason, error.remedy).at(error.place)
    }

    /// A name on the command line that is in no list.
    pub(crate) fn in_argument(error: Invalid) -> Self {
        Self::new(error.reason, error.remedy)
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Complaint {}

/// The error as text for standard error, its last line ended.
pub(crate) fn render(error: &anyhow::Error, screen: &Screen) -> String {
    let renderer = if screen.colours { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.term_width(usize::from(screen.width));
    let group = match error.downcast_ref::<Complaint>() {
        Some(complaint) => group(complaint),
        None => Group::with_title(Level::ERROR.primary_title(short(&format!("{error:#}")))),
    };
    renderer.render(&[group]) + "\n"
}

fn group(complaint: &Complaint) -> Group<'_> {
    let mut group = Group::with_title(Level::ERROR.primary_title(short(&complaint.reason)));
    let origin = complaint.origin.as_deref().map(short);
    group = match (&complaint.place, origin) {
        (Some((text, span)), origin) => group.element(
            Snippet::source(text.as_str())
                .path(origin)
                .annotation(AnnotationKind::Primary.span(span.clone())),
        ),
        (None, Some(origin)) => group.element(Origin::path(origin)),
        (None, None) => group,
    };
    if complaint.remedy.is_empty() {
        return group;
    }
    group.element(Level::HELP.message(short(&complaint.remedy)))
}

/// At most [`LONGEST`] characters, none of them a control character.
fn short(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    if text.chars().count() <= LONGEST {
        return text.chars().map(plain).collect();
    }
    text.chars().take(LONGEST).map(plain).chain("…".chars()).collect()
}
