//! Why a file could not be used.

use std::path::Path;
use stepcast_core::profile::ProfileError;

/// What is wrong with a recording or a profile, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}; {remedy}")]
pub struct TraceError {
    /// The file, and the place in it where there is one: "steps.tar.xz, step_0003.pb", "profile.json:12:7".
    pub place: String,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub remedy: String,
}

impl TraceError {
    pub(crate) fn new(
        place: impl Into<String>,
        reason: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { place: place.into(), reason: reason.into(), remedy: remedy.into() }
    }

    /// The system refused to read or write `path`.
    pub(crate) fn system(path: &Path, error: &std::io::Error, remedy: &str) -> Self {
        Self::new(path.display().to_string(), error.to_string(), remedy)
    }

    /// A profile that came out of `place` cannot be used.
    pub(crate) fn profile(place: &str, error: ProfileError) -> Self {
        Self::new(format!("{place}, {}", error.place), error.reason, error.remedy)
    }
}
