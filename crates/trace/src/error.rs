//! Faults of files that are read and written.

use std::path::Path;
use stepcast_core::fault::Fault;

/// The system refused to read or write `path`.
pub(crate) fn system_fault(path: &Path, error: &std::io::Error, remedy: &str) -> Fault {
    Fault::in_file(path.display().to_string(), error.to_string(), remedy)
}

/// A profile that came out of `place` cannot be used.
pub(crate) fn profile_fault(place: &str, fault: Fault) -> Fault {
    let inner = format!("{place}, {}", fault.origin());
    fault.at(inner)
}
